-- Grain: one row an imported run that is ok.
-- Its verdict from the trace alone. The files of `imports/` fill it, where the store holds imports: without any, no event
-- is read to judge the points.
CREATE TABLE _import_verdicts (
    run_id VARCHAR, "rule" VARCHAR, bound VARCHAR, gain DOUBLE, reason VARCHAR, sentence VARCHAR,
    margin DOUBLE, margin_low DOUBLE, margin_high DOUBLE,
    kind VARCHAR, steps BIGINT, wall_us DOUBLE, host_us DOUBLE, compute_us DOUBLE, busy_us DOUBLE, collective_us DOUBLE,
    idle_us DOUBLE, blocked_us DOUBLE, input_us DOUBLE,
    overhead_us DOUBLE, overhead_us_low DOUBLE, overhead_us_high DOUBLE,
    launches DOUBLE, kernels DOUBLE, blocking_calls VARCHAR
);

COMMENT ON TABLE _import_verdicts IS 'One row an imported run: the rule that decides it, its bound, why, and the figures.';
COMMENT ON COLUMN _import_verdicts."rule" IS 'The first rule that holds, in the order of imports/verdicts.sql.';
COMMENT ON COLUMN _import_verdicts.gain IS 'wall / compute of an overhead-bound step: an upper limit.';
COMMENT ON COLUMN _import_verdicts.margin IS 'Host time / usual inflation / computing time of the device.';
COMMENT ON COLUMN _import_verdicts.margin_low IS 'The same by the most inflation.';
COMMENT ON COLUMN _import_verdicts.margin_high IS 'The same by the least inflation.';
COMMENT ON COLUMN _import_verdicts.kind IS 'Kind of step that takes most of the time; the figures are medians over it.';
COMMENT ON COLUMN _import_verdicts.steps IS 'Number of steps of that kind.';
COMMENT ON COLUMN _import_verdicts.wall_us IS 'A profiled step, see steps.wall_us; microseconds.';
COMMENT ON COLUMN _import_verdicts.host_us IS
    'Host time outside synchronizing calls of launching threads, under the profiler; microseconds.';
COMMENT ON COLUMN _import_verdicts.compute_us IS 'Union of the device''s work without collectives; microseconds.';
COMMENT ON COLUMN _import_verdicts.busy_us IS 'Union of the device''s work; microseconds.';
COMMENT ON COLUMN _import_verdicts.collective_us IS 'Time in which the device runs collectives alone; microseconds.';
COMMENT ON COLUMN _import_verdicts.idle_us IS 'wall_us - busy_us; microseconds.';
COMMENT ON COLUMN _import_verdicts.blocked_us IS 'Time in synchronizing calls of launching threads; microseconds.';
COMMENT ON COLUMN _import_verdicts.input_us IS 'Time in a data loader while the device is idle; microseconds.';
COMMENT ON COLUMN _import_verdicts.overhead_us IS 'host_us / usual inflation; microseconds.';
COMMENT ON COLUMN _import_verdicts.overhead_us_low IS 'host_us / most inflation; microseconds.';
COMMENT ON COLUMN _import_verdicts.overhead_us_high IS 'host_us / least inflation; microseconds.';
COMMENT ON COLUMN _import_verdicts.launches IS 'Host calls a step that start device work.';
COMMENT ON COLUMN _import_verdicts.kernels IS 'Kernels a step.';
COMMENT ON COLUMN _import_verdicts.blocking_calls IS 'JSON object: synchronizing call -> calls a step.';
