-- Rule: The profiler asks for a buffer of its own inside the window.
-- Topic: device lane
-- Severity: misleads
-- Needs: trace
-- Otherwise: the trace holds no row of the profiler's own overhead
-- Means: `Activity Buffer Request` and its like are rows on a device lane, but no work of the device: the profiler
--     asks the driver for memory to note events in. The host stands still meanwhile and the device runs dry. It is
--     never counted as work here, and a gap that it covers is named as the profiler's. Rows for loading and compiling
--     of code are the program's own, and belong to a cold start. A request outside of every step and gap harms
--     nobody.
-- Cure: Give the schedule a wait and a warmup step (schedule=1/1/20/1): the buffer is asked for before the first
--     recorded step. What a long window repeats, a shorter one does not show.
-- See: docs/article.md#4-why-do-the-lanes-lie-25-ms-apart
WITH overheads AS (
    SELECT
        run_id, event_id, name, step, ts_ns, ts_ns + dur_ns AS end_ns, dur_ns,
        regexp_matches(name, '(?i)loading|compil|command buffer') AS is_programs
    FROM events
    SEMI JOIN chosen_runs USING (run_id)
    WHERE category = 'overhead'
),
requests AS (FROM overheads WHERE NOT is_programs),
worked AS (
    SELECT run_id, ts_ns, max(ts_ns + dur_ns) OVER (PARTITION BY run_id ORDER BY ts_ns) AS end_ns
    FROM events
    SEMI JOIN requests USING (run_id)
    WHERE is_device
),
-- The device around the middle of a request: what has ended before, and what begins next.
around AS (
    SELECT q.*, b.end_ns AS before_ns, a.ts_ns AS next_ns
    FROM requests AS q
    ASOF LEFT JOIN worked AS b ON b.run_id = q.run_id AND (q.ts_ns + q.end_ns) // 2 >= b.ts_ns
    ASOF LEFT JOIN worked AS a ON a.run_id = q.run_id AND (q.ts_ns + q.end_ns) // 2 < a.ts_ns
),
told AS (
    SELECT
        *,
        CASE
            WHEN least(next_ns, end_ns) - greatest(before_ns, ts_ns) > (next_ns - before_ns) / 2
                THEN next_ns - before_ns
        END AS gap_ns
    FROM around
),
summed AS (
    SELECT
        run_id,
        count(*) AS requests,
        count(step) AS in_steps,
        count(gap_ns) AS gaps,
        sum(dur_ns) / 1e3 AS request_us,
        sum(gap_ns) / 1e3 AS gap_us,
        arg_max(name, dur_ns) AS name,
        string_agg(DISTINCT step::VARCHAR, ', ' ORDER BY step::VARCHAR) AS in_step,
        list(event_id ORDER BY gap_ns DESC NULLS LAST, dur_ns DESC)[:8] AS event_ids
    FROM told
    GROUP BY run_id
),
programs AS (
    SELECT run_id, count(*) AS rows, sum(dur_ns) / 1e3 AS us
    FROM overheads
    WHERE is_programs
    GROUP BY run_id
),
judged AS (
    SELECT
        run_id, q.*, p.rows, p.us,
        CASE WHEN requests = 1 THEN 'once' ELSE requests || ' times' END AS often,
        coalesce('; beside it ' || CASE WHEN p.rows = 1 THEN 'is 1 row' ELSE 'are ' || p.rows || ' rows' END
            || ' of ' || _time(p.us)
            || ' for loading code, the program''s own', '') AS beside
    FROM (SELECT run_id FROM requests UNION SELECT run_id FROM programs) AS r
    JOIN subjects AS s USING (run_id)
    LEFT JOIN summed AS q USING (run_id)
    LEFT JOIN programs AS p USING (run_id)
    WHERE s.status = 'ok'
)
SELECT
    run_id,
    coalesce(in_steps > 0 OR gaps > 0, false) AS fired,
    CASE
        WHEN requests IS NULL THEN 'no buffer request; ' || _counted(rows, 'row') || ' of ' || _time(us)
            || ' for loading code'
        ELSE name || ' ' || often || ', ' || _time(request_us) || ': '
            || CASE WHEN in_steps = 0 THEN 'in no step' ELSE in_steps || ' inside a step' END || ', '
            || CASE WHEN gaps = 0 THEN 'in no gap of the device' ELSE gaps || ' in a gap of the device' END
    END AS reason,
    'The profiler asked for memory of its own ' || often || ' (' || name || '), for ' || _time(request_us)
        || coalesce(' in step ' || in_step, '') || ': that is no work of the device'
        || CASE WHEN gaps > 0 THEN ', and the device''s ' || CASE WHEN gaps = 1 THEN 'gap of '
            ELSE 'gaps of together ' END || _time(gap_us)
            || CASE WHEN gaps = 1 THEN ' there is' ELSE ' there are' END || ' the profiler''s'
            ELSE ', and the host time of that step holds it' END
        || CASE WHEN requests = 1 THEN '; the other steps are free of it' ELSE '' END || beside || '.' AS sentence,
    coalesce(event_ids, []) AS event_ids,
    {'requests': requests, 'request_us': request_us, 'gaps': gaps, 'gap_us': gap_us, 'loading_us': us} AS figures
FROM judged
