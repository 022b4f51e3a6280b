-- Rule: A matrix product runs off the tensor cores.
-- Topic: kernel names
-- Severity: costs
-- Needs: device work, step
-- Otherwise: no kernel name of the step tells whether it uses tensor cores
-- Means: The kernel multiplies by the ordinary units, which have an eighth or less of the FLOP/s. It takes fp32 that is not to
--     be rounded to tf32, fp64 on some cards, or shapes that no such kernel fits.
-- Cure: Allow tf32 (torch.set_float32_matmul_precision('high')), compute in bf16 or fp16, or pad the shapes to multiples of 8.
WITH products AS (
    SELECT
        run_id,
        count(*) FILTER (tensor_core = false) AS off,
        sum(dur_ns) FILTER (tensor_core = false) AS off_ns,
        sum(dur_ns) AS total_ns,
        max_by({'name': name, 'event_id': event_id, 'input': input_type, 'op': op_name}, dur_ns) FILTER (tensor_core = false) AS top
    FROM work
    WHERE family IN ('gemm', 'convolution') AND tensor_core IS NOT NULL
    GROUP BY run_id
)
SELECT
    p.run_id,
    p.off > 0 AND coalesce(s.architecture >= 70, true)
        AND coalesce(s.bound NOT IN ('overhead-bound', 'input-bound'), true) AS fired,
    p.off || ' of the products whose names tell run off the tensor cores'
        || coalesce(', bound: ' || s.bound, '') AS reason,
    p.top.name || coalesce(' (' || p.top.op || ')', '') || ' does not use the tensor cores'
        || CASE
            WHEN (p.top.input = 'fp32' OR s.dtype = 'fp32') AND s.architecture < 80 THEN ': its inputs are fp32'
            WHEN p.top.input = 'fp32' OR s.dtype = 'fp32' THEN ': its inputs are fp32, which tensor cores take as tf32 alone'
            WHEN p.top.input = 'fp64' THEN ': its inputs are fp64'
            ELSE ''
        END || '; such products take ' || _time(p.off_ns / 1e3) || ' of a step.' AS sentence,
    [p.top.event_id] AS event_ids,
    {'off_us': p.off_ns / 1e3, 'products_us': p.total_ns / 1e3} AS figures
FROM products AS p
JOIN subjects AS s USING (run_id)
