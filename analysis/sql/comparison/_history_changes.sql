-- Grain: one row a point (or series) and sweep with a value, beside the one before it.
-- error is the standard error of the logarithm of their ratio: how far a value usually lies from the one before it in
-- the same environment, by the median over all points of a kind, which a few real changes do not move; by the median
-- over the point's own sweeps where that is more; no less than the runs' own intervals say, nor than two runs of a
-- point differ in that environment (_spread), which is what `compare` judges by. Below 12 pairs these stand alone.
CREATE OR REPLACE TEMP TABLE _history_changes AS
WITH valued AS (
    SELECT
        *,
        lag("value") OVER in_time AS previous,
        lag(low) OVER in_time AS previous_low,
        lag(high) OVER in_time AS previous_high,
        lag(own_variance) OVER in_time AS previous_variance,
        lag(environment_id) OVER in_time AS previous_environment_id,
        lag(method) OVER in_time AS previous_method
    FROM _history
    WHERE "value" IS NOT NULL
    WINDOW in_time AS (PARTITION BY axes, axis ORDER BY started_at, sweep_id, environment_id)
),
ratios AS (
    SELECT
        *,
        _log("value") - _log(previous) AS log_ratio,
        coalesce(method <> previous_method, false) AS is_otherwise,
        previous_environment_id = environment_id AND NOT is_otherwise AS is_same
    FROM valued
),
usual AS (
    SELECT kind, median(abs(log_ratio)) / 0.6745 AS usual_sd, floor(0.37 * count(log_ratio))::BIGINT AS usual_dof
    FROM ratios
    WHERE is_same
    GROUP BY ROLLUP (kind)
    HAVING count(log_ratio) >= 12
),
own AS (
    SELECT axes, median(abs(log_ratio)) / 0.6745 AS point_sd
    FROM ratios
    WHERE is_same
    GROUP BY axes
    HAVING count(log_ratio) >= 3
)
SELECT
    r.*,
    CASE
        WHEN log_ratio IS NULL OR is_otherwise THEN NULL
        WHEN usual_sd IS NOT NULL THEN greatest(
            usual_sd, point_sd, sqrt(2) * s.sd_frac, sqrt(coalesce(own_variance, 0) + coalesce(previous_variance, 0))
        )
        ELSE greatest(sqrt(own_variance + previous_variance), sqrt(2) * s.sd_frac)
    END AS error,
    CASE WHEN usual_sd IS NOT NULL THEN usual_dof ELSE 200 END AS dof,
    CASE WHEN usual_sd IS NOT NULL THEN 'sweeps among each other' ELSE 'runs alone' END AS basis
FROM ratios AS r
LEFT JOIN usual AS u ON u.kind = r.kind
    OR (u.kind IS NULL AND r.kind NOT IN (SELECT kind FROM usual WHERE kind IS NOT NULL))
LEFT JOIN own USING (axes)
LEFT JOIN _spread AS s ON s.environment_id = r.environment_id AND s.quantity = r.differs_as;

COMMENT ON TABLE _history_changes IS 'One row a point or series and sweep with a value: the one before, and how sure.';
COMMENT ON COLUMN _history_changes.is_otherwise IS 'The two device times were taken by different methods.';
COMMENT ON COLUMN _history_changes.error IS 'Standard error of log_ratio; NULL = unknown, or there is none before.';
COMMENT ON COLUMN _history_changes.dof IS
    'Degrees of freedom of error: a median of n tells as much as 0.37 n values do.';
