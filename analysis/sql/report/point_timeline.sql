-- Grain: one row a block of the timeline of a run: an event, or several short ones that stand for each other.
-- Times are nanoseconds from the start of the window. lane: name of the thread or stream, those of the host first.
-- events: how many the block holds; names: how many names these have, name being the one that occurs most; busy_ns:
-- their durations together, longest_ns the longest of these. launch_block: the block of the call that launched it;
-- NULL for host events.
WITH blocks AS (
    SELECT
        e.run_id, b.block_id,
        count(*) AS events,
        min(ts_ns) - any_value(start_ns) AS from_ns,
        max(ts_ns + dur_ns) - min(ts_ns) AS dur_ns,
        sum(dur_ns)::BIGINT AS busy_ns,
        max(dur_ns) AS longest_ns,
        mode(name ORDER BY event_id) AS name,
        count(DISTINCT name) AS names,
        any_value(category) AS category,
        arg_min(launch_id, e.event_id) AS launch_id
    FROM (FROM point_events WHERE in_window) AS e
    JOIN point_blocks AS b USING (run_id, event_id)
    GROUP BY e.run_id, b.block_id
)
SELECT
    k.run_id, k.block_id, k.events, k.from_ns, k.dur_ns, k.busy_ns, k.longest_ns, k.name, k.names, k.category,
    e.is_device, e.device, e.stream, e.pid, e.tid,
    CASE WHEN e.category = 'overhead' THEN 0 ELSE coalesce(e.depth, 0) END AS depth,
    e.category = 'overhead' AS is_profiler,
    e.step, l.block_id AS launch_block,
    e.grid, e.block, e.registers_per_thread, e.shared_memory_bytes, e.bytes, e.shapes
FROM blocks AS k
JOIN point_events AS e ON e.run_id = k.run_id AND e.event_id = k.block_id
LEFT JOIN point_blocks AS l ON l.run_id = k.run_id AND l.event_id = k.launch_id
ORDER BY k.run_id, e.is_device, is_profiler DESC, e.device, e.stream, e.pid, e.tid, depth, k.from_ns, k.block_id
