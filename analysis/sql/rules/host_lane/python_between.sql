-- Rule: Python itself takes much of the step, beside the operations that it calls.
-- Topic: host lane
-- Severity: costs
-- Needs: trace, stacks, step
-- Otherwise: the step holds no line of Python
-- Means: Time of the interpreter between operations: loops, attribute look-ups, hooks, building arguments. The
--     recording of stacks slows Python more than all else, so that its share is an upper limit: a quarter of the step
--     is let pass, and a step that is bound by its device as well.
-- Cure: Look at the line: move what does not change out of the loop, call one operation on a whole batch, or compile
--     the function (torch.compile).
WITH python AS (
    SELECT
        run_id,
        sum(self_us) AS python_us,
        sum(calls) AS calls,
        max_by({'name': name, 'us': self_us, 'calls': calls, 'id': longest_id}, self_us)
            FILTER (contains(name, '.py(') AND NOT regexp_matches(name,
                '(^|/)torch/(profiler|autograd/profiler|_ops|utils/_contextlib)')) AS line
    FROM operators
    WHERE category = 'python_function'
    GROUP BY run_id
),
judged AS (
    SELECT
        p.*, t.host_us, python_us / nullif(t.host_us, 0) AS frac, s.bound,
        coalesce(s.bound IN ('compute-bound', 'memory-bound', 'device-bound', 'communication-bound', 'input-bound'),
            false) AS is_elsewhere
    FROM python AS p
    JOIN typical AS t USING (run_id)
    JOIN subjects AS s USING (run_id)
    WHERE s.status = 'ok' AND t.host_us > 0
)
SELECT
    run_id,
    coalesce(frac > 0.25 AND NOT is_elsewhere, false) AS fired,
    'Python itself takes ' || _time(python_us) || ' of the step''s ' || _time(host_us) || ' of host time, '
        || _percent(frac)
        || ', under a profiler with stacks (limit 25 %)' || CASE WHEN is_elsewhere AND frac > 0.25 THEN '; but it is '
        || bound ELSE '' END AS reason,
    'Under a profiler with stacks Python itself takes ' || _time(python_us) || ' of the step''s ' || _time(host_us)
        || ' of host time'
        || coalesce(', most in ' || line.name || ' (' || _time(line.us) || ' in ' || _counted(line.calls, 'call')
        || ')', '') || '.' AS sentence,
    CASE WHEN line.id IS NULL THEN [] ELSE [line.id] END AS event_ids,
    {'python_us': python_us, 'host_us': host_us, 'calls': calls, 'line_us': line.us} AS figures
FROM judged
