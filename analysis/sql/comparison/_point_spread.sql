-- Grain: one row a point, environment and time of which the store holds at least three ok runs, of the side or others.
-- A few points are restless: their runs differ more than those of their kind, since a library chooses among kernels, or
-- a point lies near a limit. A table, of the same runs as side_spread, the side's own apart from all others.
CREATE OR REPLACE TEMP TABLE _point_spread AS
SELECT point_id, environment_id, quantity, max(sd) AS point_sd
FROM (
    SELECT
        regexp_replace(point_id, '^own:', '') AS point_id, environment_id, quantity, stddev_samp(ln("value")) AS sd
    FROM _run_times AS t
    WHERE "value" > 0
    GROUP BY t.point_id, environment_id, quantity
    HAVING count(*) >= 3
)
GROUP BY point_id, environment_id, quantity;

COMMENT ON TABLE _point_spread IS 'One row a point, environment and time with three ok runs or more: how they differ.';
COMMENT ON COLUMN _point_spread.point_sd IS 'Standard deviation of the logarithm of its runs.';
