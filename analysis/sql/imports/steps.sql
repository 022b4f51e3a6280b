-- Grain: one row an imported run and step.
-- What the host and the device did in a step, as far as a trace tells it: the ground of the verdicts on imports.
-- Host time is that of the step without the time in which a synchronizing call of a launching thread waits for work: what
-- such a call takes while the device is idle is the host's own. A step waits for input where a data loader is asked for
-- the next batch while the device is idle. Of several devices their mean counts.
CREATE TEMP TABLE import_steps AS
WITH spans AS (FROM _import_spans),
calls AS MATERIALIZED (
    SELECT run_id, event_id, name, pid, tid, ts_ns, ts_ns + dur_ns AS end_ns
    FROM events
    SEMI JOIN _imports USING (run_id)
    WHERE _is_runtime(category) AND (contains(name, 'Launch') OR _is_waiting(name))
        OR category = 'user_annotation' AND name = 'crossover: fence'
),
waits AS (
    SELECT
        w.run_id, w.event_id, w.name, w.end_ns,
        max(w.end_ns) OVER (
            PARTITION BY w.run_id ORDER BY w.ts_ns, w.event_id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS covered_ns,
        greatest(w.ts_ns, coalesce(covered_ns, w.ts_ns)) AS ts_ns
    FROM (FROM calls SEMI JOIN (FROM calls WHERE contains(name, 'Launch')) USING (run_id, pid, tid)) AS w
    ASOF LEFT JOIN (FROM calls WHERE name = 'crossover: fence') AS f
        ON f.run_id = w.run_id AND f.pid = w.pid AND f.tid = w.tid AND w.ts_ns >= f.ts_ns
    WHERE _is_waiting(w.name) AND NOT coalesce(f.end_ns >= w.end_ns, false)
),
loads AS (
    SELECT run_id, event_id, name, ts_ns, ts_ns + dur_ns AS end_ns
    FROM events
    SEMI JOIN _imports USING (run_id)
    WHERE contains(name, 'DataLoader') AND (contains(name, '__next__') OR contains(name, 'Iter'))
        AND category IN ('cpu_op', 'user_annotation')
),
pauses AS (
    SELECT p.*, s.step
    FROM (
        SELECT run_id, event_id, name, ts_ns, end_ns, false AS is_load FROM waits WHERE end_ns > ts_ns
        UNION ALL BY NAME
        SELECT run_id, event_id, name, ts_ns, end_ns, true AS is_load FROM loads
    ) AS p
    ASOF JOIN spans AS s ON s.run_id = p.run_id AND p.ts_ns >= s.start_ns
    WHERE p.ts_ns < s.host_end_ns
),
devices AS (
    SELECT DISTINCT run_id, coalesce(device, -1) AS device
    FROM events
    SEMI JOIN _imports USING (run_id)
    WHERE is_device
),
dry AS (
    SELECT
        run_id, coalesce(device, -1) AS device, start_ns, dur_ns,
        coalesce(sum(dur_ns) OVER (
            PARTITION BY run_id, device ORDER BY start_ns ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ), 0) AS before_ns
    FROM import_gaps
    WHERE cause <> 'collective'
),
ends AS (
    SELECT
        run_id, event_id, device,
        unnest([{'at_ns': ts_ns, 'sign': -1}, {'at_ns': end_ns, 'sign': 1}], recursive := true)
    FROM pauses
    JOIN devices USING (run_id)
),
idle AS (
    SELECT
        e.run_id, e.event_id,
        sum(e.sign * coalesce(d.before_ns + least(d.dur_ns, e.at_ns - d.start_ns), 0))
            / count(DISTINCT e.device) AS idle_ns
    FROM ends AS e
    ASOF LEFT JOIN dry AS d ON d.run_id = e.run_id AND d.device = e.device AND e.at_ns >= d.start_ns
    GROUP BY e.run_id, e.event_id
),
paused AS (
    SELECT
        run_id, step,
        coalesce(sum(end_ns - ts_ns - idle_ns) FILTER (NOT is_load), 0) / 1e3 AS blocked_us,
        coalesce(sum(idle_ns) FILTER (is_load), 0) / 1e3 AS input_us,
        coalesce(list(name) FILTER (NOT is_load), []) AS waits,
        any_value(name) FILTER (is_load) AS loader
    FROM pauses
    JOIN idle USING (run_id, event_id)
    GROUP BY run_id, step
)
SELECT
    s.run_id, s.step, s.kind, s.wall_us, s.busy_us, s.compute_us,
    s.busy_us - s.compute_us AS collective_us,
    s.idle_us,
    CASE WHEN s.host_us IS NOT NULL THEN greatest(0, s.host_us - coalesce(p.blocked_us, 0)) END AS host_us,
    coalesce(p.blocked_us, 0) AS blocked_us,
    coalesce(p.waits, []) AS waits,
    coalesce(p.input_us, 0) AS input_us,
    p.loader,
    kernel_launches + memcpy_launches + memset_launches + graph_launches AS launches,
    s.kernels
FROM spans AS s
LEFT JOIN paused AS p ON p.run_id = s.run_id AND p.step = s.step;
