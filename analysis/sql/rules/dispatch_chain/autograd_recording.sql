-- Rule: Autograd records a graph that nobody runs backward.
-- Topic: dispatch chain
-- Severity: costs
-- Needs: operations, step
-- Otherwise: the operations carry no sequence numbers of autograd: gradients were off, or the trace does not hold
--     them
-- Means: Every operation on a tensor that requires a gradient makes a node for the backward pass, which costs host
--     time, and keeps the tensors that the node needs, which costs memory. The number that autograd counts up with
--     each node stands in the trace; told where it rises within a step, and no backward pass is anywhere in the
--     trace. Whether one follows outside of the window cannot be seen.
-- Cure: Run what needs no gradients under torch.inference_mode() or torch.no_grad().
WITH numbered AS (
    SELECT
        run_id, pid, tid, event_id, name,
        TRY_CAST(regexp_extract(args, '"Sequence number": ?(\d+)', 1) AS BIGINT) AS number
    FROM step_events
    WHERE category = 'cpu_op' AND contains(args, '"Sequence number"')
),
firsts AS (
    FROM numbered
    WHERE number IS NOT NULL
    QUALIFY row_number() OVER (PARTITION BY run_id, pid, tid, number ORDER BY event_id) = 1
),
-- the numbers of a thread are its own: between the least and the largest lies a node for each
threads AS (
    SELECT
        run_id, pid, tid,
        max(number) - min(number) AS nodes,
        arg_min(name, event_id) AS name,
        list(event_id ORDER BY event_id) AS event_ids
    FROM firsts
    GROUP BY run_id, pid, tid
),
recorded AS (
    SELECT
        run_id,
        sum(nodes)::BIGINT AS nodes,
        arg_max({'name': name, 'ids': event_ids}, nodes) AS top
    FROM threads
    GROUP BY run_id
),
backward AS (
    SELECT run_id, count(*) AS operations
    FROM (FROM events WHERE category = 'cpu_op'
        AND (starts_with(name, 'autograd::engine') OR contains(name, 'Backward')))
    SEMI JOIN (FROM recorded WHERE nodes > 0) USING (run_id)
    GROUP BY run_id
)
SELECT
    r.run_id,
    r.nodes > 0 AND b.operations IS NULL AS fired,
    CASE
        WHEN r.nodes = 0 THEN 'autograd records no node in the step'
        ELSE 'autograd records at least ' || _counted(r.nodes, 'node') || ' in the step, and the trace holds '
            || coalesce(_counted(b.operations, 'operation'), 'none') || ' of a backward pass'
    END AS reason,
    'Autograd records at least ' || _counted(r.nodes, 'node') || ' in a step, from ' || top.name
        || ' on, and no backward pass is in the trace.' AS sentence,
    CASE WHEN r.nodes > 0 THEN top.ids[:8] ELSE [] END AS event_ids,
    {'nodes': r.nodes, 'backward_operations': coalesce(b.operations, 0)} AS figures
FROM recorded AS r
JOIN subjects AS s USING (run_id)
LEFT JOIN backward AS b USING (run_id)
WHERE s.status = 'ok'
