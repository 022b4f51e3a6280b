-- Grain: one row a run and call path of its typical step (of its whole trace where no step was found).
-- A path is the names of a host event and of those around it on its thread; what the device did lies below the path
-- that launched it. host_us: time of the host in the event itself, not in those inside it; device_us: time of the work;
-- microseconds, under the profiler. Work without a launch in the trace has a path of its own.
WITH RECURSIVE inside AS (
    SELECT run_id, parent_id AS event_id, sum(dur_ns) AS dur_ns
    FROM point_events
    WHERE in_step AND NOT is_device AND parent_id IS NOT NULL
    GROUP BY run_id, parent_id
),
host AS MATERIALIZED (
    SELECT
        e.run_id, e.event_id, e.parent_id, e.name, e.category,
        greatest(0, e.dur_ns - coalesce(i.dur_ns, 0)) AS self_ns
    FROM point_events AS e
    LEFT JOIN inside AS i USING (run_id, event_id)
    WHERE e.in_step AND NOT e.is_device AND e.category <> 'overhead'
),
climbed AS (
    SELECT h.run_id, h.event_id, hash(h.name) AS path, NULL::UBIGINT AS above, h.name, h.category, h.self_ns
    FROM host AS h
    ANTI JOIN host AS p ON p.run_id = h.run_id AND p.event_id = h.parent_id
    UNION ALL
    SELECT h.run_id, h.event_id, hash(c.path, h.name), c.path, h.name, h.category, h.self_ns
    FROM climbed AS c
    JOIN host AS h ON h.run_id = c.run_id AND h.parent_id = c.event_id
),
worked AS (
    SELECT
        e.run_id, c.path AS above, e.name, e.category, e.dur_ns,
        CASE WHEN c.path IS NULL THEN hash('', e.name) ELSE hash(c.path, e.name, true) END AS path
    FROM point_events AS e
    LEFT JOIN climbed AS c ON c.run_id = e.run_id AND c.event_id = e.launch_id
    WHERE e.in_step AND e.is_device
)
SELECT
    run_id, path, any_value(above) AS above, any_value(name) AS name, any_value(category) AS category,
    count(*) AS calls, sum(self_ns) / 1e3 AS host_us, 0 AS device_us, false AS is_device, min(event_id) AS first_id
FROM climbed
GROUP BY run_id, path
UNION ALL
SELECT
    run_id, path, any_value(above), any_value(name), any_value(category), count(*), 0, sum(dur_ns) / 1e3, true, NULL
FROM worked
GROUP BY run_id, path
