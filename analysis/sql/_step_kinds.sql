-- Grain: one row an imported run and range of steps of one kind.
CREATE TABLE _step_kinds AS
WITH kinds AS (
    SELECT
        run_id,
        unnest(from_json(step_facts -> '$.kinds', '[{"kind": "VARCHAR", "steps": [["BIGINT"]]}]'), recursive := true)
    FROM stg_runs
    WHERE source = 'import'
)
SELECT run_id, kind, part[1] AS first_step, part[2] AS last_step
FROM (SELECT run_id, kind, unnest(steps) AS part FROM kinds);

COMMENT ON TABLE _step_kinds IS 'One row an imported run and range of steps of one kind.';
COMMENT ON COLUMN _step_kinds.kind IS 'Name of the kind: of the annotation, or a letter for a sequence of kernels.';
COMMENT ON COLUMN _step_kinds.first_step IS 'First step of the range.';
COMMENT ON COLUMN _step_kinds.last_step IS 'Last step of the range, inclusive.';
