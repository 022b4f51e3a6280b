-- Grain: one row a run of point_runs whose trace has events that a timeline draws.
-- The part of the trace to draw: all of it where that is at most point_events_limit (a variable) events, or where no
-- step was found; else the typical step with the one before and the one behind it, if these are as few; else that step
-- alone. scope: trace, steps or step. step: the typical one of so many steps. first_step, last_step: NULL = no step
-- was found. start_ns, end_ns: from the first event to the last, or from the start of the first step to the end of the
-- last, its device work included. traced: events of the whole trace; shadows: of these the profiler's records of
-- spans, drawn nowhere.
WITH counted AS (
    SELECT
        run_id, step,
        count(*) AS events,
        count(*) FILTER (category IN ('trace', 'gpu_user_annotation', 'cuda_sync')) AS shadows,
        count(*) FILTER (category = 'cpu_instant_event') AS instants,
        min(ts_ns) FILTER (category <> 'trace') AS start_ns,
        max(ts_ns + dur_ns) FILTER (category <> 'trace') AS end_ns,
        min(ts_ns) FILTER (is_device) AS device_start_ns,
        max(ts_ns + dur_ns) FILTER (is_device) AS device_end_ns
    FROM events
    WHERE run_id IN (FROM point_runs)
    GROUP BY run_id, step
),
traces AS (
    SELECT
        run_id, sum(c.events)::BIGINT AS traced, sum(c.shadows)::BIGINT AS shadows, sum(c.instants)::BIGINT AS instants,
        sum(c.events - c.shadows - c.instants)::BIGINT AS drawable, min(start_ns) AS start_ns, max(end_ns) AS end_ns
    FROM counted AS c
    GROUP BY run_id
),
near AS (
    SELECT
        t.run_id, t.step, t.start_ns, n.step AS near_step, n.start_ns AS near_start_ns,
        greatest(n.end_ns, n.host_end_ns, c.device_end_ns) AS near_end_ns, coalesce(c.events, 0) AS near_events
    FROM point_steps AS t
    JOIN point_steps AS n ON n.run_id = t.run_id AND n.step BETWEEN t.step - 1 AND t.step + 1
    LEFT JOIN counted AS c ON c.run_id = n.run_id AND c.step = n.step
    WHERE t.is_typical AND t.step_method IS DISTINCT FROM 'window'
),
stepped AS (
    SELECT
        run_id, step, sum(near_events) <= getvariable('point_events_limit') AS fits,
        CASE WHEN fits THEN min(near_step) ELSE step END AS first_step,
        CASE WHEN fits THEN max(near_step) ELSE step END AS last_step,
        CASE WHEN fits THEN min(near_start_ns) ELSE min(near_start_ns) FILTER (near_step = step) END AS start_ns,
        CASE WHEN fits THEN max(near_end_ns) ELSE max(near_end_ns) FILTER (near_step = step) END AS end_ns
    FROM near
    GROUP BY run_id, step
)
SELECT
    t.run_id,
    CASE
        WHEN s.step IS NULL OR t.drawable <= getvariable('point_events_limit') THEN 'trace'
        WHEN s.fits THEN 'steps'
        ELSE 'step'
    END AS scope,
    s.step,
    (SELECT count(*) FROM point_steps AS p WHERE p.run_id = t.run_id) AS steps,
    s.first_step,
    s.last_step,
    CASE WHEN scope = 'trace' THEN t.start_ns ELSE s.start_ns END AS start_ns,
    CASE WHEN scope = 'trace' THEN t.end_ns ELSE s.end_ns END AS end_ns,
    s.start_ns AS view_start_ns,
    s.end_ns AS view_end_ns,
    t.traced, t.shadows, t.instants, t.start_ns AS trace_start_ns
FROM traces AS t
LEFT JOIN stepped AS s USING (run_id)
WHERE t.drawable > 0
