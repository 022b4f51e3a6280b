-- Rule: A compiled CUDA graph copies its inputs in every step before it runs.
-- Topic: torch.compile
-- Severity: costs
-- Needs: compiled, device work, calls, step
-- Otherwise: the typical step launches no graph
-- Means: A CUDA graph reads fixed addresses. Inputs that may lie elsewhere at the next call are copied there first, by
--     aten::_foreach_copy_ or device-to-device copies, which cost the device their time and the host a launch.
-- Cure: Promise that the inputs stay where they are (torch._dynamo.mark_static_address; static_inputs=true in a sweep), and
--     write new values into them.
WITH launches AS (
    SELECT run_id, min(ts_ns) AS launch_ns
    FROM step_events
    WHERE is_call AND contains(name, 'GraphLaunch')
    GROUP BY run_id
),
copies AS (
    SELECT
        w.run_id,
        count(*) AS copies,
        sum(w.dur_ns) / 1e3 AS copy_us,
        sum(w.bytes) AS copied_bytes,
        list(w.event_id ORDER BY w.dur_ns DESC)[:8] AS event_ids,
        any_value(w.op_name) FILTER (w.op_name = 'aten::_foreach_copy_') AS op_name
    FROM work AS w
    JOIN launches AS l USING (run_id)
    WHERE NOT contains(coalesce(w.call_name, 'GraphLaunch'), 'GraphLaunch') AND w.call_ts_ns < l.launch_ns
        AND CASE
            WHEN w.op_name = 'aten::_foreach_copy_' THEN true
            WHEN w.op_name IS NULL OR w.op_name = 'aten::copy_' OR starts_with(w.op_name, '## Call Compiled')
                THEN w.category = 'gpu_memcpy' AND regexp_matches(w.name, 'DtoD|Device -> Device')
        END
    GROUP BY w.run_id
),
host AS (
    SELECT run_id, sum(total_us) AS host_us FROM operators WHERE name = 'aten::_foreach_copy_' GROUP BY run_id
)
SELECT
    s.run_id,
    c.copies IS NOT NULL AS fired,
    CASE
        WHEN c.copies IS NULL THEN 'the typical step launches a graph, and copies nothing before it'
        ELSE _counted(c.copies, 'device activity') || ' copy inputs before the graph is launched'
    END AS reason,
    'Before its graph the step copies ' || coalesce(_counted(s.cudagraph_copies, 'input'), 'inputs')
        || coalesce(' of ' || _bytes(coalesce(s.cudagraph_copied_bytes, c.copied_bytes)), '')
        || ' to the graph''s own addresses' || coalesce(' (' || c.op_name || ')', '') || ': ' || _time(c.copy_us)
        || ' of device time'
        || coalesce(' and ' || _time(h.host_us) || ' of host time under the profiler', '') || '.' AS sentence,
    CASE WHEN s.bound IN ('compute-bound', 'memory-bound', 'device-bound') AND s.device_us > c.copy_us
        THEN s.device_us / (s.device_us - c.copy_us) END AS gain,
    c.event_ids,
    {'copies': c.copies, 'device_us': c.copy_us, 'host_us': h.host_us, 'inputs': s.cudagraph_copies} AS figures
FROM subjects AS s
JOIN launches AS l USING (run_id)
LEFT JOIN copies AS c USING (run_id)
LEFT JOIN host AS h USING (run_id)
WHERE s.is_compiled AND s.status = 'ok'
