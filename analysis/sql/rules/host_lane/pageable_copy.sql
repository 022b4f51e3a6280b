-- Rule: Data is copied between host and device through pageable memory.
-- Topic: host lane
-- Severity: costs
-- Needs: trace, device work, step
-- Otherwise: no copy between host and device is in the step
-- Means: Memory that the system may move cannot be read by the device directly: the driver copies it piece by piece to
--     memory of its own, and the call holds the host meanwhile, non_blocking=True or not. Pinned memory is copied in
--     one go beside other work. A hundredth of the step is let pass.
-- Cure: Pin the host's tensor (pin_memory=True in the loader, or tensor.pin_memory()) and copy with non_blocking=True.
WITH copies AS (
    SELECT
        w.run_id,
        count(*) AS copies,
        count(*) FILTER (contains(w.name, 'Pageable')) AS pageable,
        sum(w.dur_ns) FILTER (contains(w.name, 'Pageable')) / 1e3 AS copy_us,
        sum(w.call_dur_ns) FILTER (contains(w.name, 'Pageable')) / 1e3 AS call_us,
        sum(w.bytes) FILTER (contains(w.name, 'Pageable')) AS copied_bytes,
        max_by(w.name, w.dur_ns) FILTER (contains(w.name, 'Pageable')) AS name,
        max_by(w.op_name, w.dur_ns) FILTER (contains(w.name, 'Pageable')) AS op_name,
        list_slice(list(w.event_id ORDER BY w.dur_ns DESC) FILTER (contains(w.name, 'Pageable')), 1, 8) AS event_ids
    FROM work AS w
    JOIN subjects AS s USING (run_id)
    WHERE s.status = 'ok' AND w.category = 'gpu_memcpy' AND regexp_matches(w.name, 'HtoD|DtoH|Host|Pageable|Pinned')
    GROUP BY w.run_id
)
SELECT
    c.run_id,
    coalesce(pageable > 0 AND coalesce(call_us, copy_us) > 0.01 * t.wall_us, false) AS fired,
    'copies between host and device in the step: ' || copies || ', through pageable memory: ' || pageable
        || CASE WHEN pageable > 0 THEN ', ' || _time(coalesce(call_us, copy_us)) || ' of ' || _time(t.wall_us)
        || ' (limit 1 %)' ELSE '' END AS reason,
    CASE WHEN pageable = 1 THEN 'One copy' ELSE pageable || ' copies' END || ' a step ' || CASE WHEN pageable = 1
        THEN 'goes' ELSE 'go' END
        || ' through pageable memory (' || name || coalesce(', ' || _bytes(copied_bytes), '') || coalesce(', '
        || op_name, '') || '): '
        || _time(copy_us) || ' of the device' || coalesce(', and the host is held for ' || _time(call_us)
        || ' under the profiler', '') || '.' AS sentence,
    coalesce(event_ids, []) AS event_ids,
    {'copies': pageable, 'copy_us': copy_us, 'call_us': call_us, 'copied_bytes': copied_bytes} AS figures
FROM copies AS c
JOIN typical AS t USING (run_id)
