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
    SELECT
        *,
        coalesce(TRY_CAST(params AS JSON), '{}'::JSON) AS param,
        from_json(TRY_CAST(facts AS JSON), '{
            "rank": "BIGINT", "world_size": "BIGINT", "position": "BIGINT", "order": "VARCHAR", "reasons": "JSON",
            "device_method": "VARCHAR", "blocked_method": "VARCHAR", "blocking_calls": "JSON",
            "first_call_us": "DOUBLE", "warmup_steps": "BIGINT",
            "stopped": "VARCHAR", "rounds": "BIGINT",
            "measure": {"name": "VARCHAR", "target_frac": "DOUBLE", "limit_s": "DOUBLE"},
            "measured_s": "DOUBLE", "elapsed_s": "DOUBLE", "estimate_s": "DOUBLE",
            "taken_s": "DOUBLE", "waited_s": "DOUBLE", "worker_bytes": "BIGINT", "signal": "VARCHAR",
            "interpreter": {"python": "VARCHAR", "env": "JSON"},
            "cost": {"operations": "JSON", "bytes_min": "DOUBLE", "working_set_bytes": "DOUBLE"},
            "profile": {
                "perturbation": "DOUBLE", "profiled_host_us": "DOUBLE", "launches": "DOUBLE", "kernels": "DOUBLE",
                "trace_incomplete": "BOOLEAN", "unattributed_frac": "DOUBLE", "underfilled_frac": "DOUBLE",
                "launch_sequence": "VARCHAR", "reason": "VARCHAR", "options": "JSON",
                "window": {"before": "JSON", "behind": "JSON"}
            },
            "compile": {
                "seconds": "DOUBLE", "compilations": "BIGINT", "reasons": "JSON", "graph_breaks": "BIGINT",
                "cache_hits": "BIGINT", "region_ran": "BOOLEAN", "frames": "JSON", "guards": "JSON",
                "break_reasons": "JSON", "limit_reached": "BOOLEAN", "cudagraph_skips": "BIGINT",
                "cudagraph_skip_reasons": "JSON", "cudagraph_copies": "BIGINT", "cudagraph_copied_bytes": "BIGINT",
                "code": "JSON", "code_left_out": "JSON", "graph_hashes": "JSON"
            },
            "memory": {
                "allocated_peak_bytes": "BIGINT", "reserved_peak_bytes": "BIGINT", "allocated_bytes": "BIGINT",
                "reserved_bytes": "BIGINT", "inactive_split_bytes": "BIGINT", "alloc_retries": "BIGINT",
                "ooms": "BIGINT", "device_allocs": "DOUBLE", "device_frees": "DOUBLE"
            },
            "condition": {
                "sm_clock_mhz": ["DOUBLE"], "power_w": ["DOUBLE"], "temperature_c": ["DOUBLE"],
                "throttle_reasons": "JSON", "other_processes": "BIGINT", "cpu_pressure_frac": "DOUBLE",
                "involuntary_switches": "BIGINT"
            },
            "law": ["DOUBLE"], "doubled_us": ["DOUBLE"], "work_share": ["DOUBLE"], "data_us": ["DOUBLE"], "search": "JSON",
            "host_contended": "BOOLEAN", "peak_bytes": "BIGINT", "host": "VARCHAR", "device_uuid": "VARCHAR",
            "device_index": "BIGINT", "artifacts": {"trace": "VARCHAR", "table": "VARCHAR"},
            "import": "JSON", "audit": "JSON", "steps": "JSON"
        }') AS fact
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
    fact.rank AS rank,
    fact.world_size AS world_size,
    fact.position AS position,
    fact."order" AS sweep_order,
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
    _finite(fact.law[1]) AS law_ratio, _finite(fact.law[2]) AS law_ratio_low, _finite(fact.law[3]) AS law_ratio_high,
    _finite(fact.doubled_us[1]) AS doubled_us, _finite(fact.doubled_us[2]) AS doubled_us_low,
    _finite(fact.doubled_us[3]) AS doubled_us_high,
    _finite(fact.work_share[1]) AS work_share, _finite(fact.work_share[2]) AS work_share_low,
    _finite(fact.work_share[3]) AS work_share_high,
    _finite(fact.data_us[1]) AS data_us, _finite(fact.data_us[2]) AS data_us_low, _finite(fact.data_us[3]) AS data_us_high,
    fact.device_method AS device_method,
    fact.blocked_method AS blocked_method,
    nullif(fact.blocking_calls::VARCHAR, '{}') AS blocking_calls,
    fact.reasons::VARCHAR AS reasons,
    fact.first_call_us AS first_call_us,
    fact.warmup_steps AS warmup_steps,
    fact.stopped AS stopped,
    fact.rounds AS rounds,
    fact.measure.name AS measure,
    fact.measure.target_frac AS measure_target_frac,
    fact.measure.limit_s AS measure_limit_s,
    fact.measured_s AS measured_s,
    fact.elapsed_s AS elapsed_s,
    fact.estimate_s AS estimate_s,
    fact.taken_s AS taken_s,
    fact.waited_s AS waited_s,
    fact.worker_bytes AS worker_bytes,
    fact.signal AS signal,
    fact.interpreter.python AS interpreter,
    fact.cost.operations::VARCHAR AS operations,
    fact.cost.bytes_min AS bytes_min,
    fact.cost.working_set_bytes AS working_set_bytes,
    fact.profile.perturbation AS perturbation,
    fact.profile.profiled_host_us AS profiled_host_us,
    fact.profile.launches AS launches,
    fact.profile.kernels AS kernels,
    fact.profile.trace_incomplete AS trace_incomplete,
    fact.profile.unattributed_frac AS unattributed_frac,
    fact.profile.underfilled_frac AS underfilled_frac,
    fact.profile.launch_sequence AS launch_sequence,
    fact.profile.reason AS profile_reason,
    fact.compile.seconds AS compile_s,
    fact.compile.compilations AS compilations,
    fact.compile.reasons::VARCHAR AS compile_reasons,
    fact.compile.graph_breaks AS graph_breaks,
    fact.compile.cache_hits AS cache_hits,
    fact.compile.region_ran AS region_ran,
    fact.condition.sm_clock_mhz[2] AS sm_clock_mhz,
    fact.condition.power_w[2] AS power_w,
    fact.condition.temperature_c[2] AS temperature_c,
    fact.condition.throttle_reasons::VARCHAR AS throttle_reasons,
    fact.condition.other_processes AS other_processes,
    fact.condition.cpu_pressure_frac AS cpu_pressure_frac,
    fact.condition.involuntary_switches AS involuntary_switches,
    fact.host_contended AS host_contended,
    fact.search::VARCHAR AS search,
    fact.peak_bytes AS peak_bytes,
    fact.host AS host,
    fact.device_uuid AS device_uuid,
    fact.device_index AS device_index,
    fact.artifacts.trace AS trace_path,
    fact.artifacts.table AS table_path,
    fact."import"::VARCHAR AS imported,
    fact.audit::VARCHAR AS audit,
    fact.steps::VARCHAR AS step_facts,
    fact.compile.frames::VARCHAR AS compile_frames,
    fact.compile.guards::VARCHAR AS guards,
    list_sum([(fact.compile.guards ->> k)::BIGINT FOR k IN json_keys(fact.compile.guards)])::BIGINT AS guard_count,
    fact.compile.break_reasons::VARCHAR AS break_reasons,
    fact.compile.limit_reached AS limit_reached,
    fact.compile.cudagraph_skips AS cudagraph_skips,
    fact.compile.cudagraph_skip_reasons::VARCHAR AS cudagraph_skip_reasons,
    fact.compile.cudagraph_copies AS cudagraph_copies,
    fact.compile.cudagraph_copied_bytes AS cudagraph_copied_bytes,
    fact.compile.code::VARCHAR AS code_ids,
    fact.compile.code_left_out::VARCHAR AS code_left_out,
    fact.compile.graph_hashes::VARCHAR AS graph_hashes,
    fact.memory.allocated_peak_bytes AS allocated_peak_bytes,
    fact.memory.reserved_peak_bytes AS reserved_peak_bytes,
    fact.memory.allocated_bytes AS allocated_bytes,
    fact.memory.reserved_bytes AS reserved_bytes,
    fact.memory.inactive_split_bytes AS inactive_split_bytes,
    fact.memory.alloc_retries AS alloc_retries,
    fact.memory.ooms AS alloc_failures,
    fact.memory.device_allocs AS device_allocs,
    fact.memory.device_frees AS device_frees,
    fact.profile."window".before::VARCHAR AS window_before,
    fact.profile."window".behind::VARCHAR AS window_behind,
    fact.profile.options::VARCHAR AS profiler_options
