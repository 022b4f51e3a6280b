-- Grain: one row an event of the run `table_run` (a variable) that torch.profiler's table counts.
-- Of the host these are operators, annotations, calls of the runtime and the profiler's own work; Python functions,
-- which with_stack adds, and a few helpers that torch hides are not. Of the device its work, and the shadows of
-- annotations.
-- parent_id: the innermost host event of these around it. The profiler's own work names no thread: it belongs to what
-- starts last of all that lasts while it does. is_repeat: the only child of an event of its name, which torch takes for
-- one call with it. is_outermost: no event of its row lies around it. shapes: where `table_shapes` asks for them.
CREATE OR REPLACE TEMP TABLE _table_events AS
WITH RECURSIVE traced AS MATERIALIZED (
    SELECT
        event_id, name, ts_ns, dur_ns, ts_ns + dur_ns AS end_ns, pid, tid, parent_id, launch_id,
        CASE
            WHEN category = 'gpu_user_annotation' THEN 'shadow'
            WHEN is_device THEN 'work'
            WHEN category = 'overhead' THEN 'profiler'
            WHEN category = 'cpu_op' THEN 'operator'
            WHEN category = 'user_annotation' THEN 'annotation'
            WHEN _is_runtime(category) THEN 'call'
            WHEN category = 'cpu_instant_event' AND name = '[memory]' THEN 'memory'
        END AS kind,
        CASE WHEN getvariable('table_shapes') THEN coalesce(shapes, '[]') ELSE '' END AS shapes,
        coalesce(kind, 'memory') = 'memory'
            OR name IN ('profiler::_record_function_enter', 'profiler::_record_function_enter_new',
                'profiler::_record_function_exit', 'aten::is_leaf', 'aten::output_nr', 'aten::_version') AS is_hidden,
        bytes, args
    FROM events
    WHERE run_id = getvariable('table_run')
),
climbing AS (
    SELECT event_id, parent_id AS above_id
    FROM traced
    WHERE kind NOT IN ('work', 'shadow', 'profiler') AND parent_id IS NOT NULL
    UNION ALL
    SELECT c.event_id, t.parent_id
    FROM climbing AS c
    JOIN traced AS t ON t.event_id = c.above_id
    WHERE t.is_hidden AND t.parent_id IS NOT NULL
),
nested AS (
    SELECT c.event_id, c.above_id
    FROM climbing AS c
    JOIN traced AS t ON t.event_id = c.above_id
    WHERE NOT t.is_hidden
    UNION ALL
    SELECT o.event_id, arg_max(t.event_id, (t.ts_ns, -t.end_ns, t.event_id))
    FROM (FROM traced WHERE kind = 'profiler') AS o
    JOIN (FROM traced WHERE kind IN ('operator', 'annotation', 'call') AND NOT is_hidden) AS t
        ON t.ts_ns <= o.ts_ns AND t.end_ns >= o.end_ns
    GROUP BY o.event_id
),
kept AS (
    SELECT
        t.* EXCLUDE (parent_id, name, pid, tid),
        CASE WHEN starts_with(t.name, 'ProfilerStep#') THEN 'ProfilerStep*' ELSE t.name END AS name,
        coalesce(above.pid, t.pid) AS pid,
        coalesce(above.tid, t.tid) AS tid,
        above_id AS parent_id,
        count(*) FILTER (NOT t.is_hidden) OVER (PARTITION BY above_id) AS siblings,
        above.name AS parent_name,
        above.shapes AS parent_shapes
    FROM traced AS t
    LEFT JOIN nested USING (event_id)
    LEFT JOIN traced AS above ON above.event_id = above_id
    WHERE NOT t.is_hidden OR t.kind = 'memory'
),
called AS (
    SELECT
        * EXCLUDE (siblings, parent_name, parent_shapes, shapes),
        coalesce(parent_id IS NOT NULL AND siblings = 1 AND parent_name = name AND kind <> 'memory', false)
            AS is_repeat,
        CASE WHEN is_repeat THEN parent_shapes ELSE shapes END AS shapes
    FROM kept
)
SELECT
    *,
    kind NOT IN ('work', 'shadow') AS is_host,
    coalesce(max(end_ns) OVER (
        PARTITION BY kind IN ('work', 'shadow'), kind = 'annotation', name, shapes, pid, tid
        ORDER BY ts_ns, end_ns DESC, event_id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    ) < end_ns, true) AS is_outermost
FROM called;

COMMENT ON TABLE _table_events IS 'One row an event that the profiler''s table counts.';
