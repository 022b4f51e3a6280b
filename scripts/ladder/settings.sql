-- Private: what tells the points of one workload apart beside the columns.
CREATE TEMP TABLE settings AS
WITH known AS (SELECT DISTINCT point_id, run_id, workload FROM runs),
of_workload AS (SELECT workload, count(DISTINCT run_id) AS runs FROM known GROUP BY workload),
varying AS ( -- an axis that some points do not have varies as well
    SELECT workload, axis
    FROM known JOIN axes USING (run_id) JOIN of_workload USING (workload)
    WHERE axis NOT IN ('workload', 'size', 'dtype', 'batch', 'compile', 'dynamic', 'warmup', 'device', 'schedule')
    GROUP BY workload, axis
    HAVING count(DISTINCT "value") > 1 OR count(DISTINCT run_id) < any_value(runs)
),
words AS (
    SELECT DISTINCT point_id, axis || '=' || "value" AS word
    FROM known JOIN axes USING (run_id) SEMI JOIN varying USING (workload, axis)
)
SELECT point_id, string_agg(word, ' ' ORDER BY word) AS settings FROM words GROUP BY point_id;
