-- Grain: one row a warm point, environment and numeric axis that it may be compared along.
-- The settings that stay alike in the series are the point's own without that axis. Of points alike in every axis (a
-- workload whose source has changed) the latest counts.
CREATE VIEW _series_points AS
WITH compared AS (
    SELECT
        *,
        unnest([{'axis': 'size', 'axis_value': size::DOUBLE}, {'axis': 'batch', 'axis_value': batch::DOUBLE}] || [
            {
                'axis': k,
                'axis_value': CASE
                    WHEN json_type(params, _pointer(k)) IN ('UBIGINT', 'BIGINT', 'DOUBLE')
                        THEN _finite(json_extract_string(params, _pointer(k))::DOUBLE)
                END
            } FOR k IN json_keys(params)
        ], recursive := true)
    FROM bounds
    WHERE warmup IS DISTINCT FROM 'false'
),
alike AS (
    SELECT
        environment_id, axis, axis_value, workload,
        CASE WHEN axis <> 'size' THEN size END AS size,
        dtype,
        CASE WHEN axis <> 'batch' THEN batch END AS batch,
        compile, dynamic, warmup, device,
        json_merge_patch(params, json_object(axis, NULL))::VARCHAR AS params,
        point_id, run_id, status, bound, margin, margin_low, margin_high, reason
    FROM compared
    WHERE axis_value IS NOT NULL AND axis NOT IN ('seed', 'schedule', 'bias')
)
SELECT
    *,
    CASE
        WHEN bound = 'overhead-bound' THEN 1
        WHEN bound IN ('compute-bound', 'memory-bound', 'device-bound') THEN -1
        WHEN bound = 'balanced' THEN 0
    END AS side
FROM alike
QUALIFY row_number() OVER (
    PARTITION BY
        environment_id, axis, workload, size, dtype, batch, compile, dynamic, warmup, device, params, axis_value
    ORDER BY run_id DESC
) = 1;

COMMENT ON VIEW _series_points IS 'One row a warm point and numeric axis: its place in the series along that axis.';
COMMENT ON COLUMN _series_points.axis IS 'The axis that varies in the series.';
COMMENT ON COLUMN _series_points.axis_value IS 'The point''s value of that axis.';
COMMENT ON COLUMN _series_points.side IS '1 overhead-bound, -1 bound by the device, 0 balanced, NULL not decided.';
