-- Rule: Device work is launched as a graph.
-- Topic: device lane
-- Severity: explains
-- Needs: device work, calls, step
-- Otherwise: no graph is launched in the step
-- Means: One call starts all kernels and copies of a captured graph, without Python, dispatcher or a launch for each.
--     Operations are not seen in a replay: what a kernel belongs to stands in the capture only.
-- Cure: Nothing to mend. What else is launched beside the graph, such as copies into its static inputs, is worth a
--     look.
WITH launched AS (
    SELECT
        run_id, launch_id,
        any_value(call_name) AS call_name,
        any_value(call_dur_ns) AS call_ns,
        count(*) FILTER (category = 'kernel') AS kernels,
        count(*) FILTER (category <> 'kernel') AS others,
        sum(dur_ns) AS dur_ns
    FROM work
    WHERE contains(call_name, 'GraphLaunch')
    GROUP BY run_id, launch_id
),
graphs AS (
    SELECT
        run_id,
        any_value(call_name) AS call_name,
        sum(kernels) AS kernels,
        sum(others) AS others,
        sum(dur_ns) / 1e3 AS device_us,
        sum(call_ns) / 1e3 AS call_us,
        list(launch_id ORDER BY dur_ns DESC)[:8] AS event_ids
    FROM launched
    GROUP BY run_id
)
SELECT
    g.run_id,
    true AS fired,
    t.graph_launches || CASE WHEN t.graph_launches = 1 THEN ' graph is' ELSE ' graphs are' END
        || ' launched in the step' AS reason,
    t.graph_launches || ' x ' || g.call_name || ' a step, ' || _time(g.call_us) || ' of the host under the profiler, '
        || CASE WHEN t.graph_launches = 1 THEN 'starts ' ELSE 'start ' END || _counted(g.kernels, 'kernel')
        || CASE WHEN g.others = 0 THEN '' ELSE ' and ' || g.others || CASE WHEN g.others = 1 THEN ' copy or fill'
            ELSE ' copies and fills' END END
        || ' of together ' || _time(g.device_us) || CASE
            WHEN t.kernel_launches + t.memcpy_launches + t.memset_launches = 0 THEN '; nothing is launched beside it'
            ELSE '; beside that ' || _counted(t.kernel_launches, 'kernel') || ', '
                || t.memcpy_launches || CASE WHEN t.memcpy_launches = 1 THEN ' copy' ELSE ' copies' END || ' and '
                || _counted(t.memset_launches, 'fill') || ' are launched one by one'
        END || '.' AS sentence,
    g.event_ids,
    {'graphs': t.graph_launches, 'kernels': g.kernels, 'device_us': g.device_us, 'call_us': g.call_us} AS figures
FROM graphs AS g
JOIN typical AS t USING (run_id)
JOIN subjects AS s USING (run_id)
WHERE s.status = 'ok' AND t.graph_launches > 0
