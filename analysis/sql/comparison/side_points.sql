-- Grain: one row a set of axes that the side has measured, or tried to.
-- Of points alike in every axis (a workload whose source has changed) the latest stands. dynamic means nothing without
-- compile.
CREATE OR REPLACE TEMP TABLE side_points AS
WITH named AS (
    SELECT b.* REPLACE (CASE WHEN b.compile <> 'false' THEN b.dynamic END AS dynamic), r.interpreter, r.measure
    FROM bounds AS b
    JOIN stg_runs AS r USING (run_id)
)
SELECT
    _axes_key(workload, size, dtype, batch, compile, dynamic, warmup, device, params) AS axes,
    _axes_words(workload, size, dtype, batch, compile, warmup, params) AS point,
    workload, size, dtype, batch, compile, dynamic, warmup, device, params,
    point_id, environment_id, run_id, status,
    CASE WHEN status IS DISTINCT FROM 'ok' THEN reason END AS reason,
    runs, ok_runs, host_contended, interpreter, measure,
    bound, margin, margin_low, margin_high
FROM named
QUALIFY row_number() OVER (PARTITION BY axes ORDER BY run_id DESC) = 1;

COMMENT ON TABLE side_points IS 'One row a set of axes of one side: its status, what binds it, and whose times count.';
COMMENT ON COLUMN side_points.axes IS 'JSON object of all axes: points of two sides are matched where it is equal.';
COMMENT ON COLUMN side_points.point IS 'The axes in words, without those that nobody has set.';
COMMENT ON COLUMN side_points.workload IS 'What was measured.';
COMMENT ON COLUMN side_points.size IS 'Axis size.';
COMMENT ON COLUMN side_points.dtype IS 'Number format.';
COMMENT ON COLUMN side_points.batch IS 'Axis batch; NULL = none.';
COMMENT ON COLUMN side_points.compile IS 'false, true or the mode of torch.compile.';
COMMENT ON COLUMN side_points.dynamic IS 'dynamic of torch.compile; NULL for eager points.';
COMMENT ON COLUMN side_points.warmup IS 'true, false (a cold point) or a number of steps.';
COMMENT ON COLUMN side_points.device IS 'Kind of device: cpu, cuda.';
COMMENT ON COLUMN side_points.params IS 'JSON object of the further axes.';
COMMENT ON COLUMN side_points.point_id IS 'Hash of the axes and of the workload''s source.';
COMMENT ON COLUMN side_points.environment_id IS 'Where it was measured.';
COMMENT ON COLUMN side_points.run_id IS 'Its latest ok run, else its latest.';
COMMENT ON COLUMN side_points.status IS 'ok, failed, oom, timeout, crashed or skipped.';
COMMENT ON COLUMN side_points.reason IS 'Status and why, where that is not ok.';
COMMENT ON COLUMN side_points.runs IS 'Number of its runs.';
COMMENT ON COLUMN side_points.ok_runs IS 'Number of those that are ok.';
COMMENT ON COLUMN side_points.host_contended IS 'Something else used the host; NULL = cannot be told.';
COMMENT ON COLUMN side_points.interpreter IS 'Python that measured it; NULL = the runner''s own.';
COMMENT ON COLUMN side_points.measure IS 'Name of the rule of measuring.';
COMMENT ON COLUMN side_points.bound IS 'What binds it.';
COMMENT ON COLUMN side_points.margin IS 'overhead / work.';
COMMENT ON COLUMN side_points.margin_low IS 'Low end of the 95 % interval of margin.';
COMMENT ON COLUMN side_points.margin_high IS 'High end of the 95 % interval of margin.';
