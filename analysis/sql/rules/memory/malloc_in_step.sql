-- Rule: Memory of the device is allocated or freed inside steps.
-- Topic: memory
-- Severity: costs
-- Needs: calls, steps
-- Otherwise: the trace holds no steps behind the first
-- Means: PyTorch keeps freed memory for the next tensor, so that a steady step never asks the driver. A cudaMalloc takes
--     0.1 to 1 ms, and a cudaFree waits for all of the device's work. In the first step it is the usual start.
-- Cure: Give the allocator what it needs before: warm up with the largest shapes, keep shapes alike, or set
--     PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True.
-- See: https://docs.pytorch.org/docs/stable/notes/cuda.html#memory-management
WITH first_steps AS (
    SELECT run_id, min(step) AS step
    FROM spans
    GROUP BY run_id
),
allocating AS (
    SELECT
        c.run_id,
        sum(c.inside) AS calls,
        sum(c.inside_us) AS total_us,
        string_agg(DISTINCT c.name, ', ' ORDER BY c.name) AS names,
        max_by(c.longest_inside_id, c.longest_inside_us) AS longest_id,
        max(c.longest_inside_us) AS longest_us,
        max(c.last_step) AS last_step
    FROM calls AS c
    WHERE regexp_full_match(c.name, '(cuda|hip)(Malloc|Free)(Async)?|(cuda|hip)MallocManaged|cuMem(Create|Map|Release|Unmap)')
        AND c.inside > 0
    GROUP BY c.run_id
)
SELECT
    s.run_id,
    coalesce(a.last_step > f.step, false) AS fired,
    CASE
        WHEN a.run_id IS NULL THEN 'no call inside a step allocates or frees memory of the device'
        WHEN a.last_step > f.step THEN _counted(a.calls::BIGINT, 'call') || ' inside steps, in step ' || a.last_step || ' as well'
        ELSE _counted(a.calls::BIGINT, 'call') || ' in the first recorded step alone: its start'
    END AS reason,
    _counted(a.calls::BIGINT, 'call') || ' inside the steps (' || a.names || ') ' || CASE WHEN a.calls = 1 THEN 'takes ' ELSE 'take ' END
        || _time(a.total_us) || ' of the host under the profiler, the longest ' || _time(a.longest_us) || '.' AS sentence,
    [a.longest_id] AS event_ids,
    {'calls': a.calls, 'host_us': a.total_us, 'longest_us': a.longest_us} AS figures
FROM subjects AS s
JOIN first_steps AS f USING (run_id)
LEFT JOIN allocating AS a USING (run_id)
WHERE s.status = 'ok' AND s.steps >= 3 AND s.calls > 0
