-- Grain: one row a compared point whose bound is not the same in a and b.
-- The move is clear where the intervals of overhead / work lie apart and on two sides of 1; else the margin hardly
-- changed and the bound is near its limit, or the same side is explained by another roof.
CREATE VIEW moved_bounds AS
SELECT
    point, a_bound, b_bound,
    a_margin, a_margin_low, a_margin_high, b_margin, b_margin_low, b_margin_high,
    coalesce(
        (a_margin_low > 1 AND b_margin_high < 1) OR (a_margin_high < 1 AND b_margin_low > 1), false
    ) AS is_clear,
    a_run_id, b_run_id, axes
FROM matched_points
WHERE state = 'compared' AND a_bound IS DISTINCT FROM b_bound;

COMMENT ON VIEW moved_bounds IS 'One row a compared point that something else binds in b.';
COMMENT ON COLUMN moved_bounds.point IS 'The axes in words.';
COMMENT ON COLUMN moved_bounds.a_bound IS 'What binds it in a.';
COMMENT ON COLUMN moved_bounds.b_bound IS 'What binds it in b.';
COMMENT ON COLUMN moved_bounds.a_margin IS 'overhead / work in a; above 1 the overhead binds.';
COMMENT ON COLUMN moved_bounds.a_margin_low IS 'Low end of the 95 % interval of a_margin.';
COMMENT ON COLUMN moved_bounds.a_margin_high IS 'High end of the 95 % interval of a_margin.';
COMMENT ON COLUMN moved_bounds.b_margin IS 'overhead / work in b.';
COMMENT ON COLUMN moved_bounds.b_margin_low IS 'Low end of the 95 % interval of b_margin.';
COMMENT ON COLUMN moved_bounds.b_margin_high IS 'High end of the 95 % interval of b_margin.';
COMMENT ON COLUMN moved_bounds.is_clear IS 'The two intervals lie on different sides of 1.';
COMMENT ON COLUMN moved_bounds.a_run_id IS 'Latest run of a.';
COMMENT ON COLUMN moved_bounds.b_run_id IS 'Latest run of b.';
COMMENT ON COLUMN moved_bounds.axes IS 'JSON object of all axes.';
