-- Rule: A library chooses its kernel at the call: it asks the device first, or launches by an extended call.
-- Topic: host lane
-- Severity: explains
-- Needs: trace, operations, device work, calls, step
-- Otherwise: no operation of the step is a product or a convolution that launches a kernel of its own
-- Means: Registers, shared memory and tile of a product depend on its shapes, so that the library asks how many blocks
--     fit (an occupancy query) or launches by an extended call or the driver's what its heuristic took from a cache. It
--     costs a little host time a call.
-- Cure: Nothing to cure; where the host binds, capture the step as a graph (mode=reduce-overhead), which chooses once.
-- See: docs/article.md#7-why-does-matmul-have-one-more-runtime-call-than-add
WITH heavy AS (
    SELECT
        run_id, op_id, any_value(op_name) AS op_name,
        any_value(call_name) AS call_name,
        bool_or(regexp_matches(call_name, '^cu[A-Z]|^hip(Ext)?Module|ExC$')) AS by_driver,
        max_by(name, dur_ns) AS kernel,
        max_by(launch_id, dur_ns) AS launch_id,
        max(call_dur_ns) / 1e3 AS launch_us
    FROM work
    WHERE category = 'kernel' AND launch_id IS NOT NULL AND NOT starts_with(name, 'triton_')
        AND regexp_matches(op_name,
            '^aten::(_?(scaled_|grouped_|int_)?(add|badd)?(mm|bmm)|mv|addmv|dot|linear|.*convolution.*)(_out)?$')
    GROUP BY run_id, op_id
),
queried AS (
    SELECT run_id, parent_id, count(*) AS queries, sum(dur_ns) / 1e3 AS query_us, any_value(name) AS query,
        max_by(event_id, dur_ns) AS query_id
    FROM step_events
    WHERE is_call AND contains(name, 'Occupancy')
    GROUP BY run_id, parent_id
),
judged AS (
    SELECT
        h.run_id,
        count(*) AS operations,
        count(*) FILTER (q.queries > 0) AS asking,
        count(*) FILTER (h.by_driver) AS driven,
        coalesce(sum(q.queries), 0)::BIGINT AS queries,
        coalesce(sum(q.query_us), 0) AS query_us,
        any_value(q.query) AS query,
        max_by(h.op_name, (h.by_driver OR q.queries > 0)::INT) AS op_name,
        any_value(h.call_name) FILTER (h.by_driver) AS driver_call,
        any_value(h.kernel) FILTER (h.by_driver OR q.queries > 0) AS kernel,
        sum(h.launch_us) FILTER (h.by_driver) AS driver_us,
        list_slice(list(coalesce(q.query_id, h.launch_id)) FILTER (h.by_driver OR q.queries > 0), 1, 8) AS event_ids
    FROM heavy AS h
    LEFT JOIN queried AS q ON q.run_id = h.run_id AND q.parent_id = h.op_id
    GROUP BY h.run_id
)
SELECT
    run_id,
    asking > 0 OR driven > 0 AS fired,
    'products and convolutions of the step: ' || operations || ', with an occupancy query before the launch: ' || asking
        || ', launched by an extended call: ' || driven AS reason,
    CASE
        WHEN asking > 0 THEN op_name || ' asks the device first, as do ' || asking || ' of the ' || operations
            || ' products and convolutions of the step: '
            || query || ', calls a step: ' || queries || ', ' || _time(query_us) || ' a step under the profiler.'
        ELSE op_name || ' launches ' || left(kernel, 100) || ' by ' || driver_call || ' (' || _time(driver_us)
            || ' a step under the profiler) and asks nothing first: its choice comes from the library''s cache.'
    END AS sentence,
    coalesce(event_ids, []) AS event_ids,
    {'operations': operations, 'queries': queries, 'query_us': query_us, 'driver_launch_us': driver_us} AS figures
FROM judged
