-- Grain: one row a point and environment with a cost model.
-- Roof time of an operation = max(FLOPs / roof of its dtype, bytes / roof of the memory). Its dtype is the point's
-- unless it has one of its own (autocast). The memory is the L2 where it holds the working set, stays warm and was
-- measured, else the DRAM. Without a roof that an operation needs the time is NULL.
CREATE VIEW _roof_times AS
WITH ceilings AS (
    SELECT environment_id, roof, dtype, max(value_per_s) AS value_per_s FROM roofs GROUP BY ALL
),
point_roofs AS (
    SELECT
        p.point_id,
        p.environment_id,
        p.operations,
        p.dtype AS point_dtype,
        CASE
            WHEN p.working_set_bytes <= e.l2_bytes
                AND coalesce(json_extract_string(p.params, '$.l2'), 'warm') = 'warm'
                AND l.value_per_s IS NOT NULL THEN 'l2'
            ELSE 'dram'
        END AS bytes_roof,
        CASE WHEN bytes_roof = 'l2' THEN l.value_per_s ELSE d.value_per_s END AS bytes_roof_per_s
    FROM points AS p
    LEFT JOIN environments AS e USING (environment_id)
    LEFT JOIN ceilings AS d ON d.environment_id = p.environment_id AND d.roof = 'dram'
    LEFT JOIN ceilings AS l ON l.environment_id = p.environment_id AND l.roof = 'l2'
    WHERE p.status = 'ok' AND p.operations IS NOT NULL
),
operations AS (
    SELECT
        * EXCLUDE (operations),
        unnest(
            from_json(operations, '[{"name": "VARCHAR", "flops": "DOUBLE", "bytes": "DOUBLE", "dtype": "VARCHAR"}]'),
            recursive := true
        )
    FROM point_roofs
),
timed AS (
    SELECT
        o.* REPLACE (coalesce(o.dtype, o.point_dtype) AS dtype),
        CASE WHEN flops = 0 THEN 0 ELSE 1e6 * flops / f.value_per_s END AS flops_us,
        CASE WHEN bytes = 0 THEN 0 ELSE 1e6 * bytes / bytes_roof_per_s END AS bytes_us
    FROM operations AS o
    LEFT JOIN ceilings AS f ON f.environment_id = o.environment_id AND f.roof = 'flops'
        AND f.dtype = coalesce(o.dtype, o.point_dtype)
)
SELECT
    point_id,
    environment_id,
    sum(flops) / nullif(CASE WHEN bool_and(flops_us IS NOT NULL) THEN sum(flops_us) END, 0) * 1e6 AS flops_roof_per_s,
    string_agg(DISTINCT dtype, ' and ' ORDER BY dtype) FILTER (flops > 0) AS flops_dtypes,
    string_agg(DISTINCT dtype, ' and ' ORDER BY dtype) FILTER (flops > 0 AND flops_us >= bytes_us) AS limiting_dtypes,
    string_agg(DISTINCT dtype, ' and ' ORDER BY dtype) FILTER (flops > 0 AND flops_us IS NULL) AS missing_dtypes,
    any_value(bytes_roof) AS bytes_roof,
    any_value(bytes_roof_per_s) AS bytes_roof_per_s,
    sum(flops) AS flops,
    sum(bytes) AS bytes,
    bool_and(flops_us IS NOT NULL AND bytes_us IS NOT NULL) AS complete,
    CASE WHEN complete THEN sum(greatest(flops_us, bytes_us)) END AS roof_us,
    CASE WHEN complete THEN coalesce(sum(flops_us) FILTER (flops_us >= bytes_us), 0) END AS flops_limited_us,
    CASE WHEN complete THEN coalesce(sum(bytes_us) FILTER (bytes_us > flops_us), 0) END AS bytes_limited_us
FROM timed
GROUP BY point_id, environment_id;

COMMENT ON VIEW _roof_times IS 'One row a point with a cost model: its roof time, split by what limits each operation.';
COMMENT ON COLUMN _roof_times.flops_roof_per_s IS
    'FLOP/s that the roofs allow its FLOPs: that of their dtype, of several all FLOPs over the sum of FLOPs / roof.';
COMMENT ON COLUMN _roof_times.flops_dtypes IS 'Dtypes in which its FLOPs are computed, joined by and.';
COMMENT ON COLUMN _roof_times.limiting_dtypes IS 'Those of the operations that FLOPs limit.';
COMMENT ON COLUMN _roof_times.missing_dtypes IS 'Those whose FLOP/s roof was not measured; NULL = none.';
COMMENT ON COLUMN _roof_times.bytes_roof IS 'Memory whose roof applies: l2 where it holds the working set, else dram.';
COMMENT ON COLUMN _roof_times.bytes_roof_per_s IS 'Measured bytes/s of that memory.';
COMMENT ON COLUMN _roof_times.flops IS 'FLOPs of a step by the workload''s formula.';
COMMENT ON COLUMN _roof_times.bytes IS 'Bytes that the operations of a step move by the workload''s formula.';
COMMENT ON COLUMN _roof_times.complete IS 'Every operation has the roofs that it needs.';
COMMENT ON COLUMN _roof_times.roof_us IS
    'Roof time of a step: sum over operations of max(FLOPs / roof, bytes / roof); microseconds.';
COMMENT ON COLUMN _roof_times.flops_limited_us IS 'Roof time of the operations that FLOPs limit; microseconds.';
COMMENT ON COLUMN _roof_times.bytes_limited_us IS 'Roof time of the operations that bytes limit; microseconds.';
