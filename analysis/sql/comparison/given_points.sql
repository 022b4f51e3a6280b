-- Grain: one row a side (a, b) and set of axes: relation side_points of both baselines.
CREATE TABLE given_points AS
SELECT 'a' AS side, unnest(points, recursive := true) FROM baseline_a
UNION ALL BY NAME
SELECT 'b' AS side, unnest(points, recursive := true) FROM baseline_b;

COMMENT ON TABLE given_points IS 'One row a side and set of axes.';
