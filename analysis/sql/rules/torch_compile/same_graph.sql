-- Rule: Every step calls the same compiled graphs.
-- Topic: torch.compile
-- Severity: explains
-- Needs: compiled, steps
-- Otherwise: fewer than two steps call a compiled graph
-- Means: The hash in `## Call CompiledFxGraph HASH ##` names the generated code. The same one in all steps: torch found its
--     code in the cache each time and compiled nothing.
-- Cure: Nothing to cure. `python -m analysis code POINT` prints the generated code, where the run kept it.
-- Excludes: graph_changes
-- See: docs/article.md
WITH counted AS (
    SELECT
        run_id, count(*) AS steps, count(DISTINCT hashes) AS kinds,
        any_value(hashes ORDER BY step) AS hashes, min_by(event_id, step) AS event_id
    FROM graph_calls
    GROUP BY run_id
    HAVING count(*) > 1
)
SELECT
    run_id,
    kinds = 1 AS fired,
    steps || ' steps call ' || CASE WHEN kinds = 1 THEN 'one and the same set' ELSE kinds || ' different sets' END
        || ' of compiled graphs' AS reason,
    'All ' || steps || ' steps call the same ' || CASE WHEN len(hashes) = 1 THEN 'graph, ' ELSE len(hashes) || ' graphs, ' END
        || array_to_string([left(h, 12) FOR h IN hashes[:3]], ', ') || CASE WHEN len(hashes) > 3 THEN ' and others' ELSE '' END
        || ': nothing was compiled meanwhile.' AS sentence,
    [event_id] AS event_ids,
    {'steps': steps, 'graphs': len(hashes), 'hash': hashes[1]} AS figures
FROM counted
