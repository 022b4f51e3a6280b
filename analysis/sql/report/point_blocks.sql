-- Grain: one row an event in the window of a run, and the block that stands for it in the timeline.
-- Of at most point_events_limit (a variable) events each is its own block. Of more, the longest keep their own, half as
-- many as are allowed, and of the device at most half of these; what lies between two of them in one row of one lane,
-- inside the same one, is put together by slices of the window, as many as leave no more blocks than the other half.
-- block_id: the event_id of the first event of the block.
WITH counts AS (
    SELECT
        run_id, count(*) AS events, count(*) FILTER (is_device) AS work,
        getvariable('point_events_limit') // 2 AS half,
        CASE WHEN events <= 2 * half THEN events ELSE least(work, half // 2) END AS work_limit,
        CASE WHEN events <= 2 * half THEN events ELSE half - work_limit END AS host_limit
    FROM point_events
    WHERE in_window
    GROUP BY run_id
),
placed AS MATERIALIZED (
    SELECT
        e.run_id, event_id, parent_id,
        rank <= CASE WHEN is_device THEN work_limit ELSE host_limit END AS is_own,
        hash(is_device, device, stream, pid, tid, depth) AS row_key,
        max(CASE WHEN is_own THEN event_id END)
            OVER (PARTITION BY e.run_id, row_key ORDER BY ts_ns, event_id) AS behind_id,
        least(511, greatest(
            0, (512 * (ts_ns::DOUBLE - start_ns) / greatest(1, end_ns::DOUBLE - start_ns))
        ))::BIGINT AS slice
    FROM (FROM point_events WHERE in_window) AS e
    JOIN counts USING (run_id)
),
small AS MATERIALIZED (
    SELECT p.run_id, p.event_id, p.slice, hash(p.row_key, p.behind_id, o.event_id) AS place
    FROM (FROM placed WHERE NOT is_own) AS p
    LEFT JOIN (FROM placed WHERE is_own) AS o ON o.run_id = p.run_id AND o.event_id = p.parent_id
),
cells AS (
    SELECT DISTINCT run_id, place, slice
    FROM small
),
widths AS (
    SELECT run_id, width, count(DISTINCT (place, slice // width)) AS blocks
    FROM cells
    CROSS JOIN (SELECT unnest([1, 2, 4, 8, 16, 32, 64, 128, 512]) AS width)
    GROUP BY run_id, width
),
chosen AS (
    SELECT run_id, coalesce(min(width) FILTER (blocks <= getvariable('point_events_limit') // 2), 512) AS width
    FROM widths
    GROUP BY run_id
)
SELECT run_id, event_id, event_id AS block_id FROM placed WHERE is_own
UNION ALL
SELECT run_id, event_id, min(event_id) OVER (PARTITION BY run_id, place, slice // width)
FROM small
JOIN chosen USING (run_id)
