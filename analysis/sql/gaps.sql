-- Grain: one row a run, device and interval in which the device does no work.
-- From the first to the last device event of a device, the gaps are what the union of its work leaves free, over all
-- streams, to the nanosecond. A collective waits for other devices, so that it is no work: where nothing but collectives
-- runs is a gap. The cause is the first that holds:
--   collective    nothing but collectives runs
--   profiler      a row of the profiler's own overhead covers more than half of the gap
--   unknown       the launch of the next event is not in the trace
--   memcpy        the launching thread sat in a blocking copy that had begun before the gap and ended inside it, or the
--                 next event is itself such a copy whose call covers more than half of the gap
--   synchronize   the same for a synchronizing call: the device drained
--   unknown       the next event belongs to the launch of the one before, such as a graph
--   host late     the launch returned after the gap began, or it began so late that the kernel started as soon as one
--                 can: within twice the time from launch to start on an idle stream
--   other stream  launched in time, on a stream that was free before the gap, so that it waited for what ended there; or
--                 on one that stood still for longer than a launch takes
--   unknown       launched in time, and a pause shorter than a launch: the device's own
-- The time from launch to start is the lower quartile over events launched onto an idle stream, else the least of all;
-- more than 20 us is taken for a queue that began before the trace.
CREATE MACRO _gaps_among(chosen_events) AS TABLE (
    WITH traced AS (FROM query_table(chosen_events)),
    work AS (
        SELECT
            run_id, device, event_id, stream, ts_ns, end_ns, step, launch_id,
            _is_collective(name) AS is_collective
        FROM traced
        WHERE is_device
    ),
    calls AS (FROM traced WHERE _is_runtime(category)),
    waits AS (
        SELECT
            w.run_id, w.pid, w.tid, w.ts_ns, w.end_ns, w.name,
            _is_blocking_copy(w.name) AS is_copy,
            bool_or(f.event_id IS NOT NULL) AS is_fence
        FROM calls AS w
        LEFT JOIN (FROM traced WHERE name = 'crossover: fence') AS f
            ON f.run_id = w.run_id AND f.pid = w.pid AND f.tid = w.tid AND f.ts_ns <= w.ts_ns AND f.end_ns >= w.end_ns
        WHERE _is_waiting(w.name)
        GROUP BY ALL
    ),
    streamed AS (
        SELECT
            *,
            max(end_ns) OVER (
                PARTITION BY run_id, device, stream ORDER BY ts_ns, event_id
                ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
            ) AS free_ns
        FROM work
    ),
    latencies AS (
        SELECT
            w.run_id, w.device,
            greatest(0, least(20000, coalesce(
                quantile_disc(w.ts_ns - c.ts_ns, 0.25) FILTER (coalesce(w.free_ns <= c.ts_ns, true)),
                min(w.ts_ns - c.ts_ns)
            ))) AS latency_ns
        FROM streamed AS w
        JOIN calls AS c ON c.run_id = w.run_id AND c.event_id = w.launch_id
        GROUP BY ALL
    ),
    covered AS (
        SELECT
            run_id, device, ts_ns, launch_id,
            max(end_ns) OVER so_far AS any_ns,
            coalesce(max(end_ns) FILTER (NOT is_collective) OVER so_far, ts_ns) AS work_ns,
            lead({
                'event_id': event_id, 'ts_ns': ts_ns, 'step': step, 'launch_id': launch_id, 'free_ns': free_ns
            }) OVER by_start AS next
        FROM streamed
        WINDOW
            by_start AS (PARTITION BY run_id, device ORDER BY ts_ns, is_collective, event_id),
            so_far AS (by_start ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)
    ),
    pieces AS (
        SELECT run_id, device, launch_id AS last_launch_id, next, unnest([
            {'waits': true, 'start_ns': greatest(ts_ns, work_ns), 'end_ns': least(any_ns, coalesce(next.ts_ns, any_ns))},
            {'waits': false, 'start_ns': any_ns, 'end_ns': next.ts_ns}
        ], recursive := true)
        FROM covered
        WHERE coalesce(next.ts_ns, any_ns) > work_ns
    ),
    joints AS (
        SELECT
            *,
            waits AND start_ns = lag(end_ns) OVER by_start IS true AS goes_on
        FROM pieces
        WHERE end_ns > start_ns
        WINDOW by_start AS (PARTITION BY run_id, device, waits ORDER BY start_ns)
    ),
    numbered AS (
        SELECT
            *,
            sum((NOT goes_on)::BIGINT) OVER (
                PARTITION BY run_id, device, waits ORDER BY start_ns
                ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
            ) AS number
        FROM joints
    ),
    whole AS (
        SELECT
            run_id, device, waits,
            min(start_ns) AS start_ns,
            max(end_ns) AS end_ns,
            max_by(last_launch_id, start_ns) AS last_launch_id,
            max_by({'row': next}, start_ns).row AS next
        FROM numbered
        GROUP BY run_id, device, waits, number
    ),
    launched AS (
        SELECT
            g.run_id, g.device, g.waits, g.start_ns, g.end_ns, g.last_launch_id, g.next,
            g.end_ns - g.start_ns AS dur_ns,
            (g.start_ns + g.end_ns) // 2 AS middle_ns,
            c.name AS call, c.pid, c.tid, c.ts_ns AS launch_ns, c.end_ns AS launched_ns,
            l.latency_ns
        FROM whole AS g
        LEFT JOIN calls AS c ON NOT g.waits AND c.run_id = g.run_id AND c.event_id = g.next.launch_id
        LEFT JOIN latencies AS l ON l.run_id = g.run_id AND l.device IS NOT DISTINCT FROM g.device
    ),
    waited AS (
        SELECT g.*, w.name AS wait, w.is_copy, w.is_fence, w.end_ns AS waited_ns
        FROM launched AS g
        ASOF LEFT JOIN waits AS w
            ON g.run_id = w.run_id AND g.pid = w.pid AND g.tid = w.tid AND g.start_ns >= w.ts_ns
    ),
    profiled AS (
        SELECT
            g.*,
            o.name AS overhead,
            CASE WHEN o.ts_ns IS NOT NULL THEN least(g.end_ns, o.end_ns) - greatest(g.start_ns, o.ts_ns) END AS overhead_ns
        FROM waited AS g
        ASOF LEFT JOIN (
            -- loading and compiling code are the program's own, a full command buffer is the device's
            FROM traced
            WHERE CASE WHEN category = 'overhead' THEN NOT regexp_matches(name, '(?i)loading|compil|command buffer') END
        ) AS o ON g.run_id = o.run_id AND g.middle_ns >= o.ts_ns
    ),
    judged AS (
        SELECT
            *,
            coalesce(waited_ns >= start_ns AND waited_ns <= launch_ns, false) AS drained,
            _is_blocking_copy(call) AND least(end_ns, launched_ns) - greatest(start_ns, launch_ns) > dur_ns / 2 AS copies,
            launched_ns >= start_ns OR end_ns - launch_ns <= 2 * latency_ns AS is_late,
            coalesce(next.launch_id = last_launch_id, false) AS is_inside,
            coalesce(next.free_ns < start_ns, true) AS stream_was_free,
            CASE
                WHEN waits THEN 'collective'
                WHEN overhead_ns > dur_ns / 2 THEN 'profiler'
                WHEN launch_ns IS NULL THEN 'unknown'
                WHEN drained AND is_copy OR copies THEN 'memcpy'
                WHEN drained THEN 'synchronize'
                WHEN is_inside THEN 'unknown'
                WHEN is_late THEN 'host late'
                WHEN stream_was_free OR dur_ns > latency_ns THEN 'other stream'
                ELSE 'unknown'
            END AS cause
        FROM profiled
    )
    SELECT
        run_id,
        device,
        next.step AS step,
        start_ns,
        dur_ns,
        cause,
        CASE
            WHEN cause = 'profiler' THEN overhead
            WHEN cause = 'unknown' AND launch_ns IS NULL THEN 'the launch of the next event is not in the trace'
            WHEN cause IN ('memcpy', 'synchronize') AND drained
                THEN CASE WHEN is_fence THEN 'the runner''s fence: ' ELSE '' END || wait
                    || ', then ' || _time((launch_ns - waited_ns) / 1e3) || ' until the next launch'
            WHEN cause = 'memcpy' THEN call
            WHEN cause = 'host late' AND launch_ns >= start_ns
                THEN call || ' began ' || _time((launch_ns - start_ns) / 1e3) || ' after the device ran dry'
            WHEN cause = 'host late' AND launched_ns >= start_ns
                THEN call || ' took ' || _time((launched_ns - launch_ns) / 1e3)
            WHEN cause = 'host late'
                THEN call || ' began only ' || _time((end_ns - launch_ns) / 1e3) || ' before the start'
            WHEN cause = 'other stream' AND stream_was_free
                THEN 'launched ' || _time((end_ns - launch_ns) / 1e3) || ' before, on a stream that was free'
            WHEN cause = 'other stream'
                THEN 'launched ' || _time((end_ns - launch_ns) / 1e3) || ' before, on a stream that stood still'
            WHEN cause = 'unknown' AND is_inside THEN 'between two events of one launch'
            WHEN cause = 'unknown' THEN 'launched in time: a pause of the device between two events'
        END AS detail,
        next.event_id AS next_event_id,
        CASE WHEN NOT waits THEN next.launch_id END AS launch_id
    FROM judged
);

