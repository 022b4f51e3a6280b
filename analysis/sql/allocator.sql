-- Grain: one row a run of a sweep.
-- What its step asks of the driver, what that costs, and how the allocator's memory lies. Every point begins with an
-- empty cache, so that the first cycle asks for everything; a steady step should ask for nothing.
CREATE VIEW allocator AS
SELECT
    run_id, r.point_id, r.environment_id,
    workload, size, dtype, batch, compile, dynamic, warmup, device, params, status,
    coalesce(_fact(params, 'pool'), 'none') AS pool,
    allocator_settings,
    first_cycles_us[1] AS first_cycle_us,
    first_device_allocs[1] AS first_device_allocs,
    list_sum(first_device_allocs[2:])::BIGINT AS later_device_allocs,
    len(first_device_allocs) AS first_cycles,
    device_allocs,
    device_frees,
    warm_us,
    cold_us,
    cold_device_allocs,
    CASE WHEN cold_device_allocs > 0 THEN greatest(0, cold_us - warm_us) END AS cold_loss_us,
    cold_loss_us / cold_device_allocs AS alloc_us,
    CASE WHEN released_segments > 0 THEN release_us / released_segments END AS free_us,
    segments,
    reserved_bytes,
    allocated_bytes,
    reserved_peak_bytes / nullif(allocated_peak_bytes, 0) AS reserved_over_allocated,
    free_bytes,
    1 - largest_free_bytes / nullif(free_bytes, 0) AS fragmentation_frac,
    inactive_split_bytes / nullif(reserved_bytes, 0) AS split_frac,
    alloc_retries,
    CASE
        WHEN device = 'cpu' THEN 'on the CPU torch counts no calls of an allocator'
        WHEN status <> 'ok' THEN r.status || coalesce(': ' || r.reason, '')
        WHEN c.run_id IS NULL THEN 'the run was recorded without it'
        ELSE allocator_reason
    END AS reason
FROM stg_runs AS r
LEFT JOIN stg_cycles AS c USING (run_id)
WHERE source = 'sweep';

COMMENT ON VIEW allocator IS
    'One row a run of a sweep: its calls of cudaMalloc in the first cycles and a steady step, what they cost, and
    fragmentation.';
COMMENT ON COLUMN allocator.pool IS
    'What was laid before the first cycle: none, preallocated, warmup, fraction (docs/shapes.md).';
COMMENT ON COLUMN allocator.first_cycle_us IS
    'Time of the first step, which asks for all its memory, and compiles and loads kernels as well; microseconds.';
COMMENT ON COLUMN allocator.first_device_allocs IS
    'Calls of cudaMalloc in the first step (of cuMemMap with expandable segments).';
COMMENT ON COLUMN allocator.later_device_allocs IS
    'The same in the further first steps together: misses of a cache that should be full.';
COMMENT ON COLUMN allocator.first_cycles IS 'How many first steps were watched.';
COMMENT ON COLUMN allocator.device_allocs IS 'Calls of cudaMalloc in a steady step.';
COMMENT ON COLUMN allocator.device_frees IS 'Calls of cudaFree in a steady step.';
COMMENT ON COLUMN allocator.cold_loss_us IS
    'cold_us - warm_us: what asking the driver adds to a step, with everything else warm; microseconds.';
COMMENT ON COLUMN allocator.alloc_us IS 'The same for each call; microseconds.';
COMMENT ON COLUMN allocator.free_us IS 'What giving back takes for each call of cudaFree; microseconds.';
COMMENT ON COLUMN allocator.reserved_over_allocated IS 'Peak of the memory reserved / peak of the memory in tensors.';
COMMENT ON COLUMN allocator.fragmentation_frac IS
    '1 - largest free piece / all free bytes, between two steps: 0 = all that is free is one piece; NULL = nothing is
    free.';
COMMENT ON COLUMN allocator.split_frac IS
    'Free bytes in segments that hold tensors as well / reserved bytes: they cannot be given back.';
COMMENT ON COLUMN allocator.reason IS 'Why the counters are NULL.';
