-- Rule: Most of an operation's time lies in the operations that it calls.
-- Topic: summary
-- Severity: explains
-- Needs: operations, step
-- Otherwise: no operation of the step calls another
-- Means: Total time includes children, self time does not. The work is done, and launched, further down.
-- Cure: Look at the children: sort by self time.
WITH families AS (
    SELECT
        p.run_id, p.event_id, p.name,
        any_value(p.dur_ns) AS total_ns,
        any_value(p.self_ns) AS self_ns,
        max_by(c.name, c.dur_ns) AS child,
        max(c.dur_ns) AS child_ns
    FROM step_events AS p
    JOIN step_events AS c ON c.run_id = p.run_id AND c.parent_id = p.event_id
    WHERE p.category = 'cpu_op' AND c.category IN ('cpu_op', 'user_annotation')
    GROUP BY p.run_id, p.event_id, p.name
),
largest AS (
    SELECT *
    FROM families
    QUALIFY row_number() OVER (PARTITION BY run_id ORDER BY total_ns DESC, event_id) = 1
)
SELECT
    l.run_id,
    self_ns < total_ns / 5 AND child_ns > total_ns / 2 AS fired,
    name || ' takes ' || _time(total_ns / 1e3) || ' in total and ' || _time(self_ns / 1e3) || ' itself (limit 20 %), '
        || _time(child_ns / 1e3) || ' in its largest child (limit 50 %)' AS reason,
    'Of the ' || _time(total_ns / 1e3) || ' that ' || name || ' takes on the host under the profiler, '
        || _percent(1 - self_ns / total_ns) || ' lie in what it calls, most of it (' || _time(child_ns / 1e3) || ') in '
        || child || '.' AS sentence,
    [event_id] AS event_ids,
    {'total_us': total_ns / 1e3, 'self_us': self_ns / 1e3, 'child_us': child_ns / 1e3} AS figures
FROM largest AS l
WHERE total_ns > 0
