-- Grain: one row a set of axes that one side has at least.
CREATE TABLE matched_points AS
SELECT
    coalesce(b.axes, a.axes) AS axes,
    coalesce(b.point, a.point) AS point,
    coalesce(b.workload, a.workload) AS workload,
    coalesce(b.size, a.size) AS size,
    coalesce(b.dtype, a.dtype) AS dtype,
    coalesce(b.batch, a.batch) AS batch,
    coalesce(b.compile, a.compile) AS compile,
    coalesce(b.dynamic, a.dynamic) AS dynamic,
    coalesce(b.warmup, a.warmup) AS warmup,
    coalesce(b.device, a.device) AS device,
    coalesce(b.params, a.params) AS params,
    CASE
        WHEN b.axes IS NULL THEN 'only in a'
        WHEN a.axes IS NULL THEN 'only in b'
        WHEN a.status = 'ok' AND b.status = 'ok' THEN 'compared'
        WHEN b.status = 'ok' THEN 'newly measured'
        WHEN b.status = 'skipped' THEN 'skipped'
        WHEN a.status = 'ok' THEN 'newly failed'
        ELSE 'failed on both'
    END AS state,
    a.status AS a_status, b.status AS b_status,
    a.reason AS a_reason, b.reason AS b_reason,
    a.runs AS a_runs, b.runs AS b_runs,
    a.ok_runs AS a_ok_runs, b.ok_runs AS b_ok_runs,
    a.environment_id AS a_environment_id, b.environment_id AS b_environment_id,
    a.run_id AS a_run_id, b.run_id AS b_run_id,
    a.point_id <> b.point_id AS source_differs,
    a.host_contended AS a_contended, b.host_contended AS b_contended,
    b.interpreter AS b_interpreter, b.measure AS b_measure,
    a.bound AS a_bound, b.bound AS b_bound,
    a.margin AS a_margin, a.margin_low AS a_margin_low, a.margin_high AS a_margin_high,
    b.margin AS b_margin, b.margin_low AS b_margin_low, b.margin_high AS b_margin_high
FROM (FROM given_points WHERE side = 'a') AS a
FULL JOIN (FROM given_points WHERE side = 'b') AS b USING (axes);

COMMENT ON TABLE matched_points IS 'One row a set of axes: both sides beside each other, and whether they compare.';
COMMENT ON COLUMN matched_points.axes IS 'JSON object of all axes.';
COMMENT ON COLUMN matched_points.point IS 'The axes in words.';
COMMENT ON COLUMN matched_points.workload IS 'What was measured.';
COMMENT ON COLUMN matched_points.size IS 'Axis size.';
COMMENT ON COLUMN matched_points.dtype IS 'Number format.';
COMMENT ON COLUMN matched_points.batch IS 'Axis batch; NULL = none.';
COMMENT ON COLUMN matched_points.compile IS 'false, true or the mode of torch.compile.';
COMMENT ON COLUMN matched_points.dynamic IS 'dynamic of torch.compile; NULL for eager points.';
COMMENT ON COLUMN matched_points.warmup IS 'true, false (a cold point) or a number of steps.';
COMMENT ON COLUMN matched_points.device IS 'Kind of device: cpu, cuda.';
COMMENT ON COLUMN matched_points.params IS 'JSON object of the further axes.';
COMMENT ON COLUMN matched_points.state IS
    'compared, only in a, only in b, newly failed (ok in a), newly measured (not ok in a), skipped (in b), failed on
    both.';
COMMENT ON COLUMN matched_points.a_status IS 'Status in a: ok, failed, oom, timeout, crashed, skipped.';
COMMENT ON COLUMN matched_points.b_status IS 'Status in b.';
COMMENT ON COLUMN matched_points.a_reason IS 'Why it is not ok in a.';
COMMENT ON COLUMN matched_points.b_reason IS 'Why it is not ok in b.';
COMMENT ON COLUMN matched_points.a_runs IS 'Runs in a.';
COMMENT ON COLUMN matched_points.b_runs IS 'Runs in b.';
COMMENT ON COLUMN matched_points.a_ok_runs IS 'Ok runs in a.';
COMMENT ON COLUMN matched_points.b_ok_runs IS 'Ok runs in b.';
COMMENT ON COLUMN matched_points.a_environment_id IS 'Where a was measured.';
COMMENT ON COLUMN matched_points.b_environment_id IS 'Where b was measured.';
COMMENT ON COLUMN matched_points.a_run_id IS 'Latest run of a.';
COMMENT ON COLUMN matched_points.b_run_id IS 'Latest run of b.';
COMMENT ON COLUMN matched_points.source_differs IS 'The workload''s source is not the same in a and b.';
COMMENT ON COLUMN matched_points.a_contended IS 'Something else used the host in a; NULL = cannot be told.';
COMMENT ON COLUMN matched_points.b_contended IS 'Something else used the host in b; NULL = cannot be told.';
COMMENT ON COLUMN matched_points.b_interpreter IS 'Python that measured b; NULL = the runner''s own.';
COMMENT ON COLUMN matched_points.b_measure IS 'Name of the rule of measuring of b.';
COMMENT ON COLUMN matched_points.a_bound IS 'What binds it in a.';
COMMENT ON COLUMN matched_points.b_bound IS 'What binds it in b.';
COMMENT ON COLUMN matched_points.a_margin IS 'overhead / work in a.';
COMMENT ON COLUMN matched_points.a_margin_low IS 'Low end of the 95 % interval of a_margin.';
COMMENT ON COLUMN matched_points.a_margin_high IS 'High end of the 95 % interval of a_margin.';
COMMENT ON COLUMN matched_points.b_margin IS 'overhead / work in b.';
COMMENT ON COLUMN matched_points.b_margin_low IS 'Low end of the 95 % interval of b_margin.';
COMMENT ON COLUMN matched_points.b_margin_high IS 'High end of the 95 % interval of b_margin.';
