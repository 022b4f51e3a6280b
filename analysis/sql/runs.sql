-- Grain: one row a run.
CREATE VIEW runs AS FROM stg_runs;

COMMENT ON VIEW runs IS 'One row a run, that is one measurement of a point: axes, status, times with intervals, facts.';
