-- Grain: one row a warm, ok point and environment that an independent measurement checks: two slopes on a device, twice
-- the work on the CPU.
-- Every check has its own interval, and is undecided within it (see law.slopes_verdict).
CREATE VIEW truth AS
WITH doubled AS (
    SELECT
        point_id, environment_id,
        median(work_share) AS work_share, min(work_share_low) AS work_share_low, max(work_share_high) AS work_share_high
    FROM stg_runs
    WHERE status = 'ok'
    GROUP BY ALL
),
late AS (
    SELECT point_id, environment_id FROM law WHERE larger_term = 'issue' AND deviation < -0.05
),
bursts AS (
    SELECT
        point_id, environment_id,
        median("value") FILTER (quantity = 'issue_half') / median("value") FILTER (quantity = 'issue') - 1 AS start_frac
    FROM late
    JOIN stg_runs USING (point_id, environment_id)
    JOIN samples USING (run_id)
    WHERE status = 'ok'
    GROUP BY ALL
),
measured AS (
    SELECT
        b.*,
        d.work_share, d.work_share_low, d.work_share_high,
        p.profiled_host_us, p.throttle_reasons,
        l.deviation, l.deviation_low, l.deviation_high, l.slopes_verdict, l.replay_verdict,
        s.start_frac,
        x."value" AS crossing,
        b.device = 'cpu' AS is_cpu,
        b.blocking_calls IS NOT NULL AS waits,
        abs(ln(b.margin)) AS distance,
        coalesce(distance <= ln(1.1), false) AS in_band,
        CASE WHEN b.device_method = 'held'
            THEN _without_launches(b.device_us, b.busy_us, b.launches, g.graph_gap_us)
        END AS predicted_us
    FROM bounds AS b
    JOIN points AS p USING (point_id, environment_id)
    LEFT JOIN doubled AS d USING (point_id, environment_id)
    LEFT JOIN law AS l USING (point_id, environment_id)
    LEFT JOIN bursts AS s USING (point_id, environment_id)
    LEFT JOIN _graph_gaps AS g
        ON g.environment_id = b.environment_id AND g.half = md5_number_lower(b.point_id) % 2
    LEFT JOIN crossovers AS x
        ON x.axis = 'size' AND x.environment_id = b.environment_id AND x.workload = b.workload AND x.dtype = b.dtype
        AND x.batch IS NOT DISTINCT FROM b.batch AND x.compile = b.compile AND x.dynamic = b.dynamic
        AND x.warmup = b.warmup AND x.device = b.device AND x.params = b.params
    WHERE b.status = 'ok' AND b.workload <> 'noop' AND b.warmup <> 'false' AND b.wall_us IS NOT NULL
        AND (d.work_share IS NOT NULL OR b.host_slope IS NOT NULL AND b.device_slope IS NOT NULL)
),
judged AS (
    SELECT
        *,
        CASE
            WHEN bound = 'overhead-bound' THEN 'overhead-bound'
            WHEN bound IN ('compute-bound', 'memory-bound', 'device-bound') THEN 'device'
            ELSE bound
        END AS side,
        side NOT IN ('balanced', 'unknown') AS decided,
        CASE WHEN is_cpu THEN 'doubled work' ELSE 'slopes' END AS checked_by,
        CASE
            WHEN is_cpu THEN CASE
                WHEN work_share_low > 0.5 THEN 'device'
                WHEN work_share_high < 0.5 THEN 'overhead-bound'
                ELSE 'undecided'
            END
            ELSE coalesce(slopes_verdict, 'undecided')
        END AS checked_side,
        CASE WHEN profiled_host_us > busy_us THEN 'overhead-bound' WHEN profiled_host_us <= busy_us THEN 'device'
        END AS naive_side,
        CASE
            WHEN device_method <> 'replay' AND issue_us IS NOT NULL AND replay_us IS NOT NULL
                THEN coalesce(replay_verdict, 'undecided')
        END AS replay_side,
        wall_us / CASE WHEN predicted_us > 0 THEN predicted_us END AS predicted_gain,
        wall_us / CASE WHEN device_method <> 'replay' THEN replay_us END AS achieved_gain
    FROM measured
)
SELECT
    point_id, environment_id, run_id,
    workload, size, dtype, batch, compile, dynamic, warmup, device, params,
    bound, side, decided, margin, margin_low, margin_high,
    CASE WHEN side IN ('overhead-bound', 'device') THEN confidence END AS confidence,
    distance, in_band,
    crossing, greatest(size / crossing, crossing / size) AS times_from_crossing,
    checked_by, checked_side,
    CASE WHEN decided AND checked_side <> 'undecided' THEN checked_side = side END AS agrees,
    host_slope, host_slope_low, host_slope_high, device_slope, device_slope_low, device_slope_high,
    work_share, work_share_low, work_share_high,
    replay_side, CASE WHEN decided AND side <> 'serialized' THEN replay_verdict = side END AS replay_agrees,
    naive_side, CASE WHEN checked_side <> 'undecided' THEN naive_side = checked_side END AS naive_agrees,
    predicted_gain, achieved_gain, predicted_gain / achieved_gain - 1 AS gain_error,
    deviation, deviation_low, deviation_high,
    CASE
        WHEN deviation IS NULL OR abs(deviation) <= 0.05 THEN NULL
        WHEN host_contended THEN 'something else used the host'
        WHEN host_noise THEN 'the host was not at the pace that it has at points that launch the same'
        WHEN deviation_low <= 0.05 AND deviation_high >= -0.05 THEN 'within its own interval'
        WHEN in_band THEN 'near the crossing, where both terms share the step'
        WHEN waits THEN 'the step waits for the device'
        WHEN start_frac >= -deviation THEN 'the start of a burst costs extra: half as long ones took '
            || _percent(start_frac) || ' more a step'
        WHEN throttle_reasons <> '[]' THEN 'the clock was lowered: ' || array_to_string(throttle_reasons::JSON::VARCHAR[], ', ')
        ELSE 'none known'
    END AS explanation,
    wall_us, issue_us, own_issue_us, device_us, floor_us, replay_us, busy_us, profiled_host_us
