-- Rule: The host waits for the device inside the step.
-- Topic: host lane
-- Severity: costs
-- Needs: trace, calls, step
-- Otherwise: the trace holds no calls in its steps
-- Means: .item(), .cpu(), nonzero, a mask as an index or a print of a tensor need a value from the device: the host
--     stops until all work before it is done, and the device then has nothing queued. Host and device add up in place
--     of overlapping. Waits below a twentieth of the step (without the profiler, where that was measured) are let pass,
--     and so are those of a step that its device binds all the same.
-- Cure: Keep the value on the device, read it every n-th step, or copy it without waiting (non_blocking=True into
--     pinned memory).
WITH fences AS (SELECT run_id, event_id FROM step_events WHERE name = 'crossover: fence'),
waits AS (
    SELECT w.run_id, w.event_id, w.name, w.dur_ns, w.parent_name
    FROM (FROM step_events WHERE is_call AND _is_waiting(name)) AS w
    ANTI JOIN fences AS f ON f.run_id = w.run_id AND f.event_id = w.parent_id
),
summed AS (
    SELECT
        run_id, count(*) AS waits, sum(dur_ns) / 1e3 AS wait_us, max_by(name, dur_ns) AS name, max_by(parent_name,
            dur_ns) AS parent_name,
        list_slice(list(event_id ORDER BY dur_ns DESC), 1, 8) AS event_ids
    FROM waits
    GROUP BY run_id
),
judged AS (
    SELECT
        s.run_id, t.wall_us AS step_us, coalesce(w.waits, 0) AS waits, coalesce(w.wait_us, 0) AS wait_us, w.name,
            w.parent_name, w.event_ids,
        s.blocked_us, s.wall_us, greatest(s.issue_us, s.device_us) AS without_us,
        CASE WHEN s.blocked_us > 0 AND s.wall_us > without_us THEN s.wall_us / without_us END AS gain,
        coalesce(s.blocked_us / s.wall_us, wait_us / t.wall_us) AS frac,
        s.bound, coalesce(s.bound IN ('compute-bound', 'memory-bound', 'device-bound'), false) AS is_elsewhere
    FROM subjects AS s
    JOIN typical AS t USING (run_id)
    LEFT JOIN summed AS w USING (run_id)
    WHERE s.status = 'ok' AND s.calls > 0
)
SELECT
    run_id,
    coalesce(waits > 0 AND frac > 0.05 AND NOT is_elsewhere, false) AS fired,
    'synchronizing calls in the step: ' || waits || ', ' || _time(wait_us) || coalesce(' of ' || _time(step_us), '')
        || ' under the profiler'
        || coalesce(', without it ' || _time(blocked_us) || ' of ' || _time(wall_us), '') || ' (limit 5 %)'
        || CASE WHEN is_elsewhere AND frac > 0.05 THEN '; but it is ' || bound
        || ': there is nothing else to wait for' ELSE '' END AS reason,
    'The host waits ' || _time(wait_us) || ' of ' || _time(step_us) || ' in ' || name || coalesce(', called by '
        || parent_name, '')
        || CASE WHEN waits > 1 THEN ', ' || waits || ' waits a step' ELSE '' END || ' under the profiler'
        || coalesce(', and ' || _time(blocked_us) || ' of ' || _time(wall_us) || ' without', '')
        || CASE WHEN gain > 1.02 THEN '; host and device side by side would need ' || _time(without_us) ELSE '' END
        || '.' AS sentence,
    gain,
    coalesce(event_ids, []) AS event_ids,
    {'wait_us': wait_us, 'step_us': step_us, 'waits': waits, 'blocked_us': blocked_us} AS figures
FROM judged