FROM raw
WHERE run_id IS NOT NULL;

COMMENT ON TABLE stg_runs IS 'One row a live run: raw columns cast, lists and facts unfolded.';
COMMENT ON COLUMN stg_runs.run_id IS 'One measurement of a point; ordered by time.';
COMMENT ON COLUMN stg_runs.point_id IS 'Hash of the resolved axes and the workload''s source.';
COMMENT ON COLUMN stg_runs.sweep_id IS 'The command that measured it.';
COMMENT ON COLUMN stg_runs.environment_id IS
    'Key of environments: versions, device, host, threads, settings that change results.';
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
COMMENT ON COLUMN stg_runs.wall_us IS
    'Steady time a step: steps back to back, one synchronize at the end; median, microseconds.';
COMMENT ON COLUMN stg_runs.wall_us_low IS 'Low end of the 95 % interval of wall_us.';
COMMENT ON COLUMN stg_runs.wall_us_high IS 'High end of the 95 % interval of wall_us.';
COMMENT ON COLUMN stg_runs.issue_us IS
    'Host time to issue one step, without time blocked in synchronizing calls; microseconds.';
COMMENT ON COLUMN stg_runs.issue_us_low IS 'Low end of the 95 % interval of issue_us.';
COMMENT ON COLUMN stg_runs.issue_us_high IS 'High end of the 95 % interval of issue_us.';
COMMENT ON COLUMN stg_runs.device_us IS
    'Device time a step when the host is never late, see device_method; microseconds.';
