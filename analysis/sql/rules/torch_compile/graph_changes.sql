-- Rule: Steps call different compiled graphs.
-- Topic: torch.compile
-- Severity: costs
-- Needs: compiled, steps
-- Otherwise: fewer than two steps call a compiled graph
-- Means: The hash in `## Call CompiledFxGraph HASH ##` names the generated code. Another one in some steps: they took other
--     code, for another shape or another path, and each was compiled once; new ones still may come.
-- Cure: Compile with dynamic shapes (dynamic=true, torch._dynamo.mark_dynamic), or pad inputs to few shapes.
-- Excludes: same_graph
WITH sets AS (
    SELECT run_id, hashes, count(*) AS steps, min(step) AS first_step, min_by(event_id, step) AS event_id
    FROM graph_calls
    GROUP BY run_id, hashes
),
counted AS (
    SELECT
        run_id, sum(steps)::BIGINT AS steps, count(*) AS kinds, max(steps) AS most, arg_max(hashes[1], steps) AS hash,
        list(event_id ORDER BY first_step)[:8] AS event_ids, list(first_step ORDER BY first_step)[2] AS changed_at
    FROM sets
    GROUP BY run_id
    HAVING sum(steps) > 1
)
SELECT
    run_id,
    kinds > 1 AS fired,
    steps || ' steps call ' || CASE WHEN kinds = 1 THEN 'one and the same set' ELSE kinds || ' different sets' END
        || ' of compiled graphs' AS reason,
    steps || ' steps call ' || kinds || ' different sets of compiled graphs: the most frequent (' || left(hash, 12) || ') in '
        || most || ' of them, another one first in step ' || changed_at || '.' AS sentence,
    event_ids,
    {'steps': steps, 'sets': kinds, 'most_frequent_steps': most, 'changed_at_step': changed_at} AS figures
FROM counted
