-- Grain: one row a step in the window of a run; none where no step was found and all of the trace counts as one.
-- On the host from its start to the next one's, on the device from its first work to its last; nanoseconds from the
-- start of the window, NULL without device work.
SELECT
    s.run_id, s.step, s.is_typical,
    s.start_ns - w.start_ns AS from_ns,
    s.host_end_ns - w.start_ns AS to_ns,
    d.device_from_ns - w.start_ns AS device_from_ns,
    d.device_to_ns - w.start_ns AS device_to_ns
FROM point_steps AS s
JOIN point_windows AS w USING (run_id)
LEFT JOIN (
    SELECT run_id, step, min(ts_ns) AS device_from_ns, max(ts_ns + dur_ns) AS device_to_ns
    FROM point_events
    WHERE is_device
    GROUP BY run_id, step
) AS d ON d.run_id = s.run_id AND d.step = s.step
WHERE s.step_method IS DISTINCT FROM 'window' AND s.start_ns < w.end_ns
    AND greatest(s.host_end_ns, coalesce(d.device_to_ns, 0)) > w.start_ns
ORDER BY s.run_id, s.step
