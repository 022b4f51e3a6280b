-- Grain: one row a point and environment whose warm, ok runs all launch the same, as far as they tell.
-- Points of a group differ in numbers alone (size, batch, numeric params) and launch the same: they share an issue time.
CREATE TABLE _launch_points AS
SELECT
    point_id,
    environment_id,
    any_value(concat_ws('|',
        launch_sequence, workload, dtype, compile, dynamic, warmup, device, _without_numbers(params)
    )) AS launch_group
FROM stg_runs
WHERE status = 'ok' AND warmup IS DISTINCT FROM 'false' AND launch_sequence IS NOT NULL
GROUP BY point_id, environment_id
HAVING min(launch_sequence) = max(launch_sequence);

COMMENT ON TABLE _launch_points IS 'One row a point and environment whose runs all launch the same: what it launches.';
COMMENT ON COLUMN _launch_points.launch_group IS 'Launch sequence and settings; points of one group share an issue time.';
