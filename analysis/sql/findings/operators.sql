-- Grain: one row a run and name of a host event (operation, annotation or call) in its typical step.
-- total_us: without those inside one of the same name directly. device_us: of what it launched itself.
SELECT
    e.run_id, e.name, e.category,
    count(*) AS calls,
    sum(e.dur_ns) FILTER (e.parent_name IS DISTINCT FROM e.name) / 1e3 AS total_us,
    sum(e.self_ns) / 1e3 AS self_us,
    median(e.dur_ns) / 1e3 AS median_us,
    max(e.dur_ns) / 1e3 AS max_us,
    max_by(e.event_id, e.dur_ns) AS longest_id,
    min(e.event_id) AS first_id,
    sum(w.device_us) AS device_us,
    coalesce(sum(w.launches), 0) AS launches
FROM step_events AS e
LEFT JOIN (
    SELECT run_id, op_id, sum(dur_ns) / 1e3 AS device_us, count(*) AS launches
    FROM work
    GROUP BY run_id, op_id
) AS w ON w.run_id = e.run_id AND w.op_id = e.event_id
WHERE NOT e.is_device AND e.category NOT IN ('gpu_user_annotation', 'cuda_sync', 'overhead', 'trace', 'cpu_instant_event')
GROUP BY e.run_id, e.name, e.category
