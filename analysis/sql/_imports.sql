-- Grain: one row an imported run that is ok.
CREATE TABLE _imports AS
SELECT
    run_id,
    _fact(step_facts, 'method') AS step_method,
    _fact(step_facts, 'reason') AS step_reason,
    coalesce(_fact(audit, 'truncated') = 'true', false) AS truncated
FROM stg_runs
WHERE source = 'import' AND status = 'ok';

COMMENT ON TABLE _imports IS 'One row an imported run that is ok: how its steps were found.';
COMMENT ON COLUMN _imports.step_method IS 'profiler, annotation, sequence or window.';
COMMENT ON COLUMN _imports.step_reason IS 'Why steps were found so, or not found.';
COMMENT ON COLUMN _imports.truncated IS 'The file ends before its JSON does.';
