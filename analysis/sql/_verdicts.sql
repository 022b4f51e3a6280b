-- Grain: one row a point and environment.
-- Which rule of the step law decides the point (the first that holds), and what on the device explains its work:
--   max(issue, device) <= wall <= issue + device, and a step that never waits has wall = max(issue, device).
-- A watched program also waits for its input between two steps. It is input-bound where wall exceeds, by more than 10 % at
-- the low end of its interval, what the step would take without that wait, the wait explains wall within 5 %, and issuing
-- is not the longest of the three; on the CPU where the wait is more than half of wall, whichever end of an interval is asked.
CREATE VIEW _verdicts AS
WITH evidence AS (
    SELECT
        t.*,
        r.flops_roof_per_s, r.flops_dtypes, r.limiting_dtypes, r.missing_dtypes, r.bytes_roof, r.bytes_roof_per_s,
        r.flops, r.bytes, r.roof_us, r.flops_limited_us, r.bytes_limited_us,
        CASE WHEN t.has_ratio THEN r.roof_us / t.work_us END AS roof_share,
        CASE WHEN t.has_ratio THEN r.flops_limited_us / t.work_us END AS flops_share,
        CASE WHEN t.has_ratio THEN r.bytes_limited_us / t.work_us END AS bytes_share,
        r.bytes / nullif(t.bytes_min, 0) AS fusion_headroom,
        coalesce(excess, coalesce(t.wall_us_low, t.wall_us) / nullif(CASE
            WHEN issue_us IS NULL THEN coalesce(device_us_high, device_us) ELSE greatest(issue_us, device_us)
        END, 0)) AS least_excess,
        coalesce(t.margin_low, t.margin) AS least_margin,
        coalesce(t.margin_high, t.margin) AS greatest_margin,
        -- what a step would take without the wait for its input: on the CPU the step itself, and where the host waits for
        -- the device in it at most the sum of the two terms
        CASE
            WHEN t.data_us IS NULL THEN NULL
            WHEN t.is_cpu THEN t.wall_us - t.data_us
            WHEN t.blocks THEN t.issue_us + t.device_us
            ELSE greatest(t.issue_us, t.device_us)
        END AS without_input_us,
        coalesce(t.wall_us_low, t.wall_us) AS least_wall_us,
        coalesce(t.wall_us_high, t.wall_us) AS greatest_wall_us
    FROM _terms AS t
    LEFT JOIN _roof_times AS r
        ON t.point_id IS NOT DISTINCT FROM r.point_id AND t.environment_id IS NOT DISTINCT FROM r.environment_id
)
SELECT
    *,
    CASE
        WHEN status IS DISTINCT FROM 'ok' THEN 'not ok'
        WHEN workload = 'noop' THEN 'noop'
        WHEN is_cold THEN 'cold'
        WHEN wall_us IS NULL THEN 'no times'
        WHEN is_cpu AND coalesce(data_us_low, data_us) > greatest_wall_us / 2 THEN 'input'
        WHEN NOT is_cpu AND device_us > 0 AND issue_us <= greatest(data_us, device_us)
            AND least_wall_us > 1.10 * without_input_us
            AND least_wall_us - coalesce(data_us_high, data_us) - without_input_us <= 0.05 * least_wall_us
            THEN 'input'
        WHEN is_cpu AND floor_us IS NULL THEN 'no floor'
        WHEN is_cpu AND NOT has_ratio AND coalesce(work_us_high, work_us) < coalesce(floor_us_low, floor_us)
            THEN 'noise'
        WHEN is_cpu AND NOT has_ratio THEN 'hidden'
        WHEN NOT is_cpu AND (device_us IS NULL OR device_us <= 0) THEN 'no device time'
        WHEN NOT is_cpu AND issue_us IS NULL
            AND NOT blocks AND least_excess > 1.10 THEN 'by the law'
        WHEN NOT is_cpu AND issue_us IS NULL THEN 'no issue time'
        WHEN NOT is_cpu AND blocks AND (least_excess > 1.05 OR coalesce(blocked_us_low, blocked_us) > wall_us / 2)
            THEN 'serialized'
        WHEN NOT is_cpu AND NOT blocks AND least_excess > 1.10 THEN 'unexplained'
        WHEN least_margin > 1 THEN 'overhead'
        WHEN greatest_margin < 1 THEN 'device'
        ELSE 'balanced'
    END AS rule,
    CASE
        WHEN roof_us IS NULL THEN 'no cost model'
        WHEN roof_share >= 0.5 AND flops_limited_us >= 2 / 3 * roof_us THEN 'compute'
        WHEN roof_share >= 0.5 AND bytes_limited_us >= 2 / 3 * roof_us THEN 'memory'
        WHEN roof_share >= 0.5 THEN 'mixed'
        WHEN underfilled_frac > 0.5 THEN 'underfilled'
        ELSE 'inefficient'
    END AS device_kind,
    CASE
        WHEN rule IN ('overhead', 'noise', 'by the law') THEN 'overhead-bound'
        WHEN rule = 'device' AND device_kind = 'compute' THEN 'compute-bound'
        WHEN rule = 'device' AND device_kind = 'memory' THEN 'memory-bound'
        WHEN rule = 'device' THEN 'device-bound'
        WHEN rule = 'input' THEN 'input-bound'
        WHEN rule IN ('balanced', 'serialized') THEN rule
        WHEN rule = 'hidden' THEN 'balanced'
        ELSE 'unknown'
    END AS bound
FROM evidence;

COMMENT ON VIEW _verdicts IS
    'One row a point and environment: the rule that decides it, its bound, and what explains its device time.';
COMMENT ON COLUMN _verdicts.roof_share IS
    'roof_us / work_us: how much of the work the roofs explain; above 1.05 is an error to show.';
COMMENT ON COLUMN _verdicts.flops_share IS 'Share of work_us that FLOP-limited operations need at their roof.';
COMMENT ON COLUMN _verdicts.bytes_share IS 'Share of work_us that byte-limited operations need at their roof.';
COMMENT ON COLUMN _verdicts.fusion_headroom IS 'Bytes that the operations move / bytes that a fused step would move.';
COMMENT ON COLUMN _verdicts.least_excess IS
    'Low end of wall_us over the larger of the two terms: taken in each run, else of the combined times.';
COMMENT ON COLUMN _verdicts.least_margin IS 'Low end of margin, or the value where it has no interval.';
COMMENT ON COLUMN _verdicts.greatest_margin IS 'High end of margin, or the value where it has no interval.';
COMMENT ON COLUMN _verdicts.without_input_us IS
    'The step without the wait for its input: max(issue, device), their sum where the step waits for the device, on the CPU
    wall - data; NULL where no wait was measured; microseconds.';
COMMENT ON COLUMN _verdicts.least_wall_us IS 'Low end of wall_us, or the value where it has no interval; microseconds.';
COMMENT ON COLUMN _verdicts.greatest_wall_us IS 'High end of wall_us, or the value where it has no interval; microseconds.';
COMMENT ON COLUMN _verdicts.rule IS
    'The first rule that holds, in the order of this file; the last three are overhead, device, balanced.';
COMMENT ON COLUMN _verdicts.device_kind IS
    'What explains the work: compute, memory, mixed, underfilled, inefficient, no cost model.';
COMMENT ON COLUMN _verdicts.bound IS
    'overhead-bound, compute-bound, memory-bound, device-bound, input-bound, serialized, balanced or unknown.';
