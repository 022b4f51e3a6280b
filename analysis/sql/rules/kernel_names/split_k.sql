-- Rule: A product is split along K.
-- Topic: kernel names
-- Severity: explains
-- Needs: device work, step
-- Otherwise: no kernel of the step is named as split along K
-- Means: A product with a small result and long rows has too few tiles for the device, so that the library splits the
--     sum over K among several blocks and adds up the parts afterwards, often by a kernel of its own.
-- Cure: Nothing to mend where it pays; the parts are added in another order than otherwise, so that results may differ
--     in the last bits.
WITH split AS (
    SELECT
        run_id,
        coalesce(sum(dur_ns) FILTER (family <> 'split-k reduction'), 0) AS product_ns,
        coalesce(sum(dur_ns) FILTER (family = 'split-k reduction'), 0) AS reduction_ns,
        count(*) FILTER (family <> 'split-k reduction') AS products,
        count(*) FILTER (family = 'split-k reduction') AS reductions,
        arg_max(regexp_extract(name, '^(?:void )?(?:cutlass\w*::Kernel2?<)?([^<>(]+)', 1), dur_ns) AS short_name,
        list(event_id ORDER BY dur_ns DESC)[:8] AS event_ids
    FROM work
    WHERE category = 'kernel' AND (split_k OR family IN ('gemm', 'convolution') AND EXISTS (
        SELECT 1
        FROM work AS r
        WHERE r.run_id = work.run_id AND r.op_id = work.op_id AND r.family = 'split-k reduction'
    ))
    GROUP BY run_id
)
SELECT
    run_id,
    true AS fired,
    _counted(products, 'product') || ' split along K and ' || _counted(reductions, 'kernel')
        || ' to add up the parts' AS reason,
    'A step has ' || CASE
            WHEN products > 0 THEN _counted(products, 'product') || ' that '
                || CASE WHEN products = 1 THEN 'is' ELSE 'are' END || ' split along K (' || _time(product_ns / 1e3) || ')'
            ELSE 'products split along K'
        END
        || CASE
            WHEN reductions > 0 THEN ', and ' || _counted(reductions, 'kernel') || ' that ' || CASE
                WHEN reductions = 1 THEN 'adds' ELSE 'add' END || ' up the parts (' || _time(reduction_ns / 1e3) || ')'
            ELSE ''
        END || ', such as ' || short_name || '.' AS sentence,
    event_ids,
    {'product_us': product_ns / 1e3, 'reduction_us': reduction_ns / 1e3, 'products': products, 'reductions': reductions}
        AS figures
FROM split
