-- Grain: one row a live run. Lazy: the facts stay in their files until asked for.
CREATE VIEW stg_facts AS
WITH typed AS (
    SELECT NULL::VARCHAR AS run_id, NULL::VARCHAR AS facts
    WHERE false
)
SELECT
    run_id::VARCHAR AS run_id,
    facts::VARCHAR AS facts
FROM (FROM typed UNION ALL BY NAME FROM files_runs)
WHERE run_id IS NOT NULL;

COMMENT ON VIEW stg_facts IS 'One row a live run: what the runner found out beside its times.';
COMMENT ON COLUMN stg_facts.facts IS 'JSON object, see docs/store.md; TRY_CAST it, since it may be anything.';
