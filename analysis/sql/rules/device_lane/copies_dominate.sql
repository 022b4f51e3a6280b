-- Rule: Copies take much of the device's time.
-- Topic: device lane
-- Severity: costs
-- Needs: device work, step
-- Otherwise: nothing is copied in the step
-- Means: A copy moves data and computes nothing. Between host and device it is limited by the bus, tens of times
--     slower than the device's memory; within the device it reads and writes everything once more. Three tenths of
--     the device's work are told, unless the step is bound by its host.
-- Cure: Keep data on the device, copy once outside the loop, or beside kernels on a stream of its own.
WITH copies AS (
    SELECT
        run_id, name,
        count(*) AS calls,
        sum(dur_ns) AS dur_ns,
        sum(bytes) AS bytes,
        arg_max(op_name, dur_ns) AS op_name
    FROM work
    WHERE category = 'gpu_memcpy'
    GROUP BY run_id, name
),
largest AS (
    SELECT
        run_id,
        sum(dur_ns) AS copy_ns,
        sum(calls) AS calls,
        arg_max({'name': name, 'calls': calls, 'dur_ns': dur_ns, 'bytes': bytes, 'op': op_name}, dur_ns) AS top
    FROM copies
    GROUP BY run_id
),
worked AS (
    SELECT
        run_id,
        sum(dur_ns) AS work_ns,
        list(event_id ORDER BY dur_ns DESC) FILTER (category = 'gpu_memcpy')[:8] AS event_ids
    FROM work
    WHERE NOT _is_collective(name)
    GROUP BY run_id
)
SELECT
    run_id,
    copy_ns >= 0.3 * work_ns AND NOT is_elsewhere AS fired,
    (CASE WHEN calls = 1 THEN '1 copy takes ' ELSE calls || ' copies take ' END) || _percent(copy_ns / work_ns)
        || ' of the device''s work in the step (limit 30 %)'
        || CASE WHEN is_elsewhere THEN ', but the step is ' || bound ELSE '' END AS reason,
    'Copies take ' || _time(copy_ns / 1e3) || ' of the ' || _time(work_ns / 1e3) || ' that the device works in a step, '
        || _percent(copy_ns / work_ns) || ': ' || top.calls || ' x ' || top.name || coalesce(' by ' || top.op, '')
        || coalesce(', ' || _bytes(top.bytes) || ' at ' || _number(top.bytes / top.dur_ns) || ' GB/s', '')
        || '.' AS sentence,
    event_ids,
    {'copies_us': copy_ns / 1e3, 'device_us': work_ns / 1e3, 'copies': calls, 'largest_bytes': top.bytes} AS figures
FROM (
    SELECT
        l.*, w.work_ns, w.event_ids, s.bound,
        coalesce(s.bound IN ('overhead-bound', 'input-bound'), false) AS is_elsewhere
    FROM largest AS l
    JOIN worked AS w USING (run_id)
    JOIN subjects AS s USING (run_id)
    WHERE s.status = 'ok' AND w.work_ns > 0
)
