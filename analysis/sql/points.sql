-- Grain: one row a point and environment.
-- Settings and facts of the latest ok run (run ids are ordered by time), else of the latest run. Each time is combined
-- over the ok runs: the median of their values, their least low and their greatest high. A table: every verdict reads
-- it.
CREATE TABLE points AS
WITH latest AS (
    SELECT *
    FROM stg_runs
    QUALIFY row_number() OVER (PARTITION BY point_id, environment_id ORDER BY (status = 'ok') DESC, run_id DESC) = 1
),
combined AS (
    SELECT
        point_id,
        environment_id,
        count(*) AS runs,
        count(*) FILTER (ok) AS ok_runs,
        median(wall_us) FILTER (ok) AS wall_us,
        min(wall_us_low) FILTER (ok) AS wall_us_low,
        max(wall_us_high) FILTER (ok) AS wall_us_high,
        median(issue_us) FILTER (ok) AS issue_us,
        min(issue_us_low) FILTER (ok) AS issue_us_low,
        max(issue_us_high) FILTER (ok) AS issue_us_high,
        median(device_us) FILTER (ok) AS device_us,
        min(device_us_low) FILTER (ok) AS device_us_low,
        max(device_us_high) FILTER (ok) AS device_us_high,
        median(CASE WHEN issue_us IS NOT NULL AND device_us IS NOT NULL THEN greatest(issue_us, device_us) END)
            FILTER (ok) AS larger_us,
        median(replay_us) FILTER (ok) AS replay_us,
        min(replay_us_low) FILTER (ok) AS replay_us_low,
        max(replay_us_high) FILTER (ok) AS replay_us_high,
        median(single_us) FILTER (ok) AS single_us,
        min(single_us_low) FILTER (ok) AS single_us_low,
        max(single_us_high) FILTER (ok) AS single_us_high,
        median(busy_us) FILTER (ok) AS busy_us,
        min(busy_us_low) FILTER (ok) AS busy_us_low,
        max(busy_us_high) FILTER (ok) AS busy_us_high,
        median(blocked_us) FILTER (ok) AS blocked_us,
        min(blocked_us_low) FILTER (ok) AS blocked_us_low,
        max(blocked_us_high) FILTER (ok) AS blocked_us_high,
        median(floor_us) FILTER (ok) AS floor_us,
        min(floor_us_low) FILTER (ok) AS floor_us_low,
        max(floor_us_high) FILTER (ok) AS floor_us_high,
        median(host_slope) FILTER (ok) AS host_slope,
        min(host_slope_low) FILTER (ok) AS host_slope_low,
        max(host_slope_high) FILTER (ok) AS host_slope_high,
        median(device_slope) FILTER (ok) AS device_slope,
        min(device_slope_low) FILTER (ok) AS device_slope_low,
        max(device_slope_high) FILTER (ok) AS device_slope_high,
        median(margin) FILTER (ok) AS margin,
        min(margin_low) FILTER (ok) AS margin_low,
        max(margin_high) FILTER (ok) AS margin_high
    FROM (SELECT *, coalesce(status = 'ok', false) AS ok FROM stg_runs)
    GROUP BY point_id, environment_id
)
SELECT
    latest.* REPLACE (
        c.wall_us AS wall_us, c.wall_us_low AS wall_us_low, c.wall_us_high AS wall_us_high,
        c.issue_us AS issue_us, c.issue_us_low AS issue_us_low, c.issue_us_high AS issue_us_high,
        c.device_us AS device_us, c.device_us_low AS device_us_low, c.device_us_high AS device_us_high,
        c.replay_us AS replay_us, c.replay_us_low AS replay_us_low, c.replay_us_high AS replay_us_high,
        c.single_us AS single_us, c.single_us_low AS single_us_low, c.single_us_high AS single_us_high,
        c.busy_us AS busy_us, c.busy_us_low AS busy_us_low, c.busy_us_high AS busy_us_high,
        c.blocked_us AS blocked_us, c.blocked_us_low AS blocked_us_low, c.blocked_us_high AS blocked_us_high,
        c.floor_us AS floor_us, c.floor_us_low AS floor_us_low, c.floor_us_high AS floor_us_high,
        c.host_slope AS host_slope, c.host_slope_low AS host_slope_low, c.host_slope_high AS host_slope_high,
        c.device_slope AS device_slope, c.device_slope_low AS device_slope_low,
        c.device_slope_high AS device_slope_high,
        c.margin AS margin, c.margin_low AS margin_low, c.margin_high AS margin_high
    ),
    c.larger_us,
    c.runs,
    c.ok_runs
FROM latest
JOIN combined AS c
    ON latest.point_id IS NOT DISTINCT FROM c.point_id
    AND latest.environment_id IS NOT DISTINCT FROM c.environment_id;

COMMENT ON TABLE points IS
    'One row a point and environment: its latest ok run (else its latest), times combined over its ok runs.';
COMMENT ON COLUMN points.larger_us IS
    'max(issue_us, device_us), taken in each run before the runs are combined: a host may change its pace between them;
    microseconds.';
COMMENT ON COLUMN points.runs IS 'Number of runs of the point in the environment.';
COMMENT ON COLUMN points.ok_runs IS 'Number of its ok runs.';
