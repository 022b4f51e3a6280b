-- Rule: Elementwise kernels are launched plainly, with no query before them.
-- Topic: host lane
-- Severity: explains
-- Needs: trace, operations, device work, calls, step
-- Otherwise: no elementwise kernel or reduction of the step is launched by a call of its own
-- Means: A plain kernel has fixed registers and no shared memory, so that block and grid follow from the number of
--     elements alone: one call launches it. Such kernels cost the host little each, and it is their number that counts.
-- Cure: Nothing to cure; where many follow each other on the same data, torch.compile makes one kernel of them.
-- See: docs/article.md#7-why-does-matmul-have-one-more-runtime-call-than-add
WITH plain AS (
    SELECT run_id, op_id, op_name, launch_id, call_name, call_dur_ns, dur_ns
    FROM work
    WHERE category = 'kernel' AND launch_id IS NOT NULL AND op_id IS NOT NULL
        AND regexp_matches(name, 'elementwise_kernel|reduce_kernel') AND NOT contains(call_name, 'Graph')
),
asked AS (SELECT DISTINCT run_id, parent_id FROM step_events WHERE is_call AND contains(name, 'Occupancy')),
judged AS (
    SELECT
        p.run_id,
        count(*) AS kernels,
        count(*) FILTER (a.parent_id IS NULL) AS plainly,
        mode(p.op_name) FILTER (a.parent_id IS NULL) AS op_name,
        mode(p.call_name) FILTER (a.parent_id IS NULL) AS call_name,
        median(p.call_dur_ns) FILTER (a.parent_id IS NULL) / 1e3 AS call_us,
        median(p.dur_ns) FILTER (a.parent_id IS NULL) / 1e3 AS kernel_us,
        list_slice(list(p.launch_id ORDER BY p.launch_id) FILTER (a.parent_id IS NULL), 1, 8) AS event_ids
    FROM plain AS p
    LEFT JOIN asked AS a ON a.run_id = p.run_id AND a.parent_id = p.op_id
    GROUP BY p.run_id
)
SELECT
    run_id,
    plainly > 0 AS fired,
    'elementwise kernels and reductions of the step: ' || kernels || ', launched with no query before: '
        || plainly AS reason,
    CASE WHEN kernels = 1 THEN 'The only elementwise kernel of the step' ELSE plainly || ' of ' || _counted(kernels,
        'elementwise kernel') || ' of the step, most in' END
        || CASE WHEN kernels = 1 THEN ', in ' ELSE ' ' END || op_name || ', ' || CASE WHEN plainly = 1 THEN 'is'
        ELSE 'are' END || ' launched by '
        || call_name || ' alone: ' || _time(call_us) || ' of the host under the profiler for ' || _time(kernel_us)
        || ' of the device'
        || CASE WHEN plainly = 1 THEN '' ELSE ' each' END || '.' AS sentence,
    coalesce(event_ids, []) AS event_ids,
    {'kernels': kernels, 'plain': plainly, 'call_us': call_us, 'kernel_us': kernel_us} AS figures
FROM judged
