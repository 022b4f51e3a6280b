-- Rule: Other processes used the device while the point was measured.
-- Topic: data quality
-- Severity: misleads
-- Needs: sweep, accelerator
-- Otherwise: whether others used the device could not be told
-- Means: Two processes take turns on one device, so that times of it hold the other's work. Neither the trace nor the
--     measured times can tell them apart.
-- Cure: End the other processes (nvidia-smi lists them), or choose another card with devices=[N], and measure again.
SELECT
    run_id,
    other_processes > 0 AS fired,
    CASE WHEN other_processes = 0 THEN 'no other process' ELSE other_processes || ' other process'
        || CASE WHEN other_processes = 1 THEN '' ELSE 'es' END END || ' had a context on the device' AS reason,
    other_processes || ' other process' || CASE WHEN other_processes = 1 THEN '' ELSE 'es' END
        || ' had a context on the device meanwhile: device times of this run may hold their work.' AS sentence,
    {'other_processes': other_processes} AS figures
FROM subjects
WHERE status = 'ok' AND NOT is_import AND other_processes IS NOT NULL
