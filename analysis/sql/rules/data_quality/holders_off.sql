-- Rule: The holders of memory do not add up to what the allocator counted.
-- Topic: data quality
-- Severity: misleads
-- Needs: sweep
-- Otherwise: who holds the memory of its steps was not recorded, or nothing to compare with was
-- Means: Some memory has no owner that was seen, or has two: which holder dominates may be another one.
-- Cure: Take the peak from the allocator (runs.allocated_peak_bytes), and the shares of the holders as rough.
SELECT
    s.run_id,
    abs(m.off_frac) > 0.01 AS fired,
    'the holders'' sum is ' || _percent(abs(m.off_frac)) || ' off (limit 1 %)' AS reason,
    'The holders have ' || coalesce(_bytes(m.held_bytes), 'an unknown amount') || ' where the allocator counted '
        || coalesce(_bytes(m.allocator_bytes), 'an unknown one') || ': at worst they are '
            || _percent(abs(m.off_frac)) || ' off'
        || coalesce(' (' || m.memory_reason || ')', '') || '.' AS sentence,
    {'held_bytes': m.held_bytes, 'allocator_bytes': m.allocator_bytes, 'off_frac': m.off_frac} AS figures
FROM subjects AS s
JOIN stg_memory AS m USING (run_id)
WHERE s.status = 'ok' AND m.off_frac IS NOT NULL
