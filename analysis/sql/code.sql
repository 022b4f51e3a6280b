-- Grain: one row a generated file of a compiled graph.
CREATE VIEW code AS FROM stg_code;

COMMENT ON VIEW code IS 'One row a file of code that torch.compile generated; stg_runs.code_ids says whose it is.';
