-- Grain: one row an event of a run's typical step or of the next, device work included.
SELECT e.*, e.ts_ns + e.dur_ns AS end_ns, _is_runtime(e.category) AS is_call, e.step = t.step AS is_typical
FROM events AS e
JOIN typical_steps AS t ON t.run_id = e.run_id AND e.step BETWEEN t.step AND t.step + 1
