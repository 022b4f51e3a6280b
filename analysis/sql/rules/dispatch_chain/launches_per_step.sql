-- Rule: What a compiled step launches beside an eager one.
-- Topic: dispatch chain
-- Severity: explains
-- Needs: compiled, sweep, device work, step
-- Otherwise: the store holds no profiled eager run of the same point
-- Means: Fewer launches are less for the host to do. A copy is a launch as well, and easily overlooked among calls of
--     another name; a graph is one launch for all of its kernels.
-- Cure: Nothing to mend; where the number stayed the same, compiling has fused nothing that launches.
WITH launches AS (
    SELECT
        run_id,
        kernel_launches + memcpy_launches + memset_launches + graph_launches AS total,
        array_to_string([each.text FOR each IN [
            {'n': kernel_launches, 'text': _counted(kernel_launches, 'kernel')},
            {'n': memcpy_launches, 'text': memcpy_launches || CASE WHEN memcpy_launches = 1 THEN ' copy' ELSE ' copies' END},
            {'n': memset_launches, 'text': _counted(memset_launches, 'fill')},
            {'n': graph_launches, 'text': _counted(graph_launches, 'graph')}
        ] IF each.n > 0], ', ') AS by_kind
    FROM typical
),
eager AS (
    SELECT t.run_id, t.other_run_id
    FROM twins AS t
    WHERE setting = 'compile' AND other_value = 'false'
    QUALIFY row_number() OVER (PARTITION BY t.run_id ORDER BY t.other_run_id DESC) = 1
)
SELECT
    c.run_id,
    true AS fired,
    c.total || ' launches a step, eager ' || e.total AS reason,
    'A compiled step makes ' || c.total || CASE WHEN c.total = 1 THEN ' launch' ELSE ' launches' END
        || ' (' || c.by_kind || '), an eager one ' || e.total || ' (' || e.by_kind || ').' AS sentence,
    {'launches': c.total, 'eager_launches': e.total} AS figures
FROM eager AS t
JOIN launches AS c ON c.run_id = t.run_id
JOIN launches AS e ON e.run_id = t.other_run_id
JOIN subjects AS s ON s.run_id = c.run_id
WHERE s.is_compiled AND c.total > 0 AND e.total > 0
