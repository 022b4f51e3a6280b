-- Rule: The device stands still between two steps.
-- Topic: device lane
-- Severity: costs
-- Needs: device work, steps
-- Otherwise: behind the step looked at the device never stands still, or no step follows
-- Means: Between the last work of a step and the first of the next the device waits for what the host does there: the
--     loader, logging, the optimizer's Python, a synchronize, or the start of the next step. A tenth of the time from
--     step to step is told. Where the device binds without a profiler, a late host is the profiler's doing and is let
--     pass.
-- Cure: Let the host run ahead: no synchronizing call between steps, and the next batch prepared meanwhile.
WITH worked AS (
    SELECT run_id, device, max(end_ns) - min(ts_ns) AS span_ns, max(end_ns) AS end_ns
    FROM work
    GROUP BY run_id, device
),
behind AS (
    SELECT
        i.run_id, i.cause, i.detail, i.next_event_id,
        i.dur_ns / 1e3 AS gap_us,
        i.dur_ns / (i.dur_ns + w.span_ns) AS frac
    FROM (FROM idle WHERE NOT is_inside AND NOT is_typical AND cause <> 'collective') AS i
    JOIN worked AS w ON w.run_id = i.run_id AND w.device IS NOT DISTINCT FROM i.device AND i.start_ns >= w.end_ns
    QUALIFY row_number() OVER (PARTITION BY i.run_id ORDER BY i.dur_ns DESC, i.start_ns) = 1
)
SELECT
    run_id,
    frac >= 0.1 AND NOT b.is_profilers AS fired,
    'the device stands still ' || _time(gap_us) || ' before the next step, ' || _percent(frac)
        || ' of the time from step to step (limit 10 %)'
        || CASE WHEN frac >= 0.1 AND is_profilers
            THEN '; but it is the host, slower under the profiler, and the step is ' || bound
            ELSE '' END AS reason,
    'Between two steps the device stands still ' || _time(gap_us) || ', ' || _percent(frac)
        || ' of the time from step to step under the profiler: ' || cause || coalesce(' (' || detail || ')', '')
        || '.' AS sentence,
    CASE cause
        WHEN 'synchronize' THEN 'Let the host run ahead: take out the call between the steps that waits for the device.'
        WHEN 'memcpy' THEN 'Prepare the next batch ahead: pinned memory, non_blocking=True, a stream of its own.'
        WHEN 'profiler' THEN 'The gap is the profiler''s own: without it it is not there.'
        WHEN 'host late' THEN 'Make a step cheaper to issue (torch.compile, a CUDA graph), or larger.'
    END AS cure,
    [next_event_id] AS event_ids,
    {'gap_us': gap_us, 'gap_frac': frac} AS figures
FROM (
    SELECT
        b.*, s.bound,
        b.cause = 'host late'
            AND coalesce(s.bound IN ('compute-bound', 'memory-bound', 'device-bound'), false) AS is_profilers
    FROM behind AS b
    JOIN subjects AS s USING (run_id)
    WHERE s.status = 'ok' AND s.lacks['steps'] IS NULL
) AS b
