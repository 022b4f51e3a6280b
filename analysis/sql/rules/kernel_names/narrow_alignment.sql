-- Rule: A matrix product runs a kernel for narrow alignment.
-- Topic: kernel names
-- Severity: costs
-- Needs: device work, step
-- Otherwise: no product's name tells an alignment
-- Means: The kernel loads few elements at a time, since a row of an input does not begin at a multiple of 16 bytes.
-- Cure: Pad the inner dimensions to multiples of 8 elements (16-bit formats; 4 for fp32), and pass contiguous tensors.
WITH products AS (
    SELECT
        run_id, name, event_id, dur_ns, alignment, input_type,
        alignment * CASE WHEN input_type IN ('bf16', 'fp16') THEN 2 WHEN input_type IN ('fp32', 'tf32') THEN 4
            WHEN input_type IN ('fp8_e4m3', 'fp8_e5m2', 'int8') THEN 1 WHEN input_type = 'fp64' THEN 8 END AS aligned_bytes
    FROM work
    WHERE family IN ('gemm', 'convolution') AND alignment IS NOT NULL AND tensor_core  -- others load one by one always
),
worst AS (
    SELECT
        run_id,
        min(aligned_bytes) AS aligned_bytes,
        count(*) FILTER (aligned_bytes < 16) AS narrow,
        sum(dur_ns) FILTER (aligned_bytes < 16) AS narrow_ns,
        max_by({'name': name, 'event_id': event_id, 'alignment': alignment, 'bytes': aligned_bytes}, dur_ns)
            FILTER (aligned_bytes < 16) AS top
    FROM products
    WHERE aligned_bytes IS NOT NULL
    GROUP BY run_id
)
SELECT
    run_id,
    narrow > 0 AS fired,
    narrow || ' products load fewer than 16 bytes at a time; the fewest is ' || aligned_bytes AS reason,
    top.name || ' loads ' || top.alignment || ' elements (' || top.bytes || ' bytes) at a time in place of 16 bytes; such products take '
        || _time(narrow_ns / 1e3) || ' of a step.' AS sentence,
    [top.event_id] AS event_ids,
    {'aligned_bytes': top.bytes, 'narrow_us': narrow_ns / 1e3} AS figures
FROM worst
