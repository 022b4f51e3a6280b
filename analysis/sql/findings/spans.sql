-- Grain: one row a run and step of its trace.
-- Columns as in `steps`. Of a sweep's steps only what their marks tell: the rest is in `typical`, for one of them.
WITH marks AS (
    SELECT
        e.run_id, e.step,
        max(e.event_id) FILTER (e.name = r.workload) AS mark_id,
        coalesce(min(e.ts_ns) FILTER (e.name = r.workload), min(e.ts_ns)) AS start_ns,
        coalesce(max(e.ts_ns + e.dur_ns) FILTER (e.name = r.workload), max(e.ts_ns + e.dur_ns)) AS end_ns,
        coalesce(sum(e.dur_ns) FILTER (e.name = r.workload), max(e.dur_ns)) / 1e3 AS host_us
    FROM events AS e
    JOIN (FROM stg_runs SEMI JOIN chosen_runs USING (run_id) WHERE source IS DISTINCT FROM 'import') AS r USING (run_id)
    WHERE e.category = 'user_annotation' AND e.step IS NOT NULL
        AND (e.name = r.workload OR starts_with(e.name, 'ProfilerStep#'))
    GROUP BY e.run_id, e.step
),
first_operations AS (
    SELECT m.run_id, m.step, min(e.ts_ns) AS first_ns
    FROM events AS e
    JOIN marks AS m ON m.run_id = e.run_id AND m.mark_id = e.parent_id
    WHERE e.category = 'cpu_op'
    GROUP BY m.run_id, m.step
)
SELECT
    m.run_id, m.step, NULL::VARCHAR AS kind, m.start_ns, m.end_ns, m.host_us,
    (f.first_ns - m.start_ns) / 1e3 AS first_operation_gap_us
FROM marks AS m
LEFT JOIN first_operations AS f USING (run_id, step)
UNION ALL BY NAME
FROM _import_spans
SEMI JOIN chosen_runs USING (run_id)
