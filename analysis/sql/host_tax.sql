-- Grain: one row an ok run and part of the host's time.
-- What the host does while it issues a step. The profile tells the shares: self times of the host's events in the typical
-- step (as for findings: median host time, without the first where there are others), by kind. The issue time, taken
-- without a profiler, is split by these shares, so that the parts add up to it. Calls that wait for the device are no
-- issue time. While another thread works for the step (that of autograd), the first one waits: this counts once.
CREATE VIEW host_tax AS
WITH runs AS (
    SELECT
        run_id, workload, source = 'import' IS true AS is_import, device = 'cpu' AS is_cpu, issue_us, reasons,
        profile_reason, _fact(step_facts, 'method') AS step_method, _fact(step_facts, 'annotation') AS annotation
    FROM stg_runs
    WHERE status = 'ok'
),
marks AS (
    SELECT e.run_id, e.step, e.event_id, e.pid, e.tid, e.ts_ns, e.ts_ns + e.dur_ns AS end_ns
    FROM events AS e
    JOIN runs AS r USING (run_id)
    WHERE e.category = 'user_annotation' AND e.step IS NOT NULL AND CASE
        WHEN NOT is_import THEN e.name = workload
        WHEN step_method = 'profiler' THEN starts_with(e.name, 'ProfilerStep#')
        ELSE e.name = annotation
    END
    QUALIFY row_number() OVER (PARTITION BY e.run_id, e.step ORDER BY e.dur_ns DESC, e.event_id) = 1
),
typical AS MATERIALIZED (
    SELECT *
    FROM (
        SELECT
            *,
            count(*) OVER (PARTITION BY run_id) AS steps,
            row_number() OVER (PARTITION BY run_id ORDER BY step) AS place
        FROM marks
    )
    QUALIFY row_number() OVER (PARTITION BY run_id ORDER BY place = 1, end_ns - ts_ns, step) = greatest(1, steps // 2)
),
host AS MATERIALIZED (
    SELECT
        e.run_id, e.event_id, e.parent_id, e.name, e.category, e.dur_ns,
        (e.pid, e.tid) IS DISTINCT FROM (t.pid, t.tid) AS is_elsewhere
    FROM events AS e
    JOIN typical AS t ON t.run_id = e.run_id AND t.step = e.step AND e.ts_ns >= t.ts_ns AND e.ts_ns + e.dur_ns <= t.end_ns
    WHERE NOT e.is_device AND e.category NOT IN ('gpu_user_annotation', 'cuda_sync', 'overhead', 'trace', 'cpu_instant_event')
        AND (e.category <> 'user_annotation' OR e.event_id = t.event_id OR NOT starts_with(e.name, 'ProfilerStep#'))
),
inside AS (
    SELECT run_id, parent_id, sum(dur_ns) AS dur_ns
    FROM host
    WHERE parent_id IS NOT NULL
    GROUP BY run_id, parent_id
),
sorted AS (
    SELECT
        h.run_id,
        h.is_elsewhere,
        CASE
            WHEN _is_runtime(category) THEN CASE
                WHEN _is_waiting(name) THEN 'wait'
                WHEN regexp_matches(name, '^(cuda|hip|cu)(Host|Mem)?(Malloc|Free|Alloc)') THEN 'allocation'
                WHEN regexp_matches(name, '(?i)launch|memcpy|memset|occupancy') THEN 'launch'
                ELSE 'other'
            END
            WHEN starts_with(name, '## Call CompiledFxGraph') THEN 'other'
            WHEN category IN ('user_annotation', 'python_function') THEN 'python'
            WHEN starts_with(name, 'TorchDynamo Cache Lookup') THEN 'guards'
            WHEN regexp_matches(name, '^(Torch-Compiled Region|Pregraph bytecode|AOTDispatcher|CompiledFunction$)')
                THEN 'other'
            WHEN regexp_matches(name, '^autograd::|Backward\d*$') THEN 'autograd'
            WHEN regexp_matches(name, '^aten::(new_)?(empty|resize_)') THEN 'allocation'
            ELSE 'dispatch'
        END AS part,
        greatest(0, h.dur_ns - coalesce(i.dur_ns, 0)) AS self_ns
    FROM host AS h
    LEFT JOIN inside AS i ON i.run_id = h.run_id AND i.parent_id = h.event_id
),
spent AS (
    SELECT run_id, part, sum(self_ns) / 1e3 AS self_us, sum(self_ns) FILTER (is_elsewhere) / 1e3 AS elsewhere_us
    FROM sorted
    GROUP BY run_id, part
),
parts AS (
    SELECT
        r.*,
        p.part,
        p."order",
        t.step,
        CASE WHEN t.step IS NOT NULL THEN greatest(0, coalesce(s.self_us, 0)
            - CASE WHEN p.part = 'python' THEN coalesce(sum(s.elsewhere_us) OVER of_run, 0) ELSE 0 END) END AS profiled_us
    FROM runs AS r
    CROSS JOIN (VALUES ('python', 1), ('guards', 2), ('dispatch', 3), ('allocation', 4), ('autograd', 5), ('launch', 6),
        ('other', 7)) AS p (part, "order")
    LEFT JOIN typical AS t ON t.run_id = r.run_id
    LEFT JOIN spent AS s ON s.run_id = r.run_id AND s.part = p.part
    WINDOW of_run AS (PARTITION BY r.run_id)
),
shared AS (
    SELECT
        *,
        sum(profiled_us) OVER (PARTITION BY run_id) AS host_us,
        CASE WHEN NOT is_import AND NOT coalesce(is_cpu, false) THEN issue_us / nullif(host_us, 0) END AS scale
    FROM parts
)
SELECT
    run_id, part, profiled_us,
    profiled_us / nullif(host_us, 0) AS share,
    profiled_us * scale AS us,
    scale,
    CASE
        WHEN step IS NULL THEN CASE
            WHEN is_import THEN 'Unknown: no annotation in the trace marks its steps.'
            ELSE 'Unknown: ' || coalesce('there is no trace: ' || profile_reason, 'no trace with a marked step is in the store')
                || '.'
        END
        ELSE 'Self times in step ' || step || ', ' || _time(host_us) || ' under the profiler' || CASE
            WHEN scale IS NOT NULL THEN ', times ' || _number(scale) || ' to make the ' || _time(issue_us)
                || ' that a step takes to issue without it; the profiler lengthens short events most, so the shares are rough.'
            WHEN is_import THEN '; nothing was timed without it, so they cannot be scaled.'
            WHEN is_cpu THEN '; on the CPU the host does the work itself, so overhead and work are one in them.'
            ELSE '; the issue time without it is unknown' || coalesce(' (' || _fact(reasons, 'issue_us') || ')', '')
                || ', so they cannot be scaled.'
        END
    END AS basis
FROM shared
ORDER BY run_id, "order";

COMMENT ON VIEW host_tax IS 'One row an ok run and part: where the host''s time goes while it issues a step.';
COMMENT ON COLUMN host_tax.part IS
    'python (the step''s own code, between operations), guards (does the compiled code still fit?), dispatch (operations),
    allocation, autograd, launch (calls that start device work), other (wrappers of compiled code, other calls).';
COMMENT ON COLUMN host_tax.profiled_us IS
    'Self time of the part in the typical step, with the profiler''s own cost; NULL = no step was found; microseconds.';
COMMENT ON COLUMN host_tax.share IS 'profiled_us over that of all parts.';
COMMENT ON COLUMN host_tax.us IS
    'The same share of issue_us, an estimate; NULL where the issue time is unknown, in imports and on the CPU; microseconds.';
COMMENT ON COLUMN host_tax."scale" IS 'us / profiled_us: issue time without a profiler over the host time of the profile.';
COMMENT ON COLUMN host_tax.basis IS 'What the figures rest on, or why they are NULL.';
