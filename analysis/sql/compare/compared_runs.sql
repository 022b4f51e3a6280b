-- Grain: one row a side of the comparison, a or b: the runs `compared_a` and `compared_b` (variables), which may be one.
CREATE OR REPLACE TEMP VIEW compared_runs AS
SELECT 'a' AS side, getvariable('compared_a')::VARCHAR AS run_id
UNION ALL
SELECT 'b', getvariable('compared_b')::VARCHAR;

COMMENT ON VIEW compared_runs IS 'One row a side of the comparison: its run.';
COMMENT ON COLUMN compared_runs.side IS 'a or b.';
COMMENT ON COLUMN compared_runs.run_id IS 'The run that is compared.';
