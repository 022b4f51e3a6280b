-- Rule: Another mode of torch.compile, or eager, was measured to lower the host's time.
-- Topic: torch.compile
-- Severity: costs
-- Needs: sweep, accelerator, warm
-- Otherwise: the same work was measured under no other mode in this environment, or an issue time is unknown
-- Means: Modes differ in what the host does for a step: eager launches each operation, compiled code pays guards and
--     wrappers once, CUDA graphs launch once but may copy inputs. Which is least can only be measured. Below 1.1 times, or
--     within the intervals, it is noise; where the device binds nothing is gained.
-- Cure: Take the mode with the least issue time; view `cures` ranks all of them by the step's time too.
WITH modes AS (
    SELECT
        r.run_id, s.issue_us, s.issue_us_low, s.wall_us, s.bound,
        count(DISTINCT t.other_value) AS modes,
        min_by(
            {'value': t.other_value, 'issue_us': o.issue_us, 'high_us': o.issue_us_high, 'wall_us': o.wall_us}, o.issue_us
        ) AS best
    FROM (FROM subjects WHERE status = 'ok' AND NOT is_cold) AS r
    JOIN twins AS t ON t.run_id = r.run_id AND t.setting = 'compile'
    JOIN bounds AS s ON s.point_id = r.point_id AND s.environment_id = r.environment_id
    JOIN bounds AS o ON o.point_id = t.other_point_id AND o.environment_id = r.environment_id
    WHERE s.issue_us > 0 AND o.issue_us > 0
    GROUP BY r.run_id, s.issue_us, s.issue_us_low, s.wall_us, s.bound
),
named AS (
    SELECT *, CASE best.value WHEN 'false' THEN 'eager' ELSE 'compile=' || best.value END AS name FROM modes
)
SELECT
    run_id,
    coalesce(bound = 'overhead-bound' AND issue_us > 1.1 * best.issue_us AND issue_us_low > best.high_us, false) AS fired,
    'of ' || _counted(modes, 'other mode') || ' measured ' || name || ' issues a step fastest, in '
        || _time(best.issue_us) || ' against '
        || _time(issue_us) || ' here, and the step is ' || bound
        || ' (limit: 1.1 times less, beyond both intervals, and overhead-bound)' AS reason,
    'Of ' || _counted(modes, 'other mode') || ' measured, ' || name || ' has the least host time: it issues a step in '
        || _time(best.issue_us) || ' in place of ' || _time(issue_us) || ', and the step takes ' || _time(best.wall_us)
        || ' in place of ' || _time(wall_us) || '.' AS sentence,
    'Take ' || name || '; `cures` ranks all modes by the step''s time.' AS cure,
    CASE WHEN wall_us > best.wall_us THEN wall_us / best.wall_us END AS gain,
    {'modes': modes, 'issue_us': issue_us, 'best_issue_us': best.issue_us, 'best_wall_us': best.wall_us} AS figures
FROM named
