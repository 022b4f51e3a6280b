-- Rule: Much of the host's time goes into calling compiled code, not into its operations, and the host may bind.
-- Topic: torch.compile
-- Severity: costs
-- Needs: compiled, operations, step
-- Otherwise: the typical step calls no compiled code
-- Means: Every call looks up the compiled code and checks its guards, passes the wrapper of AOTDispatcher, and runs the
--     generated Python around its kernels. That is paid once a call, however many operations lie inside: above a quarter of
--     the step it is worth having more of them inside. The profiler lengthens short events most.
-- Cure: Compile more at once (a whole step in place of one operation), or have a CUDA graph replay it with static inputs.
-- See: docs/article.md
WITH parts AS (
    SELECT
        o.run_id,
        coalesce(sum(self_us) FILTER (starts_with(name, 'TorchDynamo Cache Lookup')), 0) AS lookup_us,
        coalesce(sum(self_us) FILTER (starts_with(name, 'Torch-Compiled Region') OR name = 'Pregraph bytecode'), 0) AS region_us,
        coalesce(sum(self_us) FILTER (starts_with(name, 'AOTDispatcher') OR name = 'CompiledFunction'), 0) AS wrapper_us,
        coalesce(sum(self_us) FILTER (starts_with(name, '## Call CompiledFxGraph')), 0) AS generated_us,
        sum(calls) FILTER (starts_with(name, 'Torch-Compiled Region'))::BIGINT AS calls,
        max_by(longest_id, total_us) FILTER (starts_with(name, 'Torch-Compiled Region')) AS event_id
    FROM operators AS o
    GROUP BY o.run_id
    HAVING calls > 0
),
summed AS (
    SELECT
        p.*, lookup_us + region_us + wrapper_us + generated_us AS call_us, t.host_us,
        coalesce(s.bound IN ('compute-bound', 'memory-bound', 'device-bound'), false) AS device_binds
    FROM parts AS p
    JOIN typical AS t USING (run_id)
    JOIN subjects AS s USING (run_id)
    WHERE t.host_us > 0 AND s.status = 'ok' AND s.is_compiled
)
SELECT
    run_id,
    call_us > host_us / 4 AND NOT device_binds AS fired,
    _percent(least(1, call_us / host_us)) || ' of the step''s ' || _time(host_us)
        || ' on the host (under the profiler) are spent on calling compiled code (limit 25 %)'
        || CASE WHEN device_binds THEN ', but the device binds' ELSE '' END AS reason,
    'Calling compiled code takes ' || _time(call_us) || ' of the step''s ' || _time(host_us) || ' on the host under the profiler: '
        || _time(lookup_us) || ' cache lookup and guards, ' || _time(region_us) || ' the region, ' || _time(wrapper_us)
        || ' wrapper, ' || _time(generated_us) || ' generated code around its operations.' AS sentence,
    [event_id] AS event_ids,
    {
        'lookup_us': lookup_us, 'region_us': region_us, 'wrapper_us': wrapper_us, 'generated_us': generated_us,
        'call_us': call_us, 'host_us': host_us, 'calls': calls
    } AS figures
FROM summed
