-- Grain: one row a gap of a device in a run's typical step or right before the step behind it (see gaps).
-- is_inside: after the first device event of its step, else it lies between two steps.
WITH first_work AS (
    SELECT e.run_id, e.step, e.device, min(e.ts_ns) AS first_ns
    FROM gap_events AS e
    WHERE e.is_device AND e.step IS NOT NULL
    GROUP BY e.run_id, e.step, e.device
)
SELECT
    g.*,
    g.start_ns >= f.first_ns AS is_inside,
    g.step = t.step AS is_typical
FROM _gaps_among('gap_events') AS g
JOIN typical AS t USING (run_id)
LEFT JOIN first_work AS f ON f.run_id = g.run_id AND f.step = g.step AND f.device IS NOT DISTINCT FROM g.device