COMMENT ON COLUMN stg_runs.device_us_low IS 'Low end of the 95 % interval of device_us.';
COMMENT ON COLUMN stg_runs.device_us_high IS 'High end of the 95 % interval of device_us.';
COMMENT ON COLUMN stg_runs.replay_us IS 'The step without launch overhead: CUDA-graph replay; microseconds.';
COMMENT ON COLUMN stg_runs.replay_us_low IS 'Low end of the 95 % interval of replay_us.';
COMMENT ON COLUMN stg_runs.replay_us_high IS 'High end of the 95 % interval of replay_us.';
COMMENT ON COLUMN stg_runs.single_us IS
    'One step between two synchronizes, as an interactive caller sees it; microseconds.';
COMMENT ON COLUMN stg_runs.single_us_low IS 'Low end of the 95 % interval of single_us.';
COMMENT ON COLUMN stg_runs.single_us_high IS 'High end of the 95 % interval of single_us.';
COMMENT ON COLUMN stg_runs.busy_us IS
    'Union of the profiled device intervals of a step; explains, never decides; microseconds.';
COMMENT ON COLUMN stg_runs.busy_us_low IS 'Low end of the 95 % interval of busy_us.';
COMMENT ON COLUMN stg_runs.busy_us_high IS 'High end of the 95 % interval of busy_us.';
COMMENT ON COLUMN stg_runs.blocked_us IS 'Host time blocked in synchronizing calls inside a step; microseconds.';
COMMENT ON COLUMN stg_runs.blocked_us_low IS 'Low end of the 95 % interval of blocked_us.';
COMMENT ON COLUMN stg_runs.blocked_us_high IS 'High end of the 95 % interval of blocked_us.';
COMMENT ON COLUMN stg_runs.floor_us IS
    'On the CPU: the same operations at the smallest size, on one thread; microseconds.';
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
COMMENT ON COLUMN stg_runs.law_ratio IS
    'wall / max(issue, device), formed within each round; NULL where a round lacks one of them.';
COMMENT ON COLUMN stg_runs.law_ratio_low IS 'Low end of the 95 % interval of law_ratio.';
COMMENT ON COLUMN stg_runs.law_ratio_high IS 'High end of the 95 % interval of law_ratio.';
COMMENT ON COLUMN stg_runs.doubled_us IS 'On the CPU: a step on twice the rows, where slopes are asked for; microseconds.';
COMMENT ON COLUMN stg_runs.doubled_us_low IS 'Low end of the 95 % interval of doubled_us.';
COMMENT ON COLUMN stg_runs.doubled_us_high IS 'High end of the 95 % interval of doubled_us.';
COMMENT ON COLUMN stg_runs.work_share IS
    'doubled / wall - 1, formed within each round: the share of work in a step; above 0.5 the work binds.';
