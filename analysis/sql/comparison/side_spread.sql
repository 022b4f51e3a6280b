-- Grain: one row an environment and quantity of which the store holds repeated runs.
-- How much one run differs from the next: `_spread` for times; for seconds of compilation and peaks of memory the same
-- figure, over points that were measured more than once. A table: it is made of all runs of the store but those of the
-- comparison's other side, before the store is narrowed to one side.
CREATE OR REPLACE TEMP TABLE side_spread AS
WITH logs AS (
    SELECT environment_id, quantity, point_id, ln("value") AS log
    FROM (
        SELECT environment_id, point_id, unnest([
            {'quantity': 'compile', 'value': compile_s}, {'quantity': 'memory', 'value': peak_bytes}
        ], recursive := true)
        FROM stg_runs
        WHERE status = 'ok'
    )
    WHERE "value" > 0
),
deviations AS (
    SELECT
        environment_id, quantity,
        log - avg(log) OVER runs_of_point AS far,
        1 - 1 / count(*) OVER runs_of_point AS share
    FROM logs
    WINDOW runs_of_point AS (PARTITION BY environment_id, quantity, point_id)
)
SELECT environment_id, quantity, sd_frac, dof FROM _spread WHERE sd_frac IS NOT NULL
UNION ALL
SELECT environment_id, quantity, sqrt(sum(far * far) / sum(share)), round(sum(share))::BIGINT AS dof
FROM deviations
WHERE share > 0
GROUP BY environment_id, quantity
HAVING dof >= 3;

COMMENT ON TABLE side_spread IS
    'One row an environment and quantity that was measured repeatedly: how much runs differ.';
COMMENT ON COLUMN side_spread.environment_id IS 'Where the runs were measured.';
COMMENT ON COLUMN side_spread.quantity IS
    'wall, wall by the host, issue, device, ...: as relation _spread names them; compile; memory.';
COMMENT ON COLUMN side_spread.sd_frac IS 'Standard deviation of the logarithm of one run about its point.';
COMMENT ON COLUMN side_spread.dof IS 'Degrees of freedom that it rests on, 3 or more.';
