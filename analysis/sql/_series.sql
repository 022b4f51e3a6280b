-- Grain: one row a series, that is all warm points alike in every axis but one, in one environment, with at least two
-- values of it.
-- A change is where two neighbouring decided points lie on different sides; balanced and undecided points may lie
-- between them. Where the next point beyond is balanced, the bracket reaches over it to the decided point behind: the
-- crossing may as well lie there.
CREATE VIEW _series AS
WITH neighbours AS (
    SELECT
        *,
        lag(side) OVER along = 0 AS balanced_before,
        lead(side) OVER along = 0 AS balanced_after,
        last_value(CASE WHEN side <> 0 THEN axis_value END IGNORE NULLS) OVER earlier AS decided_before,
        first_value(CASE WHEN side <> 0 THEN axis_value END IGNORE NULLS) OVER later AS decided_after
    FROM _series_points
    WINDOW along AS (
        PARTITION BY environment_id, axis, workload, size, dtype, batch, compile, dynamic, warmup, device, params
        ORDER BY axis_value
    ),
    earlier AS (along ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING),
    later AS (along ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING)
),
reaching AS (
    SELECT
        *,
        CASE WHEN balanced_before THEN coalesce(decided_before, axis_value) ELSE axis_value END AS reach_low,
        CASE WHEN balanced_after THEN coalesce(decided_after, axis_value) ELSE axis_value END AS reach_high
    FROM neighbours
),
placed AS (
    SELECT
        *,
        CASE WHEN side <> 0 THEN {
            'margin': margin, 'value': axis_value, 'reach_low': reach_low, 'log': _log(axis_value), 'log_margin': _log(margin),
            'log_near': _log(CASE WHEN side = 1 THEN margin_low ELSE margin_high END)
        } END AS decided_point
    FROM reaching
),
before AS (
    SELECT
        *,
        last_value(CASE WHEN side <> 0 THEN side END IGNORE NULLS) OVER earlier AS last_side,
        last_value(decided_point IGNORE NULLS) OVER earlier AS last_point,
        lag(decided_point, 2 IGNORE NULLS) OVER along AS last_but_one,
        lead(decided_point, 1 IGNORE NULLS) OVER along AS next_point,
        min(axis_value) FILTER (side <> 0) OVER series AS first_of_sides,
        max(axis_value) FILTER (side <> 0) OVER series AS last_of_sides
    FROM placed
    WINDOW series AS (
        PARTITION BY environment_id, axis, workload, size, dtype, batch, compile, dynamic, warmup, device, params
    ),
    along AS (series ORDER BY axis_value),
    earlier AS (along ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
),
changing AS (
    SELECT *, coalesce(side <> 0 AND side <> last_side, false) AS is_change FROM before
),
marked AS (
    SELECT
        *,
        side IS NOT NULL
            AND axis_value >= min(last_point.value) FILTER (is_change) OVER series
            AND axis_value <= max(axis_value) FILTER (is_change) OVER series AS is_between,
        _log(axis_value) AS log,
        _log(margin) AS log_margin
    FROM changing
    WINDOW series AS (
        PARTITION BY environment_id, axis, workload, size, dtype, batch, compile, dynamic, warmup, device, params
    )
)
SELECT
    environment_id, axis, workload, size, dtype, batch, compile, dynamic, warmup, device, params,
    count(*) AS points,
    count(*) FILTER (status = 'ok') AS ok_points,
    count(*) FILTER (status IS DISTINCT FROM 'ok') AS left_out,
    count(*) FILTER (side <> 0) AS decided,
    count(*) FILTER (side = 0) AS balanced,
    count(*) FILTER (status = 'ok' AND side IS NULL) AS undecided,
    count(*) FILTER (is_change) AS changes,
    min(axis_value) FILTER (side <> 0) AS first_decided,
    max(axis_value) FILTER (side <> 0) AS last_decided,
    arg_min(side, axis_value) FILTER (side <> 0) AS first_side,
    arg_max(side, axis_value) FILTER (side <> 0) AS last_side,
    count(*) FILTER (status = 'ok' AND side IS NULL AND axis_value < first_of_sides) AS undecided_before,
    count(*) FILTER (status = 'ok' AND side IS NULL AND axis_value > last_of_sides) AS undecided_after,
    arg_min(bound || ' (' || reason || ')', axis_value) FILTER (status = 'ok' AND side IS NULL) AS undecided_reason,
    min(axis_value) FILTER (status = 'ok' AND side IS NULL) AS undecided_value,
    min(last_point.reach_low) FILTER (is_change) AS change_low,
    max(reach_high) FILTER (is_change) AS change_high,
    min(last_point.value) FILTER (is_change) AS near_low,
    max(axis_value) FILTER (is_change) AS near_high,
    any_value(last_point.margin) FILTER (is_change) AS margin_at_low,
    any_value(margin) FILTER (is_change) AS margin_at_high,
    _root(
        regr_intercept(log_margin, log) FILTER (is_between), regr_slope(log_margin, log) FILTER (is_between)
    ) AS fitted_log,
    any_value(abs(decided_point.log_near - last_point.log_near)) FILTER (is_change) AS fall_log,
    any_value((log - last_point.log) * greatest(
        abs((last_point.log_margin - last_but_one.log_margin) / nullif(last_point.log - last_but_one.log, 0)),
        abs((next_point.log_margin - log_margin) / nullif(next_point.log - log, 0))
    )) FILTER (is_change AND last_but_one IS NOT NULL AND next_point IS NOT NULL) AS expected_log,
    count(*) FILTER (is_between AND side = 0) AS balanced_between
FROM marked
GROUP BY environment_id, axis, workload, size, dtype, batch, compile, dynamic, warmup, device, params
HAVING count(DISTINCT axis_value) >= 2;

COMMENT ON VIEW _series IS 'One row a series: how many of its points lie on which side, and where the side changes.';
COMMENT ON COLUMN _series.points IS 'Number of warm points in the series.';
COMMENT ON COLUMN _series.ok_points IS 'Number of those that were measured.';
COMMENT ON COLUMN _series.left_out IS 'Number of those that failed or were skipped.';
COMMENT ON COLUMN _series.decided IS 'Number of points on one of the two sides.';
COMMENT ON COLUMN _series.balanced IS 'Number of balanced points.';
COMMENT ON COLUMN _series.undecided IS 'Number of measured points that are serialized or unknown.';
COMMENT ON COLUMN _series.changes IS 'Number of changes of side between neighbouring decided points.';
COMMENT ON COLUMN _series.first_decided IS 'Least value of the axis with a decided point.';
COMMENT ON COLUMN _series.last_decided IS 'Greatest value of the axis with a decided point.';
COMMENT ON COLUMN _series.first_side IS 'Side of the first decided point.';
COMMENT ON COLUMN _series.last_side IS 'Side of the last decided point.';
COMMENT ON COLUMN _series.undecided_before IS 'Number of undecided points before the first decided one.';
COMMENT ON COLUMN _series.undecided_after IS 'Number of undecided points after the last decided one.';
COMMENT ON COLUMN _series.undecided_reason IS 'Bound and reason of the first undecided point.';
COMMENT ON COLUMN _series.undecided_value IS 'Value of the axis at the first undecided point.';
COMMENT ON COLUMN _series.change_low IS
    'Value of the axis at the decided point before the first change, and before balanced points right before that.';
COMMENT ON COLUMN _series.change_high IS
    'Value of the axis at the decided point after the last change, and after balanced points right after that.';
COMMENT ON COLUMN _series.near_low IS 'Value of the axis at the decided point nearest before the first change.';
COMMENT ON COLUMN _series.near_high IS 'Value of the axis at the decided point nearest after the last change.';
COMMENT ON COLUMN _series.margin_at_low IS 'Margin at near_low, where there is one change only.';
COMMENT ON COLUMN _series.margin_at_high IS 'Margin at near_high, where there is one change only.';
COMMENT ON COLUMN _series.fitted_log IS
    'Logarithm of the axis where a straight line through the decided points beside the change and the balanced ones between
    them has a margin of 1.';
COMMENT ON COLUMN _series.fall_log IS
    'By how much the margin changes at least between near_low and near_high, from interval to interval, on logarithms.';
COMMENT ON COLUMN _series.expected_log IS
    'By how much it would at the steeper of the slopes beside; NULL without two decided points on both sides.';
COMMENT ON COLUMN _series.balanced_between IS 'Number of balanced points between near_low and near_high.';
