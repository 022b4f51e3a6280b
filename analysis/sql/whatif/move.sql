-- Not a relation: moves the staged runs and roofs to a host `host_factor` and a device `device_factor` times as fast,
-- before any verdict is computed. By the two-term law:
--   a step that never waits      wall = max(issue, device), times what it was measured to be off by
--   one that waits, or stands    of the smaller term the share stays that the larger one did not hide; what goes beyond
--   between two synchronizes     both terms is the host's
--   on the CPU                   wall = floor + work
-- Where a term that decides is unknown, so is the wall time. Intervals keep their width relative to the value. Slopes and
-- other checks were measured at the speed of then and there, and are unknown at another.
CREATE OR REPLACE TEMP MACRO _taking_turns(t, issue, device, host_speed, device_speed) AS
    least(1, t / nullif(greatest(issue, device), 0)) * greatest(issue / host_speed, device / device_speed)
    + greatest(0, coalesce((least(t, issue + device) - greatest(issue, device)) / nullif(least(issue, device), 0), 0))
        * least(issue / host_speed, device / device_speed)
    + greatest(0, t - issue - device) / host_speed;

UPDATE stg_runs
SET
    wall_us = moved_run.wall_us,
    wall_us_low = stg_runs.wall_us_low * moved_run.wall_us / nullif(stg_runs.wall_us, 0),
    wall_us_high = stg_runs.wall_us_high * moved_run.wall_us / nullif(stg_runs.wall_us, 0),
    single_us = moved_run.single_us,
    single_us_low = stg_runs.single_us_low * moved_run.single_us / nullif(stg_runs.single_us, 0),
    single_us_high = stg_runs.single_us_high * moved_run.single_us / nullif(stg_runs.single_us, 0),
    issue_us = stg_runs.issue_us / host_speed,
    issue_us_low = stg_runs.issue_us_low / host_speed,
    issue_us_high = stg_runs.issue_us_high / host_speed,
    floor_us = stg_runs.floor_us / host_speed,
    floor_us_low = stg_runs.floor_us_low / host_speed,
    floor_us_high = stg_runs.floor_us_high / host_speed,
    profiled_host_us = stg_runs.profiled_host_us / host_speed,
    device_us = stg_runs.device_us / device_speed,
    device_us_low = stg_runs.device_us_low / device_speed,
    device_us_high = stg_runs.device_us_high / device_speed,
    replay_us = stg_runs.replay_us / device_speed,
    replay_us_low = stg_runs.replay_us_low / device_speed,
    replay_us_high = stg_runs.replay_us_high / device_speed,
    busy_us = stg_runs.busy_us / device_speed,
    busy_us_low = stg_runs.busy_us_low / device_speed,
    busy_us_high = stg_runs.busy_us_high / device_speed,
    blocked_us = stg_runs.blocked_us / device_speed,
    blocked_us_low = stg_runs.blocked_us_low / device_speed,
    blocked_us_high = stg_runs.blocked_us_high / device_speed,
    margin = stg_runs.margin * device_speed / host_speed,
    margin_low = stg_runs.margin_low * device_speed / host_speed,
    margin_high = stg_runs.margin_high * device_speed / host_speed,
    host_slope = NULL, host_slope_low = NULL, host_slope_high = NULL,
    device_slope = NULL, device_slope_low = NULL, device_slope_high = NULL,
    doubled_us = NULL, doubled_us_low = NULL, doubled_us_high = NULL,
    work_share = NULL, work_share_low = NULL, work_share_high = NULL,
    law_ratio = NULL, law_ratio_low = NULL, law_ratio_high = NULL,
    reasons = json_merge_patch(coalesce(stg_runs.reasons, '{}'), moved_run.reasons)
FROM (
    WITH measured AS (
        SELECT
            rowid AS place, * EXCLUDE (reasons),
            getvariable('host_factor') AS host_speed,
            getvariable('device_factor') AS device_speed,
            issue_us IS NOT NULL AND device_us IS NOT NULL AS has_terms,
            coalesce(wall_us_low, wall_us) > 1.10 * coalesce(device_us_high, device_us) AS is_late
        FROM stg_runs
    ),
    moved AS (
        SELECT
            * REPLACE (
                CASE
                    WHEN host_speed = device_speed THEN wall_us / host_speed
                    WHEN device = 'cpu' -- work below zero is noise of the floor, which is the host's
                        THEN (floor_us + least(0, wall_us - floor_us)) / host_speed
                            + greatest(0, wall_us - floor_us) / device_speed
                    WHEN has_terms AND blocking_calls IS NOT NULL
                        THEN _taking_turns(wall_us, issue_us, device_us, host_speed, device_speed)
                    WHEN has_terms
                        THEN greatest(issue_us / host_speed, device_us / device_speed) * wall_us
                            / nullif(greatest(issue_us, device_us), 0)
                    WHEN blocking_calls IS NOT NULL OR device_us IS NULL THEN NULL
                    WHEN is_late THEN greatest(wall_us / host_speed, device_us / device_speed)
                    WHEN host_speed > device_speed THEN wall_us / device_speed
                END AS wall_us,
                CASE
                    WHEN host_speed = device_speed THEN single_us / host_speed
                    WHEN has_terms THEN _taking_turns(single_us, issue_us, device_us, host_speed, device_speed)
                END AS single_us
            ),
            wall_us IS NOT NULL AS was_measured
        FROM measured
    )
    SELECT
        place, host_speed, device_speed, wall_us, single_us,
        json_merge_patch(
            '{"host_slope": "unknown at another speed", "device_slope": "unknown at another speed"}',
            CASE WHEN was_measured AND wall_us IS NULL
                THEN '{"wall_us": "unknown at another speed, since a term of the step is"}' ELSE '{}' END
        )::VARCHAR AS reasons
    FROM moved
) AS moved_run
WHERE stg_runs.rowid = moved_run.place;

UPDATE stg_roofs
SET
    value_per_s = value_per_s * getvariable('device_factor'),
    low_per_s = low_per_s * getvariable('device_factor'),
    high_per_s = high_per_s * getvariable('device_factor');
