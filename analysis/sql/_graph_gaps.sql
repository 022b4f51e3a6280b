-- Grain: one row an environment, and one more for each half of its points, chosen by the hash of the point.
-- What a launch by the host costs the device beyond a launch inside a graph: median of (device - replay) / launches over
-- the points of the environment; that of a half over the points of the *other* half, so that no point's prediction
-- rests on its own replay.
CREATE VIEW _graph_gaps AS
WITH gaps AS (
    SELECT
        environment_id,
        1 - md5_number_lower(point_id) % 2 AS half,
        (device_us - replay_us) / launches AS gap_us
    FROM points
    WHERE device_method = 'held' AND launches > 0 AND device_us IS NOT NULL AND replay_us IS NOT NULL
)
SELECT environment_id, half, median(gap_us) AS graph_gap_us
FROM gaps
GROUP BY GROUPING SETS ((environment_id), (environment_id, half));

COMMENT ON VIEW _graph_gaps IS
    'One row an environment, and one for each half of its points: device time of a launch beyond one in a graph.';
COMMENT ON COLUMN _graph_gaps.half IS
    'Half of the points for which it is meant: md5_number_lower(point_id) % 2; NULL = all of the environment.';
COMMENT ON COLUMN _graph_gaps.graph_gap_us IS
    'Median of (device - replay) / launches over all points, for a half over those of the other half; microseconds.';
