-- Rule: The table's host total is far above its device total, and the step is bound by overhead.
-- Topic: summary
-- Severity: explains
-- Needs: accelerator, trace, device work, warm
-- Otherwise: its bound is not decided, or the device's total is not below half of the host's
-- Means: The host spends more time on launching work than the device on doing it. The totals agree with the times without
--     a profiler, but not by how much: the profiler lengthens host times, and a window holds its own start and end.
-- Cure: Make the work of a launch larger (batch, size), or launch less: fuse, compile, replay a CUDA graph. See `cures`.
-- Excludes: host_and_device_alike, totals_mislead
-- See: docs/article.md#1-what-do-the-last-two-lines-of-the-table-say-at-64
SELECT
    run_id,
    device_total_us < host_total_us / 2 AND bound = 'overhead-bound' AS fired,
    'device total ' || _time(device_total_us) || ' of host total ' || _time(host_total_us) || ' ('
        || _percent(device_total_us / host_total_us) || ', limit 50 %), bound: ' || bound AS reason,
    'The totals of the table are ' || _time(host_total_us) || ' of host and ' || _time(device_total_us) || ' of device time ('
        || _percent(device_total_us / host_total_us) || '), which reads as overhead-bound, and it is'
        || coalesce(CASE WHEN is_import THEN ': at the usual cost of the profiler' ELSE ': without the profiler' END || ' the host needs ' || _time(overhead_us) || ' for a step that takes the device '
            || _time(work_us), '') || '.' AS sentence,
    CASE WHEN bound_gain > 1 THEN bound_gain END AS gain,
    {'host_total_us': host_total_us, 'device_total_us': device_total_us, 'overhead_us': overhead_us, 'work_us': work_us}
        AS figures
FROM subjects
WHERE status = 'ok' AND NOT is_cpu AND NOT is_cold AND device_total_us > 0 AND host_total_us > 0 AND bound <> 'unknown'
