-- Rule: Compiled, the host takes longer to issue a step than eager.
-- Topic: torch.compile
-- Severity: costs
-- Needs: sweep, accelerator, warm, compiled
-- Otherwise: the same work was not measured eager in this environment, or one of the two issue times is unknown
-- Means: Guards and wrappers are paid on every call; what they save is the launches that fusion removes. With few operations
--     in a step that is a loss for the host, which only matters where the device waits for it. Above 1.1 times, with
--     intervals that do not touch, it is no noise. Both times are those of all points that
--     launch the same, where there are three.
-- Cure: Leave small steps eager, compile more operations at once, or see `cures` for the mode with the least issue time.
-- See: docs/article.md
WITH beside AS (
    SELECT
        r.run_id, s.issue_us, s.issue_us_low, s.wall_us, s.bound,
        e.issue_us AS eager_us, e.issue_us_high AS eager_us_high, e.wall_us AS eager_wall_us, e.launches AS eager_launches,
        s.issue_us / e.issue_us AS factor,
        ceil(s.issue_us / (e.issue_us / nullif(e.launches, 0)))::BIGINT AS pays_from
    FROM (FROM subjects WHERE status = 'ok' AND NOT is_cold AND compile <> 'false') AS r
    JOIN twins AS t ON t.run_id = r.run_id AND t.setting = 'compile' AND t.other_value = 'false'
    JOIN bounds AS s ON s.point_id = r.point_id AND s.environment_id = r.environment_id
    JOIN bounds AS e ON e.point_id = t.other_point_id AND e.environment_id = r.environment_id
    WHERE s.issue_us > 0 AND e.issue_us > 0
    QUALIFY row_number() OVER (PARTITION BY r.run_id ORDER BY t.other_run_id DESC) = 1
)
SELECT
    run_id,
    coalesce(factor > 1.1 AND issue_us_low > eager_us_high, false) AS fired,
    'the host issues a step in ' || _time(issue_us) || ', eager in ' || _time(eager_us) || ': ' || _number(factor)
        || ' times as long (limit 1.1, and beyond both intervals)' AS reason,
    'The host takes ' || _time(issue_us) || ' to issue a compiled step, ' || _number(factor) || ' times the ' || _time(eager_us)
        || ' of eager' || coalesce(': at eager''s ' || _time(eager_us / eager_launches)
            || ' a launch it pays for the host only in place of ' || pays_from
            || ' launches or more, and an eager step makes ' || _axis_text(eager_launches), '')
        || CASE WHEN bound IN ('compute-bound', 'memory-bound', 'device-bound')
            THEN '; here the device binds, and the step is no longer for it' ELSE '' END || '.' AS sentence,
    CASE WHEN bound = 'overhead-bound' AND wall_us > eager_wall_us THEN wall_us / eager_wall_us END AS gain,
    {'issue_us': issue_us, 'eager_issue_us': eager_us, 'factor': factor, 'pays_from_launches': pays_from} AS figures
FROM beside
