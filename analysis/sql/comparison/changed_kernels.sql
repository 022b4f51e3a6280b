-- Grain: one row a compared point and kernel that only one side runs; points without events on a side have none.
CREATE VIEW changed_kernels AS
WITH seen AS (
    SELECT axes FROM given_kernels GROUP BY axes HAVING count(DISTINCT side) = 2
)
SELECT
    point, name,
    CASE WHEN b.name IS NULL THEN 'only in a' ELSE 'only in b' END AS state,
    a.share AS a_share, b.share AS b_share, a.us AS a_us, b.us AS b_us, a.calls AS a_calls, b.calls AS b_calls,
    axes
FROM (SELECT * FROM given_kernels SEMI JOIN seen USING (axes) WHERE side = 'a') AS a
FULL JOIN (SELECT * FROM given_kernels SEMI JOIN seen USING (axes) WHERE side = 'b') AS b USING (axes, name)
JOIN matched_points USING (axes)
WHERE state = 'compared' AND (a.name IS NULL OR b.name IS NULL);

COMMENT ON VIEW changed_kernels IS 'One row a compared point and kernel, copy or fill that one side alone runs.';
COMMENT ON COLUMN changed_kernels.point IS 'The axes in words.';
COMMENT ON COLUMN changed_kernels.name IS 'Name of the kernel, copy or fill.';
COMMENT ON COLUMN changed_kernels.state IS 'only in a, or only in b.';
COMMENT ON COLUMN changed_kernels.a_share IS 'Its share of the device''s time in a; NULL = not there.';
COMMENT ON COLUMN changed_kernels.b_share IS 'Its share of the device''s time in b; NULL = not there.';
COMMENT ON COLUMN changed_kernels.a_us IS 'Its time a step in a; microseconds.';
COMMENT ON COLUMN changed_kernels.b_us IS 'Its time a step in b; microseconds.';
COMMENT ON COLUMN changed_kernels.a_calls IS 'Its calls a step in a.';
COMMENT ON COLUMN changed_kernels.b_calls IS 'Its calls a step in b.';
COMMENT ON COLUMN changed_kernels.axes IS 'JSON object of all axes.';
