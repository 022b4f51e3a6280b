-- Grain: one row a run on a device whose compute capability is known: what a multiprocessor holds (CUDA C++ Programming
-- Guide, technical specifications per compute capability).
SELECT
    s.run_id, s.multiprocessors,
    e.threads_per_multiprocessor // 32 AS warps,
    e.registers_per_multiprocessor AS registers,
    e.shared_memory_per_multiprocessor_bytes AS shared_bytes,
    CASE WHEN s.architecture >= 80 THEN 1024 ELSE 0 END AS reserved_bytes,
    CASE s.architecture WHEN 75 THEN 16 WHEN 86 THEN 16 WHEN 87 THEN 16 WHEN 89 THEN 24 WHEN 120 THEN 24
        ELSE 32 END AS blocks
FROM subjects AS s
JOIN environments AS e USING (environment_id)
WHERE s.status = 'ok' AND s.architecture >= 60
