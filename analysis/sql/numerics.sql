-- Grain: one row a workload with its own settings, dtype, compile mode, device and environment whose results were
-- checked.
-- The latest check of each point counts. The worst point is the one whose error is the largest share of what is
-- allowed; one that failed comes before all that passed, one that could not be checked behind all.
CREATE VIEW numerics AS
WITH checked AS (
    SELECT
        r.*, n.* EXCLUDE (run_id),
        _canonical(json_merge_patch(r.params, '{"l2": null, "seed": null, "schedule": null, "threads": null}'))
            AS settings
    FROM stg_numerics AS n
    JOIN stg_runs AS r USING (run_id)
    QUALIFY row_number() OVER (PARTITION BY r.point_id, r.environment_id ORDER BY r.run_id DESC) = 1
),
ranked AS (
    SELECT
        *,
        row_number() OVER alike AS place,
        count(*) OVER whole AS checks,
        count(*) FILTER (passed) OVER whole AS passes,
        count(*) FILTER (NOT passed) OVER whole AS failures
    FROM checked
    WINDOW
        whole AS (PARTITION BY workload, settings, dtype, compile, dynamic, device, environment_id),
        alike AS (
            whole ORDER BY passed IS false DESC, passed IS NULL, error IS NULL DESC, error / nullif(allowed,
                0) DESC NULLS LAST,
            run_id DESC
        )
)
SELECT
    environment_id, workload, settings, dtype, compile, dynamic, device,
    passed,
    error,
    eager_error,
    allowed,
    error / nullif(allowed, 0) AS allowed_frac,
    numerics_reason AS reason,
    checked_size,
    size, batch, point_id, run_id,
    checks, passes, failures
FROM ranked
WHERE place = 1;

COMMENT ON VIEW numerics IS
    'One row a workload, settings, dtype, compile mode, device and environment: how far its results are from
    float64, at worst.';
COMMENT ON COLUMN numerics.settings IS 'JSON object of the further axes that change results, keys in order.';
COMMENT ON COLUMN numerics.passed IS 'Whether all errors are allowed; NULL = none could be checked.';
COMMENT ON COLUMN numerics.error IS
    'Relative error against float64 at the worst point; NULL = unknown, or a result is not finite.';
COMMENT ON COLUMN numerics.eager_error IS 'The same of the plain eager step in the same dtype.';
COMMENT ON COLUMN numerics.allowed IS 'Error that is allowed: twice that of eager and the dtype''s epsilon.';
COMMENT ON COLUMN numerics.allowed_frac IS 'error / allowed: above 1 it fails.';
COMMENT ON COLUMN numerics.reason IS 'Why the worst point failed or could not be checked.';
COMMENT ON COLUMN numerics.checked_size IS 'Size at which the worst point was checked; it may be smaller than its own.';
COMMENT ON COLUMN numerics.size IS 'Axis size of the worst point.';
COMMENT ON COLUMN numerics.batch IS 'Axis batch of the worst point.';
COMMENT ON COLUMN numerics.point_id IS 'The worst point.';
COMMENT ON COLUMN numerics.run_id IS 'Its latest run with a check.';
COMMENT ON COLUMN numerics.checks IS 'Number of points that were checked, or could not be.';
COMMENT ON COLUMN numerics.passes IS 'Number of those that passed.';
COMMENT ON COLUMN numerics.failures IS 'Number of those that failed.';
