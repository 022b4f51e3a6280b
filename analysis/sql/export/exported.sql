-- Grain: one row a point and environment.
-- All that a table to take away needs, flat: the verdict, the facts of the point's run, its environment, and its findings
-- as text. Column params is unfolded by who exports, since every store has its own axes.
CREATE VIEW exported AS
WITH found AS (
    SELECT
        run_id,
        count(*) AS finding_count,
        string_agg("rule", ', ' ORDER BY place, "rule") AS findings,
        string_agg(sentence, ' | ' ORDER BY place, "rule") AS finding_sentences
    FROM (SELECT *, list_position(['misleads', 'costs', 'explains'], severity) AS place FROM findings)
    GROUP BY run_id
)
SELECT
    b.point_id, b.environment_id, b.run_id, p.sweep_id, p.source, p.started_at,
    b.workload, b.size, b.dtype, b.batch, b.compile, b.dynamic, b.warmup, b.device, b.params,
    b.status, b.bound, b.margin, b.margin_low, b.margin_high, b.confidence, b.gain, b.reason, b.sentence,
    b.wall_us, b.wall_us_low, b.wall_us_high, b.issue_us, b.issue_us_low, b.issue_us_high,
    b.device_us, b.device_us_low, b.device_us_high, b.device_method,
    b.replay_us, b.replay_us_low, b.replay_us_high, b.single_us, b.single_us_low, b.single_us_high,
    b.busy_us, b.busy_us_low, b.busy_us_high, b.blocked_us, b.blocked_us_low, b.blocked_us_high,
    b.floor_us, b.floor_us_low, b.floor_us_high,
    b.overhead_us, b.overhead_us_low, b.overhead_us_high, b.work_us, b.work_us_low, b.work_us_high,
    b.without_overhead_us,
    b.host_slope, b.host_slope_low, b.host_slope_high, b.device_slope, b.device_slope_low, b.device_slope_high,
    b.roof_us, b.flops_share, b.bytes_share, b.bytes_roof, b.flops, b.bytes, b.bytes_min, b.fusion_headroom,
    b.launches, b.kernels, b.underfilled_frac, b.blocking_calls,
    b.runs, b.ok_runs, b.host_contended, b.host_noise, b.issue_points,
    p.first_call_us, p.compile_s, p.compilations, p.graph_breaks, p.perturbation, p.profiled_host_us,
    p.peak_bytes, p.allocated_peak_bytes, p.reserved_peak_bytes,
    p.sm_clock_mhz, p.power_w, p.temperature_c, p.throttle_reasons, p.host, p.rank, p.world_size,
    e.device_name, e.host_cpu, e.threads, e.torch, e.python, e.driver, e.cuda_runtime,
    coalesce(f.finding_count, 0) AS finding_count, f.findings, f.finding_sentences
FROM bounds AS b
JOIN points AS p USING (run_id)
LEFT JOIN environments AS e ON e.environment_id = b.environment_id
LEFT JOIN found AS f ON f.run_id = b.run_id;

COMMENT ON VIEW exported IS
    'One row a point and environment: axes, verdict, times, shares of the roofs, conditions, environment, findings.';
COMMENT ON COLUMN exported.run_id IS 'Latest ok run of the point, else its latest run.';
COMMENT ON COLUMN exported.status IS 'Of that run: ok, failed, oom, timeout, crashed, skipped.';
COMMENT ON COLUMN exported.reason IS 'Why this bound, with the figures it rests on; of a failed point why it failed.';
COMMENT ON COLUMN exported.sentence IS 'The verdict as one English sentence.';
COMMENT ON COLUMN exported.overhead_us IS
    'Overhead of a step: issue_us, on the CPU floor_us; of an import the profiled host time over the usual inflation; microseconds.';
COMMENT ON COLUMN exported.overhead_us_low IS 'Low end of overhead_us.';
COMMENT ON COLUMN exported.overhead_us_high IS 'High end of overhead_us.';
COMMENT ON COLUMN exported.bytes IS 'Bytes that the operations of a step move by the workload''s formula.';
COMMENT ON COLUMN exported.runs IS 'Number of runs of the point in the environment.';
COMMENT ON COLUMN exported.ok_runs IS 'Number of its ok runs.';
COMMENT ON COLUMN exported.finding_count IS 'Number of rules that found something in the run''s trace and facts.';
COMMENT ON COLUMN exported.findings IS
    'Names of these rules, comma-separated: what misleads first, then what costs, then what explains; NULL = none.';
COMMENT ON COLUMN exported.finding_sentences IS 'Their sentences in the same order, separated by " | "; NULL = none.';
