-- Grain: one row a kind of step and quantity (wall, busy, host), both sides beside each other.
-- Kinds are matched by name; where each side has one kind, those two are, whatever they are called.
CREATE OR REPLACE TEMP VIEW compared_steps AS
WITH given AS (
    SELECT c.side, coalesce(s.kind, 'step') AS kind, s.wall_us, s.busy_us, s.host_us
    FROM compared_runs AS c
    JOIN _steps_of('compared_runs') AS s USING (run_id)
),
named AS (
    SELECT
        * REPLACE (CASE WHEN every_side_has_one AND kinds > 1 THEN 'step' ELSE kind END AS kind)
    FROM given
    CROSS JOIN (
        SELECT
            count(DISTINCT kind) AS kinds,
            count(DISTINCT kind) FILTER (side = 'a') = 1 AND count(DISTINCT kind) FILTER (side = 'b') = 1
                AS every_side_has_one
        FROM given
    )
),
measured AS (
    SELECT
        side, kind, quantity,
        count(us) AS steps, median(us) AS us, quantile_cont(us, 0.25) AS low_us, quantile_cont(us, 0.75) AS high_us
    FROM (
        SELECT side, kind, unnest([
            {'quantity': 'wall', 'us': wall_us}, {'quantity': 'busy', 'us': busy_us}, {'quantity': 'host', 'us': host_us}
        ], recursive := true)
        FROM named
    )
    WHERE us IS NOT NULL
    GROUP BY ALL
)
SELECT
    kind, quantity,
    a.steps AS a_steps, b.steps AS b_steps,
    a.us AS a_us, a.low_us AS a_low_us, a.high_us AS a_high_us,
    b.us AS b_us, b.low_us AS b_low_us, b.high_us AS b_high_us
FROM (FROM measured WHERE side = 'a') AS a
FULL JOIN (FROM measured WHERE side = 'b') AS b USING (kind, quantity);

COMMENT ON VIEW compared_steps IS 'One row a kind of step and quantity: steps, median and quartiles of both sides.';
COMMENT ON COLUMN compared_steps.kind IS 'Kind of the step; `step` where there is one kind without a name.';
COMMENT ON COLUMN compared_steps.quantity IS 'wall, busy (device) or host; all under the profiler.';
COMMENT ON COLUMN compared_steps.a_steps IS 'Steps of a.';
COMMENT ON COLUMN compared_steps.b_steps IS 'Steps of b.';
COMMENT ON COLUMN compared_steps.a_us IS 'Median of a''s steps; microseconds; NULL = a has none.';
COMMENT ON COLUMN compared_steps.a_low_us IS 'First quartile of a''s steps; microseconds.';
COMMENT ON COLUMN compared_steps.a_high_us IS 'Third quartile of a''s steps; microseconds.';
COMMENT ON COLUMN compared_steps.b_us IS 'Median of b''s steps; microseconds; NULL = b has none.';
COMMENT ON COLUMN compared_steps.b_low_us IS 'First quartile of b''s steps; microseconds.';
COMMENT ON COLUMN compared_steps.b_high_us IS 'Third quartile of b''s steps; microseconds.';
