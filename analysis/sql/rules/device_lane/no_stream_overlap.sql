-- Rule: Streams, or copies and kernels, work in turn although they could at once.
-- Topic: device lane
-- Severity: costs
-- Needs: device work, step
-- Otherwise: the step uses one stream and copies nothing between host and device
-- Means: A second stream brings something only where its work runs beside the first one's, and a copy between host
--     and device has an engine of its own, so that it can run beside kernels. Told where the work on further streams,
--     or such copies, are a tenth of the device's and nine tenths of them run alone. Collectives are
--     exposed_collective's.
-- Cure: Copy on a stream of its own from pinned memory, a batch ahead; look for the event that makes the streams
--     wait.
-- Excludes: stream_overlap
WITH works AS (
    SELECT
        run_id, device, stream, event_id, name, ts_ns, end_ns, dur_ns,
        category = 'gpu_memcpy' AND regexp_matches(name, 'HtoD|DtoH|HostToDevice|DeviceToHost') AS is_bus
    FROM work
    WHERE NOT _is_collective(name)
),
mains AS (
    SELECT run_id, device, stream
    FROM works
    GROUP BY run_id, device, stream
    QUALIFY row_number() OVER (PARTITION BY run_id, device ORDER BY sum(dur_ns) DESC, stream) = 1
),
marked AS (
    SELECT
        w.*,
        m.stream IS NULL AND w.stream IS NOT NULL AS is_other,
        max(w.end_ns) OVER before AS before_end_ns,
        min(w.ts_ns) OVER (PARTITION BY w.run_id, w.device ORDER BY w.ts_ns, w.event_id ROWS BETWEEN 1 FOLLOWING
            AND UNBOUNDED FOLLOWING) AS next_ns
    FROM works AS w
    LEFT JOIN mains AS m ON m.run_id = w.run_id AND m.device IS NOT DISTINCT FROM w.device
        AND m.stream IS NOT DISTINCT FROM w.stream
    WINDOW before AS (PARTITION BY w.run_id, w.device ORDER BY w.ts_ns, w.event_id
        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
),
-- what lies under the event before, and from the start of the next on: an upper limit of what runs beside something
shared AS (
    SELECT
        *,
        least(
            dur_ns,
            greatest(0, least(end_ns, coalesce(before_end_ns, ts_ns)) - ts_ns)
                + greatest(0, end_ns - greatest(ts_ns, coalesce(next_ns, end_ns)))
        ) AS beside_ns
    FROM marked
),
summed AS (
    SELECT
        run_id,
        count(DISTINCT (device, stream)) AS streams,
        sum(dur_ns) AS total_ns,
        coalesce(sum(dur_ns) FILTER (is_other AND NOT is_bus), 0) AS other_ns,
        coalesce(sum(beside_ns) FILTER (is_other AND NOT is_bus), 0) AS other_beside_ns,
        coalesce(sum(dur_ns) FILTER (is_bus), 0) AS bus_ns,
        coalesce(sum(beside_ns) FILTER (is_bus), 0) AS bus_beside_ns,
        sum(beside_ns) AS beside_ns,
        count(*) FILTER (is_bus) AS copies,
        arg_max(name, dur_ns) FILTER (is_bus) AS copy,
        list(event_id ORDER BY dur_ns DESC) FILTER (is_bus)[:8] AS bus_ids,
        list(event_id ORDER BY dur_ns DESC) FILTER (is_other AND NOT is_bus)[:8] AS other_ids
    FROM shared
    GROUP BY run_id
),
judged AS (
    SELECT
        m.*,
        bus_ns >= 0.1 * total_ns AND bus_beside_ns <= 0.1 * bus_ns AND bus_ns < total_ns AS is_bus_alone,
        other_ns >= 0.1 * total_ns AND other_beside_ns <= 0.1 * other_ns AS is_in_turn,
        beside_ns >= 0.05 * total_ns AS does_overlap,
        s.bound,
        coalesce(s.bound IN ('overhead-bound', 'input-bound'), false) AS is_elsewhere
    FROM summed AS m
    JOIN subjects AS s USING (run_id)
    WHERE s.status = 'ok' AND (streams > 1 OR bus_ns > 0)
)
SELECT
    run_id,
    (is_bus_alone OR is_in_turn) AND NOT does_overlap AND NOT is_elsewhere AS fired,
    'of the device''s ' || _time(total_ns / 1e3) || ' on ' || _counted(streams, 'stream')
        || ' copies over the bus take ' || _percent(bus_ns / total_ns)
        || CASE WHEN bus_ns > 0 THEN ' (' || _percent(bus_beside_ns / bus_ns) || ' beside other work)' ELSE '' END
        || ', other work on further streams ' || _percent(other_ns / total_ns)
        || CASE WHEN other_ns > 0 THEN ' (' || _percent(other_beside_ns / other_ns) || ' beside other work)' ELSE '' END
        || ' (limits: 10 % of the work, at most 10 % beside other work)'
        || CASE WHEN is_elsewhere THEN '; the step is ' || bound ELSE '' END AS reason,
    CASE
        WHEN is_bus_alone THEN _time(bus_ns / 1e3) || ' of the ' || _time(total_ns / 1e3)
            || ' that the device works in a step are '
            || copies || CASE WHEN copies = 1 THEN ' copy' ELSE ' copies' END || ' between host and device ('
            || copy || '), and '
            || CASE WHEN bus_beside_ns = 0 THEN 'no kernel runs' ELSE 'only for '
            || _percent(bus_beside_ns / bus_ns) || ' of it do kernels run' END
            || ' beside ' || CASE WHEN copies = 1 THEN 'it' ELSE 'them' END || '.'
        ELSE 'The step uses ' || streams || ' streams, but they work in turn: of ' || _time(other_ns / 1e3)
            || ' on all but the busiest, '
            || CASE WHEN other_beside_ns = 0 THEN 'nothing' ELSE _percent(other_beside_ns / other_ns) END
            || ' runs beside other work.'
    END AS sentence,
    coalesce(CASE WHEN is_bus_alone THEN bus_ids ELSE other_ids END, []) AS event_ids,
    {
        'device_us': total_ns / 1e3, 'copies_us': bus_ns / 1e3, 'copies_beside_us': bus_beside_ns / 1e3,
        'other_streams_us': other_ns / 1e3, 'other_streams_beside_us': other_beside_ns / 1e3, 'streams': streams
    } AS figures
FROM judged
