-- 16 heads of 64, causal. *Ratio* is the device time against that of `scaled_dot_product_attention`.
SELECT b.dtype, b.size AS length, json_extract_string(b.params, '$.impl') AS impl, b.wall_us, b.issue_us, b.device_us,
    b.device_us / s.device_us AS device_ratio, b.bound, a.peak_bytes / 2^20 AS peak_mib
FROM bounds b
JOIN bounds s ON s.workload = 'attention' AND json_extract_string(s.params, '$.impl') = 'sdpa' AND s.size = b.size
    AND s.dtype = b.dtype AND s.compile = b.compile AND s.environment_id = b.environment_id
    AND json_extract_string(s.params, '$.causal') = 'true'
LEFT JOIN runs a ON a.run_id = b.run_id
WHERE b.workload = 'attention' AND json_extract_string(b.params, '$.causal') = 'true' AND b.compile = 'false'
ORDER BY b.dtype, length, impl;
