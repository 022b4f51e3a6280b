-- Rule: A product and its bias are one operation for the dispatcher, and still two on the device.
-- Topic: dispatch chain
-- Severity: costs
-- Needs: device work, step
-- Otherwise: no aten::addmm or aten::baddbmm launched device work in the step
-- Means: One call in place of two saves host time. But the library's kernel adds to what its output holds, so that a
--     full bias is first copied there: bytes are moved twice, once by the copy and once by the product.
-- Cure: A bias of one dimension is added inside the kernel; for a full one an elementwise addition behind the product
--     moves no more, and compiled code may fuse it with what follows.
-- See: docs/article.md#9-did-compile-fuse-matmul-and-add
WITH calls AS (
    SELECT
        run_id, op_name, op_id,
        count(*) FILTER (is_copy) AS copies,
        count(*) FILTER (NOT is_copy AND category = 'kernel') AS kernels,
        sum(dur_ns) FILTER (is_copy) AS copy_ns,
        sum(dur_ns) AS total_ns,
        max_by(event_id, dur_ns) FILTER (is_copy) AS copy_id,
        sum(bytes) FILTER (is_copy) AS copied_bytes
    FROM (
        -- what a copy_ inside launches belongs to the call as well
        SELECT
            run_id, event_id, category, dur_ns, bytes,
            coalesce(work.op_name IN ('aten::addmm', 'aten::baddbmm'), false) AS is_own,
            CASE WHEN is_own THEN work.op_name ELSE outer_name END AS op_name,
            CASE WHEN is_own THEN work.op_id ELSE outer_id END AS op_id,
            category = 'gpu_memcpy' OR NOT is_own
                AND work.op_name = 'aten::copy_' OR regexp_matches(name, '(?i)copy') AS is_copy
        FROM work
        WHERE (work.op_name IN ('aten::addmm', 'aten::baddbmm') OR outer_name IN ('aten::addmm', 'aten::baddbmm'))
            AND category <> 'gpu_memset'
    )
    GROUP BY run_id, op_name, op_id
)
SELECT
    run_id,
    count(*) FILTER (copies > 0 AND kernels > 0) > 0 AS fired,
    'calls that launch a copy and a kernel: ' || count(*) FILTER (copies > 0 AND kernels > 0) || ' of '
        || count(*) AS reason,
    arg_max(op_name, copy_ns) FILTER (kernels > 0) || ' launches a copy' || coalesce(' of '
        || _bytes(max(copied_bytes)), '') || ' and a kernel: '
        || _time(sum(copy_ns) / 1e3) || ' of its ' || _time(sum(total_ns) FILTER (copies > 0) / 1e3)
        || ' on the device in a step go to the copy of the bias.' AS sentence,
    list(copy_id ORDER BY copy_ns DESC) FILTER (copy_id IS NOT NULL)[:8] AS event_ids,
    {'copy_us': sum(copy_ns) / 1e3, 'device_us': sum(total_ns) FILTER (copies > 0) / 1e3,
        'copied_bytes': max(copied_bytes)} AS figures
FROM calls
GROUP BY run_id
