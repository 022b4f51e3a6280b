-- Grain: one row a run and profiled step.
-- A step is the annotation of the workload's name inside ProfilerStep#N; where there is none, ProfilerStep#N itself.
CREATE VIEW steps AS
WITH marks AS (
    SELECT
        e.run_id,
        e.step,
        coalesce(min(e.ts_ns) FILTER (e.name = r.workload), min(e.ts_ns)) AS start_ns,
        coalesce(sum(e.dur_ns) FILTER (e.name = r.workload), max(e.dur_ns)) / 1e3 AS host_us
    FROM events AS e
    JOIN stg_runs AS r USING (run_id)
    WHERE e.category = 'user_annotation' AND e.step IS NOT NULL
        AND (e.name = r.workload OR starts_with(e.name, 'ProfilerStep#'))
    GROUP BY e.run_id, e.step
),
calls AS (
    SELECT
        e.run_id,
        e.step,
        (min(e.ts_ns) FILTER (e.category = 'cpu_op') - any_value(m.start_ns)) / 1e3 AS first_operation_gap_us,
        count(*) FILTER (kind = 'kernel') AS kernel_launches,
        count(*) FILTER (kind = 'memcpy') AS memcpy_launches,
        count(*) FILTER (kind = 'memset') AS memset_launches,
        count(*) FILTER (kind = 'graph') AS graph_launches
    FROM (
        SELECT
            run_id, step, ts_ns, category,
            CASE
                WHEN category NOT IN ('cuda_runtime', 'cuda_driver') THEN NULL
                WHEN contains(name, 'GraphLaunch') THEN 'graph'
                WHEN regexp_matches(name, 'Launch.*Kernel') THEN 'kernel'
                WHEN regexp_matches(name, '(?i)memcpy') THEN 'memcpy'
                WHEN regexp_matches(name, '(?i)memset') THEN 'memset'
            END AS kind
        FROM events
        WHERE step IS NOT NULL AND category IN ('cpu_op', 'cuda_runtime', 'cuda_driver')
    ) AS e
    JOIN marks AS m ON m.run_id = e.run_id AND m.step = e.step AND e.ts_ns >= m.start_ns
    GROUP BY e.run_id, e.step
),
intervals AS (
    SELECT
        run_id, step, category, ts_ns, ts_ns + dur_ns AS end_ns,
        max(ts_ns + dur_ns) OVER (
            PARTITION BY run_id, step ORDER BY ts_ns ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS covered_ns
    FROM events
    WHERE is_device AND step IS NOT NULL
),
work AS (
    SELECT
        run_id,
        step,
        sum(greatest(0, end_ns - greatest(ts_ns, coalesce(covered_ns, ts_ns)))) / 1e3 AS busy_us,
        count(*) FILTER (category = 'kernel') AS kernels
    FROM intervals
    GROUP BY run_id, step
)
SELECT
    run_id,
    step,
    m.host_us,
    w.busy_us,
    coalesce(c.kernel_launches, 0) AS kernel_launches,
    coalesce(c.memcpy_launches, 0) AS memcpy_launches,
    coalesce(c.memset_launches, 0) AS memset_launches,
    coalesce(c.graph_launches, 0) AS graph_launches,
    coalesce(w.kernels, 0) AS kernels,
    c.first_operation_gap_us
FROM marks AS m
LEFT JOIN calls AS c USING (run_id, step)
LEFT JOIN work AS w USING (run_id, step);

COMMENT ON VIEW steps IS 'One row a run and profiled step: host time, busy device time, launches by kind.';
COMMENT ON COLUMN steps.step IS 'Number of the profiler step.';
COMMENT ON COLUMN steps.host_us IS 'Host time of the step''s annotation, with the profiler''s own cost; microseconds.';
COMMENT ON COLUMN steps.busy_us IS
    'Union of the device intervals that the step launched; NULL without device work; microseconds.';
COMMENT ON COLUMN steps.kernel_launches IS 'Host calls that launch one kernel.';
COMMENT ON COLUMN steps.memcpy_launches IS 'Host calls that start a copy.';
COMMENT ON COLUMN steps.memset_launches IS 'Host calls that start a fill.';
COMMENT ON COLUMN steps.graph_launches IS 'Host calls that launch a graph.';
COMMENT ON COLUMN steps.kernels IS 'Kernels that ran for the step.';
COMMENT ON COLUMN steps.first_operation_gap_us IS
    'From the start of the annotation to its first operation; microseconds.';
