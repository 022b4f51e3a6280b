-- Grain: one row an environment and quantity of which a point has several ok runs; `wall by the host` is that of points
-- that issue longer than the device works, `wall` that of all others; `issue of sweeps` is the pooled issue time of a
-- launch group, which several sweeps may have measured.
-- Standard deviation of the logarithm of a run about the mean of its point, over all points. A run farther away than 5
-- robust standard deviations counts as if it lay there: a few wild runs must not widen every interval, but what happens
-- to one run in twenty must.
CREATE TABLE _spread AS
WITH logs AS (
    SELECT environment_id, differs_as AS quantity, point_id, ln("value") AS log FROM _run_times WHERE "value" > 0
    UNION ALL
    SELECT environment_id, 'issue of sweeps', launch_group, ln(issue_us) FROM _sweep_issues
),
deviations AS (
    SELECT environment_id, quantity, point_id, unnest([abs(each - list_avg(logs)) FOR each IN logs]) AS far, share
    FROM (
        SELECT environment_id, quantity, point_id, list(log) AS logs, 1 - 1 / count(*) AS share
        FROM logs
        GROUP BY environment_id, quantity, point_id
        HAVING count(*) > 1
    )
),
caps AS (
    SELECT environment_id, quantity, 5 * median(far / sqrt(share)) / 0.6745 AS cap
    FROM deviations
    GROUP BY environment_id, quantity
)
SELECT
    environment_id,
    quantity,
    count(DISTINCT point_id) AS points,
    count(*) AS runs,
    runs - points AS dof,
    CASE WHEN dof >= 3 THEN sqrt(sum(pow(least(far, cap * sqrt(share)), 2)) / dof) END AS sd_frac
FROM deviations
JOIN caps USING (environment_id, quantity)
GROUP BY environment_id, quantity;

COMMENT ON TABLE _spread IS 'One row an environment and quantity that was measured repeatedly: how much runs differ.';
COMMENT ON COLUMN _spread.points IS 'Number of points with several runs.';
COMMENT ON COLUMN _spread.runs IS 'Number of their runs.';
COMMENT ON COLUMN _spread.dof IS 'Degrees of freedom: runs - points.';
COMMENT ON COLUMN _spread.sd_frac IS
    'Standard deviation of one run about its point, as a fraction; NULL with fewer than 3 degrees of freedom.';
