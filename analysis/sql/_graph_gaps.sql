-- Grain: one row an environment and half of its points, chosen by the hash of the point.
-- What a launch by the host costs the device beyond a launch inside a graph: median of (device - replay) / launches over
-- the points of the *other* half, so that no point's prediction rests on its own replay.
CREATE VIEW _graph_gaps AS
SELECT
    environment_id,
    1 - md5_number_lower(point_id) % 2 AS half,
    median((device_us - replay_us) / launches) AS graph_gap_us
FROM bounds
WHERE device_method = 'held' AND launches > 0 AND device_us IS NOT NULL AND replay_us IS NOT NULL
GROUP BY ALL;

COMMENT ON VIEW _graph_gaps IS
    'One row an environment and half of its points: device time of a launch beyond one in a graph, from the other half.';
COMMENT ON COLUMN _graph_gaps.half IS 'Half of the points for which it is meant: md5_number_lower(point_id) % 2.';
COMMENT ON COLUMN _graph_gaps.graph_gap_us IS
    'Median of (device - replay) / launches over the points of the other half; microseconds.';
