-- Grain: one row an environment that has a point to which the law applies.
CREATE VIEW law_summary AS
WITH outside AS (
    SELECT *, NOT coalesce(in_band, false) AS is_outside FROM law
)
SELECT
    environment_id,
    count(deviation) AS points,
    count(*) FILTER (within_5_percent) AS points_within,
    points_within / nullif(points, 0) AS within_frac,
    median(abs(deviation)) AS median_deviation,
    arg_max(deviation, abs(deviation)) AS worst_deviation,
    arg_max(point_id, abs(deviation)) AS worst_point_id,
    arg_max(
        concat_ws(' ', workload, 'size=' || size, 'dtype=' || dtype, 'batch=' || batch, 'compile=' || compile),
        abs(deviation)
    ) AS worst_point,
    count(slopes_agree) AS slopes_points,
    count(*) FILTER (slopes_agree) AS slopes_agreeing,
    count(slopes_agree) FILTER (is_outside) AS slopes_points_outside,
    count(*) FILTER (slopes_agree AND is_outside) AS slopes_agreeing_outside,
    count(replay_agrees) AS replay_points,
    count(*) FILTER (replay_agrees) AS replay_agreeing,
    count(replay_agrees) FILTER (is_outside) AS replay_points_outside,
    count(*) FILTER (replay_agrees AND is_outside) AS replay_agreeing_outside
FROM outside
GROUP BY environment_id;

COMMENT ON VIEW law_summary IS
    'One row an environment: how many points keep the step law, the worst, and who agrees with their bounds.';
COMMENT ON COLUMN law_summary.points IS 'Warm points, not serialized, with both terms of the law.';
COMMENT ON COLUMN law_summary.points_within IS 'Number of those with |wall / max(issue, device) - 1| <= 5 %.';
COMMENT ON COLUMN law_summary.within_frac IS 'Share of those, 0 to 1.';
COMMENT ON COLUMN law_summary.median_deviation IS 'Median of |wall / max(issue, device) - 1|.';
COMMENT ON COLUMN law_summary.worst_deviation IS 'Deviation that is farthest from 0.';
COMMENT ON COLUMN law_summary.worst_point_id IS 'Point of the worst deviation.';
COMMENT ON COLUMN law_summary.worst_point IS 'That point in words.';
COMMENT ON COLUMN law_summary.slopes_points IS 'Points whose bound can be compared with their slopes.';
COMMENT ON COLUMN law_summary.slopes_agreeing IS 'Number of those that agree.';
COMMENT ON COLUMN law_summary.slopes_points_outside IS
    'Points compared with their slopes outside 10 % of the crossing.';
COMMENT ON COLUMN law_summary.slopes_agreeing_outside IS 'Number of those that agree.';
COMMENT ON COLUMN law_summary.replay_points IS 'Points whose bound can be compared with their replay.';
COMMENT ON COLUMN law_summary.replay_agreeing IS 'Number of those that agree.';
COMMENT ON COLUMN law_summary.replay_points_outside IS
    'Points compared with their replay outside 10 % of the crossing.';
COMMENT ON COLUMN law_summary.replay_agreeing_outside IS 'Number of those that agree.';
