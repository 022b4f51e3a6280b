-- Grain: one row a gap of an imported run (see gaps).
-- A table: a verdict adds up its gaps, and no other run's events may be read for it.
CREATE TEMP TABLE import_gaps AS
SELECT run_id, device, step, start_ns, dur_ns, cause, launch_id IS NULL AND cause = 'unknown' AS is_unlaunched
FROM _gaps_of('_imports');
