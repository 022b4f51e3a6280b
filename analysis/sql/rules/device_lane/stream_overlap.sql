-- Rule: Work overlaps on the device, so that its times add up to more than the device was busy.
-- Topic: device lane
-- Severity: misleads
-- Needs: device work, step
-- Otherwise: the device did only one thing in the step
-- Means: Two streams may work at once, and a kernel may begin before the one ahead of it has ended (programmatic
--     dependent launch). The sum over kernels, such as the device total of the profiler's table, then counts that
--     time twice; the union of the intervals is what the device was busy. A twentieth of the sum is told.
-- Cure: Compare steps by busy_us of `steps`, the union, and not by the sum; nothing to mend.
-- Excludes: no_stream_overlap
WITH ordered AS (
    SELECT
        run_id, device, stream, event_id, name, ts_ns, end_ns, dur_ns,
        max(end_ns) OVER (PARTITION BY run_id, device ORDER BY ts_ns, event_id ROWS BETWEEN UNBOUNDED PRECEDING
            AND 1 PRECEDING) AS covered_ns,
        max(end_ns) OVER (
            PARTITION BY run_id, device, stream ORDER BY ts_ns, event_id ROWS BETWEEN UNBOUNDED PRECEDING
                AND 1 PRECEDING
        ) AS own_covered_ns
    FROM work
),
twice AS (
    SELECT
        *,
        greatest(0, least(end_ns, coalesce(covered_ns, ts_ns)) - ts_ns) AS overlap_ns,
        greatest(0, least(end_ns, coalesce(own_covered_ns, ts_ns)) - ts_ns) AS own_overlap_ns
    FROM ordered
),
summed AS (
    SELECT
        run_id,
        count(*) AS parts,
        count(DISTINCT (device, stream)) AS streams,
        sum(dur_ns) AS total_ns,
        sum(overlap_ns) AS overlap_ns,
        sum(own_overlap_ns) AS own_ns,
        arg_max(name, overlap_ns) AS name,
        list(event_id ORDER BY overlap_ns DESC) FILTER (overlap_ns > 0)[:8] AS event_ids
    FROM twice
    GROUP BY run_id
)
SELECT
    run_id,
    overlap_ns >= 0.05 * total_ns AS fired,
    'device times of together ' || _time(total_ns / 1e3) || ' on ' || _counted(streams, 'stream')
        || ' overlap for ' || _time(overlap_ns / 1e3)
        || ', ' || _percent(overlap_ns / total_ns) || ' (limit 5 %)' AS reason,
    'The device''s work in a step adds up to ' || _time(total_ns / 1e3) || ', but it is busy only '
        || _time((total_ns - overlap_ns) / 1e3)
        || ': ' || _time(overlap_ns / 1e3) || CASE
            WHEN own_ns >= overlap_ns / 2
                THEN ' overlap on the same stream, where a kernel begins before the one ahead has ended'
            ELSE ' overlap between ' || streams || ' streams'
        END || ', most of it under ' || regexp_extract(name, '^(?:void )?((?:[^<(]|\(anonymous namespace\))+)', 1)
            || '.' AS sentence,
    coalesce(event_ids, []) AS event_ids,
    {'sum_us': total_ns / 1e3, 'busy_us': (total_ns - overlap_ns) / 1e3, 'overlap_us': overlap_ns / 1e3,
        'same_stream_us': own_ns / 1e3, 'streams': streams} AS figures
FROM summed AS m
JOIN subjects AS s USING (run_id)
WHERE s.status = 'ok' AND parts > 1 AND total_ns > 0
