-- Rule: Products of equal FLOPs run at different speeds, by other kernels.
-- Topic: kernel names
-- Severity: costs
-- Needs: device work, step, shapes
-- Otherwise: no product of the step has a match of equal FLOPs and type by another kernel, in it or in a step compiled
--     otherwise
-- Means: The library chooses tile and layout by rules of thumb, by the sizes and by what is transposed. Where two
--     products cost the same FLOPs and one takes a quarter longer, the faster kernel or layout shows what could be
--     reached, if its sizes ask for no less memory. Kernels that add a bias or a matrix inside are compared with such
--     alone. A twentieth of the kernels' time is told, where the step waits for the device.
-- Cure: Bring the slower product into the layout of the faster one (transpose a weight once, swap the operands), or let
--     torch.compile with mode='max-autotune' try the kernels.
WITH sized AS (
    SELECT
        w.run_id, w.event_id, w.name, w.input_type, w.dur_ns, coalesce(w.epilogue, '') AS epilogue,
        -- of the inputs without the bias, which comes first
        TRY_CAST(e.shapes AS BIGINT[][])[
            CASE WHEN w.op_name IN ('aten::addmm', 'aten::baddbmm') THEN 2 ELSE 1 END:
        ] AS sides
    FROM work AS w
    JOIN step_events AS e ON e.run_id = w.run_id AND e.event_id = w.op_id
    WHERE w.family = 'gemm' AND w.input_type IS NOT NULL AND NOT coalesce(w.split_k, false)
        AND w.op_name IN ('aten::mm', 'aten::addmm', 'aten::bmm', 'aten::baddbmm')
),
products AS (
    SELECT
        run_id, name, input_type, epilogue, sides,
        any_value(2 * list_product(sides[1]) * sides[2][-1]) AS flops,
        median(dur_ns) AS median_ns,
        count(*) AS calls,
        arg_max(event_id, dur_ns) AS event_id
    FROM sized
    WHERE list_product(sides[1]) * sides[2][-1] > 0
    GROUP BY run_id, name, input_type, epilogue, sides
),
others AS (
    SELECT run_id, run_id AS other_run_id, 'in the same step' AS setting
    FROM subjects
    UNION ALL
    SELECT run_id, other_run_id, 'with compile=' || other_value
    FROM twins
    WHERE setting = 'compile'
),
pairs AS (
    SELECT
        a.run_id, a.name, a.sides, a.median_ns, a.calls, a.event_id, o.setting,
        b.name AS faster, b.sides AS faster_sides, b.median_ns AS faster_ns, a.calls * (a.median_ns - b.median_ns) AS lost_ns,
        CASE WHEN o.run_id = o.other_run_id THEN b.event_id END AS faster_id
    FROM products AS a
    JOIN others AS o USING (run_id)
    JOIN products AS b
        ON b.run_id = o.other_run_id AND b.flops = a.flops AND b.input_type = a.input_type
        AND b.epilogue = a.epilogue AND b.name <> a.name
    QUALIFY row_number() OVER (PARTITION BY a.run_id, a.name, a.sides ORDER BY b.median_ns, o.setting, b.name) = 1
),
summed AS (
    SELECT
        run_id,
        coalesce(sum(lost_ns) FILTER (median_ns >= 1.25 * faster_ns), 0) AS lost_ns,
        greatest(1, max(median_ns / faster_ns)) AS most,
        arg_max({
            'name': regexp_extract(name, '^(?:void )?(?:cutlass\w*::Kernel2?<)?([^<>(]+)', 1), 'median_ns': median_ns,
            'faster': regexp_extract(faster, '^(?:void )?(?:cutlass\w*::Kernel2?<)?([^<>(]+)', 1),
            'faster_ns': faster_ns,
            'shapes': sides[1]::VARCHAR || ' x ' || sides[2]::VARCHAR,
            'faster_shapes': faster_sides[1]::VARCHAR || ' x ' || faster_sides[2]::VARCHAR, 'setting': setting
        }, lost_ns) FILTER (median_ns >= 1.25 * faster_ns) AS top,
        flatten(list([event_id, faster_id] ORDER BY lost_ns DESC) FILTER (median_ns >= 1.25 * faster_ns)) AS event_ids
    FROM pairs
    GROUP BY run_id
),
totals AS (
    SELECT run_id, sum(dur_ns) AS total_ns
    FROM work
    WHERE category = 'kernel'
    GROUP BY run_id
)
SELECT
    u.run_id,
    lost_ns >= 0.05 * total_ns AND NOT coalesce(s.bound IN ('overhead-bound', 'input-bound'), false) AS fired,
    'products take up to ' || _number(most) || ' times as long as others of equal FLOPs (limit 1.25), which costs '
        || _percent(lost_ns / total_ns) || ' of the kernels'' time (limit 5 %)'
        || CASE WHEN s.bound IN ('overhead-bound', 'input-bound') THEN '; the step is ' || s.bound ELSE '' END AS reason,
    top.name || ' takes ' || _time(top.median_ns / 1e3) || ' for ' || top.shapes || '; ' || top.faster || ' takes '
        || _time(top.faster_ns / 1e3) || ' for ' || CASE WHEN top.shapes = top.faster_shapes THEN 'the same'
            ELSE top.faster_shapes || ', equal FLOPs,' END
        || ' ' || top.setting || '; together such products lose ' || _percent(lost_ns / total_ns) || ' of the kernels'' time.'
        AS sentence,
    list_filter(event_ids, lambda x: x IS NOT NULL)[:8] AS event_ids,
    {'slow_us': top.median_ns / 1e3, 'fast_us': top.faster_ns / 1e3, 'lost_us': lost_ns / 1e3} AS figures
FROM summed AS u
JOIN totals USING (run_id)
JOIN subjects AS s USING (run_id)
WHERE s.status = 'ok'
