-- Grain: one row an event of the device in a run's typical step.
-- With the call that launched it, the operation that made the call (the nearest cpu_op above it, two levels at most; a
-- compiled region or graph where there is no operation) and the one around that, and its kernel name decoded.
SELECT
    w.* EXCLUDE (parent_id, depth, parent_name, parent_category, grandparent_id, self_ns, is_call),
    c.name AS call_name,
    c.ts_ns AS call_ts_ns,
    c.dur_ns AS call_dur_ns,
    c.pid AS call_pid,
    c.tid AS call_tid,
    CASE WHEN c.parent_category = 'cpu_op' OR g.category IS DISTINCT FROM 'cpu_op' THEN c.parent_id ELSE g.event_id END AS op_id,
    CASE WHEN op_id = c.parent_id THEN c.parent_name ELSE g.name END AS op_name,
    CASE WHEN op_id = c.parent_id THEN g.event_id ELSE g.parent_id END AS outer_id,
    CASE WHEN op_id = c.parent_id THEN g.name ELSE g.parent_name END AS outer_name,
    n.* EXCLUDE (name)
FROM (FROM step_events WHERE is_device) AS w
LEFT JOIN step_events AS c ON c.run_id = w.run_id AND c.event_id = w.launch_id
LEFT JOIN step_events AS g ON g.run_id = c.run_id AND g.event_id = c.grandparent_id
LEFT JOIN names AS n ON n.name = w.name
