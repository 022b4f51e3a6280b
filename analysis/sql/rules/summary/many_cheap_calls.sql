-- Rule: An operation is called very often in a step, though each call is cheap.
-- Topic: summary
-- Severity: costs
-- Needs: operations, step
-- Otherwise: no operation of the step launches device work
-- Means: Every call costs the host the same, however little it does: many small ones add up to a step that waits for its
--     launches. Eight calls that take a quarter of the host's time are told.
-- Cure: Fuse them (torch.compile), batch them into one call, or use a foreach or fused variant.
WITH launching AS (
    SELECT
        o.run_id, o.name, o.calls, o.total_us, o.median_us, o.device_us / o.calls AS device_call_us, o.longest_id,
        t.host_us
    FROM operators AS o
    JOIN typical AS t USING (run_id)
    WHERE o.category = 'cpu_op' AND o.launches > 0
),
most AS (
    SELECT *
    FROM launching
    QUALIFY row_number() OVER (PARTITION BY run_id ORDER BY calls DESC, total_us DESC, name) = 1
)
SELECT
    m.run_id,
    m.calls >= 8 AND m.device_call_us < m.median_us AND coalesce(m.total_us >= m.host_us / 4, false)
        AND NOT coalesce(s.bound IN ('compute-bound', 'memory-bound', 'device-bound'), false) AS fired,
    m.name || ' is called ' || _counted(m.calls, 'time') || ' a step (limit 8), ' || _time(m.median_us) || ' on the host and '
        || _time(m.device_call_us) || ' on the device each' || coalesce(', ' || _percent(m.total_us / m.host_us)
        || ' of the host''s time (limit 25 %)', '') || coalesce(', bound: ' || s.bound, '') AS reason,
    m.name || ' is called ' || m.calls || ' times a step: each call takes the host ' || _time(m.median_us)
        || ' under the profiler and the device ' || _time(m.device_call_us) || ', together '
        || _percent(m.total_us / m.host_us) || ' of the step''s host time.' AS sentence,
    [m.longest_id] AS event_ids,
    {'calls': m.calls, 'host_us': m.total_us, 'host_call_us': m.median_us, 'device_call_us': m.device_call_us} AS figures
FROM most AS m
JOIN subjects AS s USING (run_id)
