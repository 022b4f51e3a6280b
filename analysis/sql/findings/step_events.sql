-- Grain: one row an event of a run's typical step, its device work included.
-- self_ns: without the events inside it on the same thread.
WITH children AS (
    SELECT run_id, parent_id, sum(dur_ns) AS dur_ns
    FROM near_events
    WHERE is_typical AND parent_id IS NOT NULL
    GROUP BY run_id, parent_id
)
SELECT
    e.* EXCLUDE (is_typical),
    p.name AS parent_name,
    p.category AS parent_category,
    p.parent_id AS grandparent_id,
    greatest(0, e.dur_ns - coalesce(c.dur_ns, 0)) AS self_ns
FROM (FROM near_events WHERE is_typical) AS e
LEFT JOIN children AS c ON c.run_id = e.run_id AND c.parent_id = e.event_id
LEFT JOIN (FROM near_events WHERE is_typical AND NOT is_device) AS p ON p.run_id = e.run_id AND p.event_id = e.parent_id
