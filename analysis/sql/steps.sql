-- Grain: one row a run and step of its trace.
-- In a sweep a step is the annotation of the workload's name inside ProfilerStep#N; where there is none, ProfilerStep#N
-- itself. In an imported trace it is ProfilerStep#N, or the annotation that --step named. Where a trace has neither, a
-- step is a repeated sequence of kernels, or all of the window, and goes from its first launch to its last work: what
-- the host does before and after that belongs to no step.
-- Steps follow each other where the next begins at most half of a step's length after its end, its work included. Then
-- the step lasts until the next one, on the host or on the device, whichever is longer: a host that runs ahead finishes before its device.
-- chosen: relation of the runs, with a column run_id; chosen_events: relation of the events to look at, all of them or
-- those of some steps and of the next.
CREATE MACRO _steps_among(chosen, chosen_events) AS TABLE (
    WITH runs AS (
        SELECT
            run_id, workload, source = 'import' IS true AS is_import,
            CASE WHEN is_import THEN _fact(step_facts, 'method') ELSE 'annotation' END AS step_method
        FROM stg_runs
        SEMI JOIN query_table(chosen) USING (run_id)
    ),
    named AS (
        SELECT run_id, step, min(ts_ns) AS begin_ns
        FROM query_table(chosen_events)
        SEMI JOIN (FROM runs WHERE is_import AND step_method = 'annotation') USING (run_id)
        WHERE step IS NOT NULL AND NOT is_device AND category NOT IN ('gpu_user_annotation', 'cuda_sync')
        GROUP BY run_id, step
    ),
    traced AS MATERIALIZED (
        SELECT
            e.run_id, e.step, event_id, category, ts_ns, ts_ns + dur_ns AS end_ns, is_device, launch_id,
            is_import, step_method, kind,
            _is_runtime(category) AS is_call,
            CASE
                WHEN NOT is_call THEN NULL
                WHEN contains(name, 'GraphLaunch') THEN 'graph'
                WHEN regexp_matches(name, 'Launch.*Kernel') THEN 'kernel'
                WHEN regexp_matches(name, '(?i)memcpy') THEN 'memcpy'
                WHEN regexp_matches(name, '(?i)memset') THEN 'memset'
            END AS call,
            is_device AND _is_collective(name) AS is_collective,
            NOT is_import AND name = workload AS is_workload,
            NOT is_device AND CASE
                WHEN NOT is_import
                    THEN category = 'user_annotation' AND (is_workload OR starts_with(name, 'ProfilerStep#'))
                WHEN step_method = 'profiler' THEN starts_with(name, 'ProfilerStep#')
                -- a step that --step named begins with the range that it is: of what begins then, the longest
                WHEN step_method = 'annotation' THEN ts_ns = begin_ns
                ELSE false
            END AS is_mark
        FROM query_table(chosen_events) AS e
        JOIN runs AS r USING (run_id)
        LEFT JOIN _step_kinds AS k ON k.run_id = e.run_id AND e.step BETWEEN first_step AND last_step
        LEFT JOIN named AS n ON n.run_id = e.run_id AND n.step = e.step
        WHERE (e.step IS NOT NULL OR is_call)
            AND category NOT IN ('gpu_user_annotation', 'cuda_sync', 'cpu_instant_event', 'overhead', 'trace')
            AND (category <> 'python_function' OR ts_ns = begin_ns)
    ),
    marks AS (
        SELECT
            run_id, step, any_value(kind) AS kind, true AS is_marked,
            coalesce(min(ts_ns) FILTER (is_workload), min(ts_ns)) AS start_ns,
            coalesce(max(end_ns) FILTER (is_workload), max(end_ns)) AS end_ns,
            coalesce(sum(end_ns - ts_ns) FILTER (is_workload), max(end_ns - ts_ns)) / 1e3 AS host_us
        FROM traced
        WHERE is_mark AND step IS NOT NULL
        GROUP BY run_id, step
    ),
    placed AS (
        SELECT
            run_id, step, any_value(kind) AS kind, false AS is_marked,
            min(ts_ns) AS start_ns,
            coalesce(max(end_ns) FILTER (NOT is_device), max(end_ns)) AS end_ns,
            (max(end_ns) FILTER (NOT is_device) - min(ts_ns) FILTER (NOT is_device)) / 1e3 AS host_us
        FROM traced
        WHERE is_import AND step IS NOT NULL
            AND step_method IN ('sequence', 'window') AND (is_device OR call IS NOT NULL)
        GROUP BY run_id, step
    ),
    intervals AS (
        SELECT
            run_id, step, category, ts_ns, end_ns, launch_id, is_collective,
            max(end_ns) OVER before AS covered_ns,
            max(end_ns) FILTER (NOT is_collective) OVER before AS worked_ns
        FROM traced
        WHERE is_device AND step IS NOT NULL
        WINDOW before AS (
            PARTITION BY run_id, step ORDER BY ts_ns ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        )
    ),
    work AS (
        SELECT
            run_id,
            step,
            min(ts_ns) AS first_ns,
            max(end_ns) AS last_ns,
            sum(greatest(0, end_ns - greatest(ts_ns, coalesce(covered_ns, ts_ns)))) / 1e3 AS busy_us,
            coalesce(sum(greatest(0, end_ns - greatest(ts_ns, coalesce(worked_ns, ts_ns))))
                FILTER (NOT is_collective), 0) / 1e3 AS compute_us,
            count(*) FILTER (category = 'kernel') AS kernels
        FROM intervals
        GROUP BY run_id, step
    ),
    leads AS (
        SELECT
            w.run_id, w.step,
            median(w.ts_ns - c.ts_ns) / 1e3 AS lead_us,
            median(w.ts_ns - c.end_ns) / 1e3 AS queue_us
        FROM intervals AS w
        JOIN traced AS c ON c.is_call AND c.run_id = w.run_id AND c.event_id = w.launch_id
        GROUP BY w.run_id, w.step
    ),
    bounded AS (
        SELECT
            m.*, w.* EXCLUDE (run_id, step),
            greatest(m.end_ns, coalesce(w.last_ns, m.end_ns)) AS finished_ns,
            lead({'step': m.step, 'start_ns': m.start_ns, 'first_ns': w.first_ns})
                OVER (PARTITION BY m.run_id ORDER BY m.step) AS next
        FROM (FROM marks UNION ALL BY NAME FROM placed) AS m
        LEFT JOIN work AS w USING (run_id, step)
    ),
    lasting AS (
        SELECT
            *,
            coalesce(next.step = step + 1 AND next.start_ns - finished_ns <= (finished_ns - start_ns) / 2, false) AS goes_on,
            CASE
                WHEN goes_on THEN greatest(next.start_ns - start_ns, coalesce(next.first_ns - first_ns, 0))
                ELSE finished_ns - start_ns
            END / 1e3 AS wall_us
        FROM bounded
    ),
    calls AS (
        SELECT
            e.run_id,
            e.step,
            (min(e.ts_ns) FILTER (e.category = 'cpu_op') - any_value(m.start_ns)) / 1e3 AS first_operation_gap_us,
            count(*) FILTER (call = 'kernel') AS kernel_launches,
            count(*) FILTER (call = 'memcpy') AS memcpy_launches,
            count(*) FILTER (call = 'memset') AS memset_launches,
            count(*) FILTER (call = 'graph') AS graph_launches
        FROM (FROM traced WHERE NOT is_device) AS e
        JOIN bounded AS m ON m.run_id = e.run_id AND m.step = e.step AND e.ts_ns >= m.start_ns
        GROUP BY e.run_id, e.step
    )
    SELECT
        run_id,
        step,
        m.kind,
        m.start_ns,
        CASE WHEN m.is_marked THEN m.end_ns ELSE m.finished_ns END AS end_ns,
        CASE WHEN m.goes_on THEN m.next.start_ns ELSE m.end_ns END AS host_end_ns,
        m.wall_us,
        CASE
            WHEN NOT m.is_marked AND m.goes_on AND m.host_us IS NOT NULL THEN (m.next.start_ns - m.start_ns) / 1e3
            ELSE m.host_us
        END AS host_us,
        m.busy_us,
        m.compute_us,
        CASE WHEN m.busy_us < m.wall_us THEN m.busy_us / m.wall_us WHEN m.busy_us > 0 THEN 1 END AS busy_frac,
        CASE WHEN m.busy_us IS NOT NULL THEN greatest(0, m.wall_us - m.busy_us) END AS idle_us,
        l.lead_us,
        l.queue_us,
        coalesce(c.kernel_launches, 0) AS kernel_launches,
        coalesce(c.memcpy_launches, 0) AS memcpy_launches,
        coalesce(c.memset_launches, 0) AS memset_launches,
        coalesce(c.graph_launches, 0) AS graph_launches,
        coalesce(m.kernels, 0) AS kernels,
        c.first_operation_gap_us
    FROM lasting AS m
    LEFT JOIN calls AS c USING (run_id, step)
    LEFT JOIN leads AS l USING (run_id, step)
);

