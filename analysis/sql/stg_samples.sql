-- Grain: one row a live run, with the raw samples as a list. Lazy: the samples stay in their files until asked for.
CREATE VIEW stg_samples AS
WITH typed AS (
    SELECT
        NULL AS run_id,
        NULL::STRUCT(quantity VARCHAR, "round" INTEGER, "position" INTEGER, "value" DOUBLE)[] AS samples
    WHERE false
)
SELECT
    run_id::VARCHAR AS run_id,
    samples::STRUCT(quantity VARCHAR, "round" INTEGER, "position" INTEGER, "value" DOUBLE)[] AS samples
FROM (FROM typed UNION ALL BY NAME FROM files_runs)
WHERE run_id IS NOT NULL;

COMMENT ON VIEW stg_samples IS 'One row a live run: its raw samples as one list.';
COMMENT ON COLUMN stg_samples.samples IS 'Raw samples in the order taken.';
