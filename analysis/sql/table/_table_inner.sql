-- Grain: one row an event of the host in which device work was launched or memory moved, and event around it, itself
-- included. Work belongs to the innermost operator or annotation around its launch, memory to the innermost event.
CREATE OR REPLACE TEMP TABLE _table_inner AS
WITH RECURSIVE launching AS (
    SELECT launch_id, launch_id AS event_id, sum(dur_ns) AS device_ns
    FROM _table_events
    WHERE kind = 'work' AND launch_id IS NOT NULL
    GROUP BY launch_id
    UNION ALL
    SELECT l.launch_id, e.parent_id, l.device_ns
    FROM launching AS l
    JOIN _table_events AS e USING (event_id)
    WHERE e.kind NOT IN ('operator', 'annotation') AND e.parent_id IS NOT NULL
),
moved AS (
    SELECT event_id, device_ns, 0 AS host_bytes, 0 AS device_bytes
    FROM launching
    JOIN _table_events AS e USING (event_id)
    WHERE e.kind IN ('operator', 'annotation')
    UNION ALL
    -- c10's numbers of device types: the host's own are CPU, MKLDNN and IDEEP
    SELECT
        coalesce(parent_id, event_id), 0,
        CASE WHEN _fact(args, '"Device Type"') IN ('0', '2', '5') THEN bytes ELSE 0 END,
        CASE WHEN _fact(args, '"Device Type"') NOT IN ('0', '2', '5') THEN bytes ELSE 0 END
    FROM _table_events
    WHERE kind = 'memory'
),
inner_events AS (
    SELECT
        event_id AS inner_id, sum(device_ns)::BIGINT AS device_ns, sum(host_bytes)::BIGINT AS host_bytes,
        sum(device_bytes)::BIGINT AS device_bytes
    FROM moved
    GROUP BY event_id
),
climbing AS (
    SELECT inner_id, inner_id AS event_id
    FROM inner_events
    UNION ALL
    SELECT c.inner_id, e.parent_id
    FROM climbing AS c
    JOIN _table_events AS e USING (event_id)
    WHERE e.parent_id IS NOT NULL
)
FROM climbing
JOIN inner_events USING (inner_id);

COMMENT ON TABLE _table_inner IS 'One row an event that moved device time or memory, and event around it.';
