-- Rule: Something else used the host while the point was measured.
-- Topic: data quality
-- Severity: misleads
-- Needs: sweep
-- Otherwise: whether the host was shared could not be told
-- Means: Host times are too long by what others took. A verdict of overhead-bound may be theirs; device times stand.
-- Cure: End what else runs on these cores, or give the sweep cores of its own (taskset), and measure the point again.
SELECT
    run_id,
    host_contended AS fired,
    CASE WHEN host_contended THEN 'the host was contended' ELSE 'the host was free' END
        || coalesce(': something waited for a CPU in ' || _percent(cpu_pressure_frac) || ' of the time', '')
        || coalesce(', involuntary context switches: ' || involuntary_switches, '') AS reason,
    'Something else used the host' || coalesce(' (the worker was pushed off its core '
            || CASE involuntary_switches WHEN 1 THEN 'once' ELSE involuntary_switches || ' times' END || ')', '')
        || CASE WHEN cpu_pressure_frac >= 0.001
            THEN ', and in ' || _percent(cpu_pressure_frac) || ' of the time something waited for a CPU' ELSE '' END
        || ': host times of this run are upper limits.' AS sentence,
    {'cpu_pressure_frac': cpu_pressure_frac, 'involuntary_switches': involuntary_switches} AS figures
FROM subjects
WHERE status = 'ok' AND NOT is_import AND host_contended IS NOT NULL
