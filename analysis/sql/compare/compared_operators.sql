-- Grain: one row an operator (a cpu_op's name, with its shapes where they are asked for), both sides beside each other.
-- Self time is an operator's duration less that of its direct children. Device time belongs to the innermost operator
-- around its launch, so that it is counted once; what no operator launched stands under a name of its own.
CREATE OR REPLACE TEMP VIEW compared_operators AS
WITH RECURSIVE children AS (
    SELECT run_id, parent_id AS event_id, sum(dur_ns) AS dur_ns
    FROM _compared_events
    WHERE parent_id IS NOT NULL AND NOT is_device
    GROUP BY ALL
),
launches AS (
    SELECT run_id, launch_id, sum(dur_ns) AS device_ns
    FROM _compared_events
    WHERE is_device AND counts
    GROUP BY ALL
),
climbing AS (
    SELECT l.run_id, l.launch_id, e.parent_id AS above_id
    FROM launches AS l
    JOIN _compared_events AS e ON e.run_id = l.run_id AND e.event_id = l.launch_id
    UNION
    SELECT c.run_id, c.launch_id, e.parent_id
    FROM climbing AS c
    JOIN _compared_events AS e ON e.run_id = c.run_id AND e.event_id = c.above_id
    WHERE e.category <> 'cpu_op'
),
launching AS (
    SELECT c.run_id, c.launch_id, e.event_id, e.name, e.shapes
    FROM climbing AS c
    JOIN _compared_events AS e ON e.run_id = c.run_id AND e.event_id = c.above_id
    WHERE e.category = 'cpu_op'
),
times AS (
    SELECT e.run_id, e.name, e.shapes, 1 AS calls, greatest(0, e.dur_ns - coalesce(c.dur_ns, 0)) AS host_ns, 0 AS device_ns
    FROM _compared_events AS e
    LEFT JOIN children AS c USING (run_id, event_id)
    WHERE e.category = 'cpu_op' AND e.counts
    UNION ALL
    SELECT l.run_id, coalesce(o.name, '(no operator)'), o.shapes, CASE WHEN o.name IS NOT NULL THEN 0 END, NULL, l.device_ns
    FROM launches AS l
    LEFT JOIN launching AS o ON o.run_id = l.run_id AND o.launch_id = l.launch_id
),
sides AS (
    SELECT
        side, name, shapes,
        sum(calls) / any_value(steps) AS calls,
        sum(host_ns) / any_value(steps) / 1e3 AS host_us,
        sum(device_ns) / any_value(steps) / 1e3 AS device_us
    FROM compared_runs
    JOIN times USING (run_id)
    JOIN (SELECT run_id, any_value(steps) AS steps FROM _compared_events GROUP BY run_id) USING (run_id)
    GROUP BY ALL
)
SELECT
    coalesce(a.name, b.name) AS name,
    coalesce(a.shapes, b.shapes) AS shapes,
    a.calls AS a_calls, b.calls AS b_calls,
    a.host_us AS a_host_us, b.host_us AS b_host_us,
    a.device_us AS a_device_us, b.device_us AS b_device_us
FROM (FROM sides WHERE side = 'a') AS a
FULL JOIN (FROM sides WHERE side = 'b') AS b ON a.name = b.name AND a.shapes IS NOT DISTINCT FROM b.shapes;

COMMENT ON VIEW compared_operators IS 'One row an operator: calls, self host time and device time a step of both sides.';
COMMENT ON COLUMN compared_operators.name IS
    'Name of the operator; `(no operator)` is device time that none launched, or whose launch is not in the trace.';
COMMENT ON COLUMN compared_operators.shapes IS 'JSON of its input shapes, where they are asked for.';
COMMENT ON COLUMN compared_operators.a_calls IS 'Calls a step of a; NULL = a has none.';
COMMENT ON COLUMN compared_operators.b_calls IS 'Calls a step of b; NULL = b has none.';
COMMENT ON COLUMN compared_operators.a_host_us IS 'Self host time a step of a, under the profiler; microseconds.';
COMMENT ON COLUMN compared_operators.b_host_us IS 'Self host time a step of b, under the profiler; microseconds.';
COMMENT ON COLUMN compared_operators.a_device_us IS 'Device time a step that it launched in a; microseconds.';
COMMENT ON COLUMN compared_operators.b_device_us IS 'Device time a step that it launched in b; microseconds.';
