-- Grain: one row a run with steps: its typical step, with the columns of `steps`.
WITH sweeps AS (
    SELECT run_id
    FROM stg_runs
    SEMI JOIN chosen_runs USING (run_id)
    WHERE source IS DISTINCT FROM 'import'
)
SELECT s.*, t.steps
FROM (
    FROM _steps_among('sweeps', 'near_events')
    UNION ALL BY NAME
    FROM spans SEMI JOIN (SELECT run_id FROM stg_runs WHERE source = 'import') USING (run_id)
) AS s
JOIN typical_steps AS t USING (run_id, step)
