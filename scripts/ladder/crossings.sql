-- One row a workload, dtype and mode. *Ends* are the lowest and highest place measured: host time to issue a step
-- against device time. *Gain* is what the step at the low end would gain if its overhead went away.
WITH ends AS (
    SELECT b.environment_id, b.workload, b.dtype, b.compile, b.dynamic, b.params,
        arg_min(b.point_id, b.size) AS point_id,
        min(b.size) AS least, max(b.size) AS most,
        arg_min(b.overhead_us, b.size) AS issue_low, arg_min(b.work_us, b.size) AS device_low,
        arg_max(b.overhead_us, b.size) AS issue_high, arg_max(b.work_us, b.size) AS device_high,
        arg_min(b.gain, b.size) AS gain, count(*) AS points
    FROM bounds b WHERE b.status = 'ok' GROUP BY ALL
),
allocators AS ( -- set for the process: an environment has one
    SELECT environment_id, any_value(coalesce(allocator_settings->>'PYTORCH_ALLOC_CONF', allocator_settings->>'PYTORCH_CUDA_ALLOC_CONF')) AS settings
    FROM allocator GROUP BY ALL
)
SELECT c.workload, c.dtype,
    CASE c.compile WHEN 'false' THEN 'eager' WHEN 'true' THEN 'compiled' ELSE c.compile END
        || CASE WHEN c.compile <> 'false' AND c.dynamic IS DISTINCT FROM 'false' THEN ' dynamic=' || coalesce(c.dynamic, 'null') ELSE '' END
        || coalesce(' ' || s.settings, '') || coalesce(' ' || a.settings, '') AS mode,
    c.axis, c.text AS crossing,
    e.least || ': ' || _time(e.issue_low) || ' / ' || _time(e.device_low) AS "low end, issue / device",
    e.most || ': ' || _time(e.issue_high) || ' / ' || _time(e.device_high) AS "high end, issue / device",
    e.gain AS gain, e.points
FROM crossovers c
JOIN ends e ON (e.environment_id, e.workload, e.dtype, e.compile, e.params) = (c.environment_id, c.workload, c.dtype, c.compile, c.params)
    AND e.dynamic IS NOT DISTINCT FROM c.dynamic
LEFT JOIN settings s USING (point_id)
LEFT JOIN allocators a ON a.environment_id = c.environment_id
WHERE c.axis = 'size'
ORDER BY c.workload, c.dtype, mode;