CREATE MACRO _steps_of(chosen) AS TABLE FROM _steps_among(chosen, 'events');

CREATE VIEW steps AS FROM _steps_of('stg_runs');

COMMENT ON VIEW steps IS 'One row a run and step of its trace: host time, busy device time, launches by kind.';
COMMENT ON COLUMN steps.step IS 'Number of the step.';
COMMENT ON COLUMN steps.kind IS
    'Kind of the step in an imported trace: its annotation, or a letter for a sequence of kernels; NULL for sweeps.';
COMMENT ON COLUMN steps.start_ns IS 'Where the step begins on the host; nanoseconds.';
COMMENT ON COLUMN steps.end_ns IS
    'Where its annotation ends; of a step without one, where the last of its events ends; nanoseconds.';
COMMENT ON COLUMN steps.host_end_ns IS
    'Where the host turns to something else: the start of the next step where it follows, else the end of the annotation
    or of the last launch; nanoseconds.';
COMMENT ON COLUMN steps.wall_us IS
    'Until the next step, where it follows: on the host or between first device events, the longer; else until all of the
    step has ended. With the profiler''s own cost; microseconds.';
COMMENT ON COLUMN steps.host_us IS
    'Host time of the step''s annotation, with the profiler''s own cost; without one, until the next step''s first launch,
    or until its own last call; NULL without calls; microseconds.';
