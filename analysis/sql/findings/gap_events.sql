-- Grain: one row an event that tells when the device worked and why it did not, in a run's typical step and the next.
SELECT run_id, event_id, name, category, ts_ns, end_ns, is_device, device, stream, pid, tid, step, launch_id
FROM near_events
WHERE is_device OR is_call OR category = 'user_annotation' AND name = 'crossover: fence'
UNION ALL
SELECT run_id, event_id, name, category, ts_ns, ts_ns + dur_ns, is_device, device, stream, pid, tid, step, launch_id
FROM events
SEMI JOIN chosen_runs USING (run_id)
WHERE category = 'overhead'
