-- Rule: aten::addmm copies its bias into the result before the product runs.
-- Topic: host lane
-- Severity: costs
-- Needs: trace, device work, operations, step
-- Otherwise: no aten::addmm or aten::baddbmm ran in the step
-- Means: A bias of one dimension is added in the product's epilogue, inside one kernel. One of two dimensions is first
--     copied to where the result goes, and the product adds to it: fused at the dispatcher, two activities on the
--     device all the same.
-- Cure: Where all rows of the bias are equal, give it as one row (1-D); a full matrix costs a pass over memory either
--     way, as this copy or as an add.
-- See: docs/article.md#10-did-compile-fuse-matmul-and-add
WITH products AS (
    SELECT o.run_id, o.event_id, o.name, o.shapes
    FROM step_events AS o
    WHERE o.category = 'cpu_op' AND o.name IN ('aten::addmm', 'aten::baddbmm', 'aten::addmm_',
        'aten::_addmm_activation')
),
judged AS (
    SELECT
        p.run_id,
        any_value(p.name) AS name,
        count(DISTINCT p.event_id) AS products,
        count(DISTINCT p.event_id) FILTER (w.category = 'gpu_memcpy') AS copying,
        sum(w.dur_ns) FILTER (w.category = 'gpu_memcpy') / 1e3 AS copy_us,
        sum(w.dur_ns) FILTER (w.category = 'kernel') / 1e3 AS kernel_us,
        sum(w.call_dur_ns) FILTER (w.category = 'gpu_memcpy') / 1e3 AS call_us,
        sum(w.bytes) FILTER (w.category = 'gpu_memcpy') AS copied_bytes,
        list_slice(list(w.event_id ORDER BY w.dur_ns DESC) FILTER (w.category = 'gpu_memcpy'), 1, 8) AS event_ids
    FROM products AS p
    JOIN (FROM work WHERE category IN ('kernel', 'gpu_memcpy')) AS w ON w.run_id = p.run_id AND w.op_id = p.event_id
    GROUP BY p.run_id
)
SELECT
    j.run_id,
    copying > 0 AS fired,
    'aten::addmm and its kind in the step: ' || products || ', with a copy before the product: ' || copying AS reason,
    name || ' copies its bias' || coalesce(' (' || _bytes(copied_bytes) || ')', '') || ' before the product: '
        || _time(copy_us)
        || ' of the device beside ' || _time(kernel_us) || ' of kernels, and ' || _time(call_us)
        || ' of the host under the profiler for the call.' AS sentence,
    coalesce(event_ids, []) AS event_ids,
    {'copy_us': copy_us, 'kernel_us': kernel_us, 'call_us': call_us, 'copied_bytes': copied_bytes} AS figures
FROM judged AS j
JOIN subjects AS s USING (run_id)
WHERE s.status = 'ok'
