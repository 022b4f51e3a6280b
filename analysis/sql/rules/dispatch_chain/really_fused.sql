-- Rule: One kernel does the work of several operations.
-- Topic: dispatch chain
-- Severity: explains
-- Needs: device work, step
-- Otherwise: no kernel of the step tells what it fuses
-- Means: A kernel of Triton that names several operations, or a product whose bias is added inside, moves its data
--     once where separate kernels move it every time, and is launched once.
-- Cure: Nothing to mend; `cures` and the twin that runs eager tell what it brought.
WITH calls AS (
    -- what a copy_ inside launches belongs to the call as well: with it the bias is not added inside the product
    SELECT run_id, CASE WHEN op_name IN ('aten::addmm', 'aten::baddbmm') THEN op_id ELSE outer_id END AS call_id
    FROM work
    WHERE (op_name IN ('aten::addmm', 'aten::baddbmm') OR outer_name IN ('aten::addmm', 'aten::baddbmm'))
        AND category <> 'gpu_memset'
    GROUP BY run_id, call_id
    HAVING count(*) = 1
),
fused AS (
    SELECT
        run_id, event_id, dur_ns, name,
        len(fused_ops) AS operations,
        'fuses ' || array_to_string(fused_ops, ', ') AS does
    FROM work
    WHERE category = 'kernel' AND len(fused_ops) > 1
    UNION ALL
    SELECT run_id, event_id, dur_ns, name, 2, 'adds the bias inside the product'
    FROM work
    SEMI JOIN calls ON calls.run_id = work.run_id AND calls.call_id = work.op_id
    WHERE category = 'kernel' AND op_name IN ('aten::addmm', 'aten::baddbmm')
)
SELECT
    f.run_id,
    true AS fired,
    _counted(count(*), 'kernel') || ' of the step in place of ' || sum(operations) || ' operations' AS reason,
    max_by(f.name || ' ' || does, f.dur_ns) || ' in ' || _time(max(f.dur_ns) / 1e3) || '; '
        || _counted(count(*), 'kernel') || ' of the step ' || CASE WHEN count(*) = 1 THEN 'stands' ELSE 'stand' END
        || ' for ' || sum(operations) || ' operations.' AS sentence,
    list(event_id ORDER BY f.dur_ns DESC)[:8] AS event_ids,
    {'kernels': count(*), 'operations': sum(operations), 'device_us': sum(f.dur_ns) / 1e3} AS figures
FROM fused AS f
GROUP BY f.run_id
