-- Grain: one row a launch group and sweep that measured at least three points of it.
CREATE VIEW _sweep_issues AS
SELECT environment_id, launch_group, sweep_id, median(issue_us) AS issue_us
FROM stg_runs
JOIN _launch_points USING (point_id, environment_id)
WHERE status = 'ok' AND issue_us > 0
GROUP BY environment_id, launch_group, sweep_id
HAVING count(DISTINCT point_id) >= 3;

COMMENT ON VIEW _sweep_issues IS 'One row a launch group and sweep of at least three of its points: their issue time.';
COMMENT ON COLUMN _sweep_issues.issue_us IS 'Median issue time of the runs; microseconds.';
