-- Rule: Device work begins before the call that launches it.
-- Topic: data quality
-- Severity: misleads
-- Needs: device work, calls
-- Otherwise: no launch of the trace leads to device work
-- Means: The clocks of host and device were not brought together well, by at least as much as work precedes its launch.
--     Leads, queues, gaps and causes that compare the two lanes are off by that much; durations are not. One event in a
--     hundred is allowed: stamps are rounded.
-- Cure: Profile again with a newer torch, whose profiler brings the clocks together better; compare times within one
--     lane only.
WITH early AS (
    SELECT
        run_id,
        count(*) AS linked,
        count(*) FILTER (ts_ns < call_ts_ns) AS before_launch,
        max(call_ts_ns - ts_ns) / 1e3 AS worst_us,
        median(call_ts_ns - ts_ns) FILTER (ts_ns < call_ts_ns) / 1e3 AS median_us,
        list_slice(list(event_id ORDER BY call_ts_ns - ts_ns DESC) FILTER (ts_ns < call_ts_ns), 1, 8) AS event_ids
    FROM work
    WHERE call_ts_ns IS NOT NULL
    GROUP BY run_id
),
told AS (
    SELECT
        e.*,
        CASE WHEN s.is_import THEN _fact(s.audit, 'before_launch')::BIGINT END AS all_before,
        CASE WHEN s.is_import THEN s.device_events - coalesce(_fact(s.audit, 'unlinked')::BIGINT, 0) END AS all_linked,
        coalesce(all_before, before_launch) AS number,
        CASE WHEN all_before IS NOT NULL THEN all_linked ELSE linked END AS out_of
    FROM early AS e
    JOIN subjects AS s USING (run_id)
    WHERE s.status = 'ok'
)
SELECT
    run_id,
    number > 0.01 * out_of AS fired,
    number || ' of ' || _counted(out_of, 'launched event') || ' begin before their launch (limit 1 %)' AS reason,
    number || ' of ' || _counted(out_of, 'device event') || ' begin before the call that launches them'
        || coalesce(', in the typical step by ' || _time(median_us) || ' in the median and by ' || _time(worst_us)
        || ' at most', '')
        || ': the clocks of host and device differ by at least as much.' AS sentence,
    coalesce(event_ids, []) AS event_ids,
    {'before_launch': number, 'launched': out_of, 'worst_us': greatest(0, worst_us)} AS figures
FROM told
