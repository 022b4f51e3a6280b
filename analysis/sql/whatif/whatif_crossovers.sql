-- Grain: one row a series, as in `crossovers`.
-- Where it crosses over as measured (`_now_crossovers`) and, by the two-term law, at another speed (`crossovers`).
CREATE VIEW whatif_crossovers AS
SELECT
    now.environment_id,
    now.workload, now.size, now.dtype, now.batch, now.compile, now.dynamic, now.warmup, now.device, now.params,
    now.axis,
    now."text" AS crossover, moved."text" AS then_crossover,
    now."text" IS DISTINCT FROM moved."text" AS moves,
    now."value", moved."value" AS then_value,
    now.low, moved.low AS then_low,
    now.high, moved.high AS then_high,
    now.status, moved.status AS then_status,
    moved.reason AS then_reason
FROM _now_crossovers AS now
JOIN crossovers AS moved
    ON now.axis = moved.axis
    AND now.environment_id IS NOT DISTINCT FROM moved.environment_id
    AND now.workload IS NOT DISTINCT FROM moved.workload
    AND now.size IS NOT DISTINCT FROM moved.size
    AND now.dtype IS NOT DISTINCT FROM moved.dtype
    AND now.batch IS NOT DISTINCT FROM moved.batch
    AND now.compile IS NOT DISTINCT FROM moved.compile
    AND now.dynamic IS NOT DISTINCT FROM moved.dynamic
    AND now.warmup IS NOT DISTINCT FROM moved.warmup
    AND now.device IS NOT DISTINCT FROM moved.device
    AND now.params IS NOT DISTINCT FROM moved.params;

COMMENT ON VIEW whatif_crossovers IS 'One row a series: its crossover as measured, and at another speed.';
COMMENT ON COLUMN whatif_crossovers.crossover IS 'The crossover as it was measured, in words.';
COMMENT ON COLUMN whatif_crossovers.then_crossover IS
    'The crossover at the other speed, in words; outside of the points that were measured it is above or below them.';
COMMENT ON COLUMN whatif_crossovers.moves IS 'The two differ.';
COMMENT ON COLUMN whatif_crossovers.then_value IS 'Value of the axis at the crossover at the other speed; NULL = none.';
COMMENT ON COLUMN whatif_crossovers.then_low IS 'Low end of its bracket.';
COMMENT ON COLUMN whatif_crossovers.then_high IS 'High end of its bracket.';
COMMENT ON COLUMN whatif_crossovers.then_status IS 'Its status.';
COMMENT ON COLUMN whatif_crossovers.then_reason IS 'Why this status.';
