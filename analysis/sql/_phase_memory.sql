-- Grain: one row a run and path of a phase whose memory was watched; the path of the whole step is empty.
-- A phase that comes several times in a step is one: its peak is the highest, its end that of the last time. A phase
-- lies in the latest one before it that has the name of its parent.
CREATE VIEW _phase_memory AS
WITH RECURSIVE listed AS (
    SELECT
        run_id,
        unnest(from_json(phase_memory, '[{
            "phase": "VARCHAR", "parent": "VARCHAR", "order": "BIGINT", "start_bytes": "BIGINT", "end_bytes": "BIGINT",
            "peak_bytes": "BIGINT", "holders_at_peak": "JSON", "holders_at_end": "JSON"
        }]'), recursive := true)
    FROM stg_memory
    WHERE phase_memory IS NOT NULL
),
numbered AS (
    SELECT *, row_number() OVER (PARTITION BY run_id ORDER BY "order") AS place
    FROM listed
    WHERE phase IS NOT NULL
),
parents AS (
    SELECT c.run_id, c.place, max(p.place) AS parent_place
    FROM numbered AS c
    JOIN numbered AS p ON p.run_id = c.run_id AND p.phase = c.parent AND p.place < c.place AND p.phase <> 'step'
    GROUP BY c.run_id, c.place
),
placed AS (
    SELECT n.*, CASE WHEN n.phase = 'step' AND n.parent IS NULL THEN [] ELSE [n.phase] END AS path
    FROM numbered AS n
    ANTI JOIN parents AS p USING (run_id, place)
    UNION ALL
    SELECT n.*, list_append(a.path, n.phase)
    FROM numbered AS n
    JOIN parents AS p USING (run_id, place)
    JOIN placed AS a ON a.run_id = p.run_id AND a.place = p.parent_place
)
SELECT
    run_id,
    path,
    min("order") AS "order",
    arg_min(start_bytes, place) AS start_bytes,
    arg_max(end_bytes, place) AS end_bytes,
    max(peak_bytes) AS peak_bytes,
    arg_max(holders_at_peak, (coalesce(peak_bytes, -1), -place)) AS holders_at_peak,
    arg_max(holders_at_end, place) AS holders_at_end
FROM placed
GROUP BY run_id, path;

COMMENT ON VIEW _phase_memory IS 'One row a run and path of a phase whose memory was watched.';
COMMENT ON COLUMN _phase_memory.path IS 'Names from the outermost phase to this one; empty for the whole step.';
