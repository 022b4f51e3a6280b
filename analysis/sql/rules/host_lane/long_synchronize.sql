-- Rule: A synchronizing call inside the step is long although the device has little to do while it lasts.
-- Topic: host lane
-- Severity: explains
-- Needs: trace, calls, step
-- Otherwise: nothing waits for the device inside the step, but for a fence of the runner
-- Means: A synchronize lasts until the device is done, and its own return takes time. Where the device idles for most
--     of it, the wait is not for work: the call's own cost and that of the profiler, which hands over its buffers
--     there. It is a sign of a step whose overhead is larger than its work. Long is a tenth of the step and 10 us.
-- Cure: Do not read the call's length as device time; look at the kernels below it, and synchronize once behind many
--     steps.
-- See: docs/article.md#8-why-is-cudadevicesynchronize-178-ms-long
WITH fences AS (SELECT run_id, event_id FROM step_events WHERE name = 'crossover: fence'),
waits AS (
    SELECT w.run_id, w.event_id, w.name, w.ts_ns, w.end_ns, w.dur_ns
    FROM (FROM step_events WHERE is_call AND _is_waiting(name)) AS w
    ANTI JOIN fences AS f ON f.run_id = w.run_id AND f.event_id = w.parent_id
),
device AS (
    -- of all steps: the device may still be busy with an earlier one
    SELECT run_id, ts_ns, ts_ns + dur_ns AS end_ns
    FROM events
    SEMI JOIN waits USING (run_id)
    WHERE is_device
),
worked AS (
    SELECT
        w.run_id, w.event_id, greatest(d.ts_ns, w.ts_ns) AS from_ns, least(d.end_ns, w.end_ns) AS to_ns,
        max(to_ns) OVER (PARTITION BY w.run_id, w.event_id ORDER BY from_ns ROWS BETWEEN UNBOUNDED PRECEDING
            AND 1 PRECEDING) AS covered_ns
    FROM waits AS w
    JOIN device AS d ON d.run_id = w.run_id AND d.ts_ns < w.end_ns AND d.end_ns > w.ts_ns
),
busy AS (
    SELECT run_id, sum(greatest(0, to_ns - greatest(from_ns, coalesce(covered_ns, from_ns)))) / 1e3 AS busy_us
    FROM worked
    GROUP BY run_id
),
judged AS (
    SELECT
        w.run_id,
        count(*) AS waits,
        sum(w.dur_ns) / 1e3 AS wait_us,
        any_value(coalesce(b.busy_us, 0)) AS busy_us,
        1 - any_value(coalesce(b.busy_us, 0)) / nullif(sum(w.dur_ns) / 1e3, 0) AS idle_frac,
        max_by(w.name, w.dur_ns) AS name,
        list_slice(list(w.event_id ORDER BY w.dur_ns DESC), 1, 8) AS event_ids
    FROM waits AS w
    LEFT JOIN busy AS b USING (run_id)
    GROUP BY w.run_id
)
SELECT
    j.run_id,
    coalesce(j.wait_us > 10 AND j.wait_us > 0.1 * t.wall_us AND j.idle_frac > 0.5, false) AS fired,
    'waits in the step: ' || _time(j.wait_us) || coalesce(', ' || _percent(j.wait_us / t.wall_us) || ' of it', '')
        || ', the device busy for ' || _time(j.busy_us)
        || ' of that (limits 10 us, 10 % of the step, idle for more than half)' AS reason,
    CASE WHEN j.waits = 1 THEN j.name || ' takes ' ELSE 'The ' || j.waits || ' synchronizing calls of the step, '
        || j.name || ' among them, take ' END
        || _time(j.wait_us) || ' under the profiler while the device works ' || _time(j.busy_us) || ': '
        || _percent(j.idle_frac) || ' of it is not waiting for work.' AS sentence,
    j.event_ids,
    {'wait_us': j.wait_us, 'busy_us': j.busy_us, 'idle_frac': j.idle_frac} AS figures
FROM judged AS j
JOIN typical AS t USING (run_id)
JOIN subjects AS s USING (run_id)
WHERE s.status = 'ok'
