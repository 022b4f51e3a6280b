-- Rule: A matrix product runs a kernel built for an older architecture, and is far from its roof.
-- Topic: kernel names
-- Severity: costs
-- Needs: sweep, times, device work, step
-- Otherwise: no product's name tells the architecture, or the device's is not known
-- Means: A library keeps kernels of earlier generations, and now and then one of them is the best there is. Only where the
--     step is also far from its roof (below 70 %) is it worth a look. Which architectures this torch was built for, a trace
--     does not tell: torch.cuda.get_arch_list() does.
-- Cure: Try a newer torch or cuBLAS, shapes that are multiples of 64, or torch.compile with mode=max-autotune.
WITH products AS (
    SELECT
        run_id,
        max_by({'name': name, 'event_id': event_id, 'architecture': w.architecture}, dur_ns) AS top
    FROM work AS w
    WHERE family IN ('gemm', 'convolution') AND w.architecture IS NOT NULL
    GROUP BY run_id
),
roofs AS (
    SELECT point_id, environment_id, roof_us / nullif(work_us, 0) AS roof_share
    FROM bounds
)
SELECT
    p.run_id,
    p.top.architecture < s.architecture AND coalesce(r.roof_share < 0.7, false)
        AND coalesce(s.bound IN ('compute-bound', 'memory-bound', 'device-bound'), false) AS fired,
    'the largest product''s kernel was built for sm' || p.top.architecture || ', the device is sm' || s.architecture
        || coalesce(', at ' || _percent(r.roof_share) || ' of its roofs (limit 70 %)', ', its roofs are not known')
        || ', bound: ' || s.bound AS reason,
    p.top.name || ' was built for sm' || p.top.architecture || ' and runs on sm' || s.architecture || ', and the step reaches '
        || _percent(r.roof_share) || ' of its roofs.' AS sentence,
    [p.top.event_id] AS event_ids,
    {'built_for': p.top.architecture, 'device': s.architecture, 'roof_share_frac': r.roof_share} AS figures
FROM products AS p
JOIN subjects AS s USING (run_id)
LEFT JOIN roofs AS r ON r.point_id = s.point_id AND r.environment_id = s.environment_id
WHERE s.architecture IS NOT NULL AND s.wall_us IS NOT NULL AND NOT s.is_import