COMMENT ON COLUMN stg_runs.work_share_low IS 'Low end of the 95 % interval of work_share.';
COMMENT ON COLUMN stg_runs.work_share_high IS 'High end of the 95 % interval of work_share.';
COMMENT ON COLUMN stg_runs.data_us IS
    'Host time between two steps in which it waits for its input; of watched programs alone; microseconds.';
COMMENT ON COLUMN stg_runs.data_us_low IS 'Low end of the 95 % interval of data_us.';
COMMENT ON COLUMN stg_runs.data_us_high IS 'High end of the 95 % interval of data_us.';
COMMENT ON COLUMN stg_runs.device_method IS
    'How device_us was taken: held (stream held while the steps queue), replay, queued (of a watched program: steps whose
    work was all queued before the device began them), profile.';
COMMENT ON COLUMN stg_runs.blocked_method IS 'How blocked_us was taken: timed calls or profile.';
COMMENT ON COLUMN stg_runs.blocking_calls IS
    'JSON object: synchronizing call inside the step -> calls a step; NULL = none seen.';
COMMENT ON COLUMN stg_runs.reasons IS 'JSON object: quantity -> why it is NULL.';
COMMENT ON COLUMN stg_runs.first_call_us IS 'First call; with compile it holds the compilation; microseconds.';
COMMENT ON COLUMN stg_runs.warmup_steps IS 'Steps until the times were steady.';
COMMENT ON COLUMN stg_runs.stopped IS 'Why measuring ended: target, limit or rounds.';
COMMENT ON COLUMN stg_runs.rounds IS 'Number of interleaved rounds.';
COMMENT ON COLUMN stg_runs.measure IS 'Name of the rule of measuring: quick, default, thorough.';
COMMENT ON COLUMN stg_runs.measure_target_frac IS
    'Width of the interval of wall_us at which measuring ends, as a fraction.';
COMMENT ON COLUMN stg_runs.measure_limit_s IS 'Seconds after which measuring ends.';
COMMENT ON COLUMN stg_runs.measured_s IS 'Seconds spent in measured steps.';
COMMENT ON COLUMN stg_runs.elapsed_s IS 'Seconds the point took in its worker.';
COMMENT ON COLUMN stg_runs.taken_s IS 'Seconds from handing the point out to its answer, processes of its own included.';
COMMENT ON COLUMN stg_runs.waited_s IS 'Seconds the worker was without work before this point.';
COMMENT ON COLUMN stg_runs.worker_bytes IS 'Memory that the worker had in use behind the point (resident set), bytes.';
COMMENT ON COLUMN stg_runs.signal IS 'Signal that ended the worker; NULL = none did.';
COMMENT ON COLUMN stg_runs.interpreter IS 'Path of the Python that measured the point; NULL = the runner''s own.';
COMMENT ON COLUMN stg_runs.sweep_order IS 'What decided the places in the sweep: given, or shuffled:SEED.';
COMMENT ON COLUMN stg_runs.estimate_s IS 'Predicted seconds of a step (skipped points).';
COMMENT ON COLUMN stg_runs.operations IS
    'JSON list of the operations of a step: name, flops, bytes, dtype where it is not the point''s; NULL = no cost model.';
COMMENT ON COLUMN stg_runs.bytes_min IS 'Bytes that a step moves when everything is fused.';
COMMENT ON COLUMN stg_runs.working_set_bytes IS 'Bytes that a step touches.';
COMMENT ON COLUMN stg_runs.perturbation IS 'Host time of a profiled step / issue_us.';
COMMENT ON COLUMN stg_runs.profiled_host_us IS 'Host time of a profiled step; microseconds.';
COMMENT ON COLUMN stg_runs.launches IS 'Launches a step in the profiled window.';
COMMENT ON COLUMN stg_runs.kernels IS 'Kernels, copies and fills a step in the profiled window.';
COMMENT ON COLUMN stg_runs.trace_incomplete IS 'Launches and kernels of the profiled window do not match.';
COMMENT ON COLUMN stg_runs.unattributed_frac IS 'Share of device time without a launch event.';
COMMENT ON COLUMN stg_runs.underfilled_frac IS
    'Share of busy time in kernels of fewer blocks than the device has multiprocessors.';
COMMENT ON COLUMN stg_runs.launch_sequence IS
    'Hash of what a step calls on the host, in its order: runs that launch the same share it; NULL = unknown.';
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
COMMENT ON COLUMN stg_runs.search IS
    'JSON object of the search that measured it: axis, low, high, multiple; NULL = none did.';
