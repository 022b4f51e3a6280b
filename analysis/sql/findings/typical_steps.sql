-- Grain: one row a run with steps.
-- The typical step of a run, which stands for all of them where rules look at what a step is made of: the one of median
-- host time (device time, where the host has none) among the steps of the kind that takes most time, without the first
-- recorded one where there are others. steps: how many of that kind there are.
WITH kinds AS (
    SELECT run_id, kind
    FROM spans
    GROUP BY run_id, kind
    QUALIFY row_number() OVER (PARTITION BY run_id ORDER BY sum(wall_us) DESC NULLS LAST, kind) = 1
),
placed AS (
    SELECT
        s.*,
        count(*) OVER (PARTITION BY s.run_id) AS steps,
        row_number() OVER (PARTITION BY s.run_id ORDER BY s.step) AS place
    FROM spans AS s
    JOIN kinds AS k ON k.run_id = s.run_id AND k.kind IS NOT DISTINCT FROM s.kind
)
SELECT run_id, step, steps
FROM placed
QUALIFY row_number() OVER (PARTITION BY run_id ORDER BY place = 1, coalesce(host_us, busy_us), step)
    = greatest(1, steps // 2)
