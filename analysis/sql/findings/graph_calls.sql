-- Grain: one row a run and step that calls graphs of torch.compile: their hashes in the trace.
SELECT run_id, step, list(DISTINCT hash ORDER BY hash) AS hashes, min(event_id) AS event_id
FROM (
    SELECT run_id, step, event_id, regexp_extract(name, 'CompiledFxGraph (\w+)', 1) AS hash
    FROM events
    SEMI JOIN chosen_runs USING (run_id)
    WHERE category = 'user_annotation' AND step IS NOT NULL AND starts_with(name, '## Call CompiledFxGraph')
)
GROUP BY run_id, step
