-- Rule: Device work lies in the window that nothing in the window launched.
-- Topic: data quality
-- Severity: misleads
-- Needs: device work
-- Otherwise: the share of such work is not known
-- Means: Without a synchronize before it a window begins while the device still works on what was launched before. That
--     work counts as time of the profiled steps, which it is not. Kernels of a graph or of a driver that hides its
--     launches look the same.
-- Cure: Call torch.cuda.synchronize() before the first recorded step and behind the last, as this runner does.
WITH unlinked AS (
    SELECT
        run_id, source,
        CASE WHEN is_import THEN _fact(audit, 'unlinked_dur_ns')::BIGINT / 1e3 END AS unlinked_us,
        CASE WHEN is_import THEN _fact(audit, 'device_dur_ns')::BIGINT / 1e3 END AS device_sum_us,
        CASE WHEN is_import THEN _fact(audit, 'unlinked')::BIGINT END AS number,
        CASE WHEN is_import THEN unlinked_us / nullif(device_sum_us, 0) ELSE unattributed_frac END AS frac
    FROM subjects
    WHERE status = 'ok' AND device_events > 0
)
SELECT
    run_id,
    frac > 0.01 AS fired,
    CASE
        WHEN source = 'import' THEN _counted(number, 'device event') || ' without a launch in the trace, '
            || _percent(frac) || ' of the device''s time (limit 1 %)'
        ELSE _percent(frac) || ' of the device''s time belongs to no step of the window (limit 1 %)'
    END AS reason,
    CASE
        WHEN source = 'import' THEN 'The launch of ' || _counted(number, 'device event') || ' (' || _time(unlinked_us)
            || ', ' || _percent(frac)
            || ' of the device''s time) is not in the trace: work from before the window, or of a graph or a driver'
            || ' that the trace does not show.'
        ELSE _percent(frac) || ' of the device''s time in the window belongs to no profiled step.'
    END AS sentence,
    {'unlinked_us': unlinked_us, 'device_us': device_sum_us, 'unlinked_frac': frac} AS figures
FROM unlinked
WHERE frac IS NOT NULL
