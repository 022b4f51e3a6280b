-- Rule: Compiled and eager run the same product kernel, or another one.
-- Topic: kernel names
-- Severity: explains
-- Needs: compiled, sweep, device work, step
-- Otherwise: the store holds no profiled eager run of the same point, or no product is in both
-- Means: torch.compile leaves products to the library unless it autotunes: the kernel is then the same, and only what is around it
--     can become faster. A bias that is added inside makes it another one of the same library.
-- Cure: Nothing to mend; mode=max-autotune also tries kernels of Triton.
WITH products AS (
    SELECT run_id, max_by({'name': name, 'us': dur_ns / 1e3, 'event_id': event_id}, dur_ns) AS top
    FROM work
    WHERE category = 'kernel' AND (family = 'gemm' OR op_name IN ('aten::mm', 'aten::bmm', 'aten::addmm', 'aten::baddbmm'))
        AND coalesce(family, 'gemm') NOT IN ('copy', 'elementwise', 'fill')
    GROUP BY run_id
),
eager AS (
    SELECT run_id, other_run_id
    FROM twins
    WHERE setting = 'compile' AND other_value = 'false'
    QUALIFY row_number() OVER (PARTITION BY run_id ORDER BY other_run_id DESC) = 1
)
SELECT
    c.run_id,
    true AS fired,
    'largest product: ' || c.top.name || ', eager: ' || e.top.name AS reason,
    CASE
        WHEN c.top.name = e.top.name THEN 'Compiled and eager run the same product kernel, ' || c.top.name || ': '
            || _time(c.top.us) || ' compiled, ' || _time(e.top.us) || ' eager.'
        ELSE 'The compiled product runs ' || c.top.name || ' in ' || _time(c.top.us) || ', the eager one ' || e.top.name || ' in '
            || _time(e.top.us) || '.'
    END AS sentence,
    [c.top.event_id] AS event_ids,
    {'compiled_us': c.top.us, 'eager_us': e.top.us, 'is_same': c.top.name = e.top.name} AS figures
FROM eager AS t
JOIN products AS c ON c.run_id = t.run_id
JOIN products AS e ON e.run_id = t.other_run_id
JOIN subjects AS s ON s.run_id = c.run_id
WHERE s.is_compiled AND NOT s.is_import
