-- Rule: The table's host and device totals are alike and large, and the device binds.
-- Topic: summary
-- Severity: explains
-- Needs: accelerator, trace, device work, warm
-- Otherwise: its bound is not decided
-- Means: A window that ends with a synchronize lasts as long as the device needs, and the wait counts as host time: where
--     the device is late, both totals are alike, whatever the host has to do.
-- Cure: Work on the device's side: fewer bytes, a better kernel, another number format.
-- Excludes: host_far_above_device, totals_mislead
-- See: docs/article.md#2-and-at-4096
SELECT
    run_id,
    host_total_us >= 1000 AND device_total_us BETWEEN 0.8 * host_total_us AND 1.25 * host_total_us
        AND bound IN ('compute-bound', 'memory-bound', 'device-bound') AS fired,
    'device total ' || _time(device_total_us) || ' of host total ' || _time(host_total_us) || ' ('
        || _percent(device_total_us / host_total_us) || ', limits 80 and 125 %, at least 1 ms), bound: ' || bound AS reason,
    'The totals of the table are alike, ' || _time(host_total_us) || ' of host and ' || _time(device_total_us)
        || ' of device time, and the step is ' || bound || ': '
        || _time(least(waiting_us, host_total_us)) || ' of the host''s total is waiting for the device.' AS sentence,
    {'host_total_us': host_total_us, 'device_total_us': device_total_us, 'waiting_us': waiting_us} AS figures
FROM subjects
WHERE status = 'ok' AND NOT is_cpu AND NOT is_cold AND device_total_us > 0 AND host_total_us > 0 AND bound <> 'unknown'
