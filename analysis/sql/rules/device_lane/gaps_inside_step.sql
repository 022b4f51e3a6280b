-- Rule: The device stands still between its first and its last work of a step.
-- Topic: device lane
-- Severity: costs
-- Needs: device work, step
-- Otherwise: the device's work in the step is a single event
-- Means: The step cannot be shorter than the device's span in it, so that every gap in there lengthens it. Why the
--     device stands still is told by what ends the gap, as in view `gaps`. A tenth of the span is told. Gaps that
--     come from a host that the profiler made late are let pass where the device binds without a profiler.
-- Cure: Look at what ends the longest gap: `python -m analysis gaps` lists them all.
WITH spanned AS (
    SELECT run_id, (max(end_ns) - min(ts_ns)) / 1e3 AS span_us
    FROM work
    GROUP BY run_id, device
    HAVING count(*) > 1
),
spans_of AS (SELECT run_id, sum(span_us) AS span_us FROM spanned GROUP BY run_id),
inside AS (
    SELECT
        i.*,
        coalesce(w.op_name, regexp_extract(w.name, '^(?:void )?((?:[^<(]|\(anonymous namespace\))+)', 1)) AS next_name
    FROM (FROM idle WHERE is_typical AND is_inside) AS i
    LEFT JOIN work AS w ON w.run_id = i.run_id AND w.event_id = i.next_event_id
),
causes AS (
    SELECT run_id, cause, sum(dur_ns) / 1e3 AS us
    FROM inside
    GROUP BY run_id, cause
),
by_cause AS (
    SELECT
        run_id,
        arg_max(cause, us) AS most,
        string_agg(cause || ' ' || _time(us), ', ' ORDER BY us DESC) AS told
    FROM causes
    GROUP BY run_id
),
summed AS (
    SELECT
        run_id,
        count(*) AS gaps,
        sum(dur_ns) / 1e3 AS idle_us,
        max(dur_ns) / 1e3 AS longest_us,
        arg_max({'name': next_name, 'cause': cause}, dur_ns) AS longest,
        list(next_event_id ORDER BY dur_ns DESC) FILTER (next_event_id IS NOT NULL)[:8] AS event_ids
    FROM inside
    GROUP BY run_id
),
judged AS (
    SELECT
        p.run_id, p.span_us, g.longest_us, g.longest, c.most, c.told,
        coalesce(g.event_ids, []) AS event_ids,
        coalesce(g.gaps, 0) AS gaps,
        coalesce(g.idle_us, 0) AS idle_us,
        coalesce(g.idle_us, 0) / p.span_us AS frac,
        c.most = 'host late' AND s.bound IN ('compute-bound', 'memory-bound', 'device-bound') IS true AS is_profilers,
        s.bound
    FROM spans_of AS p
    JOIN subjects AS s USING (run_id)
    LEFT JOIN summed AS g USING (run_id)
    LEFT JOIN by_cause AS c USING (run_id)
    WHERE s.status = 'ok' AND p.span_us > 0
)
SELECT
    run_id,
    frac >= 0.1 AND NOT coalesce(is_profilers, false) AS fired,
    'gaps take ' || _percent(frac) || ' of the device''s span of ' || _time(span_us) || ' in the step (limit 10 %)'
        || CASE WHEN frac >= 0.1 AND is_profilers
            THEN '; but they come from the host, which is slower under the profiler, and the step is '
            || bound ELSE '' END AS reason,
    'Of the ' || _time(span_us) || ' from the first to the last work of a step the device stands still '
        || _time(idle_us) || ', ' || _percent(frac) || ', in ' || _counted(gaps, 'gap') || ' (' || told
        || '); the longest, '
        || _time(longest_us) || CASE WHEN longest.cause = 'collective' THEN ', holds nothing but collectives'
        ELSE coalesce(', ends with the work of ' || longest.name, '') END || ', all under the profiler.' AS sentence,
    CASE most
        WHEN 'host late' THEN 'The host is late: fewer launches (torch.compile, a CUDA graph), or more work in each.'
        WHEN 'synchronize' THEN 'The host waits inside the step: take out the call (.item(), a copy to the host).'
        WHEN 'memcpy' THEN 'A copy holds the host: pinned memory with non_blocking=True, a step ahead.'
        WHEN 'collective' THEN 'Let collectives run beside kernels, and look whether the other devices come late.'
        WHEN 'other stream' THEN 'A stream waits for another one: look at the events that tie them.'
        WHEN 'profiler' THEN 'The gaps are the profiler''s own: without it they are not there.'
        ELSE 'Short pauses lie between any two kernels: fewer, larger kernels (fusion) have fewer of them.'
    END AS cure,
    event_ids,
    {'span_us': span_us, 'idle_us': idle_us, 'gaps': gaps, 'longest_us': longest_us} AS figures
FROM judged
