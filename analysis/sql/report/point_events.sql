-- Grain: one row an event in the window of a run (see point_windows), shadows and instants left out.
-- lane: what it is drawn in, a thread of the host or a stream of a device. rank: among those of its side, the longest
-- first; events that a finding shows come before all others. In a step: of the typical step, device work included.
SELECT
    e.run_id, e.event_id, e.name, e.category, e.ts_ns, e.dur_ns, e.is_device, e.device, e.stream, e.pid, e.tid,
    e.step, e.parent_id, e.depth, e.launch_id, e.grid, e.block, e.registers_per_thread, e.shared_memory_bytes,
    e.bytes, e.shapes,
    w.start_ns,
    w.end_ns,
    w.step IS NULL OR e.step IS NOT DISTINCT FROM w.step AS in_step,
    e.ts_ns <= w.end_ns AND e.ts_ns + e.dur_ns >= w.start_ns AS in_window,
    row_number() OVER (
        PARTITION BY e.run_id, e.is_device, in_window ORDER BY s.event_id IS NULL, e.dur_ns DESC, e.event_id
    ) AS rank
FROM events AS e
JOIN point_windows AS w USING (run_id)
LEFT JOIN point_shown AS s ON s.run_id = e.run_id AND s.event_id = e.event_id
WHERE e.category NOT IN ('trace', 'gpu_user_annotation', 'cuda_sync', 'cpu_instant_event')
    AND (in_window OR in_step)
