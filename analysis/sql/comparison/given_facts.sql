-- Grain: one row a side (a, b), environment and fact: relation side_facts of both baselines.
CREATE TABLE given_facts AS
SELECT 'a' AS side, unnest(facts, recursive := true) FROM baseline_a
UNION ALL BY NAME
SELECT 'b' AS side, unnest(facts, recursive := true) FROM baseline_b;

COMMENT ON TABLE given_facts IS 'One row a side, environment and fact.';
