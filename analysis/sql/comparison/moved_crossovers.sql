-- Grain: one row a series that both sides have.
-- HIGHER and LOWER: the brackets of the crossing lie apart, or touch at a point that lies on two sides. SAME: they
-- overlap, and the two values differ by no more than the threshold. UNCLEAR: anything else. A crossing above or below
-- all points has a bracket that is open on that side.
CREATE VIEW moved_crossovers AS
WITH paired AS (
    SELECT
        b.series, b.name, b.axis,
        a.status AS a_status, b.status AS b_status, a."text" AS a_text, b."text" AS b_text,
        a."value" AS a_value, a.low AS a_low, a.high AS a_high, b."value" AS b_value, b.low AS b_low, b.high AS b_high,
        a.reason AS a_reason, b.reason AS b_reason,
        a.status IN ('found', 'bracketed', 'above', 'below') AND b.status IN ('found', 'bracketed', 'above', 'below')
            AS has_brackets,
        threshold
    FROM (FROM given_crossovers WHERE side = 'a') AS a
    JOIN (FROM given_crossovers WHERE side = 'b') AS b USING (series)
    CROSS JOIN (FROM _thresholds WHERE quantity = 'crossover')
)
SELECT
    CASE
        WHEN has_brackets AND b_low >= a_high THEN 'HIGHER'
        WHEN has_brackets AND b_high <= a_low THEN 'LOWER'
        WHEN a_status IN ('above', 'below') AND b_status = a_status
            AND a_low IS NOT DISTINCT FROM b_low AND a_high IS NOT DISTINCT FROM b_high THEN 'SAME'
        WHEN b_value BETWEEN a_value / (1 + threshold) AND a_value * (1 + threshold) THEN 'SAME'
        ELSE 'UNCLEAR'
    END AS verdict,
    name, axis, a_text, b_text, b_value / a_value AS ratio,
    a_status, b_status, a_value, a_low, a_high, b_value, b_low, b_high, threshold, a_reason, b_reason, series
FROM paired;

COMMENT ON VIEW moved_crossovers IS
    'One row a series that both sides have: where its overhead stops binding, in a and in b.';
COMMENT ON COLUMN moved_crossovers.verdict IS 'HIGHER, LOWER (in b), SAME or UNCLEAR.';
COMMENT ON COLUMN moved_crossovers.name IS 'The settings of the series in words.';
COMMENT ON COLUMN moved_crossovers.axis IS 'The axis that varies.';
COMMENT ON COLUMN moved_crossovers.a_text IS 'The crossing of a in words.';
COMMENT ON COLUMN moved_crossovers.b_text IS 'The crossing of b in words.';
COMMENT ON COLUMN moved_crossovers.ratio IS 'b_value / a_value; NULL = one of them has no value.';
COMMENT ON COLUMN moved_crossovers.a_status IS 'found, bracketed, above, below, several or unknown in a.';
COMMENT ON COLUMN moved_crossovers.b_status IS 'The same in b.';
COMMENT ON COLUMN moved_crossovers.a_value IS 'Where overhead and work are equal in a.';
COMMENT ON COLUMN moved_crossovers.a_low IS 'Low end of its bracket.';
COMMENT ON COLUMN moved_crossovers.a_high IS 'High end of its bracket.';
COMMENT ON COLUMN moved_crossovers.b_value IS 'Where overhead and work are equal in b.';
COMMENT ON COLUMN moved_crossovers.b_low IS 'Low end of its bracket.';
COMMENT ON COLUMN moved_crossovers.b_high IS 'High end of its bracket.';
COMMENT ON COLUMN moved_crossovers.threshold IS 'Values that differ by no more than this fraction are the same.';
COMMENT ON COLUMN moved_crossovers.a_reason IS 'Why the status in a.';
COMMENT ON COLUMN moved_crossovers.b_reason IS 'Why the status in b.';
COMMENT ON COLUMN moved_crossovers.series IS 'The axis, and a JSON object of all others.';
