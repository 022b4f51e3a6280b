-- Calls of cudaMalloc in the first cycle and in a steady one, and what a cycle takes behind an emptied cache.
SELECT a.size, json_extract_string(a.params, '$.pattern') AS pattern, json_extract_string(a.params, '$.spread') AS spread,
    a.pool, a.allocator_settings AS settings, b.wall_us, a.first_device_allocs, a.device_allocs, a.warm_us, a.cold_us, a.alloc_us,
    a.fragmentation_frac, a.reserved_over_allocated
FROM allocator a JOIN bounds b ON b.run_id = a.run_id
WHERE a.workload = 'shape_sequence' AND a.compile = 'false' AND json_extract_string(a.params, '$.shapes') = '8' AND a.size >= 2048
ORDER BY a.size, pattern, spread, settings NULLS FIRST, a.pool;
