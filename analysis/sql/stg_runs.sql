-- Grain: one row a live run.
-- Every raw column cast, every list (value, low, high) and every fact unfolded; the raw samples stay in stg_samples.
CREATE TABLE stg_runs AS
WITH typed AS (
    SELECT
        NULL AS run_id, NULL AS point_id, NULL AS sweep_id, NULL AS environment_id, NULL AS source,
        NULL AS workload, NULL AS size, NULL AS dtype, NULL AS batch, NULL AS compile, NULL AS dynamic,
        NULL AS warmup, NULL AS device, NULL AS params, NULL AS status, NULL AS reason,
        NULL::TIMESTAMP AS started_at, NULL AS facts,
        NULL::DOUBLE[] AS wall_us, NULL::DOUBLE[] AS issue_us, NULL::DOUBLE[] AS device_us,
        NULL::DOUBLE[] AS replay_us, NULL::DOUBLE[] AS single_us, NULL::DOUBLE[] AS busy_us,
        NULL::DOUBLE[] AS blocked_us, NULL::DOUBLE[] AS floor_us, NULL::DOUBLE[] AS host_slope,
        NULL::DOUBLE[] AS device_slope, NULL::DOUBLE[] AS margin
    WHERE false
),
raw AS (
    SELECT *, TRY_CAST(facts AS JSON) AS fact, coalesce(TRY_CAST(params AS JSON), '{}'::JSON) AS param
    FROM (FROM typed UNION ALL BY NAME FROM files_runs)
)
SELECT
    run_id::VARCHAR AS run_id,
    point_id::VARCHAR AS point_id,
    sweep_id::VARCHAR AS sweep_id,
    environment_id::VARCHAR AS environment_id,
    source::VARCHAR AS source,
    workload::VARCHAR AS workload,
    size::BIGINT AS size,
    dtype::VARCHAR AS dtype,
    batch::BIGINT AS batch,
    compile::VARCHAR AS compile,
    dynamic::VARCHAR AS dynamic,
    warmup::VARCHAR AS warmup,
    device::VARCHAR AS device,
    _canonical(param) AS params,
    status::VARCHAR AS status,
    reason::VARCHAR AS reason,
    started_at::TIMESTAMP AS started_at,
    _fact(fact, 'rank')::BIGINT AS rank,
    _fact(fact, 'world_size')::BIGINT AS world_size,
    _fact(fact, 'position')::BIGINT AS position,
    _finite(wall_us[1]) AS wall_us, _finite(wall_us[2]) AS wall_us_low, _finite(wall_us[3]) AS wall_us_high,
    _finite(issue_us[1]) AS issue_us, _finite(issue_us[2]) AS issue_us_low, _finite(issue_us[3]) AS issue_us_high,
    _finite(device_us[1]) AS device_us, _finite(device_us[2]) AS device_us_low, _finite(device_us[3]) AS device_us_high,
    _finite(replay_us[1]) AS replay_us, _finite(replay_us[2]) AS replay_us_low, _finite(replay_us[3]) AS replay_us_high,
    _finite(single_us[1]) AS single_us, _finite(single_us[2]) AS single_us_low, _finite(single_us[3]) AS single_us_high,
    _finite(busy_us[1]) AS busy_us, _finite(busy_us[2]) AS busy_us_low, _finite(busy_us[3]) AS busy_us_high,
    _finite(blocked_us[1]) AS blocked_us, _finite(blocked_us[2]) AS blocked_us_low,
    _finite(blocked_us[3]) AS blocked_us_high,
    _finite(floor_us[1]) AS floor_us, _finite(floor_us[2]) AS floor_us_low, _finite(floor_us[3]) AS floor_us_high,
    _finite(host_slope[1]) AS host_slope, _finite(host_slope[2]) AS host_slope_low,
    _finite(host_slope[3]) AS host_slope_high,
    _finite(device_slope[1]) AS device_slope, _finite(device_slope[2]) AS device_slope_low,
    _finite(device_slope[3]) AS device_slope_high,
    _finite(margin[1]) AS margin, _finite(margin[2]) AS margin_low, _finite(margin[3]) AS margin_high,
    _fact(fact, 'device_method') AS device_method,
    _fact(fact, 'blocked_method') AS blocked_method,
    nullif(_fact(fact, 'blocking_calls'), '{}') AS blocking_calls,
    _fact(fact, 'reasons') AS reasons,
    _fact(fact, 'first_call_us')::DOUBLE AS first_call_us,
    _fact(fact, 'warmup_steps')::BIGINT AS warmup_steps,
    _fact(fact, 'stopped') AS stopped,
    _fact(fact, 'rounds')::BIGINT AS rounds,
    _fact(fact, 'measure.name') AS measure,
    _fact(fact, 'measure.target_frac')::DOUBLE AS measure_target_frac,
    _fact(fact, 'measure.limit_s')::DOUBLE AS measure_limit_s,
    _fact(fact, 'measured_s')::DOUBLE AS measured_s,
    _fact(fact, 'elapsed_s')::DOUBLE AS elapsed_s,
    _fact(fact, 'estimate_s')::DOUBLE AS estimate_s,
    _fact(fact, 'cost.operations') AS operations,
    _fact(fact, 'cost.bytes_min')::DOUBLE AS bytes_min,
    _fact(fact, 'cost.working_set_bytes')::DOUBLE AS working_set_bytes,
    _fact(fact, 'profile.perturbation')::DOUBLE AS perturbation,
    _fact(fact, 'profile.profiled_host_us')::DOUBLE AS profiled_host_us,
    _fact(fact, 'profile.launches')::DOUBLE AS launches,
    _fact(fact, 'profile.kernels')::DOUBLE AS kernels,
    _fact(fact, 'profile.trace_incomplete')::BOOLEAN AS trace_incomplete,
    _fact(fact, 'profile.unattributed_frac')::DOUBLE AS unattributed_frac,
    _fact(fact, 'profile.underfilled_frac')::DOUBLE AS underfilled_frac,
    _fact(fact, 'profile.reason') AS profile_reason,
    _fact(fact, 'compile.seconds')::DOUBLE AS compile_s,
    _fact(fact, 'compile.compilations')::BIGINT AS compilations,
    _fact(fact, 'compile.reasons') AS compile_reasons,
    _fact(fact, 'compile.graph_breaks')::BIGINT AS graph_breaks,
    _fact(fact, 'compile.cache_hits')::BIGINT AS cache_hits,
    _fact(fact, 'compile.region_ran')::BOOLEAN AS region_ran,
    _fact(fact, 'condition.sm_clock_mhz[1]')::DOUBLE AS sm_clock_mhz,
    _fact(fact, 'condition.power_w[1]')::DOUBLE AS power_w,
    _fact(fact, 'condition.temperature_c[1]')::DOUBLE AS temperature_c,
    _fact(fact, 'condition.throttle_reasons') AS throttle_reasons,
    _fact(fact, 'condition.other_processes')::BIGINT AS other_processes,
    _fact(fact, 'condition.cpu_pressure_frac')::DOUBLE AS cpu_pressure_frac,
    _fact(fact, 'condition.involuntary_switches')::BIGINT AS involuntary_switches,
    _fact(fact, 'host_contended')::BOOLEAN AS host_contended,
    _fact(fact, 'peak_bytes')::BIGINT AS peak_bytes,
    _fact(fact, 'host') AS host,
    _fact(fact, 'device_uuid') AS device_uuid,
    _fact(fact, 'device_index')::BIGINT AS device_index,
    _fact(fact, 'artifacts.trace') AS trace_path,
    _fact(fact, 'artifacts.table') AS table_path
