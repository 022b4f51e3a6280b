-- Private: what tells the points of one workload apart beside the columns.
CREATE TEMP TABLE settings AS
WITH known AS (SELECT DISTINCT point_id, run_id, workload FROM runs),
varying AS (
    SELECT workload, axis
    FROM known JOIN axes USING (run_id)
    WHERE axis NOT IN ('workload', 'size', 'dtype', 'batch', 'compile', 'dynamic', 'warmup', 'device', 'schedule')
    GROUP BY workload, axis
    HAVING count(DISTINCT "value") > 1
),
words AS (
    SELECT DISTINCT point_id, axis || '=' || "value" AS word
    FROM known JOIN axes USING (run_id) SEMI JOIN varying USING (workload, axis)
)
SELECT point_id, string_agg(word, ' ' ORDER BY word) AS settings FROM words GROUP BY point_id;
