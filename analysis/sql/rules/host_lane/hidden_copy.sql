-- Rule: The device copies memory to itself although nobody wrote a copy.
-- Topic: host lane
-- Severity: costs
-- Needs: trace, device work, step
-- Otherwise: no copy from the device to itself was launched in the step
-- Means: A library that needs its input elsewhere or in another order copies it by itself: an operand that is not
--     contiguous, inputs of a CUDA graph. (The bias of aten::addmm is the matter of addmm_bias_copy.) Such a copy moves
--     bytes and computes nothing. What is called copy_, clone, contiguous, cat, to or the like outermost was written by
--     somebody.
-- Cure: Give the operation its input in the form that it takes as it is (contiguous, a 1-D bias, static inputs of a
--     graph), or write into the place where it is needed.
-- See: docs/article.md#12-did-the-launches-halve
WITH copies AS (
    SELECT w.run_id, w.event_id, w.dur_ns, w.bytes, w.op_name, w.call_name, w.launch_id, w.call_pid, w.call_tid,
        w.call_ts_ns
    FROM work AS w
    JOIN subjects AS s USING (run_id)
    WHERE s.status = 'ok' AND w.category = 'gpu_memcpy' AND regexp_matches(w.name, 'DtoD|Device -> Device')
),
roots AS (
    FROM step_events
    WHERE category = 'cpu_op' AND parent_category IS DISTINCT FROM 'cpu_op'
),
rooted AS (
    SELECT
        c.*,
        CASE WHEN r.end_ns >= c.call_ts_ns THEN r.name END AS root_name,
        CASE
            WHEN c.call_ts_ns IS NULL THEN NULL
            ELSE NOT coalesce(regexp_matches(root_name,
                '^aten::(copy_?|clone|contiguous|cat|concat|stack|to|_to_copy|_foreach_copy_|index.*|repeat.*|roll)$'
                ), false)
                AND op_name IS NOT NULL AND NOT regexp_matches(op_name, '^aten::_?(addmm|baddbmm)')
        END AS is_hidden
    FROM copies AS c
    ASOF LEFT JOIN roots AS r ON r.run_id = c.run_id AND r.pid = c.call_pid AND r.tid = c.call_tid
        AND r.ts_ns <= c.call_ts_ns
),
judged AS (
    SELECT
        run_id,
        count(*) AS copies,
        count(*) FILTER (is_hidden) AS hidden,
        sum(dur_ns) FILTER (is_hidden) / 1e3 AS hidden_us,
        sum(bytes) FILTER (is_hidden) AS hidden_bytes,
        max_by(op_name, dur_ns) FILTER (is_hidden) AS op_name,
        max_by(contains(call_name, 'GraphLaunch'), dur_ns) FILTER (is_hidden) AS by_graph,
        max_by(root_name, dur_ns) FILTER (is_hidden) AS root_name,
        list_slice(list(event_id ORDER BY dur_ns DESC) FILTER (is_hidden), 1, 8) AS event_ids
    FROM rooted
    GROUP BY run_id
    HAVING count(is_hidden) > 0
)
SELECT
    j.run_id,
    hidden > 0 AS fired,
    'copies from the device to itself in the step: ' || copies
        || ', of which nobody wrote, biases of aten::addmm apart: ' || hidden AS reason,
    CASE WHEN by_graph THEN 'A graph launched in ' ELSE '' END || op_name
        || CASE WHEN root_name <> op_name THEN ' in ' || root_name ELSE '' END
        || ' makes the device copy ' || coalesce(_bytes(hidden_bytes), 'memory') || ' to itself, '
        || CASE WHEN hidden = 1 THEN 'once' ELSE hidden || ' times' END || ' a step: '
        || _time(hidden_us) || coalesce(', ' || _percent(hidden_us / t.busy_us) || ' of the device''s busy time', '')
        || ', and nobody wrote it.' AS sentence,
    coalesce(event_ids, []) AS event_ids,
    {'hidden_copies': hidden, 'hidden_us': hidden_us, 'hidden_bytes': hidden_bytes, 'busy_us': t.busy_us} AS figures
FROM judged AS j
JOIN typical AS t USING (run_id)
