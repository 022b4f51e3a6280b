-- Grain: one row a launch group of at least three points with an issue time.
-- Issue time is a property of what a step launches: the median over the points. Its interval is that of a median, by the
-- robust spread of the points, and by how much sweeps differ where several measured the group: by their spread in the
-- environment, else it reaches to the farthest of them. One sweep is worth as many runs as its most repeated point has:
-- each came from a worker of its own, and what a worker does to one point it does to all.
CREATE TABLE _issue_times AS
WITH issues AS (
    SELECT environment_id, launch_group, issue_us, ok_runs
    FROM points
    JOIN _launch_points USING (point_id, environment_id)
    WHERE issue_us > 0
),
pooled AS (
    SELECT environment_id, launch_group, any_value(middle) AS issue_us, count(*) AS points,
        max(ok_runs) AS runs, median(abs(ln(issue_us / middle))) / 0.6745 AS sd_frac
    FROM issues
    JOIN (
        SELECT environment_id, launch_group, median(issue_us) AS middle
        FROM issues
        GROUP BY environment_id, launch_group
        HAVING count(*) >= 3
    ) USING (environment_id, launch_group)
    GROUP BY environment_id, launch_group
),
between_sweeps AS (
    SELECT environment_id, launch_group, count(*) AS sweeps, max(abs(ln(s.issue_us / p.issue_us))) AS farthest
    FROM _sweep_issues AS s
    JOIN pooled AS p USING (environment_id, launch_group)
    GROUP BY environment_id, launch_group
    HAVING count(*) > 1
),
reaching AS (
    SELECT
        p.*,
        1.959964 * p.sd_frac * sqrt(pi() / 2 / p.points) AS among,
        coalesce(
            _t_quantile(s.dof) * s.sd_frac * sqrt(_median_share(b.sweeps)),
            b.farthest,
            _t_quantile(r.dof) * r.sd_frac * sqrt(_median_share(p.runs)),
            0
        ) AS apart,
        sqrt(among * among + apart * apart) AS reach
    FROM pooled AS p
    LEFT JOIN between_sweeps AS b USING (environment_id, launch_group)
    LEFT JOIN _spread AS s ON s.environment_id = p.environment_id AND s.quantity = 'issue of sweeps'
    LEFT JOIN _spread AS r ON r.environment_id = p.environment_id AND r.quantity = 'issue'
)
SELECT
    environment_id, launch_group, points, sd_frac,
    issue_us, issue_us * exp(-reach) AS issue_us_low, issue_us * exp(reach) AS issue_us_high
FROM reaching;

COMMENT ON TABLE _issue_times IS 'One row a launch group of at least three points: the issue time that they share.';
COMMENT ON COLUMN _issue_times.points IS 'Number of its points with an issue time.';
COMMENT ON COLUMN _issue_times.sd_frac IS 'Robust standard deviation of their issue times, as a fraction.';
COMMENT ON COLUMN _issue_times.issue_us IS 'Median of their issue times; microseconds.';
COMMENT ON COLUMN _issue_times.issue_us_low IS 'Low end of its 95 % interval.';
COMMENT ON COLUMN _issue_times.issue_us_high IS 'High end of its 95 % interval.';
