-- Four layers of 1,024 x 1,024, float32; `size` is the batch. The optimizer's own time and launches are those of its phase.
SELECT json_extract_string(b.params, '$.optimizer') AS optimizer, json_extract_string(b.params, '$.impl') AS impl,
    CASE b.compile WHEN 'false' THEN 'eager' ELSE 'compiled' END AS mode, b.size AS batch,
    b.wall_us, b.issue_us, b.device_us, b.bound,
    p.host_us AS optimizer_host_us, p.device_us AS optimizer_device_us, p.launches AS optimizer_launches
FROM bounds b LEFT JOIN phases p ON p.run_id = b.run_id AND p.path = 'optimizer'
WHERE b.workload = 'train_step' AND json_extract_string(b.params, '$.model') = 'mlp' AND b.dtype = 'fp32'
    AND json_extract_string(b.params, '$.capturable') = 'false' AND b.status = 'ok'
ORDER BY optimizer, impl, mode, batch;
