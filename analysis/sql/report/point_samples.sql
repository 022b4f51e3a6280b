-- Grain: one row a raw sample of a run of point_runs, in the order taken.
SELECT run_id, quantity, "round", "position", "value"
FROM samples
WHERE run_id IN (FROM point_runs)
ORDER BY run_id, "position"
