-- Grain: one row a side (a, b), point and quantity: relation side_times of both baselines.
-- sd_frac that one side does not know is the other's where both were measured in one environment.
CREATE TABLE given_times AS
WITH given AS (
    SELECT 'a' AS side, unnest(times, recursive := true) FROM baseline_a
    UNION ALL BY NAME
    SELECT 'b' AS side, unnest(times, recursive := true) FROM baseline_b
),
known AS (
    SELECT environment_id, differs_as, min(sd_frac) AS known_sd_frac, min(dof) AS known_dof
    FROM given
    WHERE sd_frac IS NOT NULL
    GROUP BY environment_id, differs_as
)
SELECT g.* REPLACE (coalesce(sd_frac, known_sd_frac) AS sd_frac, coalesce(dof, known_dof) AS dof)
FROM given AS g
LEFT JOIN known AS k USING (environment_id, differs_as);

COMMENT ON TABLE given_times IS 'One row a side, point and quantity.';
