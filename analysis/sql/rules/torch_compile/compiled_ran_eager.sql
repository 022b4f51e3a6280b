-- Rule: torch.compile was asked for, and no compiled code ran.
-- Topic: torch.compile
-- Severity: misleads
-- Needs: sweep, trace, step, compiled, operations
-- Otherwise: torch.compile was not asked for
-- Means: A function that cannot be compiled, or was compiled as often as torch allows, runs eager without a word. The times
--     of this point are those of eager code.
-- Cure: Look for graph breaks and the recompile limit (TORCH_LOGS=graph_breaks,recompiles); fullgraph=True makes torch say it.
-- Excludes: compiled_region
WITH seen AS (
    SELECT s.run_id, s.compile, count(o.run_id) AS regions, max(t.regions) AS anywhere
    FROM subjects AS s
    LEFT JOIN operators AS o ON o.run_id = s.run_id AND starts_with(o.name, 'Torch-Compiled Region')
    LEFT JOIN trace_contents AS t ON t.run_id = s.run_id
    WHERE s.status = 'ok' AND NOT s.is_import AND s.compile <> 'false' AND s.typical_step IS NOT NULL AND s.operations_seen > 0
    GROUP BY s.run_id, s.compile
)
SELECT
    run_id,
    regions = 0 AND coalesce(anywhere, 0) = 0 AS fired,
    _counted(coalesce(anywhere, 0), 'call') || ' of a compiled region in the trace' AS reason,
    'The point was measured with compile=' || compile
        || ', but no Torch-Compiled Region is in its trace: its times are those of eager code.' AS sentence,
    {'regions': coalesce(anywhere, 0)} AS figures
FROM seen
