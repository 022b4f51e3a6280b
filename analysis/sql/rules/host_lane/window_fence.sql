-- Rule: The long synchronize at the end of the window is a fence, not part of a step.
-- Topic: host lane
-- Severity: explains
-- Needs: trace, calls, step
-- Otherwise: no synchronizing call ends the window
-- Means: This runner waits for the device behind the last step, and the profiler does when it stops, so that all work
--     is in the trace. That call lasts as long as the device is behind the host, and as the profiler takes to hand over
--     its buffers. It is no cost of a step. In the profiler's table it counts as host time all the same, which can make
--     host and device totals look alike.
-- Cure: Nothing to cure: take the call out of the host's total before comparing it with the device's.
-- See: docs/article.md#8-why-is-cudadevicesynchronize-178-ms-long
WITH last_steps AS (
    SELECT run_id, max(end_ns) AS end_ns, max(step) AS last_step, count(*) AS steps, sum(host_us) AS host_us
    FROM spans
    GROUP BY run_id
),
drained AS (
    SELECT run_id, max(ts_ns + dur_ns) AS end_ns
    FROM events SEMI JOIN chosen_runs USING (run_id)
    WHERE is_device
    GROUP BY run_id
),
candidates AS (
    SELECT e.run_id, e.event_id, e.name, e.ts_ns, e.ts_ns + e.dur_ns AS end_ns, e.dur_ns,
        f.event_id IS NOT NULL AS is_runners,
        greatest(0, least(e.dur_ns, coalesce(d.end_ns, 0) - e.ts_ns)) AS work_ns
    FROM (FROM events SEMI JOIN chosen_runs USING (run_id) WHERE _is_runtime(category)
        AND _is_waiting(name)) AS e
    LEFT JOIN (
        SELECT run_id, event_id
        FROM events SEMI JOIN chosen_runs USING (run_id)
        WHERE category = 'user_annotation' AND name = 'crossover: fence'
    ) AS f ON f.run_id = e.run_id AND f.event_id = e.parent_id
    JOIN last_steps AS l ON l.run_id = e.run_id
    LEFT JOIN drained AS d ON d.run_id = e.run_id
    WHERE f.event_id IS NOT NULL OR e.step IS NULL AND e.parent_id IS NULL AND e.ts_ns >= l.end_ns
),
fenced AS (
    SELECT
        run_id, count(*) AS calls, bool_or(is_runners) AS is_runners, sum(dur_ns) / 1e3 AS fence_us,
        max(dur_ns) / 1e3 AS longest_us, max_by(work_ns, dur_ns) / 1e3 AS work_us, max_by(name, dur_ns) AS name,
            max_by(is_runners, dur_ns) AS longest_is_runners,
        list_slice(list(event_id ORDER BY dur_ns DESC), 1, 8) AS event_ids
    FROM candidates
    GROUP BY run_id
)
SELECT
    f.run_id,
    f.fence_us > 100 AND f.fence_us > 0.1 * l.host_us AS fired,
    _counted(f.calls, 'fence') || ' of together ' || _time(f.fence_us) || ' at the end of the window, '
        || _percent(f.fence_us / l.host_us)
        || ' of the host time of its ' || _counted(l.steps, 'step') || ' (limits 100 us and 10 %)' AS reason,
    'The ' || f.name || ' of ' || _time(f.longest_us) || ' at the end of the window is ' || CASE
        WHEN f.longest_is_runners THEN 'the runner''s fence'
            ELSE 'the profiler''s or the script''s, outside of every step' END
        || CASE
            WHEN f.work_us > f.longest_us / 2 THEN ': it waits ' || _time(f.work_us)
                || ' until the device has done what ' || _counted(l.steps, 'step') || ' queued'
            ELSE ': the device is done ' || _time(f.work_us) || ' after it begins, '
                || _percent(1 - f.work_us / f.longest_us) || ' of it is idle'
        END || ', and it is ' || _percent(f.fence_us / (f.fence_us + l.host_us))
        || ' of the host''s time from the first step on.' AS sentence,
    f.event_ids,
    {'fence_us': f.fence_us, 'work_us': f.work_us, 'steps_host_us': l.host_us, 'fences': f.calls} AS figures
FROM fenced AS f
JOIN last_steps AS l USING (run_id)
JOIN subjects AS s USING (run_id)
WHERE s.status = 'ok' AND l.host_us > 0