COMMENT ON COLUMN stg_runs.peak_bytes IS 'Peak of the allocator.';
COMMENT ON COLUMN stg_runs.host IS 'Name of the host; an attribute, never identity.';
COMMENT ON COLUMN stg_runs.device_uuid IS 'UUID of the card; an attribute, never identity.';
COMMENT ON COLUMN stg_runs.device_index IS 'Index of the card; an attribute, never identity.';
COMMENT ON COLUMN stg_runs.trace_path IS 'Chrome trace of the run, below the store.';
COMMENT ON COLUMN stg_runs.table_path IS 'Profiler table of the run, below the store.';
COMMENT ON COLUMN stg_runs.imported IS 'JSON object of the file that an import read; NULL = measured here. See audits.';
COMMENT ON COLUMN stg_runs.audit IS 'JSON object of what an import read, kept, repaired and lost. See audits.';
COMMENT ON COLUMN stg_runs.step_facts IS 'JSON object of how the steps of an imported trace were found. See audits.';
COMMENT ON COLUMN stg_runs.compile_frames IS
    'JSON list of the frames that were compiled: frame (as 0/0), name, seconds, reason of compiling again, guards.';
COMMENT ON COLUMN stg_runs.guards IS
    'JSON object: kind of guard -> how many of them a call of the compiled code checks; NULL = unknown.';
COMMENT ON COLUMN stg_runs.guard_count IS 'Guards that a call of the compiled code checks; NULL = unknown.';
COMMENT ON COLUMN stg_runs.break_reasons IS 'JSON object: reason in one line -> graph breaks.';
COMMENT ON COLUMN stg_runs.limit_reached IS
    'A function was compiled as often as torch allows and runs eager beyond that.';
COMMENT ON COLUMN stg_runs.cudagraph_skips IS 'Graphs for which a CUDA graph was asked for and not made.';
COMMENT ON COLUMN stg_runs.cudagraph_skip_reasons IS 'JSON list: why no CUDA graph was made.';
COMMENT ON COLUMN stg_runs.cudagraph_copies IS
    'Inputs that CUDA graphs copy to fixed places at every call; NULL = no CUDA graph, or unknown.';
COMMENT ON COLUMN stg_runs.cudagraph_copied_bytes IS
    'Bytes of these inputs; NULL = no CUDA graph, unknown, or of no fixed size.';
COMMENT ON COLUMN stg_runs.code_ids IS 'JSON list of ids in code: what was generated for the run; NULL = unknown.';
COMMENT ON COLUMN stg_runs.code_left_out IS
    'JSON list of generated files (file_name, bytes) that were too long to keep.';
COMMENT ON COLUMN stg_runs.graph_hashes IS
    'JSON list: keys of the run''s graphs in torch''s cache, as traces name them.';
COMMENT ON COLUMN stg_runs.allocated_peak_bytes IS
    'Most that the CUDA allocator had given out up to the end of the warm-up, compilation included; bytes.';
COMMENT ON COLUMN stg_runs.reserved_peak_bytes IS 'Most that it had reserved until then; bytes.';
COMMENT ON COLUMN stg_runs.allocated_bytes IS 'What it had given out behind the warm-up, between two steps; bytes.';
COMMENT ON COLUMN stg_runs.reserved_bytes IS 'What it had reserved at that moment; bytes.';
COMMENT ON COLUMN stg_runs.inactive_split_bytes IS
    'Of what it had reserved, free parts of blocks that are in use: fragmentation; bytes.';
COMMENT ON COLUMN stg_runs.alloc_retries IS 'How often in the point it gave cached memory back to get some.';
COMMENT ON COLUMN stg_runs.alloc_failures IS 'How often in the point that was not enough.';
COMMENT ON COLUMN stg_runs.device_allocs IS
    'Calls of cudaMalloc a step, over the steps before the profiled window; NULL = unknown.';
COMMENT ON COLUMN stg_runs.device_frees IS 'Calls of cudaFree a step, over the same steps; NULL = unknown.';
COMMENT ON COLUMN stg_runs.window_before IS
    'JSON object: sm_clock_mhz, memory_clock_mhz, power_w, temperature_c, throttle_reasons before the profiled steps.';
COMMENT ON COLUMN stg_runs.window_behind IS
    'JSON object with the same keys: the card right behind the profiled steps.';
COMMENT ON COLUMN stg_runs.profiler_options IS
    'JSON object of what torch.profiler recorded: record_shapes, profile_memory, with_stack, with_modules.';
