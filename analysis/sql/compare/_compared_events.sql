-- Grain: one row an event of a compared run that counts: those in a step, or all of a run in which nothing is.
-- A table: events are read once from their files.
CREATE OR REPLACE TEMP TABLE _compared_events AS
WITH chosen AS (
    SELECT
        run_id, event_id, parent_id, launch_id, name, category, dur_ns, is_device, step,
        CASE WHEN getvariable('compared_shapes') AND category = 'cpu_op' THEN shapes END AS shapes
    FROM events
    WHERE run_id IN (getvariable('compared_a'), getvariable('compared_b'))
),
counted AS (
    SELECT run_id, greatest(1, count(DISTINCT step)) AS steps, count(step) = 0 AS is_one_window
    FROM chosen
    GROUP BY run_id
)
SELECT e.*, c.steps, step IS NOT NULL OR c.is_one_window AS counts
FROM chosen AS e
JOIN counted AS c USING (run_id);

COMMENT ON TABLE _compared_events IS 'One row an event of a compared run.';
