-- Grain: one row a run. The raw samples are read from their files when the view is; relations that do without read
-- stg_runs.
CREATE VIEW runs AS
SELECT r.*, s.samples
FROM stg_runs AS r
LEFT JOIN stg_samples AS s USING (run_id);

COMMENT ON VIEW runs IS 'One row a run, that is one measurement of a point: axes, status, times with intervals, facts.';
