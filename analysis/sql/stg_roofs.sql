-- Grain: one row a measured ceiling of an environment.
CREATE TABLE stg_roofs AS
WITH typed AS (
    SELECT
        NULL AS environment_id, NULL AS roof, NULL AS dtype, NULL AS value_per_s, NULL AS low_per_s,
        NULL AS high_per_s, NULL AS method, NULL AS reason
    WHERE false
)
SELECT
    environment_id::VARCHAR AS environment_id,
    roof::VARCHAR AS roof,
    dtype::VARCHAR AS dtype,
    _finite(value_per_s) AS value_per_s,
    _finite(low_per_s) AS low_per_s,
    _finite(high_per_s) AS high_per_s,
    method::VARCHAR AS method,
    reason::VARCHAR AS reason
FROM (FROM typed UNION ALL BY NAME FROM files_roofs)
WHERE environment_id IS NOT NULL;

COMMENT ON TABLE stg_roofs IS 'One row a ceiling measured in an environment.';
COMMENT ON COLUMN stg_roofs.roof IS 'flops (of a dtype), dram or l2.';
COMMENT ON COLUMN stg_roofs.dtype IS 'Number format of a flops roof; NULL for bytes.';
COMMENT ON COLUMN stg_roofs.value_per_s IS 'FLOP/s or bytes/s; median.';
COMMENT ON COLUMN stg_roofs.low_per_s IS 'Low end of the 95 % interval of value_per_s.';
COMMENT ON COLUMN stg_roofs.high_per_s IS 'High end of the 95 % interval of value_per_s.';
COMMENT ON COLUMN stg_roofs.method IS 'How it was measured.';
COMMENT ON COLUMN stg_roofs.reason IS 'Why value_per_s is NULL.';
