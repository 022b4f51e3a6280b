-- Rule: The profiler slows the host so much that the host times of the trace mislead.
-- Topic: data quality
-- Severity: misleads
-- Needs: sweep, trace
-- Otherwise: the host time of a step is not known both with and without the profiler
-- Means: A profiler writes down every operation, which costs host time and hardly any device time. Usual is 1.75 times;
--     beyond 2.5 times more than half of the trace's host time is the profiler's own, and the gaps that it makes look
--     like the program's.
-- Cure: Judge by the times without a profiler (python -m analysis bounds), and use the trace for what happens in which
--     order.
WITH slowed AS (
    SELECT
        run_id, profiled_host_us,
        CASE WHEN is_cpu THEN wall_us ELSE issue_us + coalesce(blocked_us, 0) END AS host_us,
        profiled_host_us / nullif(host_us, 0) AS factor
    FROM subjects
    WHERE status = 'ok' AND NOT is_import AND NOT is_cold AND events > 0
)
SELECT
    run_id,
    factor > 2.5 AS fired,
    'a step takes the host ' || _time(profiled_host_us) || ' under the profiler and ' || _time(host_us) || ' without, '
        || _number(factor) || ' times (limit 2.5)' AS reason,
    'Under the profiler a step takes the host ' || _time(profiled_host_us) || ' and without it ' || _time(host_us)
        || ', a factor of '
        || _number(factor) || ': ' || _percent(1 - 1 / factor)
        || ' of the trace''s host time is the profiler''s own.' AS sentence,
    {'profiled_host_us': profiled_host_us, 'host_us': host_us, 'factor': factor} AS figures
FROM slowed
WHERE factor IS NOT NULL
