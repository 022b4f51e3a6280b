-- Rule: What one would read off the table's totals is not what binds the step.
-- Topic: summary
-- Severity: misleads
-- Needs: accelerator, trace, device work, warm, times
-- Otherwise: its bound is not one of the two that the totals can tell
-- Means: Host total far above device total is read as overhead-bound, both alike as bound by the device. But the profiler
--     lengthens the host's times, the window holds its own start, and the wait at its end counts as host time.
-- Cure: Trust the times without a profiler (`bounds`), or compare them yourself: time steps issued back to back, and the
--     host's time to issue them.
-- Excludes: host_far_above_device, host_and_device_alike
-- See: docs/article.md#2-and-at-4096
WITH reading AS (
    SELECT
        *,
        CASE
            WHEN device_total_us < host_total_us / 2 THEN 'overhead-bound'
            WHEN device_total_us >= 0.8 * host_total_us THEN 'device-bound'
            ELSE 'undecided'
        END AS read_as,
        CASE WHEN bound = 'overhead-bound' THEN bound ELSE 'device-bound' END AS side
    FROM subjects
    WHERE status = 'ok' AND NOT is_cpu AND NOT is_cold AND NOT is_import AND device_total_us > 0 AND host_total_us > 0
        AND bound IN ('overhead-bound', 'compute-bound', 'memory-bound', 'device-bound')
)
SELECT
    run_id,
    read_as <> 'undecided' AND read_as <> side AS fired,
    'device total ' || _percent(device_total_us / host_total_us) || ' of host total, read as ' || read_as
        || ' (below 50 %: overhead, from 80 %: device), bound: ' || bound AS reason,
    'The totals of the table are ' || _time(host_total_us) || ' of host and ' || _time(device_total_us) || ' of device time ('
        || _percent(device_total_us / host_total_us) || '), which reads as ' || read_as
        || ', but without the profiler the host needs ' || _time(overhead_us) || ' for a step that takes the device '
        || _time(work_us) || ': ' || bound || '.' AS sentence,
    {'host_total_us': host_total_us, 'device_total_us': device_total_us, 'overhead_us': overhead_us, 'work_us': work_us}
        AS figures
FROM reading
