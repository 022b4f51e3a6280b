-- Grain: one row a run with a trace.
-- How many events of each sort its trace holds.
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
    count(grid) AS grids
FROM events
SEMI JOIN query_table(chosen) USING (run_id)
GROUP BY run_id
