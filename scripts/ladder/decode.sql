-- A model of 494 million parameters with random weights, 512 tokens of context, one token for each of `size` sequences.
-- *Predicted* is the gain that the eager point promises if its overhead went away (its CUDA-graph replay where it could
-- be captured), *measured* what the mode of the row gained against eager with the same cache at the same batch.
SELECT b.size AS batch, json_extract_string(b.params, '$.cache') AS cache,
    CASE b.compile WHEN 'false' THEN 'eager' WHEN 'true' THEN 'compiled' ELSE b.compile END AS mode,
    b.wall_us, b.issue_us, b.device_us, b.replay_us, b.size * 1e6 / b.wall_us AS tokens_per_s, b.bound,
    CASE WHEN b.compile = 'false' THEN b.gain END AS predicted_gain, e.wall_us / b.wall_us AS measured_gain
FROM bounds b
LEFT JOIN bounds e ON b.compile <> 'false' AND e.compile = 'false' AND e.workload = b.workload AND e.size = b.size
    AND e.dtype = b.dtype AND e.params = b.params AND e.environment_id = b.environment_id
WHERE b.workload = 'llm_decode' AND b.status = 'ok'
ORDER BY cache, b.size, b.compile;
