-- Grain: one row a series, phase and holder of memory.
-- How the memory of a holder, at the peak of its phase, grows along the axis of a series (batch, size, sequence
-- length): a straight line through its points, and the power of the axis that it grows with (0 stays, 1 in
-- proportion, 2 squared), the slope on logarithms. The step as a whole may be at its peak in one phase at some values
-- and in another at others: then what a step makes and gives back has no line, since it was looked at in different
-- moments.
CREATE VIEW holder_growth AS
WITH peaks AS (
    SELECT run_id, any_value(path) AS peak_path
    FROM holders
    WHERE is_at_peak
    GROUP BY run_id
),
held AS (
    SELECT s.* EXCLUDE (side, bound, margin, margin_low, margin_high, reason), h.path, h.holder, h.depth, h."order",
        h.at_peak_bytes,
        CASE WHEN h.depth = 0 AND h.holder IN ('gradients', 'activations', 'temporaries') THEN p.peak_path END
            AS peak_path
    FROM _series_points AS s
    JOIN holders AS h USING (run_id)
    LEFT JOIN peaks AS p USING (run_id)
    WHERE s.status = 'ok' AND h.at_peak_bytes IS NOT NULL
),
measured AS (
    SELECT
        environment_id, axis, workload, size, dtype, batch, compile, dynamic, warmup, device, params, path, holder,
        min(depth) AS depth, min("order") AS "order",
        count(*) AS points,
        min(axis_value) AS low_value,
        max(axis_value) AS high_value,
        arg_min(at_peak_bytes, axis_value) AS low_bytes,
        arg_max(at_peak_bytes, axis_value) AS high_bytes,
        regr_slope(at_peak_bytes, axis_value) AS slope_bytes,
        regr_intercept(at_peak_bytes, axis_value) AS fixed_bytes,
        CASE WHEN min(at_peak_bytes) > 0 AND min(axis_value) > 0 THEN regr_slope(ln(at_peak_bytes),
            ln(axis_value)) END AS power,
        count(DISTINCT peak_path) > 1 AND min(at_peak_bytes) < max(at_peak_bytes) AS moves
    FROM held
    GROUP BY ALL
    HAVING count(DISTINCT axis_value) >= 2 AND max(at_peak_bytes) > 0
),
fitted AS (
    SELECT * REPLACE (
        CASE WHEN NOT moves THEN slope_bytes END AS slope_bytes,
        CASE WHEN NOT moves THEN fixed_bytes END AS fixed_bytes,
        CASE WHEN NOT moves THEN power END AS power
    )
    FROM measured
)
SELECT
    * EXCLUDE (moves),
    CASE WHEN moves THEN 'the peak of the step is not in the same phase at all values: see the rows of the phases'
    END AS reason,
    holder || ' ' || CASE
        WHEN low_bytes = high_bytes
            AND coalesce(abs(slope_bytes), 0) * (high_value - low_value) <= 0.01 * high_bytes
            THEN 'stay at ' || _bytes(high_bytes)
        ELSE CASE WHEN high_bytes > low_bytes THEN 'grow' ELSE 'shrink' END || ' from ' || _bytes(low_bytes) || ' to '
            || _bytes(high_bytes) || ' while ' || axis || ' goes from ' || _axis_text(low_value) || ' to '
            || _axis_text(high_value)
            || coalesce(', with the power ' || format('{:.2f}', power) || ' of it', '')
            || CASE WHEN moves THEN '; the peak of the step is not in the same phase at all values' ELSE '' END
    END || '.' AS sentence
FROM fitted;

COMMENT ON VIEW holder_growth IS
    'One row a series, phase and holder: how its memory at the phase''s peak grows along the axis.';
COMMENT ON COLUMN holder_growth.axis IS 'The axis that varies in the series.';
COMMENT ON COLUMN holder_growth.points IS 'Number of points whose memory was watched.';
COMMENT ON COLUMN holder_growth.low_value IS 'Least value of the axis.';
COMMENT ON COLUMN holder_growth.high_value IS 'Greatest value of the axis.';
COMMENT ON COLUMN holder_growth.low_bytes IS 'Held at the least value.';
COMMENT ON COLUMN holder_growth.high_bytes IS 'Held at the greatest value.';
COMMENT ON COLUMN holder_growth.slope_bytes IS
    'Bytes more for each unit of the axis, by a straight line through all points.';
COMMENT ON COLUMN holder_growth.fixed_bytes IS 'Bytes of that line where the axis is 0: what does not grow.';
COMMENT ON COLUMN holder_growth.power IS
    'Power of the axis that the bytes grow with: 0 stay, 1 in proportion, 2 squared; NULL where some point holds none.';
COMMENT ON COLUMN holder_growth.reason IS
    'Why what a step makes has no line and no power: the peak of the step lies in different phases.';
COMMENT ON COLUMN holder_growth.sentence IS 'How it grows, in words.';
