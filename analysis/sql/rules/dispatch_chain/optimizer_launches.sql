-- Rule: The optimizer makes much of the step's launches, and the host is what the step waits for.
-- Topic: dispatch chain
-- Severity: costs
-- Needs: device work, calls, step, sweep
-- Otherwise: no range of an optimizer lies in its typical step
-- Means: A loop over the weights launches several kernels for each of them: with many small weights that is most of the
--     launches of a step, and its work takes the device next to nothing.
-- Cure: fused=True (all of the update in a few kernels) or foreach=True (a kernel an operation over all weights).
WITH ranges AS (
    SELECT run_id, event_id, pid, tid, ts_ns, end_ns
    FROM step_events
    WHERE category = 'user_annotation' AND (name = 'optimizer' OR regexp_matches(name, '^Optimizer\.step#'))
),
launches AS (
    SELECT e.run_id, e.event_id, e.ts_ns
    FROM step_events AS e
    WHERE e.is_call AND regexp_matches(e.name, 'GraphLaunch|Launch.*Kernel|(?i:memcpy|memset)')
),
outer_ranges AS (
    FROM ranges AS r
    WHERE NOT EXISTS (
        FROM ranges AS o
        WHERE o.run_id = r.run_id AND o.pid = r.pid AND o.tid = r.tid AND o.event_id <> r.event_id
            AND o.ts_ns <= r.ts_ns AND o.end_ns >= r.end_ns AND (o.end_ns - o.ts_ns,
                -o.event_id) > (r.end_ns - r.ts_ns, -r.event_id)
    )
),
spent AS (
    SELECT run_id, sum(end_ns - ts_ns) / 1e3 AS host_us, min(event_id) AS event_id
    FROM outer_ranges
    GROUP BY run_id
),
inside AS (
    SELECT l.run_id, count(DISTINCT l.event_id) AS launches
    FROM launches AS l
    JOIN outer_ranges AS r ON r.run_id = l.run_id AND l.ts_ns BETWEEN r.ts_ns AND r.end_ns
    GROUP BY l.run_id
),
totals AS (
    SELECT run_id, count(*) AS launches
    FROM launches
    GROUP BY run_id
),
better AS (
    SELECT run_id, max(gain) AS gain, arg_max(other_value, gain) AS impl
    FROM setting_twins
    WHERE "key" = 'impl' AND gain > 0
    GROUP BY run_id
),
counted AS (
    SELECT
        s.run_id, s.bound, s.wall_us, s.issue_us, s.device_us, p.event_id, p.host_us,
        i.launches, t.launches AS all_launches, i.launches / t.launches AS launch_frac,
        least(1, p.host_us / nullif(y.host_us, 0)) AS host_frac,
        b.gain AS measured_gain, b.impl,
        s.wall_us / nullif(greatest(s.issue_us * (1 - least(1, p.host_us / nullif(y.host_us, 0))), s.device_us),
            0) AS predicted_gain
    FROM subjects AS s
    JOIN spent AS p USING (run_id)
    JOIN typical AS y USING (run_id)
    JOIN totals AS t USING (run_id)
    LEFT JOIN inside AS i USING (run_id)
    LEFT JOIN better AS b USING (run_id)
    WHERE s.status = 'ok'
)
SELECT
    run_id,
    coalesce(launch_frac > 1 / 3 AND bound = 'overhead-bound', false) AS fired,
    coalesce(launches, 0) || ' of ' || all_launches
        || ' launches of the step are the optimizer''s (limit a third), and it is '
        || coalesce(bound, 'not decided') AS reason,
    'The optimizer makes ' || launches || ' of the ' || all_launches || ' launches of a step, '
        || _percent(launch_frac) || ', and takes ' || _percent(host_frac)
            || ' of the host''s time under the profiler.' AS sentence,
    CASE
        WHEN measured_gain > 1 THEN 'impl=' || impl || ' makes a step ' || _number(measured_gain)
            || ' times as fast (measured: it is in the store).'
        WHEN measured_gain IS NOT NULL THEN 'No other implementation in the store is faster: the best, impl=' || impl
            || ', takes '
            || _number(1 / measured_gain) || ' times as long (measured). Fewer and larger weights would help.'
        ELSE 'fused=True or foreach=True: a step at most ' || coalesce(_number(predicted_gain) || ' times as fast',
            'so much faster')
            || ' (predicted, if the optimizer''s host time went away).'
    END AS cure,
    CASE WHEN measured_gain IS NOT NULL THEN measured_gain ELSE predicted_gain END AS gain,
    [event_id] AS event_ids,
    {
        'launches': launches, 'all_launches': all_launches, 'host_us': host_us,
        'basis': CASE WHEN measured_gain IS NULL THEN 'predicted' ELSE 'measured' END
    } AS figures
FROM counted
