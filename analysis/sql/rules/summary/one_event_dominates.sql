-- Rule: One kernel or copy holds most of the device's time.
-- Topic: summary
-- Severity: explains
-- Needs: device work, step
-- Otherwise: the step ran fewer than two kinds of device work
-- Means: Whatever is done about the others, the step cannot become faster than this one allows.
-- Cure: Start there: its roof, its shapes, its number format, or another kernel for it.
WITH kinds AS (
    SELECT
        run_id, name, op_name,
        sum(dur_ns) AS dur_ns,
        count(*) AS calls,
        max_by(event_id, dur_ns) AS event_id
    FROM work
    GROUP BY run_id, name, op_name
),
largest AS (
    SELECT
        run_id,
        count(*) AS kinds,
        sum(dur_ns) AS total_ns,
        max_by({'name': name, 'op': op_name, 'dur_ns': dur_ns, 'calls': calls, 'event_id': event_id}, dur_ns) AS top
    FROM kinds
    GROUP BY run_id
)
SELECT
    l.run_id,
    top.dur_ns > total_ns / 2 AND NOT coalesce(s.bound IN ('overhead-bound', 'input-bound'), false) AS fired,
    'the largest of ' || kinds || ' kinds of device work takes ' || _percent(top.dur_ns / total_ns) || ' (limit 50 %)'
        || CASE WHEN s.bound IN ('overhead-bound', 'input-bound') THEN ', but the step is ' || s.bound ELSE '' END AS reason,
    _percent(top.dur_ns / total_ns) || ' of the device''s time in a step (' || _time(top.dur_ns / 1e3) || ' of '
        || _time(total_ns / 1e3) || ') goes to ' || top.name
        || coalesce(', launched by ' || top.op, '') || CASE WHEN top.calls > 1 THEN ', ' || top.calls || ' times' ELSE '' END
        || '.' AS sentence,
    [top.event_id] AS event_ids,
    {'largest_us': top.dur_ns / 1e3, 'device_us': total_ns / 1e3, 'calls': top.calls} AS figures
FROM largest AS l
JOIN subjects AS s USING (run_id)
WHERE kinds > 1 AND total_ns > 0
