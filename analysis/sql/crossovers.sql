-- Grain: one row a series.
-- Exactly one change of side gives a crossover: on a straight line through the nearest decided points and the balanced
-- ones between them, on the logarithms of axis and margin, and never narrower than its bracket (low, high), which reaches
-- over balanced points right beside it. Where either margin has no logarithm (on the CPU a work within its noise), it is
-- the middle of the bracket on that of the axis. A margin that falls more than three times as much as it does beside the
-- change is a step: kernels change with size.
-- A bracket wider than 2 x has no value. It has the search that narrows it, as has a value that lies more than 2 % and
-- more than one multiple from an end of its bracket.
CREATE VIEW crossovers AS
WITH crossed AS (
    SELECT
        *,
        CASE
            WHEN decided = 0 THEN 'unknown'
            WHEN changes > 1 THEN 'several'
            WHEN changes = 0 AND undecided_before + undecided_after > 0 THEN 'unknown'
            WHEN changes = 0 AND ok_points < 2 THEN 'unknown'
            WHEN changes = 0 AND first_side = 1 THEN 'above'
            WHEN changes = 0 THEN 'below'
            WHEN change_high <= 2 * change_low AND change_low > 0 THEN 'found'
            ELSE 'bracketed'
        END AS status,
        coalesce(margin_at_low > 0 AND margin_at_high > 0, false) AS has_margins,
        CASE WHEN changes > 0 THEN change_low WHEN status = 'above' THEN last_decided END AS low,
        CASE WHEN changes > 0 THEN change_high WHEN status = 'below' THEN first_decided END AS high
    FROM _series
),
valued AS (
    SELECT
        *,
        CASE WHEN status = 'found' THEN exp(
            CASE
                WHEN NOT has_margins THEN (ln(low) + ln(high)) / 2
                WHEN fitted_log BETWEEN ln(near_low) AND ln(near_high) THEN fitted_log
                ELSE ln(near_low)
                    + (ln(near_high) - ln(near_low)) * ln(margin_at_low) / (ln(margin_at_low) - ln(margin_at_high))
            END
        ) END AS "value",
        changes = 1 AND balanced_between = 0 AND fall_log > greatest(3 * expected_log, expected_log + 0.1) AS is_step,
        CASE
            WHEN low <> floor(low) OR high <> floor(high) THEN (high - low) / 1000
            WHEN low % 8 = 0 AND high % 8 = 0 AND high - low >= 16 THEN 8
            ELSE 1
        END AS multiple
    FROM crossed
),
judged AS (
    SELECT
        *,
        -- a search takes a range above 0 that holds three multiples
        low > 0 AND high - low >= 2 * multiple AND CASE status
            WHEN 'bracketed' THEN true
            WHEN 'found' THEN greatest("value" - low, high - "value") > greatest(0.02 * "value", multiple)
        END AS is_wide
    FROM valued
)
SELECT
    environment_id, workload, size, dtype, batch, compile, dynamic, warmup, device, params,
    axis, "value", low, high, status,
    concat_ws('; ',
        CASE
            WHEN decided = 0 AND ok_points = 0 THEN 'no point was measured'
            WHEN decided = 0 AND undecided = 0 THEN 'every point is balanced'
            WHEN decided = 0 THEN 'no point is decided'
            WHEN status = 'several' THEN 'the side changes ' || changes::VARCHAR || ' times'
            WHEN status = 'unknown' AND ok_points < 2 THEN 'only one point was measured'
            WHEN status = 'unknown' THEN 'every decided point is '
                || (CASE WHEN first_side = 1 THEN 'overhead-bound' ELSE 'bound by the device' END)
                || ', but points beyond them are not decided'
            WHEN status = 'above' THEN 'every decided point is overhead-bound'
            WHEN status = 'below' THEN 'every decided point is bound by the device'
            WHEN status = 'bracketed' THEN 'the bracket is wider than 2 x'
            WHEN NOT has_margins
                THEN 'one change of side, in the middle of its bracket: a margin beside it has no value'
            ELSE 'one change of side'
        END,
        CASE WHEN changes = 1 AND first_side = -1 THEN 'overhead binds above the crossing, the device below it' END,
        CASE WHEN is_step THEN 'a step: the margin changes from ' || _number(margin_at_low) || ' to '
            || _number(margin_at_high) || ' between ' || _axis_text(near_low) || ' and ' || _axis_text(near_high) END,
        CASE WHEN decided > 0 AND balanced > 0 THEN _counted(balanced, 'balanced point') END,
        CASE WHEN undecided > 0 THEN _counted(undecided, 'undecided point') || ', the first at '
            || _axis_text(undecided_value) || ': ' || undecided_reason END,
        CASE WHEN left_out > 0 THEN _counted(left_out, 'failed or skipped point') || ' left out' END
    ) AS reason,
    CASE status
        WHEN 'found' THEN _axis_text(CASE WHEN "value" >= 100 THEN round("value") ELSE "value" END)
            || ' (' || _axis_text(low) || ' to ' || _axis_text(high) || ')'
        WHEN 'bracketed' THEN 'between ' || _axis_text(low) || ' and ' || _axis_text(high)
        WHEN 'above' THEN 'above ' || _axis_text(low)
        WHEN 'below' THEN 'below ' || _axis_text(high)
        WHEN 'several' THEN _counted(changes, 'change') || ' between ' || _axis_text(low) || ' and ' || _axis_text(high)
        ELSE 'unknown'
    END AS "text",
    CASE WHEN is_wide THEN concat_ws(' ',
        'python -m runner -m hydra/sweeper=crossover',
        _word('search.axis', axis),
        _word('search.low', _axis_text(low)),
        _word('search.high', _axis_text(high)),
        CASE WHEN multiple <> 1 THEN _word('search.multiple', _axis_text(multiple)) END,
        _word('workload', workload),
        _word('size', size::VARCHAR),
        _word('dtype', dtype),
        _word('batch', batch::VARCHAR),
        _word('compile', compile),
        CASE WHEN dynamic <> 'false' THEN _word('dynamic', dynamic) END,
        CASE WHEN warmup <> 'true' THEN _word('warmup', warmup) END,
        _word('device', device),
        nullif(_settings(params), '')
    ) END AS command,
    points, decided, balanced, undecided, left_out, changes
FROM judged;

COMMENT ON VIEW crossovers IS
    'One row a series: where along its axis the overhead stops binding. The axis that varies is NULL itself.';
COMMENT ON COLUMN crossovers."value" IS
    'Value of the axis at which overhead and work are equal, by a straight line on logarithms, or the middle of the bracket
    where a margin beside it has no value; only where status is found.';
COMMENT ON COLUMN crossovers.low IS
    'Value of the axis at the nearest decided point below the crossing and below balanced points beside it.';
COMMENT ON COLUMN crossovers.high IS
    'Value of the axis at the nearest decided point above the crossing and above balanced points beside it.';
COMMENT ON COLUMN crossovers.status IS
    'found, bracketed (low and high more than 2 x apart), above or below all points, several, unknown.';
COMMENT ON COLUMN crossovers.reason IS 'Why this status, and which points did not take part.';
COMMENT ON COLUMN crossovers."text" IS 'The crossing in words: 2212 (2048 to 2304), or between 64 and 4096.';
COMMENT ON COLUMN crossovers.command IS
    'The search that narrows the crossing: of a bracketed one, and of a found one whose bracket is wide; NULL otherwise.';
