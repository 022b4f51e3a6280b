-- Grain: one row an ok run and time (or margin) that it has.
-- A wall time differs between runs as the issue time does where the host binds the point, and as the device time does
-- elsewhere: the spread of the two is not one.
CREATE TABLE _run_times AS
WITH unfolded AS (
    SELECT
        point_id,
        environment_id,
        device <> 'cpu' AND median(issue_us) OVER runs_of_point > median(device_us) OVER runs_of_point AS host_binds,
        unnest([
            {'quantity': 'wall', 'value': wall_us, 'low': wall_us_low, 'high': wall_us_high},
            {'quantity': 'issue', 'value': issue_us, 'low': issue_us_low, 'high': issue_us_high},
            {'quantity': 'device', 'value': device_us, 'low': device_us_low, 'high': device_us_high},
            {'quantity': 'replay', 'value': replay_us, 'low': replay_us_low, 'high': replay_us_high},
            {'quantity': 'single', 'value': single_us, 'low': single_us_low, 'high': single_us_high},
            {'quantity': 'busy', 'value': busy_us, 'low': busy_us_low, 'high': busy_us_high},
            {'quantity': 'floor', 'value': floor_us, 'low': floor_us_low, 'high': floor_us_high},
            {'quantity': 'margin', 'value': margin, 'low': margin_low, 'high': margin_high}
        ], recursive := true)
    FROM stg_runs
    WHERE status = 'ok'
    WINDOW runs_of_point AS (PARTITION BY point_id, environment_id)
)
SELECT
    * EXCLUDE (host_binds) REPLACE (coalesce(low, "value") AS low, coalesce(high, "value") AS high),
    CASE WHEN "value" > 0 THEN CASE WHEN low > 0 THEN ln(high / low) / 2 ELSE ln(high / "value") END END AS own_reach,
    CASE WHEN quantity = 'wall' AND host_binds THEN 'wall by the host' ELSE quantity END AS differs_as
FROM unfolded
WHERE "value" IS NOT NULL;

COMMENT ON TABLE _run_times IS 'One row an ok run and time that it has.';
COMMENT ON COLUMN _run_times.quantity IS 'wall, issue, device, replay, single, busy, floor or margin.';
COMMENT ON COLUMN _run_times."value" IS 'Median of the run; microseconds, margin as it is.';
COMMENT ON COLUMN _run_times.low IS 'Low end of its 95 % interval.';
COMMENT ON COLUMN _run_times.high IS 'High end of its 95 % interval.';
COMMENT ON COLUMN _run_times.differs_as IS
    'Quantity whose spread between runs is that of the time: its own, or `wall by the host` where issue > device.';
COMMENT ON COLUMN _run_times.own_reach IS 'Half the width of the interval, on logarithms; NULL for a value not above zero.';
