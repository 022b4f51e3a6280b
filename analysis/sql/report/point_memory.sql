-- Grain: one row a run, device and slice of its trace in which the allocator of a device gave out or took back memory.
-- Of up to 400 slices of equal length the moment of the most allocated memory is kept, with what was reserved then.
-- at_ns: from the start of the timeline's window. changes: how many there were in the slice.
WITH moments AS (
    SELECT
        e.run_id, _fact(e.args, '"Device Id"')::BIGINT AS device, e.ts_ns - w.start_ns AS at_ns, e.ts_ns, e.event_id,
        _fact(e.args, '"Total Allocated"')::BIGINT AS allocated_bytes,
        _fact(e.args, '"Total Reserved"')::BIGINT AS reserved_bytes
    FROM events AS e
    JOIN point_windows AS w USING (run_id)
    WHERE e.category = 'cpu_instant_event' AND e.name = '[memory]'
        AND _fact(e.args, '"Device Type"') NOT IN ('0', '2', '5') -- c10's numbers of the host's own
),
sliced AS (
    SELECT *, 400 * (ts_ns - min(ts_ns) OVER whole) // (max(ts_ns) OVER whole - min(ts_ns) OVER whole + 1) AS slice
    FROM moments
    WHERE allocated_bytes IS NOT NULL
    WINDOW whole AS (PARTITION BY run_id, device)
)
SELECT
    run_id, device,
    arg_max(at_ns, (allocated_bytes, -event_id)) AS at_ns,
    max(allocated_bytes) AS allocated_bytes,
    arg_max(reserved_bytes, (allocated_bytes, -event_id)) AS reserved_bytes,
    count(*) AS changes
FROM sliced
GROUP BY run_id, device, slice
ORDER BY run_id, device, at_ns
