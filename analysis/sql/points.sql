-- Grain: one row a point and environment.
-- Settings and facts of the latest ok run (run ids are ordered by time), else of the latest run. Each time is the median
-- over the ok runs. Its interval follows from the spread between runs in the environment (_spread), and is no narrower
-- than the runs' own intervals make it; where the spread is unknown, it reaches from their least low to their greatest
-- high, as that of slopes, of blocked_us and of data_us always does. A table: every verdict reads it.
CREATE TABLE points AS
WITH latest AS (
    SELECT *
    FROM stg_runs
    QUALIFY row_number() OVER (PARTITION BY point_id, environment_id ORDER BY (status = 'ok') DESC, run_id DESC) = 1
),
medians AS (
    SELECT
        r.point_id,
        r.environment_id,
        r.quantity,
        count(*) AS runs,
        median("value") AS "value",
        min(low) AS low,
        max(high) AS high,
        CASE WHEN min("value") > 0 THEN
            greatest(
                _t_quantile(any_value(dof)) * any_value(sd_frac),
                CASE WHEN count(*) > 1 THEN sqrt(avg(own_reach * own_reach)) END
            ) * sqrt(_median_share(count(*)))
        END AS reach,
        any_value(sd_frac) IS NOT NULL AND reach IS NOT NULL AS has_spread
    FROM _run_times AS r
    LEFT JOIN _spread AS s ON s.environment_id = r.environment_id AND s.quantity = differs_as
    GROUP BY r.point_id, r.environment_id, r.quantity
),
intervals AS (
    SELECT * REPLACE (
        CASE
            WHEN NOT has_spread THEN low
            WHEN runs = 1 THEN least(low, "value" * exp(-reach))
            ELSE "value" * exp(-reach)
        END AS low,
        CASE
            WHEN NOT has_spread THEN high
            WHEN runs = 1 THEN greatest(high, "value" * exp(reach))
            ELSE "value" * exp(reach)
        END AS high
    )
    FROM medians
),
times AS (
    SELECT
        point_id,
        environment_id,
        max("value") FILTER (quantity = 'wall') AS wall_us,
        max(low) FILTER (quantity = 'wall') AS wall_us_low,
        max(high) FILTER (quantity = 'wall') AS wall_us_high,
        max("value") FILTER (quantity = 'issue') AS issue_us,
        max(low) FILTER (quantity = 'issue') AS issue_us_low,
        max(high) FILTER (quantity = 'issue') AS issue_us_high,
        max("value") FILTER (quantity = 'device') AS device_us,
        max(low) FILTER (quantity = 'device') AS device_us_low,
        max(high) FILTER (quantity = 'device') AS device_us_high,
        max("value") FILTER (quantity = 'replay') AS replay_us,
        max(low) FILTER (quantity = 'replay') AS replay_us_low,
        max(high) FILTER (quantity = 'replay') AS replay_us_high,
        max("value") FILTER (quantity = 'single') AS single_us,
        max(low) FILTER (quantity = 'single') AS single_us_low,
        max(high) FILTER (quantity = 'single') AS single_us_high,
        max("value") FILTER (quantity = 'busy') AS busy_us,
        max(low) FILTER (quantity = 'busy') AS busy_us_low,
        max(high) FILTER (quantity = 'busy') AS busy_us_high,
        max("value") FILTER (quantity = 'floor') AS floor_us,
        max(low) FILTER (quantity = 'floor') AS floor_us_low,
        max(high) FILTER (quantity = 'floor') AS floor_us_high,
        max("value") FILTER (quantity = 'margin') AS margin,
        max(low) FILTER (quantity = 'margin') AS margin_low,
        max(high) FILTER (quantity = 'margin') AS margin_high
    FROM intervals
    GROUP BY point_id, environment_id
),
combined AS (
    SELECT
        point_id,
        environment_id,
        count(*) AS runs,
        count(*) FILTER (ok) AS ok_runs,
        median(CASE WHEN issue_us IS NOT NULL AND device_us IS NOT NULL THEN greatest(issue_us, device_us) END)
            FILTER (ok) AS larger_us,
        median(CASE WHEN issue_us IS NOT NULL AND device_us > 0
            THEN coalesce(wall_us_low, wall_us) / greatest(issue_us, device_us) END) FILTER (ok) AS excess,
        count(margin) FILTER (ok) = count(wall_us) FILTER (ok) OR any_value(device) <> 'cpu' AS all_have_margins,
        median(blocked_us) FILTER (ok) AS blocked_us,
        min(blocked_us_low) FILTER (ok) AS blocked_us_low,
        max(blocked_us_high) FILTER (ok) AS blocked_us_high,
        median(data_us) FILTER (ok) AS data_us,
        min(data_us_low) FILTER (ok) AS data_us_low,
        max(data_us_high) FILTER (ok) AS data_us_high,
        median(host_slope) FILTER (ok) AS host_slope,
        min(host_slope_low) FILTER (ok) AS host_slope_low,
        max(host_slope_high) FILTER (ok) AS host_slope_high,
        median(device_slope) FILTER (ok) AS device_slope,
        min(device_slope_low) FILTER (ok) AS device_slope_low,
        max(device_slope_high) FILTER (ok) AS device_slope_high
    FROM (SELECT *, coalesce(status = 'ok', false) AS ok FROM stg_runs)
    GROUP BY point_id, environment_id
)
SELECT
    latest.* REPLACE (
        t.wall_us AS wall_us, t.wall_us_low AS wall_us_low, t.wall_us_high AS wall_us_high,
        t.issue_us AS issue_us, t.issue_us_low AS issue_us_low, t.issue_us_high AS issue_us_high,
        t.device_us AS device_us, t.device_us_low AS device_us_low, t.device_us_high AS device_us_high,
        t.replay_us AS replay_us, t.replay_us_low AS replay_us_low, t.replay_us_high AS replay_us_high,
        t.single_us AS single_us, t.single_us_low AS single_us_low, t.single_us_high AS single_us_high,
        t.busy_us AS busy_us, t.busy_us_low AS busy_us_low, t.busy_us_high AS busy_us_high,
        c.blocked_us AS blocked_us, c.blocked_us_low AS blocked_us_low, c.blocked_us_high AS blocked_us_high,
        c.data_us AS data_us, c.data_us_low AS data_us_low, c.data_us_high AS data_us_high,
        t.floor_us AS floor_us, t.floor_us_low AS floor_us_low, t.floor_us_high AS floor_us_high,
        c.host_slope AS host_slope, c.host_slope_low AS host_slope_low, c.host_slope_high AS host_slope_high,
        c.device_slope AS device_slope, c.device_slope_low AS device_slope_low,
        c.device_slope_high AS device_slope_high,
        -- on the CPU a run has no margin where its work is not above zero: the others alone would speak for the work
        CASE WHEN all_have_margins THEN t.margin END AS margin,
        CASE WHEN all_have_margins THEN t.margin_low END AS margin_low,
        CASE WHEN all_have_margins THEN t.margin_high END AS margin_high
    ),
    c.larger_us,
    c.excess,
    c.runs,
    c.ok_runs
FROM latest
JOIN combined AS c
    ON latest.point_id IS NOT DISTINCT FROM c.point_id
    AND latest.environment_id IS NOT DISTINCT FROM c.environment_id
LEFT JOIN times AS t
    ON latest.point_id IS NOT DISTINCT FROM t.point_id
    AND latest.environment_id IS NOT DISTINCT FROM t.environment_id;

COMMENT ON TABLE points IS
    'One row a point and environment: its latest ok run (else its latest), times combined over its ok runs.';
COMMENT ON COLUMN points.larger_us IS
    'max(issue_us, device_us), taken in each run before the runs are combined: a host may change its pace between them;
    microseconds.';
COMMENT ON COLUMN points.excess IS
    'wall_us_low / max(issue_us, device_us), taken in each run as well; above 1 something besides the two terms takes time.';
COMMENT ON COLUMN points.runs IS 'Number of runs of the point in the environment.';
COMMENT ON COLUMN points.ok_runs IS 'Number of its ok runs.';
