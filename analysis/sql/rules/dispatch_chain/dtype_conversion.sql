-- Rule: Every step converts tensors from one number format to another.
-- Topic: dispatch chain
-- Severity: costs
-- Needs: device work, step
-- Otherwise: no tensor is converted in the step
-- Means: aten::to with another number format launches a kernel that reads the tensor and writes it again. autocast does so for
--     every weight that it has not cached, and a scalar or a mask in fp32 beside bf16 does so unseen. A twentieth of the
--     device's time, or of the host's where it binds, is told.
-- Cure: Keep weights and inputs in the format of the computation, or convert once outside of the loop; compiled code fuses
--     the conversion with what follows.
WITH converted AS (
    SELECT
        run_id,
        count(*) AS calls,
        sum(dur_ns) AS device_ns,
        list(event_id ORDER BY dur_ns DESC)[:8] AS event_ids
    FROM work
    WHERE category = 'kernel' AND (op_name = 'aten::_to_copy' OR op_name = 'aten::copy_' AND outer_name = 'aten::_to_copy')
    GROUP BY run_id
),
hosts AS (
    SELECT run_id, sum(total_us) AS host_us
    FROM operators
    WHERE name = 'aten::_to_copy'
    GROUP BY run_id
)
SELECT
    c.run_id,
    c.device_ns / 1e3 >= t.busy_us / 20 OR coalesce(s.bound = 'overhead-bound' AND h.host_us >= t.host_us / 20, false) AS fired,
    _counted(c.calls, 'conversion') || ', ' || _percent(c.device_ns / 1e3 / t.busy_us) || ' of the device''s time (limit 5 %)'
        || coalesce(', ' || _percent(h.host_us / t.host_us) || ' of the host''s', '') AS reason,
    _counted(c.calls, 'conversion') || ' of number formats a step ' || CASE WHEN c.calls = 1 THEN 'takes ' ELSE 'take ' END || _time(c.device_ns / 1e3) || ' of the device, '
        || _percent(c.device_ns / 1e3 / t.busy_us) || ' of what it does'
        || coalesce(', and ' || _time(h.host_us) || ' of the host under the profiler', '') || '.' AS sentence,
    c.event_ids,
    {'conversions': c.calls, 'device_us': c.device_ns / 1e3, 'host_us': h.host_us} AS figures
FROM converted AS c
JOIN subjects AS s USING (run_id)
JOIN typical AS t USING (run_id)
LEFT JOIN hosts AS h ON h.run_id = c.run_id
WHERE t.busy_us > 0
