-- Rule: The device time of the step was taken from its profile, not measured without one.
-- Topic: data quality
-- Severity: explains
-- Needs: sweep, accelerator, warm
-- Otherwise: no device time was measured
-- Means: Where a step waits for the device the stream cannot be held, and where it cannot be captured it cannot be
--     replayed. The sum of a profile is left: kernels under a profiler, on a device that cools between them.
-- Cure: Take the waiting call out of the step, or capture it as a graph, so that its device time can be measured; else
--     read the device time as within 10 %.
SELECT
    run_id,
    device_method = 'profile' AS fired,
    'the device time was taken by ' || CASE device_method
        WHEN 'held' THEN 'holding the stream' WHEN 'replay' THEN 'replaying a graph' WHEN 'profile' THEN 'the profile'
            ELSE device_method END
        || coalesce(': ' || _time(device_us), '') AS reason,
    'The device time of ' || _time(device_us) || ' a step comes from the profile'
        || coalesce(', because ' || _fact(reasons, 'replay_us'), '') || '.' AS sentence,
    {'device_us': device_us, 'busy_us': busy_us} AS figures
FROM subjects
WHERE status = 'ok' AND NOT is_import AND NOT is_cpu AND NOT is_cold AND device_method IS NOT NULL
    AND device_us IS NOT NULL
