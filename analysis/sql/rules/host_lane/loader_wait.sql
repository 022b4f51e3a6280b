-- Rule: The device is idle while the host waits for its data loader.
-- Topic: host lane
-- Severity: costs
-- Needs: trace, step
-- Otherwise: no data loader is in the step
-- Means: The next batch is not ready when the step wants it. Only the time in which the device does nothing is lost,
--     and a twentieth of the step is let pass.
-- Cure: Let workers load ahead (num_workers, prefetch_factor, persistent_workers, pin_memory=True), or do less work for
--     a sample.
WITH loaders AS (
    SELECT l.run_id, l.event_id, l.name, l.ts_ns, l.end_ns, l.dur_ns
    FROM step_events AS l
    JOIN subjects AS s USING (run_id)
    WHERE s.status = 'ok' AND starts_with(l.name, 'enumerate(DataLoader)') AND NOT l.is_device
        AND l.category <> 'gpu_user_annotation'
),
device AS (
    -- of all steps: the device may still be busy with an earlier one
    SELECT run_id, ts_ns, ts_ns + dur_ns AS end_ns
    FROM events
    SEMI JOIN loaders USING (run_id)
    WHERE is_device
),
worked AS (
    SELECT
        w.run_id, w.event_id, greatest(d.ts_ns, w.ts_ns) AS from_ns, least(d.end_ns, w.end_ns) AS to_ns,
        max(to_ns) OVER (PARTITION BY w.run_id, w.event_id ORDER BY from_ns ROWS BETWEEN UNBOUNDED PRECEDING
            AND 1 PRECEDING) AS covered_ns
    FROM loaders AS w
    JOIN device AS d ON d.run_id = w.run_id AND d.ts_ns < w.end_ns AND d.end_ns > w.ts_ns
),
busy AS (
    SELECT run_id, sum(greatest(0, to_ns - greatest(from_ns, coalesce(covered_ns, from_ns)))) / 1e3 AS busy_us
    FROM worked
    GROUP BY run_id
),
judged AS (
    SELECT
        l.run_id, any_value(l.name) AS name, sum(l.dur_ns) / 1e3 AS loader_us,
        greatest(0, sum(l.dur_ns) / 1e3 - coalesce(any_value(b.busy_us), 0)) AS idle_us,
        list_slice(list(l.event_id ORDER BY l.dur_ns DESC), 1, 8) AS event_ids
    FROM loaders AS l
    LEFT JOIN busy AS b USING (run_id)
    GROUP BY l.run_id
)
SELECT
    j.run_id,
    coalesce(j.idle_us > 0.05 * t.wall_us, false) AS fired,
    'the loader takes ' || _time(j.loader_us) || ' of the step, ' || _time(j.idle_us) || ' with an idle device, '
        || coalesce(_percent(j.idle_us / t.wall_us), 'an unknown share') || ' of the step (limit 5 %)' AS reason,
    'The step waits ' || _time(j.loader_us) || ' for ' || j.name || ', and the device is idle for '
        || _time(j.idle_us) || ' of that, '
        || _percent(j.idle_us / t.wall_us) || ' of the step.' AS sentence,
    j.event_ids,
    {'loader_us': j.loader_us, 'idle_us': j.idle_us, 'step_us': t.wall_us} AS figures
FROM judged AS j
JOIN typical AS t USING (run_id)
