-- Grain: one row a fact of the environments that the two sides do not share.
-- Environments in which neither side has a matched point are left out, where any point matches.
CREATE VIEW differing_facts AS
WITH used AS (
    SELECT DISTINCT unnest([
        {'side': 'a', 'environment_id': a_environment_id}, {'side': 'b', 'environment_id': b_environment_id}
    ], recursive := true)
    FROM matched_points
    WHERE a_run_id IS NOT NULL AND b_run_id IS NOT NULL
),
told AS (
    SELECT side, fact, list(DISTINCT "value" ORDER BY "value") AS "values", min(place) AS place
    FROM given_facts
    WHERE (side, environment_id) IN (FROM used) OR NOT EXISTS (FROM used)
    GROUP BY side, fact
)
SELECT
    fact, array_to_string(a."values", ', ') AS a_value, array_to_string(b."values", ', ') AS b_value,
    coalesce(a.place, b.place) AS place
FROM (FROM told WHERE side = 'a') AS a
FULL JOIN (FROM told WHERE side = 'b') AS b USING (fact)
WHERE a."values" IS DISTINCT FROM b."values";

COMMENT ON VIEW differing_facts IS 'One row a fact of the environments that differs between a and b.';
COMMENT ON COLUMN differing_facts.fact IS 'torch, card, driver, host CPU, measure, `variable NAME`, ...';
COMMENT ON COLUMN differing_facts.a_value IS 'What it is in a; NULL = not known or not set.';
COMMENT ON COLUMN differing_facts.b_value IS 'What it is in b; NULL = not known or not set.';
COMMENT ON COLUMN differing_facts.place IS 'Place in the order of telling.';
