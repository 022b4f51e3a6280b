-- Rule: Graph breaks cut the compiled code into parts.
-- Topic: torch.compile
-- Severity: costs
-- Needs: sweep, compiled
-- Otherwise: the run did not count its graph breaks
-- Means: Where torch cannot trace a line it ends a graph, runs the line in Python, and begins another: nothing is fused
--     across it, and guards and wrappers are paid for each part.
-- Cure: TORCH_LOGS=graph_breaks shows the lines; take them out of the compiled function (.item(), print, data-dependent if).
WITH told AS (
    SELECT
        run_id, graph_breaks,
        coalesce(list_sort([
            {'times': -(break_reasons::JSON -> _pointer(k))::BIGINT, 'why': k} FOR k IN json_keys(break_reasons::JSON)
        ]), []) AS reasons
    FROM subjects
    WHERE status = 'ok' AND is_compiled AND graph_breaks IS NOT NULL
)
SELECT
    run_id,
    graph_breaks > 0 AS fired,
    _counted(graph_breaks, 'graph break') AS reason,
    _counted(graph_breaks, 'graph break') || CASE WHEN graph_breaks = 1 THEN ' cuts' ELSE ' cut' END || ' the step into '
        || (graph_breaks + 1) || ' compiled parts' || CASE
            WHEN len(reasons) > 0 THEN ': ' || left(reasons[1].why, 160) || CASE
                WHEN len(reasons) > 1 THEN ', and ' || _counted(len(reasons) - 1, 'other reason') ELSE '' END
            ELSE ''
        END || '.' AS sentence,
    {'graph_breaks': graph_breaks, 'reasons': len(reasons)} AS figures
FROM told
