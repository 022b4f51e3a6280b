-- Grain: one row a warm point of a sweep and environment.
-- Where a point stands under the measured roofs: FLOPs for each byte moved, and the FLOP/s and bytes/s that its work
-- reaches while the host is never late. A step can go no faster than min(FLOP/s roof, intensity x bytes/s roof); the
-- memory whose roof counts is that of bounds (the L2 where it holds the working set and stays warm, else the DRAM). Where
-- its operations compute in several dtypes (autocast), the FLOP/s roof is all FLOPs over the sum of FLOPs / roof.
-- Fusion: one kernel that touches every byte once and keeps today's share of the roofs; told only where the roofs
-- explain more than half of the work. The overhead is taken as it is: what fewer launches save the host comes on top.
CREATE VIEW roofline AS
WITH ceilings AS (
    SELECT environment_id, roof, dtype, max(value_per_s) AS value_per_s FROM roofs GROUP BY ALL
),
facts AS (
    SELECT
        b.* EXCLUDE (flops_roof_per_s),
        b.device = 'cpu' AS is_cpu,
        md5(concat_ws(chr(31), b.environment_id, b.workload, b.dtype, coalesce(b.batch::VARCHAR, '-'), b.compile,
            b.dynamic, b.warmup, b.device, b.params)) AS series,
        CASE WHEN b.flops > 0 THEN b.flops_roof_per_s ELSE f.value_per_s END AS flops_roof_per_s,
        d.value_per_s AS dram_roof_per_s,
        l.value_per_s AS l2_roof_per_s,
        CASE b.bytes_roof WHEN 'l2' THEN l.value_per_s WHEN 'dram' THEN d.value_per_s END AS bytes_roof_per_s,
        b.work_us > 0 AND NOT (is_cpu AND b.margin IS NULL) AS has_work,
        1e6 * flops / flops_roof_per_s AS flops_us,
        1e6 * bytes / bytes_roof_per_s AS bytes_us,
        1e6 * bytes_min / bytes_roof_per_s AS least_bytes_us
    FROM bounds AS b
    LEFT JOIN ceilings AS f ON f.environment_id = b.environment_id AND f.roof = 'flops' AND f.dtype = b.dtype
    LEFT JOIN ceilings AS d ON d.environment_id = b.environment_id AND d.roof = 'dram'
    LEFT JOIN ceilings AS l ON l.environment_id = b.environment_id AND l.roof = 'l2'
    SEMI JOIN (SELECT run_id FROM stg_runs WHERE source IS DISTINCT FROM 'import') AS swept ON swept.run_id = b.run_id
    WHERE b.warmup IS DISTINCT FROM 'false' AND b.workload <> 'noop'
),
placed AS (
    SELECT
        *,
        flops / nullif(bytes, 0) AS intensity,
        flops / nullif(bytes_min, 0) AS fused_intensity,
        CASE WHEN has_work THEN 1e6 * flops / work_us END AS flops_per_s,
        CASE WHEN has_work THEN 1e6 * bytes / work_us END AS bytes_per_s,
        CASE
            WHEN flops IS NULL OR (flops_us IS NULL AND flops > 0) OR (bytes_us IS NULL AND bytes > 0) THEN NULL
            WHEN flops_us >= coalesce(bytes_us, 0) THEN 'flops'
            ELSE bytes_roof
        END AS roof,
        greatest(coalesce(flops_us, 0), coalesce(bytes_us, 0)) AS bound_us,
        CASE WHEN has_work AND roof IS NOT NULL THEN bound_us / work_us END AS roof_share,
        CASE WHEN roof IS NOT NULL THEN greatest(coalesce(flops_us, 0), coalesce(least_bytes_us, 0)) END
            AS fused_roof_us,
        roof_us > work_us / 2 AS is_explained,
        CASE WHEN has_work AND is_explained AND fused_roof_us IS NOT NULL
            THEN work_us * least(1, fused_roof_us / roof_us) END AS fused_us,
        -- the law's two terms now and then: where the wall time differs from them, that is no gain of fusion
        CASE
            WHEN bound IN ('unknown', 'serialized') OR overhead_us IS NULL OR fused_us IS NULL THEN NULL
            WHEN is_cpu THEN (overhead_us + work_us) / (overhead_us + fused_us)
            ELSE greatest(overhead_us, work_us) / greatest(overhead_us, fused_us)
        END AS fusion_gain
    FROM facts
),
told AS (
    SELECT
        *,
        CASE
            WHEN status IS DISTINCT FROM 'ok' THEN coalesce(reason, status, 'no reason is known')
            WHEN flops IS NULL THEN 'no cost model: what it computes and moves is not stated'
            WHEN work_us IS NULL THEN 'no time of its work was measured: ' || coalesce(reason, 'no reason is known')
            WHEN NOT has_work THEN 'its work is within the noise of the floor'
            WHEN roof IS NULL THEN 'no roof was measured for ' || coalesce(missing_dtypes || ' FLOP/s', 'bytes/s')
                || ' in this environment'
            WHEN flops = 0 THEN 'it computes nothing: only its bytes/s have a roof'
        END AS unknown,
        CASE WHEN roof = 'flops' THEN flops_dtypes || ' FLOP/s' ELSE upper(roof) || ' bytes/s' END AS roof_words
    FROM placed
)
SELECT
    point_id, environment_id, run_id, series,
    workload, size, dtype, batch, compile, dynamic, warmup, device, params,
    status, bound,
    flops, bytes, bytes_min, intensity, fused_intensity,
    wall_us, overhead_us, work_us, flops_per_s, bytes_per_s,
    flops_dtypes, flops_roof_per_s, dram_roof_per_s, l2_roof_per_s, bytes_roof, roof, roof_share,
    fused_roof_us, fused_us, wall_us / fusion_gain AS fused_wall_us, fusion_gain,
    unknown AS reason,
    CASE
        WHEN roof_share IS NULL THEN 'Unknown: ' || unknown || '.'
        ELSE CASE
            WHEN flops > 0 THEN 'At ' || _number(intensity) || ' FLOPs a byte it reaches '
                || _number(flops_per_s / 1e12) || ' TFLOP/s, '
            ELSE 'It moves ' || _number(bytes_per_s / 1e9) || ' GB/s, '
        END || _percent(roof_share) || ' of the ' || roof_words || ' roof' || CASE
            WHEN roof_share <= 1.05 THEN '.'
            WHEN roof = 'flops'
                THEN ', which is more than there can be: that roof, the speed of a large product, is too low for this.'
            WHEN roof = 'dram' THEN ', which is more than there can be: part of its data stays in the '
                || CASE WHEN is_cpu THEN 'cache' ELSE 'L2' END || '.'
            ELSE ', which is more than there can be: that roof was measured too low.'
        END
    END AS sentence
