-- Grain: one row a run and name of a call of the device's runtime or driver, over all of the trace.
-- inside: those that belong to a step; the runner's fences, which end its windows, are told apart.
WITH fences AS (
    SELECT run_id, event_id
    FROM events
    SEMI JOIN chosen_runs USING (run_id)
    WHERE category = 'user_annotation' AND name = 'crossover: fence'
),
called AS (
    SELECT c.run_id, c.name, c.event_id, c.step, c.dur_ns, f.event_id IS NOT NULL AS is_fence,
        c.step IS NOT NULL AND NOT is_fence AS is_inside
    FROM (FROM events SEMI JOIN chosen_runs USING (run_id) WHERE _is_runtime(category)) AS c
    LEFT JOIN fences AS f ON f.run_id = c.run_id AND f.event_id = c.parent_id
)
SELECT
    run_id, name,
    count(*) AS calls,
    count(*) FILTER (is_inside) AS inside,
    count(*) FILTER (is_fence) AS fences,
    sum(dur_ns) / 1e3 AS total_us,
    coalesce(sum(dur_ns) FILTER (is_inside), 0) / 1e3 AS inside_us,
    coalesce(sum(dur_ns) FILTER (is_fence), 0) / 1e3 AS fence_us,
    min(step) FILTER (is_inside) AS first_step,
    max(step) FILTER (is_inside) AS last_step,
    max_by(event_id, dur_ns) AS longest_id,
    max_by(event_id, dur_ns) FILTER (is_inside) AS longest_inside_id,
    max(dur_ns) / 1e3 AS longest_us,
    max(dur_ns) FILTER (is_inside) / 1e3 AS longest_inside_us
FROM called
GROUP BY run_id, name
