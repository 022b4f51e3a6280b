-- Rule: Pinned memory of the host is allocated or freed inside steps.
-- Topic: memory
-- Severity: costs
-- Needs: calls, steps
-- Otherwise: the trace holds no steps behind the first
-- Means: Pages are locked one by one, which takes long, and freeing them waits for the device.
-- Cure: Pin the buffers once, before the loop, and use them again.
SELECT
    s.run_id,
    coalesce(c.calls > 0, false) AS fired,
    coalesce(_counted(c.calls::BIGINT, 'call'), 'no call') || ' inside a step allocates or frees pinned memory' AS reason,
    _counted(c.calls::BIGINT, 'call') || ' inside the steps (' || c.names || ') allocate or free pinned memory: '
        || _time(c.total_us) || ' of the host under the profiler.' AS sentence,
    [c.longest_id] AS event_ids,
    {'calls': c.calls, 'host_us': c.total_us} AS figures
FROM subjects AS s
LEFT JOIN (
    SELECT
        run_id, sum(inside) AS calls, sum(inside_us) AS total_us,
        string_agg(DISTINCT name, ', ' ORDER BY name) AS names,
        max_by(longest_inside_id, longest_inside_us) AS longest_id
    FROM calls
    WHERE inside > 0 AND regexp_full_match(name, '(cuda|hip)(Host(Alloc|Free|Malloc|Register|Unregister)|MallocHost|FreeHost)')
    GROUP BY run_id
) AS c USING (run_id)
WHERE s.status = 'ok' AND s.steps >= 3 AND s.calls > 0
