-- Rule: The device waits for the host, which is late with the next launch.
-- Topic: host lane
-- Severity: costs
-- Needs: trace, device work, calls, step
-- Otherwise: the device has no gap in the step whose launch is in the trace
-- Means: Between two launches the host does something, and the device runs dry. The operation named is the one whose
--     launch comes after the gap: the host prepares it, or does what stands before it. The profiler makes the host
--     slower, so that the gaps are upper limits, and a step that is bound by its device without the profiler is let
--     pass.
-- Cure: Give the device more work a launch (larger batch, fused operations), or launch less often: torch.compile, or a
--     CUDA graph (mode=reduce-overhead).
WITH late AS (
    -- inside the step, and between it and the next where that is part of the step's time
    SELECT i.run_id, i.dur_ns, i.next_event_id, i.launch_id, coalesce(p.name, c.name) AS name
    FROM (FROM idle WHERE cause = 'host late' AND (is_typical AND is_inside OR NOT is_typical AND NOT is_inside)) AS i
    JOIN typical AS t USING (run_id)
    LEFT JOIN near_events AS c ON c.run_id = i.run_id AND c.event_id = i.launch_id
    LEFT JOIN near_events AS p ON p.run_id = i.run_id AND p.event_id = c.parent_id
    WHERE i.is_inside OR i.dur_ns / 1e3 <= t.wall_us - t.busy_us
),
by_operation AS (
    SELECT run_id, name, sum(dur_ns) / 1e3 AS us, count(*) AS gaps
    FROM late
    GROUP BY ALL
),
most AS (
    SELECT run_id, max_by(name, us) AS name, max(us) AS most_us
    FROM by_operation
    GROUP BY run_id
),
summed AS (
    SELECT
        run_id, sum(dur_ns) / 1e3 AS late_us, count(*) AS gaps, max(dur_ns) / 1e3 AS longest_us,
        list_slice(list(coalesce(launch_id, next_event_id) ORDER BY dur_ns DESC), 1, 8) AS event_ids
    FROM late
    GROUP BY run_id
),
judged AS (
    SELECT
        l.*, m.name, m.most_us, s.bound, s.is_import, s.bound_gain, t.wall_us AS step_us, t.busy_us,
        late_us / nullif(t.wall_us, 0) AS frac,
        coalesce(s.bound IN ('compute-bound', 'memory-bound', 'device-bound', 'communication-bound', 'input-bound'),
            false) AS is_elsewhere
    FROM summed AS l
    JOIN most AS m USING (run_id)
    JOIN typical AS t USING (run_id)
    JOIN subjects AS s USING (run_id)
    WHERE s.status = 'ok'
)
SELECT
    run_id,
    coalesce(frac > 0.1 AND NOT is_elsewhere, false) AS fired,
    'the device waits ' || _time(late_us) || coalesce(', ' || _percent(frac), '')
        || ' of a step for late launches, under the profiler (limit 10 %)'
        || CASE WHEN is_elsewhere AND frac > 0.1 THEN '; but it is ' || bound || ', late launches do not bind it'
        ELSE '' END
        AS reason,
    'In a step of ' || _time(step_us) || ' under the profiler the device waits ' || _time(late_us)
        || ' for late launches (' || _counted(gaps, 'gap') || '), most for '
        || coalesce(name, 'a launch outside of operations') || ' (' || _time(most_us) || '), and works '
        || _time(busy_us) || '.' AS sentence,
    CASE WHEN bound = 'overhead-bound' AND bound_gain > 1 AND NOT is_import THEN bound_gain END AS gain,
    event_ids,
    {'late_us': late_us, 'step_us': step_us, 'busy_us': busy_us, 'gaps': gaps, 'longest_us': longest_us} AS figures
FROM judged
