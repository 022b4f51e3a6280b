-- Rule: Much of the memory that the allocator holds is not in use.
-- Topic: memory
-- Severity: costs
-- Needs: sweep, accelerator
-- Otherwise: the allocator's counters were not recorded
-- Means: Reserved memory is what the allocator took from the driver, allocated memory what tensors use. Pieces between
--     tensors that fit nothing are lost to everybody. A quarter and 1 GiB are told; below that it is the usual cache.
-- Cure: PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True, fewer different shapes, or torch.cuda.empty_cache() between
--     phases.
SELECT
    run_id,
    inactive_split_bytes > reserved_bytes / 4 AND inactive_split_bytes > 2^30 AS fired,
    _bytes(inactive_split_bytes) || ' of ' || _bytes(reserved_bytes)
        || ' reserved lie unused between tensors (limits 25 % and 1 GiB)' AS reason,
    'Of ' || _bytes(reserved_bytes) || ' that the allocator holds, ' || _bytes(allocated_bytes)
        || ' are in tensors, and ' || _bytes(inactive_split_bytes)
        || ' lie in pieces between them, which only fitting tensors can use.' AS sentence,
    {'reserved_bytes': reserved_bytes, 'allocated_bytes': allocated_bytes, 'inactive_split_bytes': inactive_split_bytes}
        AS figures
FROM subjects
WHERE status = 'ok' AND reserved_bytes > 0 AND inactive_split_bytes IS NOT NULL