FROM raw
WHERE run_id IS NOT NULL;

COMMENT ON TABLE stg_runs IS 'One row a live run: raw columns cast, lists and facts unfolded.';
COMMENT ON COLUMN stg_runs.run_id IS 'One measurement of a point; ordered by time.';
COMMENT ON COLUMN stg_runs.point_id IS 'Hash of the resolved axes and the workload''s source.';
COMMENT ON COLUMN stg_runs.sweep_id IS 'The command that measured it.';
COMMENT ON COLUMN stg_runs.environment_id IS 'Key of environments: versions, device, host, threads, settings that change results.';
COMMENT ON COLUMN stg_runs.source IS 'sweep, import or watch.';
COMMENT ON COLUMN stg_runs.workload IS 'What was measured.';
COMMENT ON COLUMN stg_runs.size IS 'Axis size; NULL where the point has no such axis.';
COMMENT ON COLUMN stg_runs.dtype IS 'Resolved number format: fp32, tf32, bf16, fp16.';
COMMENT ON COLUMN stg_runs.batch IS 'Axis batch, a leading axis on every input; NULL where the point has none.';
COMMENT ON COLUMN stg_runs.compile IS 'false, true or the mode of torch.compile.';
COMMENT ON COLUMN stg_runs.dynamic IS 'dynamic of torch.compile as the user writes it: false, true, null.';
COMMENT ON COLUMN stg_runs.warmup IS 'true, false (a cold point) or a number of steps.';
COMMENT ON COLUMN stg_runs.device IS 'Kind of device: cpu, cuda.';
COMMENT ON COLUMN stg_runs.params IS 'JSON object of the further axes, keys in order.';
COMMENT ON COLUMN stg_runs.status IS 'ok, failed, oom, timeout, crashed, skipped.';
COMMENT ON COLUMN stg_runs.reason IS 'Why, where status is not ok.';
COMMENT ON COLUMN stg_runs.started_at IS 'When the point was handed out, UTC.';
COMMENT ON COLUMN stg_runs.rank IS 'Rank of the process; NULL with a single process.';
COMMENT ON COLUMN stg_runs.world_size IS 'Number of processes; NULL with a single process.';
COMMENT ON COLUMN stg_runs.position IS 'Place of the point in its sweep, from 0.';
COMMENT ON COLUMN stg_runs.wall_us IS 'Steady time a step: steps back to back, one synchronize at the end; median, microseconds.';
COMMENT ON COLUMN stg_runs.wall_us_low IS 'Low end of the 95 % interval of wall_us.';
COMMENT ON COLUMN stg_runs.wall_us_high IS 'High end of the 95 % interval of wall_us.';
COMMENT ON COLUMN stg_runs.issue_us IS 'Host time to issue one step, without time blocked in synchronizing calls; microseconds.';
COMMENT ON COLUMN stg_runs.issue_us_low IS 'Low end of the 95 % interval of issue_us.';
COMMENT ON COLUMN stg_runs.issue_us_high IS 'High end of the 95 % interval of issue_us.';
COMMENT ON COLUMN stg_runs.device_us IS 'Device time a step when the host is never late, see device_method; microseconds.';
COMMENT ON COLUMN stg_runs.device_us_low IS 'Low end of the 95 % interval of device_us.';
COMMENT ON COLUMN stg_runs.device_us_high IS 'High end of the 95 % interval of device_us.';
COMMENT ON COLUMN stg_runs.replay_us IS 'The step without launch overhead: CUDA-graph replay; microseconds.';
COMMENT ON COLUMN stg_runs.replay_us_low IS 'Low end of the 95 % interval of replay_us.';
COMMENT ON COLUMN stg_runs.replay_us_high IS 'High end of the 95 % interval of replay_us.';
COMMENT ON COLUMN stg_runs.single_us IS 'One step between two synchronizes, as an interactive caller sees it; microseconds.';
COMMENT ON COLUMN stg_runs.single_us_low IS 'Low end of the 95 % interval of single_us.';
COMMENT ON COLUMN stg_runs.single_us_high IS 'High end of the 95 % interval of single_us.';
COMMENT ON COLUMN stg_runs.busy_us IS 'Union of the profiled device intervals of a step; explains, never decides; microseconds.';
COMMENT ON COLUMN stg_runs.busy_us_low IS 'Low end of the 95 % interval of busy_us.';
COMMENT ON COLUMN stg_runs.busy_us_high IS 'High end of the 95 % interval of busy_us.';
COMMENT ON COLUMN stg_runs.blocked_us IS 'Host time blocked in synchronizing calls inside a step; microseconds.';
COMMENT ON COLUMN stg_runs.blocked_us_low IS 'Low end of the 95 % interval of blocked_us.';
COMMENT ON COLUMN stg_runs.blocked_us_high IS 'High end of the 95 % interval of blocked_us.';
COMMENT ON COLUMN stg_runs.floor_us IS 'On the CPU: the same operations at the smallest size, on one thread; microseconds.';
COMMENT ON COLUMN stg_runs.floor_us_low IS 'Low end of the 95 % interval of floor_us.';
COMMENT ON COLUMN stg_runs.floor_us_high IS 'High end of the 95 % interval of floor_us.';
COMMENT ON COLUMN stg_runs.host_slope IS 'Change of wall_us for each microsecond of host spin added to a step.';
COMMENT ON COLUMN stg_runs.host_slope_low IS 'Low end of the 95 % interval of host_slope.';
COMMENT ON COLUMN stg_runs.host_slope_high IS 'High end of the 95 % interval of host_slope.';
COMMENT ON COLUMN stg_runs.device_slope IS 'Change of wall_us for each microsecond of device sleep added to a step.';
COMMENT ON COLUMN stg_runs.device_slope_low IS 'Low end of the 95 % interval of device_slope.';
COMMENT ON COLUMN stg_runs.device_slope_high IS 'High end of the 95 % interval of device_slope.';
COMMENT ON COLUMN stg_runs.margin IS 'Overhead / work, the ratio formed within each round; above 1 the overhead binds.';
COMMENT ON COLUMN stg_runs.margin_low IS 'Low end of the 95 % interval of margin.';
COMMENT ON COLUMN stg_runs.margin_high IS 'High end of the 95 % interval of margin.';
COMMENT ON COLUMN stg_runs.device_method IS 'How device_us was taken: held (stream held while the steps queue), replay, profile.';
COMMENT ON COLUMN stg_runs.blocked_method IS 'How blocked_us was taken: timed calls or profile.';
COMMENT ON COLUMN stg_runs.blocking_calls IS 'JSON object: synchronizing call inside the step -> calls a step; NULL = none seen.';
COMMENT ON COLUMN stg_runs.reasons IS 'JSON object: quantity -> why it is NULL.';
COMMENT ON COLUMN stg_runs.first_call_us IS 'First call; with compile it holds the compilation; microseconds.';
COMMENT ON COLUMN stg_runs.warmup_steps IS 'Steps until the times were steady.';
COMMENT ON COLUMN stg_runs.stopped IS 'Why measuring ended: target, limit or rounds.';
COMMENT ON COLUMN stg_runs.rounds IS 'Number of interleaved rounds.';
COMMENT ON COLUMN stg_runs.measure IS 'Name of the rule of measuring: quick, default, thorough.';
COMMENT ON COLUMN stg_runs.measure_target_frac IS 'Width of the interval of wall_us at which measuring ends, as a fraction.';
COMMENT ON COLUMN stg_runs.measure_limit_s IS 'Seconds after which measuring ends.';
COMMENT ON COLUMN stg_runs.measured_s IS 'Seconds spent in measured steps.';
COMMENT ON COLUMN stg_runs.elapsed_s IS 'Seconds the point took in its worker.';
COMMENT ON COLUMN stg_runs.estimate_s IS 'Predicted seconds of a step (skipped points).';
COMMENT ON COLUMN stg_runs.operations IS 'JSON list of the operations of a step: name, flops, bytes; NULL = no cost model.';
COMMENT ON COLUMN stg_runs.bytes_min IS 'Bytes that a step moves when everything is fused.';
COMMENT ON COLUMN stg_runs.working_set_bytes IS 'Bytes that a step touches.';
COMMENT ON COLUMN stg_runs.perturbation IS 'Host time of a profiled step / issue_us.';
COMMENT ON COLUMN stg_runs.profiled_host_us IS 'Host time of a profiled step; microseconds.';
COMMENT ON COLUMN stg_runs.launches IS 'Launches a step in the profiled window.';
COMMENT ON COLUMN stg_runs.kernels IS 'Kernels a step in the profiled window.';
COMMENT ON COLUMN stg_runs.trace_incomplete IS 'Launches and kernels of the profiled window do not match.';
COMMENT ON COLUMN stg_runs.unattributed_frac IS 'Share of device time without a launch event.';
COMMENT ON COLUMN stg_runs.underfilled_frac IS 'Share of busy time in kernels of fewer blocks than the device has multiprocessors.';
COMMENT ON COLUMN stg_runs.profile_reason IS 'Why there is no trace.';
COMMENT ON COLUMN stg_runs.compile_s IS 'Seconds of compilation.';
COMMENT ON COLUMN stg_runs.compilations IS 'Number of compilations.';
COMMENT ON COLUMN stg_runs.compile_reasons IS 'JSON: why it compiled again.';
COMMENT ON COLUMN stg_runs.graph_breaks IS 'Number of graph breaks.';
COMMENT ON COLUMN stg_runs.cache_hits IS 'Hits in the compile cache.';
COMMENT ON COLUMN stg_runs.region_ran IS 'A compiled region was seen running.';
COMMENT ON COLUMN stg_runs.sm_clock_mhz IS 'Median clock of the multiprocessors during the point; MHz.';
COMMENT ON COLUMN stg_runs.power_w IS 'Median power of the card during the point; W.';
COMMENT ON COLUMN stg_runs.temperature_c IS 'Median temperature of the card during the point; degrees Celsius.';
COMMENT ON COLUMN stg_runs.throttle_reasons IS 'JSON list of the reasons for lower clocks during the point.';
COMMENT ON COLUMN stg_runs.other_processes IS 'Other processes seen on the device.';
COMMENT ON COLUMN stg_runs.cpu_pressure_frac IS 'Share of time in which something waited for a CPU.';
COMMENT ON COLUMN stg_runs.involuntary_switches IS 'Involuntary context switches during the point.';
COMMENT ON COLUMN stg_runs.host_contended IS 'Something else used the host during the point; NULL = cannot be told.';
COMMENT ON COLUMN stg_runs.peak_bytes IS 'Peak of the allocator.';
COMMENT ON COLUMN stg_runs.host IS 'Name of the host; an attribute, never identity.';
COMMENT ON COLUMN stg_runs.device_uuid IS 'UUID of the card; an attribute, never identity.';
COMMENT ON COLUMN stg_runs.device_index IS 'Index of the card; an attribute, never identity.';
COMMENT ON COLUMN stg_runs.trace_path IS 'Chrome trace of the run, below the store.';
COMMENT ON COLUMN stg_runs.table_path IS 'Profiler table of the run, below the store.';
