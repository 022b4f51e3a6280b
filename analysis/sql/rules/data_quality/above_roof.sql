-- Rule: The step is faster than a roof of this device allows.
-- Topic: data quality
-- Severity: misleads
-- Needs: sweep, accelerator, warm
-- Otherwise: no roof time of the step is known
-- Means: More than 105 % of a measured ceiling cannot be: either the data never leaves the cache, so that the DRAM roof
--     does not apply, or the roof was measured too low, or the cost model counts too much.
-- Cure: Measure with l2=cold, which empties the cache before every step, and measure the roofs again (delete the
--     store's folder roofs).
WITH shares AS (
    SELECT
        s.run_id, b.roof_us, coalesce(b.bytes_share > b.flops_share, false) AS is_memory, s.device_us, e.l2_bytes,
            s.working_set_bytes,
        coalesce(json_extract_string(s.params, '/l2'), 'warm') AS l2,
        b.roof_us / nullif(b.work_us, 0) AS share
    FROM subjects AS s
    JOIN bounds AS b USING (run_id)
    LEFT JOIN environments AS e ON e.environment_id = s.environment_id
    WHERE s.status = 'ok' AND NOT s.is_import
)
SELECT
    run_id,
    share > 1.05 AS fired,
    'the roofs allow ' || _time(roof_us) || ' for the step''s operations, ' || _percent(share)
        || ' of what it takes (limit 105 %)' AS reason,
    'The step takes ' || _time(roof_us / share) || ' where its roofs allow no less than ' || _time(roof_us) || ' ('
        || _percent(share) || '): '
        || CASE
            WHEN is_memory AND l2 = 'warm' AND working_set_bytes <= l2_bytes THEN 'its '
                || _bytes(working_set_bytes) || ' stay in the L2 cache of ' || _bytes(l2_bytes)
                || ', and the DRAM roof does not hold.'
            WHEN is_memory AND l2 = 'warm' AND working_set_bytes < 3 * l2_bytes THEN 'part of its '
                || _bytes(working_set_bytes) || ' stays in the L2 cache of ' || _bytes(l2_bytes)
                || ' from step to step.'
            WHEN is_memory THEN 'the bytes/s roof was measured too low, or the cost model counts too many bytes.'
            ELSE 'the FLOP/s roof was measured at a lower clock, or the cost model counts too many FLOPs.'
        END AS sentence,
    {'roof_us': roof_us, 'roof_share': share} AS figures
FROM shares
WHERE share IS NOT NULL
