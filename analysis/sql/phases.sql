-- Grain: one row a run, kind of step and phase; besides, one for the step as a whole and one for what lies in no phase.
-- A phase is a host annotation inside a step, on the thread of the step's own annotation: forward, backward,
-- optimizer, data, torch's own (Optimizer.step#...) and the user's. Annotations inside it are phases of their own,
-- and its figures hold theirs. Where a trace has no annotation a step (import: sequence, window), it is the thread
-- with most annotations. Work of the device belongs to the phase whose range covers the start of the call that
-- launched it, whichever thread made the call (backward's come from that of autograd). Device time is counted as
-- steps.busy_us is: the union of the intervals of the step; where work overlaps, the time counts for what began
-- first. The device's idle time between two events belongs to the innermost phase that holds both. Figures are means
-- over the steps, the first recorded one left out where there are others: so those of the outermost phases and of
-- what lies in none add up to the step's, exactly.
-- chosen: relation of the runs, with a column run_id.
CREATE MACRO _phases_of(chosen) AS TABLE (
    WITH runs AS (
        SELECT run_id, workload, source = 'import' IS true AS is_import, _fact(step_facts, 'method') AS step_method
        FROM stg_runs
        SEMI JOIN query_table(chosen) USING (run_id)
    ),
    annotations AS MATERIALIZED (
        SELECT
            e.run_id, e.step, e.event_id, e.name, e.ts_ns, e.ts_ns + e.dur_ns AS end_ns, e.depth,
            coalesce(e.pid, '') || ' ' || coalesce(e.tid, '') AS thread,
            is_import, step_method, workload
        FROM events AS e
        JOIN runs AS r USING (run_id)
        WHERE e.category = 'user_annotation' AND e.step IS NOT NULL AND e.name <> 'crossover: fence'
            AND NOT starts_with(e.name, '## Call CompiledFxGraph')
    ),
    marks AS (
        SELECT run_id, step, event_id AS mark_id, thread, ts_ns AS start_ns, end_ns
        FROM annotations
        WHERE CASE
            WHEN NOT is_import THEN name = workload OR starts_with(name, 'ProfilerStep#')
            WHEN step_method = 'profiler' THEN starts_with(name, 'ProfilerStep#')
            ELSE step_method = 'annotation'
        END
        -- a step that --step named begins with the range that it is: of what begins then, the longest
        QUALIFY row_number() OVER (
            PARTITION BY run_id, step
            ORDER BY NOT is_import AND name = workload DESC, CASE WHEN step_method = 'annotation' THEN ts_ns END,
                end_ns - ts_ns DESC, event_id
        ) = 1
    ),
    busiest AS (
        SELECT run_id, thread
        FROM annotations
        ANTI JOIN marks USING (run_id)
        GROUP BY run_id, thread
        QUALIFY row_number() OVER (PARTITION BY run_id ORDER BY count(*) DESC, thread) = 1
    ),
    ranges AS (
        SELECT a.run_id, a.step, a.event_id, a.name, a.thread, a.ts_ns, a.end_ns, a.depth,
            a.ts_ns >= m.start_ns AND a.end_ns <= m.end_ns AS is_inside
        FROM annotations AS a
        LEFT JOIN marks AS m USING (run_id, step)
        LEFT JOIN busiest AS b USING (run_id)
        WHERE a.thread = coalesce(m.thread, b.thread) AND NOT starts_with(a.name, 'ProfilerStep#')
            AND (is_import OR a.name <> workload)
            AND (m.mark_id IS NULL OR a.event_id <> m.mark_id AND NOT (a.ts_ns <= m.start_ns AND a.end_ns >= m.end_ns))
    ),
    phased AS (SELECT DISTINCT run_id FROM ranges),
    nested AS MATERIALIZED (
        SELECT
            a.run_id, a.step, a.thread, a.ts_ns, a.end_ns, any_value(a.is_inside) AS is_inside,
            list(b.name ORDER BY b.depth, b.event_id) AS path
        FROM ranges AS a
        JOIN ranges AS b
            ON b.run_id = a.run_id AND b.step = a.step AND b.ts_ns <= a.ts_ns AND b.end_ns >= a.end_ns
            AND (b.depth < a.depth OR b.event_id = a.event_id)
        GROUP BY a.run_id, a.step, a.thread, a.ts_ns, a.end_ns, a.event_id
    ),
    -- on each thread the moments when another phase becomes the innermost one; none is path 0
    moments AS MATERIALIZED (
        SELECT run_id, thread, ts_ns AS at_ns, path, true AS begins, -len(path) AS nearness
        FROM nested
        WHERE end_ns > ts_ns
        UNION ALL
        SELECT run_id, thread, end_ns, path[: -2], false, len(path)
        FROM nested
        WHERE end_ns > ts_ns
    ),
    paths AS MATERIALIZED (
        SELECT path, row_number() OVER () AS path_id
        FROM (SELECT DISTINCT path FROM moments WHERE path <> [])
        UNION ALL
        SELECT [], 0
    ),
    turns AS MATERIALIZED (
        SELECT m.run_id, m.thread, m.at_ns, p.path_id
        FROM moments AS m
        JOIN paths AS p USING (path)
        QUALIFY row_number() OVER (PARTITION BY m.run_id, m.thread, m.at_ns ORDER BY m.begins DESC, m.nearness) = 1
    ),
    traced AS MATERIALIZED (
        SELECT
            e.run_id, e.step, e.event_id, e.category, e.ts_ns, e.ts_ns + e.dur_ns AS end_ns, e.is_device, e.launch_id,
            NOT e.is_device AND regexp_matches(e.name, 'GraphLaunch|Launch.*Kernel|(?i:memcpy|memset)') AS is_launch,
            NOT e.is_device AND _is_waiting(e.name) AS is_wait
        FROM events AS e
        SEMI JOIN phased USING (run_id)
        WHERE e.is_device AND e.step IS NOT NULL OR _is_runtime(e.category)
    ),
    spans AS MATERIALIZED ( -- the steps, and the thread that issues them
        SELECT m.run_id, m.step, m.thread, m.start_ns, m.end_ns
        FROM marks AS m
        SEMI JOIN phased USING (run_id)
        UNION ALL
        SELECT DISTINCT t.run_id, t.step, b.thread, NULL, NULL
        FROM traced AS t
        JOIN busiest AS b USING (run_id)
        WHERE t.step IS NOT NULL
    ),
    kinds AS MATERIALIZED ( -- the steps that count
        SELECT *, count(*) OVER (PARTITION BY run_id, kind) AS steps
        FROM (
            SELECT s.run_id, s.step, k.kind, s.start_ns, s.end_ns
            FROM spans AS s
            LEFT JOIN _step_kinds AS k ON k.run_id = s.run_id AND s.step BETWEEN k.first_step AND k.last_step
            WINDOW alike AS (PARTITION BY s.run_id, k.kind)
            QUALIFY count(*) OVER alike = 1 OR row_number() OVER (alike ORDER BY s.step) > 1
        )
    ),
    called AS MATERIALIZED ( -- the innermost phase of each call, by the time on the thread that issues the step
        SELECT c.run_id, c.step, c.event_id, c.ts_ns, c.end_ns, c.is_launch, c.is_wait, c.mark_end_ns,
            coalesce(t.path_id, 0) AS path_id
        FROM (
            SELECT c.*, coalesce(s.thread, b.thread) AS thread, s.end_ns AS mark_end_ns
            FROM (FROM traced WHERE NOT is_device) AS c
            LEFT JOIN spans AS s USING (run_id, step)
            LEFT JOIN busiest AS b USING (run_id)
        ) AS c
        ASOF LEFT JOIN turns AS t ON t.run_id = c.run_id AND t.thread = c.thread AND c.ts_ns >= t.at_ns
    ),
    work AS (
        SELECT
            w.run_id, w.step, w.category = 'kernel' AS is_kernel, coalesce(c.path_id, 0) AS path_id,
            lag(coalesce(c.path_id, 0)) OVER by_start AS before_id,
            max(w.end_ns) OVER (by_start ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS covered_ns,
            greatest(0, w.end_ns - greatest(w.ts_ns, coalesce(covered_ns, w.ts_ns))) AS fresh_ns,
            greatest(0, w.ts_ns - coalesce(covered_ns, w.ts_ns)) AS idle_ns
        FROM (FROM traced WHERE is_device) AS w
        SEMI JOIN spans USING (run_id, step)
        LEFT JOIN called AS c ON c.run_id = w.run_id AND c.event_id = w.launch_id
        WINDOW by_start AS (PARTITION BY w.run_id, w.step ORDER BY w.ts_ns, w.event_id)
    ),
    gathered AS (
        SELECT
            w.run_id, w.step, p.path, b.path AS path_before, w.device_ns, w.idle_ns, w.kernels
        FROM (
            SELECT
                run_id, step, path_id, before_id,
                sum(fresh_ns) AS device_ns, sum(idle_ns) AS idle_ns, count(*) FILTER (is_kernel) AS kernels
            FROM work
            GROUP BY run_id, step, path_id, before_id
        ) AS w
        JOIN paths AS p USING (path_id)
        LEFT JOIN paths AS b ON b.path_id = w.before_id
    ),
    own AS ( -- what each innermost phase has itself
        SELECT run_id, step, path, device_ns, kernels
        FROM gathered
        UNION ALL BY NAME
        SELECT
            run_id, step, path[: coalesce(nullif(list_position([
                path[place] IS DISTINCT FROM path_before[place] FOR place IN range(1, len(path) + 1)
            ], true), 0) - 1, len(path))] AS path,
            idle_ns
        FROM gathered
        WHERE idle_ns > 0
        UNION ALL BY NAME
        SELECT c.run_id, c.step, p.path, c.launches, c.wait_ns
        FROM (
            SELECT
                run_id, step, path_id,
                count(*) FILTER (is_launch) AS launches,
                -- the runner's fence waits behind the step's own annotation
                sum(end_ns - ts_ns) FILTER (is_wait AND (path_id > 0 OR coalesce(ts_ns < mark_end_ns, true))) AS wait_ns
            FROM called
            SEMI JOIN spans USING (run_id, step)
            WHERE is_launch OR is_wait
            GROUP BY run_id, step, path_id
        ) AS c
        JOIN paths AS p USING (path_id)
    ),
    whole AS ( -- with all that lies in it; the host's time of a phase holds that of those inside already
        SELECT run_id, step, path[: place] AS path, 'phase' AS part, * EXCLUDE (run_id, step, path, place)
        FROM (SELECT *, unnest(range(1, len(path) + 1)) AS place FROM own)
        UNION ALL BY NAME
        SELECT run_id, step, [] AS path, 'step' AS part, * EXCLUDE (run_id, step, path)
        FROM own
        UNION ALL BY NAME
        SELECT run_id, step, [] AS path, 'outside' AS part, * EXCLUDE (run_id, step, path)
        FROM own
        WHERE path = []
        UNION ALL BY NAME
        SELECT run_id, step, path, 'phase' AS part, end_ns - ts_ns AS host_ns, ts_ns, 1 AS calls
        FROM nested
        UNION ALL BY NAME
        SELECT run_id, step, [] AS path, 'step' AS part, end_ns - start_ns AS host_ns, start_ns AS ts_ns, 1 AS calls
        FROM spans
        UNION ALL BY NAME
        SELECT s.run_id, s.step, [] AS path, 'outside' AS part,
            any_value(s.end_ns - s.start_ns) - coalesce(sum(n.end_ns - n.ts_ns), 0) AS host_ns
        FROM spans AS s
        LEFT JOIN (FROM nested WHERE len(path) = 1 AND is_inside) AS n USING (run_id, step)
        GROUP BY s.run_id, s.step
    ),
    stepped AS (
        SELECT
            w.run_id, k.kind, k.steps, w.step, w.part, w.path,
            sum(w.calls) AS calls, sum(w.host_ns) AS host_ns, sum(w.device_ns) AS device_ns, sum(w.idle_ns) AS idle_ns,
            sum(w.wait_ns) AS wait_ns, sum(w.launches) AS launches, sum(w.kernels) AS kernels,
            min(w.ts_ns) - any_value(k.start_ns) AS begin_ns
        FROM whole AS w
        JOIN kinds AS k USING (run_id, step)
        GROUP BY w.run_id, k.kind, k.steps, w.step, w.part, w.path
    ),
    averaged AS (
        SELECT
            run_id, kind, part, path, steps,
            sum(calls) / steps AS calls,
            sum(host_ns) / steps / 1e3 AS host_us,
            median(host_ns) / 1e3 AS host_median_us,
            coalesce(sum(device_ns), 0) / steps / 1e3 AS device_us,
            median(device_ns) / 1e3 AS device_median_us,
            coalesce(sum(idle_ns), 0) / steps / 1e3 AS idle_us,
            coalesce(sum(wait_ns), 0) / steps / 1e3 AS wait_us,
            coalesce(sum(launches), 0) / steps AS launches,
            coalesce(sum(kernels), 0) / steps AS kernels,
            avg(begin_ns) / 1e3 AS begin_us
        FROM stepped
        GROUP BY run_id, kind, part, path, steps
        QUALIFY count(*) FILTER (part = 'phase') OVER (PARTITION BY run_id, kind) > 0
    ),
    working AS (SELECT DISTINCT run_id FROM traced WHERE is_device),
    timed AS (
        SELECT a.* EXCLUDE (device_us, device_median_us, idle_us),
            CASE WHEN w.run_id IS NOT NULL THEN device_us END AS device_us,
            CASE WHEN w.run_id IS NOT NULL THEN coalesce(device_median_us, 0) END AS device_median_us,
            CASE WHEN w.run_id IS NOT NULL THEN idle_us END AS idle_us
        FROM averaged AS a
        LEFT JOIN working AS w USING (run_id)
    ),
    remembered AS (
        SELECT m.*, CASE WHEN len(m.path) = 0 THEN 'step' ELSE 'phase' END AS part
        FROM _phase_memory AS m
        SEMI JOIN runs USING (run_id)
    ),
    joined AS (
        SELECT *, coalesce(begin_us, 1e3 * "order") AS begins
        FROM timed
        FULL JOIN remembered USING (run_id, part, path)
    ),
    ordered AS ( -- by when the phases around it begin, then by its own
        SELECT a.run_id, a.kind, a.path, list(b.begins ORDER BY len(b.path)) AS places
        FROM joined AS a
        JOIN joined AS b
            ON b.run_id = a.run_id AND b.kind IS NOT DISTINCT FROM a.kind AND b.part = 'phase'
            AND b.path = a.path[: len(b.path)]
        WHERE a.part = 'phase'
        GROUP BY a.run_id, a.kind, a.path
    )
    SELECT
        j.run_id,
        j.kind,
        part,
        CASE part WHEN 'phase' THEN j.path[-1] ELSE part END AS phase,
        CASE part WHEN 'phase' THEN array_to_string(j.path, ' / ') ELSE part END AS path,
        CASE WHEN len(j.path) > 1 THEN array_to_string(j.path[: -2], ' / ') END AS parent,
        CASE part WHEN 'phase' THEN len(j.path) WHEN 'outside' THEN 1 ELSE 0 END AS depth,
        row_number() OVER (
            of_kind ORDER BY CASE part WHEN 'step' THEN 0 WHEN 'phase' THEN 1 ELSE 2 END, o.places, j.path
        ) AS "order",
        steps,
        calls,
        begin_us,
        host_us,
        host_median_us,
        host_us / nullif(max(host_us) FILTER (part = 'step') OVER of_kind, 0) AS host_frac,
        device_us,
        device_median_us,
        device_us / nullif(max(device_us) FILTER (part = 'step') OVER of_kind, 0) AS device_frac,
        launches,
        kernels,
        idle_us,
        wait_us,
        start_bytes,
        peak_bytes,
        end_bytes
    FROM joined AS j
    LEFT JOIN ordered AS o ON o.run_id = j.run_id AND o.kind IS NOT DISTINCT FROM j.kind AND o.path = j.path
    WINDOW of_kind AS (PARTITION BY j.run_id, j.kind)
);

CREATE VIEW phases AS FROM _phases_of('stg_runs');

COMMENT ON VIEW phases IS
    'One row a run, kind of step and phase of the step, with the step as a whole and what lies in no phase: host and
    device time, launches, memory. Phases of depth 1 and outside add up to the step.';
COMMENT ON COLUMN phases.kind IS
    'Kind of the step in an imported trace: its annotation, or a letter for a sequence of kernels; NULL for sweeps.';
COMMENT ON COLUMN phases.part IS 'phase, step (all of the step), or outside (what lies in no phase).';
COMMENT ON COLUMN phases.phase IS 'Name of the phase: of its annotation.';
COMMENT ON COLUMN phases.path IS 'Names from the outermost phase to this one.';
COMMENT ON COLUMN phases.parent IS 'Path of the phase that it lies in; NULL for the outermost.';
COMMENT ON COLUMN phases.depth IS 'How many phases it lies in, itself included; 0 = the step.';
COMMENT ON COLUMN phases."order" IS
    'Place in the step, from 1: each phase stands before those in it; outside comes last.';
COMMENT ON COLUMN phases.steps IS 'Number of steps that the figures are means of; NULL = no trace shows the phase.';
COMMENT ON COLUMN phases.calls IS 'How often it comes in a step, on average; NULL for outside.';
COMMENT ON COLUMN phases.begin_us IS 'From the start of the step to its own, on the host; microseconds.';
COMMENT ON COLUMN phases.host_us IS
    'Host time of the phase in a step, with the profiler''s own cost; NULL where no annotation marks the steps;
    microseconds.';
COMMENT ON COLUMN phases.host_median_us IS 'Median of it over the steps that have the phase; medians do not add up.';
COMMENT ON COLUMN phases.host_frac IS 'host_us over that of the step.';
COMMENT ON COLUMN phases.device_us IS
    'Device time of what was launched in the phase: its part of the step''s busy time, overlaps counted once; NULL
    without device work in the trace; microseconds.';
COMMENT ON COLUMN phases.device_median_us IS 'Median of it over the steps; medians do not add up.';
COMMENT ON COLUMN phases.device_frac IS 'device_us over that of the step.';
COMMENT ON COLUMN phases.launches IS 'Host calls in it that launch a kernel, a copy, a fill or a graph, on average.';
COMMENT ON COLUMN phases.kernels IS 'Kernels that it launched, on average.';
COMMENT ON COLUMN phases.idle_us IS
    'Time without device work between two events of the phase; between phases it counts for what holds both;
    microseconds.';
COMMENT ON COLUMN phases.wait_us IS 'Host time in calls that wait for the device; microseconds.';
COMMENT ON COLUMN phases.start_bytes IS 'Device memory in use when the phase begins; NULL = not watched.';
COMMENT ON COLUMN phases.peak_bytes IS 'Most device memory in use while it lasts; NULL = not watched.';
COMMENT ON COLUMN phases.end_bytes IS 'Device memory in use when it ends; NULL = not watched.';
