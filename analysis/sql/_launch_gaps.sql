-- Grain: one row an environment with a point of held device time and a profile.
-- Device time that a launch costs beyond its kernel, seen on a device that never waits for its host: median of
-- (device - busy) / launches, at least 0.
CREATE VIEW _launch_gaps AS
SELECT environment_id, greatest(0, median((device_us - busy_us) / launches)) AS launch_gap_us
FROM points
WHERE device <> 'cpu' AND device_method = 'held' AND launches > 0 AND device_us IS NOT NULL AND busy_us IS NOT NULL
GROUP BY environment_id;

COMMENT ON VIEW _launch_gaps IS 'One row an environment: the measured gap on the device that a launch costs.';
COMMENT ON COLUMN _launch_gaps.launch_gap_us IS
    'Median of (device - busy) / launches over points with held device time; microseconds.';
