-- Grain: one row a side (a, b) and series: relation side_crossovers of both baselines.
CREATE TABLE given_crossovers AS
SELECT 'a' AS side, unnest(crossovers, recursive := true) FROM baseline_a
UNION ALL BY NAME
SELECT 'b' AS side, unnest(crossovers, recursive := true) FROM baseline_b;

COMMENT ON TABLE given_crossovers IS 'One row a side and series.';
