-- Rule: The host launched device work that the trace does not show.
-- Topic: data quality
-- Severity: misleads
-- Needs: trace, calls
-- Otherwise: no call of the trace launches a kernel, or a graph's kernels are not known one by one
-- Means: The profiler lost kernels, or the launches were recorded into a graph and never ran. The device's sums and its
--     idle time are then wrong: what is missing looks like idle time.
-- Cure: Profile fewer steps, or give the profiler more room, and measure again; where the step records a graph, profile
--     its replay.
WITH launched AS (
    SELECT
        s.run_id, s.trace_incomplete, s.device_events, s.kernels AS expected,
        s.run_id IN (SELECT run_id FROM calls WHERE contains(name, 'BeginCapture')) AS captures,
        t.kernel_launches, t.kernels, t.graph_launches, t.step,
        coalesce(t.kernel_launches > t.kernels AND t.graph_launches = 0, false) AS is_short
    FROM subjects AS s
    JOIN typical AS t USING (run_id)
    WHERE s.status = 'ok' AND s.calls > 0
        AND (s.trace_incomplete IS NOT NULL OR t.kernel_launches > 0 AND t.graph_launches = 0)
)
SELECT
    run_id,
    coalesce(trace_incomplete, false) OR is_short AS fired,
    CASE
        WHEN coalesce(trace_incomplete, false) AND NOT is_short
            THEN 'in some step fewer kernels were seen than were launched'
        ELSE 'step ' || step || ' shows ' || _counted(kernels, 'kernel') || ' for ' || kernel_launches
            || ' calls that launch one' || CASE WHEN graph_launches > 0 THEN ' and ' || _counted(graph_launches,
            'graph') ELSE '' END
    END AS reason,
    CASE
        WHEN is_short AND captures THEN 'Step ' || step || ' launches ' || _counted(kernel_launches, 'kernel')
            || ' into a graph that it records: '
            || 'the trace shows ' || kernels || ' of them, since what is recorded does not run.'
        WHEN device_events = 0 THEN 'The trace holds no work of the device at all, although step ' || step
            || ' launches '
            || _counted(kernel_launches, 'kernel') || ': nothing can be read of the device.'
        WHEN is_short THEN 'Step ' || step || ' launches ' || _counted(kernel_launches, 'kernel')
            || ' and the trace shows '
            || kernels || ' of them: its busy time is too small and its idle time too large.'
        ELSE 'In some of the profiled steps the trace shows fewer kernels than were launched: '
            || 'sums over the steps are too small.'
    END AS sentence,
    {'launches': kernel_launches, 'kernels': kernels, 'step': step} AS figures
FROM launched
