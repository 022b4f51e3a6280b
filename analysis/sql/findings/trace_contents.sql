-- Grain: one row a run with a trace.
-- How many events of each sort its trace holds, and the totals of the profiler's table: self times of host events add up
-- to those of the outermost ones.
SELECT
    run_id,
    count(*) AS events,
    count(*) FILTER (is_device) AS device_events,
    count(*) FILTER (_is_runtime(category)) AS calls,
    count(*) FILTER (category = 'cpu_op') AS operations,
    count(*) FILTER (category = 'python_function') AS stacks,
    count(*) FILTER (category = 'cpu_instant_event') AS memory_events,
    count(*) FILTER (starts_with(name, 'Torch-Compiled Region')) AS regions,
    count(shapes) AS shaped,
    count(grid) AS grids,
    sum(dur_ns) FILTER (depth = 0 AND (category IN ('cpu_op', 'user_annotation') OR _is_runtime(category))) / 1e3
        AS host_total_us,
    sum(dur_ns) FILTER (is_device) / 1e3 AS device_total_us,
    sum(dur_ns) FILTER (_is_runtime(category) AND _is_waiting(name)) / 1e3 AS waiting_us
FROM events
SEMI JOIN query_table(chosen) USING (run_id)
GROUP BY run_id
