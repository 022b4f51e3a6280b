-- Grain: one row a side (a, b), point and kernel: relation side_kernels of both baselines.
CREATE TABLE given_kernels AS
SELECT 'a' AS side, unnest(kernels, recursive := true) FROM baseline_a
UNION ALL BY NAME
SELECT 'b' AS side, unnest(kernels, recursive := true) FROM baseline_b;

COMMENT ON TABLE given_kernels IS 'One row a side, point and kernel.';
