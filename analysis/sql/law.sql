-- Grain: one row a point and environment to which the law of an asynchronous device applies: warm, ok, not on the CPU,
-- no noop.
-- wall = max(issue, device) within 5 % is asked of points that are neither serialized nor input-bound and have both terms,
-- and formed within each round where the runs tell it: a host that changes its pace then changes both sides. Two slopes
-- and the replay check the bound without trusting either term.
CREATE VIEW law AS
WITH in_rounds AS (
    SELECT
        point_id, environment_id,
        median(law_ratio) AS law_ratio, min(law_ratio_low) AS law_ratio_low, max(law_ratio_high) AS law_ratio_high
    FROM stg_runs
    WHERE status = 'ok'
    GROUP BY ALL
),
checked AS (
    SELECT
        b.*,
        CASE
            WHEN overhead_us IS NULL OR work_us IS NULL THEN NULL
            WHEN overhead_us > work_us THEN 'issue'
            ELSE 'device'
        END AS larger_term,
        larger_us AS model_us,
        coalesce(law_ratio, _finite(wall_us / nullif(model_us, 0))) AS ratio,
        CASE WHEN bound NOT IN ('serialized', 'input-bound') THEN ratio - 1 END AS deviation,
        CASE WHEN bound NOT IN ('serialized', 'input-bound') THEN coalesce(law_ratio_low, _finite(wall_us_low / nullif(model_us, 0))) - 1
        END AS deviation_low,
        CASE WHEN bound NOT IN ('serialized', 'input-bound') THEN coalesce(law_ratio_high, _finite(wall_us_high / nullif(model_us, 0))) - 1
        END AS deviation_high,
        CASE
            WHEN bound = 'overhead-bound' THEN 'overhead-bound'
            WHEN bound IN ('compute-bound', 'memory-bound', 'device-bound') THEN 'device'
            WHEN bound = 'serialized' THEN 'serialized'
        END AS bound_side,
        abs(ln(margin)) <= ln(1.1) AS in_band,
        coalesce(host_slope_low, host_slope) AS host_least, coalesce(host_slope_high, host_slope) AS host_greatest,
        coalesce(device_slope_low, device_slope) AS device_least,
        coalesce(device_slope_high, device_slope) AS device_greatest,
        CASE
            WHEN (blocking_calls IS NOT NULL OR in_band IS NOT true) AND host_least > 0.5 AND device_least > 0.5
                THEN 'serialized'
            WHEN in_band IS NOT true AND host_greatest < 0.5 AND device_greatest < 0.5 THEN 'none'
            WHEN host_least > device_greatest THEN 'overhead-bound'
            WHEN device_least > host_greatest THEN 'device'
        END AS slopes_verdict,
        CASE
            WHEN device_method = 'replay' OR issue_us IS NULL OR replay_us IS NULL THEN NULL
            WHEN abs(ln(issue_us / nullif(replay_us, 0))) <= ln(1.1) THEN NULL
            WHEN issue_us > replay_us THEN 'overhead-bound'
            ELSE 'device'
        END AS replay_verdict
    FROM bounds AS b
    LEFT JOIN in_rounds AS r
        ON b.point_id IS NOT DISTINCT FROM r.point_id AND b.environment_id IS NOT DISTINCT FROM r.environment_id
    WHERE status = 'ok' AND device <> 'cpu' AND workload <> 'noop' AND warmup <> 'false' AND wall_us IS NOT NULL
)
SELECT
    point_id, environment_id, run_id,
    workload, size, dtype, batch, compile, dynamic, warmup, device, params,
    bound, margin,
    wall_us, issue_us, device_us, larger_term, model_us,
    ratio,
    deviation, deviation_low, deviation_high,
    abs(deviation) <= 0.05 AS within_5_percent,
    in_band,
    host_slope, device_slope, slopes_verdict, slopes_verdict = bound_side AS slopes_agree,
    replay_us, replay_verdict, replay_verdict = bound_side AS replay_agrees
FROM checked;

COMMENT ON VIEW law IS
    'One row a warm, ok point on an asynchronous device: how well the step law holds, and who agrees with its bound.';
COMMENT ON COLUMN law.larger_term IS 'Which of issue and device is larger; NULL where one is unknown.';
COMMENT ON COLUMN law.model_us IS
    'What the law says: max(issue_us, device_us), the maximum taken in each run; microseconds.';
COMMENT ON COLUMN law.ratio IS
    'wall / max(issue, device), within each round where the runs tell it, else wall_us / model_us; of serialized points too.';
COMMENT ON COLUMN law.deviation IS 'ratio - 1; NULL for serialized and input-bound points and where a term is unknown.';
COMMENT ON COLUMN law.deviation_low IS 'Low end of the 95 % interval of deviation; without rounds that of wall_us alone.';
COMMENT ON COLUMN law.deviation_high IS 'High end of the 95 % interval of deviation; without rounds that of wall_us alone.';
COMMENT ON COLUMN law.within_5_percent IS
    'The deviation is at most 5 % either way; NULL where the law is not asked of the point.';
COMMENT ON COLUMN law.in_band IS 'The margin lies within 10 % of the crossing: |ln margin| <= ln 1.1.';
COMMENT ON COLUMN law.slopes_verdict IS
    'Of the slopes and their intervals: overhead-bound (the host''s is the larger one), device (the reverse), serialized
    (both above 0.5), none (both below); the last two not within 10 % of the crossing, where what is added to a step may
    carry it across. NULL without slopes, and where the intervals leave it open.';
COMMENT ON COLUMN law.slopes_agree IS
    'The bound lies on the side that the slopes say; NULL without slopes, and for balanced and unknown points.';
COMMENT ON COLUMN law.replay_verdict IS
    'overhead-bound when issue_us > replay_us, else device; NULL where device_us itself is the replay, and where the two
    are within 10 %: a replay is shorter than the device''s time by what each launch costs there.';
COMMENT ON COLUMN law.replay_agrees IS
    'The bound lies on the side of replay_verdict; NULL without it, and for balanced and unknown points.';
