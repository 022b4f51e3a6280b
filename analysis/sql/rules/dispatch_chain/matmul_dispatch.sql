-- Rule: Which aten operation each matrix product became.
-- Topic: dispatch chain
-- Severity: explains
-- Needs: operations, step
-- Otherwise: no matrix product is in the step
-- Means: torch.matmul decides by the dimensions of its inputs: two matrices go to aten::mm, a batch of them to
--     aten::bmm, a matrix and a vector to aten::mv. aten::addmm and aten::baddbmm add a bias in the same call; linear
--     layers with a bias and torch.compile call them.
-- Cure: Nothing to mend: the call that launches the kernel is the last one of the chain.
WITH products AS (
    SELECT
        run_id, event_id, name, parent_name, dur_ns,
        CASE name
            WHEN 'aten::mm' THEN 'two matrices'
            WHEN 'aten::bmm' THEN 'a batch of matrices'
            WHEN 'aten::addmm' THEN 'two matrices and a bias, added in the same call'
            WHEN 'aten::baddbmm' THEN 'a batch of matrices and a bias, added in the same call'
            WHEN 'aten::mv' THEN 'a matrix and a vector'
            WHEN 'aten::addmv' THEN 'a matrix, a vector and a bias'
            WHEN 'aten::dot' THEN 'two vectors'
            WHEN 'aten::_scaled_mm' THEN 'two scaled matrices of 8 bits'
        END AS why,
        TRY_CAST(shapes AS JSON) AS shape
    FROM step_events
    WHERE category = 'cpu_op' AND why IS NOT NULL AND parent_name IS DISTINCT FROM name
),
kinds AS (
    SELECT
        run_id, name, why,
        count(*) AS calls,
        max_by({
            'event_id': event_id,
            'from': CASE WHEN starts_with(parent_name, 'aten::') THEN parent_name END,
            -- of the inputs only: a call that is given its output has that behind them
            'shape': array_to_string([
                d::VARCHAR FOR d IN from_json(shape, '["JSON"]') IF json_array_length(d) > 0
            ][:CASE WHEN contains(name, '::add') OR contains(name, 'baddbmm') THEN 3 ELSE 2 END], ' and ')
        }, dur_ns) AS one
    FROM products
    GROUP BY run_id, name, why
)
SELECT
    run_id,
    true AS fired,
    _counted(sum(calls)::BIGINT, 'product') || ' in the step' AS reason,
    'A step computes ' || string_agg(
        _counted(calls, 'product') || ' by ' || name || coalesce(' (called by ' || one."from" || ')', '') || ', ' || why
            || coalesce(': ' || nullif(one.shape, ''), ''), '; ' ORDER BY calls DESC, name
    ) || '.' AS sentence,
    list(one.event_id ORDER BY calls DESC, name)[:8] AS event_ids,
    {'products': sum(calls)} AS figures
FROM kinds
GROUP BY run_id
