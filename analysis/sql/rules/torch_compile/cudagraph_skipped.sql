-- Rule: A CUDA graph was asked for, and torch made none.
-- Topic: torch.compile
-- Severity: misleads
-- Needs: sweep, compiled
-- Otherwise: its mode makes no CUDA graphs, or the run was recorded without it
-- Means: The modes reduce-overhead and max-autotune give up their CUDA graph where a graph cannot hold the code (work on the
--     CPU, changed inputs, several devices) and run it as compiled code without one.
-- Cure: Take what the reason names out of the compiled function (TORCH_LOGS=cudagraphs says more).
WITH told AS (
    SELECT run_id, compile, cudagraph_skips, coalesce(from_json(cudagraph_skip_reasons, '["VARCHAR"]'), []) AS reasons
    FROM subjects
    WHERE status = 'ok' AND compile IN ('reduce-overhead', 'max-autotune') AND cudagraph_skips IS NOT NULL
)
SELECT
    run_id,
    cudagraph_skips > 0 AS fired,
    _counted(cudagraph_skips, 'graph') || ' without the CUDA graph that compile=' || compile || ' asks for' AS reason,
    'compile=' || compile || ' asks for CUDA graphs, and torch made none for ' || _counted(cudagraph_skips, 'graph')
        || coalesce(': ' || left(reasons[1], 160), '') || '.' AS sentence,
    {'cudagraph_skips': cudagraph_skips} AS figures
FROM told
