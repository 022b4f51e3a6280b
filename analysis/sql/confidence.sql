-- Grain: one row a point and environment that has a margin and is decided or balanced.
-- What the point's latest run says alone, beside what it says under the spread that was measured between runs, and, where
-- at least three points launch the same, with the issue time that they share.
CREATE VIEW confidence AS
WITH alone AS (
    SELECT
        b.*,
        CASE
            WHEN r.margin IS NOT NULL THEN r.margin
            WHEN r.device = 'cpu' THEN r.floor_us / nullif(r.wall_us - r.floor_us, 0)
            ELSE r.issue_us / nullif(r.device_us, 0)
        END AS run_margin,
        CASE
            WHEN r.margin IS NOT NULL THEN r.margin_low
            WHEN r.device = 'cpu' THEN r.floor_us_low / nullif(r.wall_us_high - r.floor_us_low, 0)
            ELSE r.issue_us_low / nullif(r.device_us_high, 0)
        END AS run_margin_low,
        CASE
            WHEN r.margin IS NOT NULL THEN r.margin_high
            WHEN r.device = 'cpu' THEN r.floor_us_high / nullif(r.wall_us_low - r.floor_us_high, 0)
            ELSE r.issue_us_high / nullif(r.device_us_low, 0)
        END AS run_margin_high
    FROM bounds AS b
    JOIN stg_runs AS r ON b.run_id = r.run_id
    -- what a trace alone says rests on how much a profiler may slow the host, not on a spread between runs
    WHERE b.margin > 0 AND b.bound NOT IN ('unknown', 'serialized') AND r.source IS DISTINCT FROM 'import'
),
sided AS (
    SELECT
        *,
        CASE
            WHEN bound IN ('overhead-bound', 'balanced') THEN bound
            ELSE 'device'
        END AS side,
        CASE
            WHEN run_margin_low > 1 THEN 'overhead-bound'
            WHEN run_margin_high < 1 THEN 'device'
            WHEN run_margin IS NOT NULL THEN 'balanced'
        END AS run_side
    FROM alone
)
SELECT
    point_id, sided.environment_id, run_id,
    workload, size, dtype, batch, compile, dynamic, warmup, device, params,
    bound, margin, margin_low, margin_high, confidence,
    exp(abs(ln(margin))) AS flip_factor,
    ok_runs,
    run_margin, run_margin_low, run_margin_high, run_side,
    run_side <> side AS flips,
    sd_frac AS spread_frac,
    concat_ws('; ',
        CASE
            WHEN sd_frac IS NOT NULL THEN s.runs || ' runs of ' || _counted(s.points, 'point')
            WHEN dof IS NULL THEN 'unknown: no point of this environment was measured twice'
            ELSE 'unknown: ' || _counted(dof, 'repeated run') || ' in this environment, 3 are needed'
        END,
        'issue time pooled over ' || _counted(issue_points, 'point') || ' that launch the same'
    ) AS spread_source,
    host_noise
FROM sided
LEFT JOIN _spread AS s ON s.environment_id = sided.environment_id AND s.quantity = 'margin';

COMMENT ON VIEW confidence IS
    'One row a decided or balanced point: how sure its side is, and whether one run alone would have said the same.';
COMMENT ON COLUMN confidence.flip_factor IS
    'How many times as large the smaller of overhead and work would have to be for the side to change.';
COMMENT ON COLUMN confidence.run_margin IS 'Margin of the latest run alone.';
COMMENT ON COLUMN confidence.run_margin_low IS 'Low end of the run''s own 95 % interval.';
COMMENT ON COLUMN confidence.run_margin_high IS 'High end of the run''s own 95 % interval.';
COMMENT ON COLUMN confidence.run_side IS 'What the run alone says: overhead-bound, device, balanced.';
COMMENT ON COLUMN confidence.flips IS 'The run alone says something else than the bound.';
COMMENT ON COLUMN confidence.spread_frac IS
    'Standard deviation of the margin between runs of one point in this environment; NULL = unknown, see spread_source.';
COMMENT ON COLUMN confidence.spread_source IS
    'What spread_frac rests on, or why it is unknown; and whether the issue time is that of several points.';