COMMENT ON COLUMN steps.busy_us IS
    'Union of the device intervals that the step launched; NULL without device work; microseconds.';
COMMENT ON COLUMN steps.compute_us IS 'The same without collectives, which wait for other devices; microseconds.';
COMMENT ON COLUMN steps.busy_frac IS 'busy_us / wall_us, at most 1.';
COMMENT ON COLUMN steps.idle_us IS 'wall_us - busy_us, at least 0; microseconds.';
COMMENT ON COLUMN steps.lead_us IS
    'Median from the start of a launch to the start of what it launched; NULL without launches; microseconds.';
COMMENT ON COLUMN steps.queue_us IS
    'Median from the end of a launch to the start of what it launched: above a few microseconds it was queued.';
COMMENT ON COLUMN steps.kernel_launches IS 'Host calls that launch one kernel.';
COMMENT ON COLUMN steps.memcpy_launches IS 'Host calls that start a copy.';
COMMENT ON COLUMN steps.memset_launches IS 'Host calls that start a fill.';
COMMENT ON COLUMN steps.graph_launches IS 'Host calls that launch a graph.';
COMMENT ON COLUMN steps.kernels IS 'Kernels that ran for the step.';
COMMENT ON COLUMN steps.first_operation_gap_us IS
    'From the start of the annotation to its first operation; microseconds.';
