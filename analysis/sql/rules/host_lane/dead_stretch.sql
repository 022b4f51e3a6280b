-- Rule: A step begins with a dead stretch: its annotation opens long before its first operation.
-- Topic: host lane
-- Severity: explains
-- Needs: trace, operations, step
-- Otherwise: the trace marks no steps, or no operation lies in one
-- Means: Between the annotation and its first operation runs Python, or code that leaves no row: imports, lazy set-up,
--     the profiler's own first entries. In the first step alone it is a cold start; in every step it is the program's
--     own Python. A stretch is dead from three times that of the other steps and 40 us more, or from a quarter of the
--     typical step on.
-- Cure: Of the first step alone: add warm-up steps. In every step: do that Python outside of the step, or profile with
--     stacks (profiler.with_stack=true) to see its lines.
-- See: docs/article.md#3-why-does-the-first-recorded-step-take-so-long
WITH stretched AS (
    SELECT
        p.run_id, p.step, p.first_operation_gap_us AS gap_us, p.host_us, p.start_ns,
        row_number() OVER (PARTITION BY p.run_id ORDER BY p.step) AS place
    FROM spans AS p
    JOIN subjects AS s USING (run_id)
    JOIN typical AS t ON t.run_id = p.run_id AND t.kind IS NOT DISTINCT FROM p.kind
    WHERE s.status = 'ok' AND p.first_operation_gap_us >= 0
        AND (NOT s.is_import OR _fact(s.step_facts, 'method') IN ('profiler', 'annotation'))
),
compared AS (
    SELECT
        run_id,
        count(*) AS steps,
        max_by(step, -place) AS step,
        max_by(start_ns, -place) AS start_ns,
        max_by(gap_us, -place) AS first_us,
        coalesce(median(gap_us) FILTER (place > 1), max_by(gap_us, -place)) AS usual_us,
        coalesce(median(gap_us / host_us) FILTER (place > 1), max_by(gap_us / host_us, -place)) AS usual_frac,
        coalesce(steps >= 3 AND first_us > 3 * usual_us AND first_us > usual_us + 40, false) AS is_first,
        coalesce(usual_frac > 0.25 AND usual_us > 10, false) AS is_usual
    FROM stretched
    GROUP BY run_id
),
marks AS (
    SELECT c.run_id, max_by(e.event_id, e.dur_ns) AS event_id
    FROM (FROM events SEMI JOIN chosen_runs USING (run_id) WHERE category = 'user_annotation') AS e
    JOIN (FROM compared WHERE is_first) AS c ON c.run_id = e.run_id AND c.start_ns = e.ts_ns
    GROUP BY c.run_id
)
SELECT
    c.run_id,
    is_first OR is_usual AS fired,
    'from the annotation to the first operation: ' || _time(first_us) || ' in the first recorded step, '
        || _time(usual_us)
        || ' in the median of the others, ' || _percent(usual_frac)
        || ' of a step, under the profiler (limits 3 times and 40 us more, or 25 %)' AS reason,
    CASE
        WHEN is_usual AND steps = 1 THEN 'In the only step ' || _time(usual_us)
            || ' go by before its first operation, ' || _percent(usual_frac) || ' of its host time.'
        WHEN is_usual THEN 'In every step ' || _time(usual_us) || ' go by before its first operation, '
            || _percent(usual_frac)
            || ' of its host time under the profiler.'
        ELSE 'In the first recorded step (' || step || ') ' || _time(first_us)
            || ' go by before its first operation, in the others '
            || _time(usual_us) || ' under the profiler: what the first one alone pays for.'
    END AS sentence,
    CASE WHEN m.event_id IS NULL THEN [] ELSE [m.event_id] END AS event_ids,
    {'first_us': first_us, 'usual_us': usual_us, 'usual_frac': usual_frac} AS figures
FROM compared AS c
LEFT JOIN marks AS m USING (run_id)