-- The gaps of the runs of a relation with a column run_id.
CREATE MACRO _gaps_of(chosen) AS TABLE (
    WITH traced_work AS MATERIALIZED (
        SELECT
            run_id, event_id, name, category, ts_ns, ts_ns + dur_ns AS end_ns, is_device, device, stream, pid, tid,
            step, launch_id
        FROM events
        SEMI JOIN query_table(chosen) USING (run_id)
        WHERE is_device OR _is_runtime(category) OR category = 'overhead'
            OR category = 'user_annotation' AND name = 'crossover: fence'
    )
    FROM _gaps_among('traced_work')
);

CREATE VIEW gaps AS FROM _gaps_of('stg_runs');

COMMENT ON VIEW gaps IS
    'One row a run, device and interval without work of the device, between its first and last event, and why.';
COMMENT ON COLUMN gaps.device IS 'Number of the device.';
COMMENT ON COLUMN gaps.step IS 'Step of the device event that ends the gap; NULL = of none.';
COMMENT ON COLUMN gaps.start_ns IS 'When the device ran dry; nanoseconds.';
COMMENT ON COLUMN gaps.dur_ns IS 'Length of the gap, nanoseconds; gaps and work add up to the device''s span exactly.';
COMMENT ON COLUMN gaps.cause IS
    'host late, other stream, collective, synchronize, memcpy, profiler or unknown; the first that holds, see gaps.sql.';
COMMENT ON COLUMN gaps.detail IS 'What was seen: the call, by how much it was late; NULL for collectives.';
COMMENT ON COLUMN gaps.next_event_id IS 'Device event that begins next; NULL behind the last.';
COMMENT ON COLUMN gaps.launch_id IS 'event_id of the call that launched it; NULL = not in the trace, or a collective runs.';
