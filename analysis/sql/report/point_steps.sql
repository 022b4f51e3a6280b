-- Grain: one row a run of point_runs and step of its trace.
-- Columns as in `steps`, and: launches, of every kind together; step_method: how the steps of an import were found
-- (see audits), window where none was and all of the trace counts as one. is_typical: the step that stands for all of
-- them, as for findings: the one of median host time (device time, where the host has none) among the steps of the
-- kind that takes most time, without the first recorded one where there are others.
WITH traced AS MATERIALIZED (FROM _steps_of('point_runs')),
kinds AS (
    SELECT run_id, kind
    FROM traced
    GROUP BY run_id, kind
    QUALIFY row_number() OVER (PARTITION BY run_id ORDER BY sum(wall_us) DESC NULLS LAST, kind) = 1
),
placed AS (
    SELECT
        s.*,
        k.run_id IS NOT NULL AS is_usual,
        count(*) OVER alike AS alike,
        row_number() OVER (PARTITION BY s.run_id, k.run_id IS NOT NULL ORDER BY s.step) = 1 AS is_first
    FROM traced AS s
    LEFT JOIN kinds AS k ON k.run_id = s.run_id AND k.kind IS NOT DISTINCT FROM s.kind
    WINDOW alike AS (PARTITION BY s.run_id, k.run_id IS NOT NULL)
)
SELECT
    run_id, step, kind, start_ns, end_ns, host_end_ns, wall_us, host_us, busy_us, idle_us, queue_us, kernels,
    kernel_launches + memcpy_launches + memset_launches + graph_launches AS launches,
    _fact(step_facts, 'method') AS step_method,
    is_usual AND row_number() OVER (
        PARTITION BY run_id, is_usual ORDER BY is_first, coalesce(host_us, busy_us), step
    ) = greatest(1, alike // 2) AS is_typical
FROM placed
JOIN (SELECT run_id, step_facts FROM stg_runs) USING (run_id)
ORDER BY run_id, step