FROM judged;

COMMENT ON VIEW truth IS
    'One row a warm, ok point that slopes or twice the work check: its bound, who agrees with it, its gain, its law.';
COMMENT ON COLUMN truth.side IS 'Side of the bound: overhead-bound, device, serialized, balanced, unknown.';
COMMENT ON COLUMN truth.decided IS 'The bound is neither balanced nor unknown.';
COMMENT ON COLUMN truth.confidence IS 'That of bounds; NULL for points that have no side.';
COMMENT ON COLUMN truth.distance IS '|ln margin|: 0.095 is 10 % from the crossing.';
COMMENT ON COLUMN truth.in_band IS 'The margin lies within 10 % of the crossing: |ln margin| <= ln 1.1.';
COMMENT ON COLUMN truth.crossing IS 'Size at which the point''s series crosses over; NULL where it was not found.';
COMMENT ON COLUMN truth.times_from_crossing IS 'How many times larger or smaller than the crossing the size is.';
COMMENT ON COLUMN truth.checked_by IS 'slopes; on the CPU doubled work.';
COMMENT ON COLUMN truth.checked_side IS
    'What the check says: overhead-bound, device, serialized, none, or undecided within its own interval.';
COMMENT ON COLUMN truth.agrees IS 'The bound lies on the side of the check; NULL where either is not decided.';
COMMENT ON COLUMN truth.work_share IS
    'On the CPU: by what share of wall_us a step of twice the rows is longer; above 0.5 the work binds.';
COMMENT ON COLUMN truth.work_share_low IS 'Low end of the 95 % interval of work_share.';
COMMENT ON COLUMN truth.work_share_high IS 'High end of the 95 % interval of work_share.';
COMMENT ON COLUMN truth.replay_side IS
    'What the replay says, held against issue_us: overhead-bound, device, or undecided within 10 %; NULL without one.';
COMMENT ON COLUMN truth.replay_agrees IS 'The bound lies on the side of the replay; NULL where either is not decided.';
COMMENT ON COLUMN truth.naive_side IS
    'What a profile alone says: overhead-bound where its host time is more than its device time, else device.';
COMMENT ON COLUMN truth.naive_agrees IS 'naive_side is what the check says; NULL where either is not decided.';
COMMENT ON COLUMN truth.predicted_gain IS
    'wall_us / (device_us - launches x gap), the latter not below busy_us: the gain that bounds states of a point without
    a replay, here without a look at it; the gap is measured at other points of the environment.';
COMMENT ON COLUMN truth.achieved_gain IS 'wall_us / replay_us: the gain that a CUDA graph brought.';
COMMENT ON COLUMN truth.gain_error IS 'predicted_gain / achieved_gain - 1.';
COMMENT ON COLUMN truth.explanation IS
    'Why the deviation from the law is above 5 %; NULL where it is not. A step that is issued slower than it runs is
    timed in bursts: their start explains that where half as long bursts are slower by as much or more.';
