-- Grain: one row a run with a trace.
-- How many events of each sort its trace holds, and the totals of the profiler's table: self times of host events add up
-- to those of the outermost ones.
WITH sorts AS (
    SELECT
        run_id, category,
        bool_or(is_device) AS is_device,
        count(*) AS events,
        count(*) FILTER (category = 'cpu_op' AND starts_with(name, 'Torch-Compiled Region')) AS regions,
        sum(dur_ns) AS dur_ns,
        sum(dur_ns) FILTER (depth = 0) AS outer_ns
    FROM events
    SEMI JOIN chosen_runs USING (run_id)
    GROUP BY run_id, category
)
SELECT
    run_id,
    sum(events) AS events,
    coalesce(sum(events) FILTER (is_device), 0) AS device_events,
    coalesce(sum(events) FILTER (_is_runtime(category)), 0) AS calls,
    coalesce(sum(events) FILTER (category = 'cpu_op'), 0) AS operations,
    coalesce(sum(events) FILTER (category = 'python_function'), 0) AS stacks,
    coalesce(sum(events) FILTER (category = 'cpu_instant_event'), 0) AS memory_events,
    coalesce(sum(regions), 0) AS regions,
    sum(outer_ns) FILTER (category IN ('cpu_op', 'user_annotation') OR _is_runtime(category)) / 1e3 AS host_total_us,
    sum(dur_ns) FILTER (is_device) / 1e3 AS device_total_us
FROM sorts
GROUP BY run_id
