-- Rule: Views take host time, though they launch nothing.
-- Topic: dispatch chain
-- Severity: costs
-- Needs: operations, step, accelerator
-- Otherwise: no view is taken in the step
-- Means: A transpose or reshape changes how a tensor is read, no data moves. But each is an operation of the dispatcher, and
--     costs the host about a microsecond or more. A tenth of the step's host time is told, where the host binds.
-- Cure: Take the view once outside the loop, or let torch.compile drop it.
WITH names(name) AS (
    SELECT unnest([
        'aten::t', 'aten::numpy_T', 'aten::mT', 'aten::adjoint', 'aten::transpose', 'aten::view', 'aten::view_as',
        'aten::_unsafe_view', 'aten::_reshape_alias', 'aten::reshape', 'aten::expand', 'aten::expand_as',
        'aten::as_strided', 'aten::permute', 'aten::squeeze', 'aten::unsqueeze', 'aten::slice', 'aten::select',
        'aten::narrow', 'aten::unbind', 'aten::split', 'aten::chunk', 'aten::detach', 'aten::alias', 'aten::movedim',
        'aten::swapaxes', 'aten::flatten', 'aten::unflatten'
    ])
),
viewing AS (
    SELECT run_id, event_id, name, parent_id, dur_ns
    FROM step_events
    SEMI JOIN names USING (name)
    WHERE category = 'cpu_op'
),
-- reshape and flatten may copy: then a copy lies inside, and they are no views
copying AS (
    SELECT run_id, parent_id
    FROM step_events
    WHERE name IN ('aten::clone', 'aten::copy_')
),
views AS (
    SELECT
        m.run_id,
        count(*) AS views,
        sum(dur_ns) / 1e3 AS total_us,
        string_agg(DISTINCT name, ', ' ORDER BY name) AS names,
        list(event_id ORDER BY dur_ns DESC)[:8] AS event_ids
    FROM viewing AS m
    ANTI JOIN copying AS c ON c.run_id = m.run_id AND c.parent_id = m.event_id
    ANTI JOIN viewing AS o ON o.run_id = m.run_id AND o.event_id = m.parent_id
    GROUP BY m.run_id
)
SELECT
    v.run_id,
    total_us >= t.host_us / 10 AND coalesce(s.bound = 'overhead-bound', false) AS fired,
    _counted(views, 'view') || ', ' || _percent(total_us / t.host_us) || ' of the step''s host time (limit 10 %), bound: '
        || coalesce(s.bound, 'unknown') AS reason,
    _counted(views, 'view') || ' a step (' || names || ') ' || CASE WHEN views = 1 THEN 'takes ' ELSE 'take ' END || _time(total_us) || ' of the host under the profiler, '
        || _percent(total_us / t.host_us) || ' of the step, and no time of the device.' AS sentence,
    v.event_ids,
    {'views': views, 'host_us': total_us} AS figures
FROM views AS v
JOIN subjects AS s USING (run_id)
JOIN typical AS t USING (run_id)
WHERE t.host_us > 0 AND NOT s.is_cpu
