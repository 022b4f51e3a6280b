-- Rule: The host's time to issue a step is unknown, because the launch queue was full.
-- Topic: data quality
-- Severity: explains
-- Needs: sweep, accelerator, warm
-- Otherwise: whether the queue filled was not tried
-- Means: A device accepts about a thousand launches ahead. A step that fills this queue makes the host wait in its
--     launches, and what is measured then is the device's time. Such a step keeps the device busy by itself.
-- Cure: None for speed. To know the issue time, measure the step with fewer operations or at a smaller size.
SELECT
    run_id,
    coalesce(starts_with(_fact(reasons, 'issue_us'), 'queue-full'), false)
        AND NOT coalesce(device_method IS DISTINCT FROM 'profile' AND wall_us_low > 1.10 * device_us_high, false) AS fired,
    CASE
        WHEN fired THEN _fact(reasons, 'issue_us')
        WHEN issue_us IS NULL THEN 'the device waits for the host, whose pace was uneven, and no queue was full'
        ELSE 'a step was issued in ' || _time(issue_us) || ', the queue never full'
    END AS reason,
    'The step has no issue time of its own, because the launch queue fills while it is issued'
        || coalesce(' (kernels a step: ' || _number(launches) || ')', '')
        || coalesce('; all in all it takes ' || _time(wall_us), '') || '.' AS sentence,
    {'launches': launches, 'wall_us': wall_us, 'device_us': device_us} AS figures
FROM subjects
WHERE status = 'ok' AND NOT is_import AND NOT is_cpu AND NOT is_cold
    AND (issue_us IS NOT NULL OR starts_with(_fact(reasons, 'issue_us'), 'queue-full'))
