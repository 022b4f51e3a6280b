-- Grain: one row a run and axis.
CREATE VIEW axes AS
SELECT run_id, axis, "value"
FROM (
    SELECT run_id, unnest([
        {'axis': 'workload', 'value': workload},
        {'axis': 'size', 'value': size::VARCHAR},
        {'axis': 'dtype', 'value': dtype},
        {'axis': 'batch', 'value': batch::VARCHAR},
        {'axis': 'compile', 'value': compile},
        {'axis': 'dynamic', 'value': dynamic},
        {'axis': 'warmup', 'value': warmup},
        {'axis': 'device', 'value': device}
    ] || [
        {'axis': k, 'value': json_extract_string(params, _pointer(k))} FOR k IN json_keys(params)
    ], recursive := true)
    FROM stg_runs
)
WHERE "value" IS NOT NULL;

COMMENT ON VIEW axes IS 'One row a run and axis: every axis of the run, the further ones included.';
COMMENT ON COLUMN axes.axis IS 'Name of the axis.';
COMMENT ON COLUMN axes."value" IS 'Value of the axis as text; an axis that the point does not have is no row.';
