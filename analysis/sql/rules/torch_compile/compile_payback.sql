-- Rule: Compiling takes longer to pay back than most runs last, or never does.
-- Topic: torch.compile
-- Severity: costs
-- Needs: sweep, times, warm, compiled
-- Otherwise: the same work was not measured eager in this environment, or the seconds of compiling are unknown
-- Means: The seconds of compiling, over what a step saves against eager, are the steps after which it has paid. The fewest are
--     those by the ends of both intervals: above 10,000 only long runs reach them. A compiled step that is slower never pays.
-- Cure: Keep the compiled code (torch's cache on disk serves the next process), compile less, or stay eager.
-- See: docs/article.md
WITH beside AS (
    SELECT
        r.run_id, r.compile_s, s.wall_us, e.wall_us AS eager_us,
        e.wall_us_high - s.wall_us_low AS most_saved_us,
        CASE WHEN e.wall_us > s.wall_us THEN ceil(r.compile_s * 1e6 / (e.wall_us - s.wall_us))::BIGINT END AS usual_steps,
        CASE WHEN most_saved_us > 0 THEN ceil(r.compile_s * 1e6 / most_saved_us)::BIGINT END AS least_steps,
        CASE
            WHEN least_steps IS NULL THEN 'it never pays'
            WHEN usual_steps IS NULL THEN 'it saves nothing (by the ends of both intervals it has paid after '
                || _counted(least_steps, 'step') || ')'
            ELSE 'it has paid after ' || _counted(usual_steps, 'step') || ' (by the ends of both intervals after '
                || least_steps || ')'
        END AS paid
    FROM (FROM subjects WHERE status = 'ok' AND NOT is_cold AND compile <> 'false' AND compile_s > 0) AS r
    JOIN twins AS t ON t.run_id = r.run_id AND t.setting = 'compile' AND t.other_value = 'false'
    JOIN bounds AS s ON s.point_id = r.point_id AND s.environment_id = r.environment_id
    JOIN bounds AS e ON e.point_id = t.other_point_id AND e.environment_id = r.environment_id
    WHERE s.wall_us_low IS NOT NULL AND e.wall_us_high IS NOT NULL
    QUALIFY row_number() OVER (PARTITION BY r.run_id ORDER BY t.other_run_id DESC) = 1
)
SELECT
    run_id,
    coalesce(least_steps > 10000, true) AS fired,
    paid || ' (limit: more than 10000 by the ends)' AS reason,
    'Compiling took ' || _time(compile_s * 1e6) || ', and a step takes ' || _time(wall_us) || ' against ' || _time(eager_us)
        || ' eager: ' || paid || '.' AS sentence,
    {
        'compile_s': compile_s, 'wall_us': wall_us, 'eager_wall_us': eager_us,
        'steps': usual_steps, 'least_steps': least_steps
    } AS figures
FROM beside
