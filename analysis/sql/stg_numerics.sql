-- Grain: one row a live run whose results were compared with float64. Lazy: the facts stay in their files until asked
-- for.
CREATE VIEW stg_numerics AS
WITH raw AS (
    SELECT
        run_id,
        from_json(TRY_CAST(facts AS JSON), '{
            "numerics": {
                "passed": "BOOLEAN", "error": "DOUBLE", "eager_error": "DOUBLE", "allowed": "DOUBLE",
                "reason": "VARCHAR", "size": "BIGINT"
            }
        }').numerics AS fact
    FROM stg_facts
    WHERE contains(facts, '"numerics"')
)
SELECT
    run_id,
    fact.passed AS passed,
    _finite(fact.error) AS error,
    _finite(fact.eager_error) AS eager_error,
    _finite(fact.allowed) AS allowed,
    fact.reason AS numerics_reason,
    fact.size AS checked_size
FROM raw
WHERE fact IS NOT NULL;

COMMENT ON VIEW stg_numerics IS 'One row a live run whose results were compared with the same step in float64.';
COMMENT ON COLUMN stg_numerics.passed IS
    'Whether the error is allowed; NULL = could not be checked, see numerics_reason.';
COMMENT ON COLUMN stg_numerics.error IS
    'Norm of the difference from float64 over the norm of that, of the worst tensor; NULL = unknown or not finite.';
COMMENT ON COLUMN stg_numerics.eager_error IS 'The same of the plain eager step in the same dtype.';
COMMENT ON COLUMN stg_numerics.allowed IS 'Error that is allowed: twice that of eager and the dtype''s epsilon.';
COMMENT ON COLUMN stg_numerics.numerics_reason IS 'Why it failed, or why it could not be checked.';
COMMENT ON COLUMN stg_numerics.checked_size IS 'Size at which it was checked; NULL where the workload has none.';
