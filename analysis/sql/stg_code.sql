-- Grain: one row a generated file of a compiled graph. Lazy: the texts stay in their files.
CREATE VIEW stg_code AS
WITH typed AS (
    SELECT NULL AS code_id, NULL AS source_text, NULL AS file_name, NULL AS graph_hash
    WHERE false
)
SELECT
    code_id::VARCHAR AS code_id,
    source_text::VARCHAR AS source_text,
    file_name::VARCHAR AS file_name,
    graph_hash::VARCHAR AS graph_hash
FROM (FROM typed UNION ALL BY NAME FROM files_code)
WHERE code_id IS NOT NULL;

COMMENT ON VIEW stg_code IS 'One row a file of code that torch.compile generated for a graph; points share equal ones.';
COMMENT ON COLUMN stg_code.code_id IS 'Hash of the file, its name and its graph; code_ids of a run name it.';
COMMENT ON COLUMN stg_code.source_text IS 'The file itself: inductor''s Python wrapper with its kernels.';
COMMENT ON COLUMN stg_code.file_name IS 'What inductor called it, without the folder.';
COMMENT ON COLUMN stg_code.graph_hash IS
    'Key of the graph in torch''s cache, as a trace names it in Call CompiledFxGraph; NULL = torch did not tell.';
