-- Grain: one row a run with steps: what its typical step holds besides events of each sort.
SELECT
    run_id,
    count(shapes) AS shaped,
    count(grid) AS grids
FROM step_events
GROUP BY run_id
