-- Rule: How far the host runs ahead of the device.
-- Topic: device lane
-- Severity: explains
-- Needs: device work, calls, step
-- Otherwise: no launch of the step is tied to work that has work before it, or the clocks of host and device disagree
-- Means: A launch that returns while the device is still busy is queued: the device finds its next work ready, and
--     the host's time is hidden. Where nine of ten launches are not queued, the device waits for each of them, and a
--     launch takes a few microseconds until its work starts. A launch that takes a hundred microseconds and twenty
--     times its usual time behind a queue had to wait until the queue had room. All of it is seen under the profiler,
--     which makes the host slower: without it the host is farther ahead.
-- Cure: Without a queue: fewer launches, or larger ones.
WITH queued AS (
    SELECT
        run_id, launch_id, event_id, ts_ns,
        max(end_ns) OVER (
            PARTITION BY run_id, device ORDER BY ts_ns, event_id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS free_ns
    FROM near_events
    WHERE is_device
),
firsts AS (
    FROM queued
    WHERE launch_id IS NOT NULL
    QUALIFY row_number() OVER (PARTITION BY run_id, launch_id ORDER BY ts_ns, event_id) = 1
),
launched AS (
    SELECT
        f.run_id, f.launch_id, f.event_id, c.name AS call_name,
        f.ts_ns - c.ts_ns AS lead_ns,
        c.dur_ns AS call_ns,
        f.free_ns > c.end_ns AS is_queued
    FROM firsts AS f
    JOIN (FROM near_events WHERE is_call) AS c ON c.run_id = f.run_id AND c.event_id = f.launch_id
    WHERE f.free_ns IS NOT NULL AND NOT _is_blocking_copy(c.name)
),
leads AS (
    SELECT
        run_id,
        count(*) AS launches,
        median(lead_ns) / 1e3 AS lead_us,
        min(lead_ns) / 1e3 AS least_us,
        max(lead_ns) / 1e3 AS most_us,
        avg(is_queued::INTEGER) AS queued_frac,
        median(call_ns) / 1e3 AS call_us,
        arg_max({'name': call_name, 'us': call_ns / 1e3, 'id': launch_id, 'is_queued': is_queued}, call_ns) AS longest,
        list(event_id ORDER BY lead_ns DESC)[:8] AS event_ids
    FROM launched
    GROUP BY run_id
),
judged AS (
    SELECT
        l.*, s.bound,
        queued_frac >= 0.5 AND l.lead_us >= 20 AS is_ahead,
        queued_frac <= 0.1 AS is_waiting,
        longest.is_queued AND longest.us >= 100 AND longest.us >= 20 * call_us AS was_full,
        coalesce(s.bound IN ('compute-bound', 'memory-bound', 'device-bound')
            AND NOT s.is_import, false) AS is_device_bound
    FROM leads AS l
    JOIN subjects AS s USING (run_id)
    WHERE s.status = 'ok' AND l.least_us >= 0
)
SELECT
    run_id,
    is_ahead OR is_waiting AS fired,
    round(queued_frac * launches)::BIGINT || ' of ' || launches || CASE WHEN launches = 1 THEN ' launch was'
        ELSE ' launches were' END
        || ' queued behind other work; work starts ' || _time(lead_us)
        || ' behind the start of its launch at the median (ahead: half queued and 20 us; waiting: a tenth queued)'
        AS reason,
    CASE
        WHEN is_ahead THEN 'The host runs ahead, even under the profiler: ' || _percent(queued_frac)
            || ' of the launches return while the device is busy, and work starts ' || _time(lead_us)
            || ' after its launch at the median' || CASE
                WHEN was_full THEN '; one ' || longest.name || ' took ' || _time(longest.us) || ', the usual one '
                    || _time(call_us)
                    || ': it waited for room in the queue'
                ELSE ''
            END || '.'
        WHEN is_device_bound THEN 'Under the profiler the device waits for its launches (work starts ' || _time(lead_us)
            || ' after them at the median and nothing is queued), but without it the step is ' || bound
            || ': the profiler makes the host late here.'
        ELSE 'The device waits for its launches: work starts ' || _time(lead_us)
            || ' after its launch at the median, and '
            || CASE WHEN queued_frac = 0 THEN 'nothing is queued' ELSE 'only ' || _percent(queued_frac)
            || ' of the launches are queued' END
            || ' under the profiler.'
    END AS sentence,
    CASE
        WHEN is_ahead THEN 'Work on the kernels: the host''s time is hidden.'
        WHEN is_device_bound THEN 'Read the device lane for its kernels, not for its gaps.'
    END AS cure,
    CASE WHEN was_full AND is_ahead THEN list_prepend(longest.id, event_ids)[:8] ELSE event_ids END AS event_ids,
    {'lead_us': lead_us, 'least_lead_us': least_us, 'most_lead_us': most_us, 'launches': launches,
        'queued_frac': queued_frac, 'call_us': call_us, 'longest_call_us': longest.us} AS figures
FROM judged