FROM told;

COMMENT ON VIEW roofline IS
    'One row a warm point and environment: its FLOPs for each byte, what its work reaches, and how far the roofs are.';
COMMENT ON COLUMN roofline.series IS 'Key of all points that are alike but for size, in one environment.';
COMMENT ON COLUMN roofline.bound IS 'That of bounds.';
COMMENT ON COLUMN roofline.flops IS 'FLOPs of a step by the workload''s formula; NULL = it has none.';
COMMENT ON COLUMN roofline.bytes IS 'Bytes that the operations of a step move, each for itself, by the same formula.';
COMMENT ON COLUMN roofline.bytes_min IS 'Bytes that a step moves when everything is fused.';
COMMENT ON COLUMN roofline.intensity IS 'flops / bytes: FLOPs for each byte moved.';
COMMENT ON COLUMN roofline.fused_intensity IS 'flops / bytes_min: FLOPs for each byte if everything were fused.';
COMMENT ON COLUMN roofline.overhead_us IS 'Overhead of a step: issue_us, on the CPU floor_us; microseconds.';
COMMENT ON COLUMN roofline.work_us IS 'Work of a step: device_us, on the CPU wall_us - floor_us; microseconds.';
COMMENT ON COLUMN roofline.flops_per_s IS 'flops over work_us: what the work reaches while the host is never late.';
COMMENT ON COLUMN roofline.bytes_per_s IS 'bytes over work_us.';
COMMENT ON COLUMN roofline.flops_dtypes IS 'Dtypes in which its FLOPs are computed, joined by and; NULL = unknown.';
COMMENT ON COLUMN roofline.flops_roof_per_s IS
    'Measured FLOP/s of its dtype, of several all FLOPs over the sum of FLOPs / roof; NULL = one was not measured.';
COMMENT ON COLUMN roofline.dram_roof_per_s IS 'Measured bytes/s of the device''s memory; NULL = none was measured.';
COMMENT ON COLUMN roofline.l2_roof_per_s IS 'Measured bytes/s of the L2; NULL = none was measured.';
COMMENT ON COLUMN roofline.bytes_roof IS 'Memory whose roof applies: l2 where it holds the working set, else dram.';
COMMENT ON COLUMN roofline.roof IS 'The lower roof at this intensity: flops, dram or l2; NULL = one is unknown.';
COMMENT ON COLUMN roofline.roof_share IS
    'What the work reaches of that roof; above 1.05 is an error to show. (bounds adds up operation by operation, which
    says more where a step mixes both kinds.)';
COMMENT ON COLUMN roofline.fused_roof_us IS 'Time that the roofs allow a fused step; microseconds.';
COMMENT ON COLUMN roofline.fused_us IS
    'Work of a fused step at today''s share of the roofs; NULL where they explain less than half of it; microseconds.';
COMMENT ON COLUMN roofline.fused_wall_us IS 'wall_us / fusion_gain: the fused step; microseconds.';
COMMENT ON COLUMN roofline.fusion_gain IS
    'The headroom of fusion: by the step law, today''s terms over overhead and fused work. 1 = nothing is left to fuse,
    or the overhead binds; NULL = unknown.';
COMMENT ON COLUMN roofline.reason IS 'Why a column is NULL; NULL = none is.';
COMMENT ON COLUMN roofline.sentence IS 'Where the point stands under the roofs, as one English sentence.';
