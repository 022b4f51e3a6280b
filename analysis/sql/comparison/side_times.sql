-- Grain: one row an ok point of the side and quantity that it has.
-- The value is the median of the runs. own_sd is what the runs' own intervals say (bytes are counted: they have no
-- error of their own), sd_frac what repeated runs in that environment say: relation side_spread, of the whole store;
-- where the point's own runs differ more than twice as much, what they say.
CREATE OR REPLACE TEMP VIEW side_times AS
WITH measured AS (
    SELECT point_id, environment_id, quantity, differs_as, "value", own_reach / 1.959964 AS own_sd
    FROM _run_times
    WHERE quantity IN ('wall', 'issue', 'device') AND "value" > 0
    UNION ALL
    SELECT point_id, environment_id, quantity, quantity, "value", CASE WHEN quantity = 'memory' THEN 0 END
    FROM (
        SELECT point_id, environment_id, unnest([
            {'quantity': 'compile', 'value': compile_s}, {'quantity': 'memory', 'value': peak_bytes}
        ], recursive := true)
        FROM stg_runs
        WHERE status = 'ok'
    )
    WHERE "value" > 0
),
methods AS (
    SELECT point_id, environment_id, string_agg(DISTINCT device_method, ', ' ORDER BY device_method) AS methods
    FROM stg_runs
    WHERE status = 'ok'
    GROUP BY point_id, environment_id
)
SELECT
    axes, p.environment_id, m.quantity,
    any_value(differs_as) AS differs_as,
    median("value") AS "value",
    count(*) AS runs,
    sqrt(avg(own_sd * own_sd)) AS own_sd,
    any_value(CASE WHEN point_sd > 2 * sd_frac THEN point_sd ELSE sd_frac END) AS sd_frac,
    any_value(dof) AS dof,
    CASE WHEN m.quantity = 'device' THEN methods END AS method
FROM side_points AS p
JOIN methods USING (point_id, environment_id)
JOIN measured AS m USING (point_id, environment_id)
LEFT JOIN _point_spread AS o
    ON o.point_id = p.point_id AND o.environment_id = p.environment_id AND o.quantity = m.quantity
LEFT JOIN side_spread AS s ON s.environment_id = p.environment_id AND s.quantity = differs_as
GROUP BY axes, p.environment_id, m.quantity, methods;

COMMENT ON VIEW side_times IS 'One row a point of one side and quantity: its value, and how sure that is.';
COMMENT ON COLUMN side_times.axes IS 'JSON object of all axes.';
COMMENT ON COLUMN side_times.environment_id IS 'Where it was measured.';
COMMENT ON COLUMN side_times.quantity IS 'wall, issue, device, compile or memory.';
COMMENT ON COLUMN side_times.differs_as IS 'Quantity whose spread between runs it has: relation side_spread.';
COMMENT ON COLUMN side_times."value" IS 'Median of the runs: microseconds a step; compile: seconds; memory: bytes.';
COMMENT ON COLUMN side_times.runs IS 'Number of ok runs with this quantity.';
COMMENT ON COLUMN side_times.own_sd IS
    'Standard deviation of the logarithm by the runs'' own intervals; NULL = they have none.';
COMMENT ON COLUMN side_times.sd_frac IS 'Standard deviation of the logarithm between runs; NULL = unknown.';
COMMENT ON COLUMN side_times.dof IS 'Degrees of freedom of sd_frac.';
COMMENT ON COLUMN side_times.method IS
    'How a device time was taken: held, replay, profile, or several; NULL for all others.';
