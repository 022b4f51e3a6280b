-- Rule: The allocator ran out of memory and tried again.
-- Topic: memory
-- Severity: costs
-- Needs: sweep, accelerator
-- Otherwise: the allocator's counters were not recorded
-- Means: A retry gives all cached memory back to the driver and asks anew: it waits for the device, and the following steps
--     pay for fresh memory.
-- Cure: Use less memory (smaller batch, checkpointing), or reduce fragmentation with
--     PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True.
SELECT
    run_id,
    alloc_retries > 0 AS fired,
    alloc_retries || ' retries of the allocator' AS reason,
    'The allocator ran out of memory and tried again ' || _counted(alloc_retries, 'time') || ', at a peak of '
        || _bytes(allocated_peak_bytes) || ' allocated and ' || _bytes(reserved_peak_bytes)
        || ' reserved.' AS sentence,
    {'retries': alloc_retries, 'allocated_peak_bytes': allocated_peak_bytes, 'reserved_peak_bytes': reserved_peak_bytes}
        AS figures
FROM subjects
WHERE status = 'ok' AND alloc_retries IS NOT NULL
