-- Grain: one row a run that findings are asked of.
-- What rules know of a run besides its trace: axes, times without a profiler, the verdict of its point, its environment,
-- and what its trace holds. lacks: need of a rule -> why this run cannot meet it.
SELECT
    r.*,
    r.reason AS failure,
    r.run_id IS NOT DISTINCT FROM b.run_id AS is_latest,
    coalesce(r.source = 'import', false) AS is_import,
    coalesce(r.device = 'cpu', false) AS is_cpu,
    coalesce(r.warmup = 'false', false) AS is_cold,
    coalesce(r.compile <> 'false', false) OR coalesce(t.regions, 0) > 0 AS is_compiled,
    b.bound,
    b.gain AS bound_gain,
    b.reason AS bound_reason,
    b.overhead_us,
    b.work_us,
    e.device_name,
    e.torch,
    e.driver,
    e.host_cpu,
    e.multiprocessors,
    e.threads_per_multiprocessor,
    e.memory_bytes,
    e.sm_clock_max_mhz,
    e.power_limit_w,
    round(10 * TRY_CAST(e.compute_capability AS DOUBLE))::BIGINT AS architecture,
    coalesce(t.events, 0) AS events,
    coalesce(t.device_events, 0) AS device_events,
    coalesce(t.calls, 0) AS calls,
    coalesce(t.operations, 0) AS operations_seen,
    coalesce(t.stacks, 0) > 0 AS has_stacks,
    coalesce(p.shaped, 0) > 0 AS has_shapes,
    coalesce(t.memory_events, 0) > 0 AS has_memory_events,
    t.host_total_us,
    t.device_total_us,
    coalesce(w.waiting_us, 0) AS waiting_us,
    y.step AS typical_step,
    coalesce(y.steps, 0) AS steps,
    MAP {
        'times': CASE
            WHEN r.wall_us IS NULL THEN coalesce('no time was measured: ' || coalesce(r.reason, _fact(r.reasons, 'wall_us')),
                CASE WHEN is_import THEN 'a trace holds no time without a profiler' ELSE 'no time was measured' END)
        END,
        'sweep': CASE WHEN is_import THEN 'the trace was imported: what only a sweep records is not known' END,
        'accelerator': CASE WHEN is_cpu THEN 'the work runs on the CPU itself' END,
        'trace': CASE WHEN coalesce(t.events, 0) = 0 THEN coalesce('no trace: ' || r.profile_reason, 'no trace is in the store') END,
        'device work': CASE
            WHEN coalesce(t.events, 0) = 0 THEN 'no trace is in the store'
            WHEN coalesce(t.device_events, 0) = 0 THEN 'the trace holds no work of a device'
        END,
        'calls': CASE WHEN coalesce(t.calls, 0) = 0 THEN 'the trace holds no calls of a device''s runtime' END,
        'operations': CASE WHEN coalesce(t.operations, 0) = 0 THEN 'the trace holds no operations of the host' END,
        'step': CASE WHEN y.step IS NULL THEN 'no step was found in the trace' END,
        'steps': CASE WHEN coalesce(y.steps, 0) < 3 THEN 'fewer than three steps were found in the trace' END,
        'compiled': CASE WHEN NOT is_compiled THEN 'nothing in it was compiled by torch.compile' END,
        'eager': CASE WHEN is_compiled THEN 'it was compiled by torch.compile' END,
        'warm': CASE WHEN is_cold THEN 'a cold point: its first calls were measured' END,
        'shapes': CASE WHEN coalesce(p.shaped, 0) = 0 THEN 'the profiler did not record shapes (profiler.record_shapes=true)' END,
        'stacks': CASE WHEN coalesce(t.stacks, 0) = 0 THEN 'the profiler did not record stacks (profiler.with_stack=true)' END,
        'memory events': CASE
            WHEN coalesce(t.memory_events, 0) = 0 THEN 'the profiler did not record memory (profiler.profile_memory=true)'
        END,
        'launch parameters': CASE
            WHEN coalesce(p.grids, 0) = 0 THEN 'the trace holds no launch parameters of kernels'
            WHEN e.multiprocessors IS NULL THEN 'the device''s multiprocessors are not known'
        END
    } AS lacks
FROM stg_runs AS r
SEMI JOIN chosen_runs USING (run_id)
LEFT JOIN bounds AS b
    ON b.point_id IS NOT DISTINCT FROM r.point_id AND b.environment_id IS NOT DISTINCT FROM r.environment_id
LEFT JOIN environments AS e ON e.environment_id = r.environment_id
LEFT JOIN trace_contents AS t ON t.run_id = r.run_id
LEFT JOIN typical AS y ON y.run_id = r.run_id
LEFT JOIN step_contents AS p ON p.run_id = r.run_id
LEFT JOIN (
    SELECT run_id, sum(total_us) AS waiting_us
    FROM calls
    WHERE _is_waiting(name)
    GROUP BY run_id
) AS w ON w.run_id = r.run_id
