-- Grain: one row a compared point and quantity that both sides have.
-- error is the standard error of the logarithm of the ratio. A side's part of it is the spread between runs, at least
-- what the runs' own intervals say, times the variance of a median of so many runs. Where a side does not know the
-- spread, the ratios of all points of a kind (their quantity, the host binding or not, eager or compiled; else all)
-- tell it, by how much they differ among each other: those of at least four points, one farther away than 5 robust
-- standard deviations counted as if it lay there. Device times that were taken by different methods are different
-- times: such a ratio has no error.
CREATE TABLE _ratios AS
WITH paired AS (
    SELECT
        m.axes, a.quantity, a."value" AS a_value, b."value" AS b_value, a.runs AS a_runs, b.runs AS b_runs,
        ln(b."value" / a."value") AS log_ratio,
        a.method AS a_method, b.method AS b_method,
        a.method IS NOT DISTINCT FROM b.method AS is_alike,
        concat_ws('|', a.differs_as, m.compile = 'false') AS kind,
        pow(greatest(a.own_sd, a.sd_frac), 2) * _median_share(a.runs) AS a_variance,
        pow(greatest(b.own_sd, b.sd_frac), 2) * _median_share(b.runs) AS b_variance,
        a.sd_frac IS NOT NULL AND b.sd_frac IS NOT NULL AS is_known,
        least(a.dof, b.dof) AS known_dof
    FROM matched_points AS m
    JOIN given_times AS a ON a.axes = m.axes AND a.side = 'a'
    JOIN given_times AS b ON b.axes = m.axes AND b.side = 'b' AND b.quantity = a.quantity
    WHERE m.state = 'compared'
),
kinds AS ( -- each point counts for its kind, and for all points with the quantity
    SELECT log_ratio, unnest([kind, quantity]) AS kind
    FROM paired
    WHERE is_alike
),
far AS (
    SELECT kind, abs(log_ratio - median(log_ratio) OVER alike) AS far, count(*) OVER alike AS points
    FROM kinds
    WINDOW alike AS (PARTITION BY kind)
),
capped AS (
    SELECT kind, sqrt(sum(pow(least(far, cap), 2)) / (count(*) - 1)) AS kind_sd, count(*) - 1 AS kind_dof
    FROM (SELECT *, 5 * median(far) OVER (PARTITION BY kind) / 0.6745 AS cap FROM far WHERE points >= 4)
    GROUP BY kind
)
SELECT
    p.axes, p.quantity, p.a_value, p.b_value, p.a_runs, p.b_runs, p.a_method, p.b_method, p.log_ratio,
    CASE
        WHEN NOT is_alike THEN 'nothing'
        WHEN is_known THEN 'repeated runs'
        WHEN kind_sd IS NOT NULL THEN 'points among each other'
        WHEN coalesce(a_variance, b_variance) IS NOT NULL THEN 'runs alone'
        ELSE 'nothing'
    END AS basis,
    CASE
        WHEN NOT is_alike THEN NULL
        WHEN is_known THEN sqrt(a_variance + b_variance)
        WHEN kind_sd IS NOT NULL THEN greatest(kind_sd, sqrt(coalesce(a_variance, 0) + coalesce(b_variance, 0)))
        WHEN coalesce(a_variance, b_variance) IS NOT NULL THEN sqrt(coalesce(a_variance, 0) + coalesce(b_variance, 0))
    END AS error,
    CASE WHEN is_known THEN known_dof WHEN kind_sd IS NOT NULL THEN kind_dof ELSE 200 END::BIGINT AS dof
FROM paired AS p
LEFT JOIN capped AS c
    ON c.kind = CASE WHEN p.kind IN (SELECT kind FROM capped) THEN p.kind ELSE p.quantity END;

COMMENT ON TABLE _ratios IS 'One row a compared point and quantity: both values, and how sure their ratio is.';
COMMENT ON COLUMN _ratios.log_ratio IS 'ln(b / a).';
COMMENT ON COLUMN _ratios.basis IS
    'What the error rests on: repeated runs; points among each other (how much their ratios differ); runs alone (their
    own intervals, which say nothing of another session); nothing (no interval, or taken by different methods).';
COMMENT ON COLUMN _ratios.a_method IS 'How a device time of a was taken.';
COMMENT ON COLUMN _ratios.b_method IS 'How a device time of b was taken.';
COMMENT ON COLUMN _ratios.error IS 'Standard error of log_ratio; NULL = unknown.';
COMMENT ON COLUMN _ratios.dof IS 'Degrees of freedom that error rests on.';
