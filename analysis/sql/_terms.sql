-- Grain: one row a point and environment.
-- The two terms of the step law: overhead (issue; on the CPU the floor) and work (device; on the CPU wall - floor),
-- their ratio, and what the step would take if the overhead went away.
CREATE VIEW _terms AS
WITH sides AS (
    SELECT
        *,
        device = 'cpu' AS is_cpu,
        warmup = 'false' AS is_cold,
        CASE WHEN is_cpu THEN floor_us ELSE issue_us END AS overhead_us,
        CASE WHEN is_cpu THEN floor_us_low ELSE issue_us_low END AS overhead_us_low,
        CASE WHEN is_cpu THEN floor_us_high ELSE issue_us_high END AS overhead_us_high,
        CASE WHEN is_cpu THEN wall_us - floor_us ELSE device_us END AS work_us,
        CASE WHEN is_cpu THEN wall_us_low - floor_us_high ELSE device_us_low END AS work_us_low,
        CASE WHEN is_cpu THEN wall_us_high - floor_us_low ELSE device_us_high END AS work_us_high
    FROM points
),
ratios AS (
    SELECT
        *,
        overhead_us IS NOT NULL AND work_us > 0 AND NOT (is_cpu AND coalesce(work_us_low, work_us) <= 0) AS has_ratio,
        has_ratio AND margin IS NOT NULL AS in_rounds
    FROM sides
)
SELECT
    ratios.* REPLACE (
        CASE WHEN in_rounds THEN margin WHEN has_ratio THEN overhead_us / work_us END AS margin,
        CASE WHEN in_rounds THEN margin_low WHEN has_ratio THEN overhead_us_low / work_us_high END AS margin_low,
        CASE
            WHEN in_rounds THEN margin_high
            WHEN has_ratio AND work_us_low <= 0 THEN 'inf'::DOUBLE
            WHEN has_ratio THEN overhead_us_high / work_us_low
        END AS margin_high
    ),
    blocking_calls IS NOT NULL AS blocks,
    array_to_string(json_keys(blocking_calls), ', ') AS blocking_names,
    CASE
        WHEN is_cpu THEN CASE WHEN has_ratio THEN work_us END
        WHEN replay_us IS NOT NULL THEN replay_us
        WHEN device_method = 'held' AND device_us IS NOT NULL THEN device_us
        ELSE busy_us + launch_gap_us * launches
    END AS without_overhead_us
FROM ratios
LEFT JOIN _launch_gaps USING (environment_id);

COMMENT ON VIEW _terms IS
    'One row a point and environment: overhead and work of a step, their ratio, the step without overhead.';
COMMENT ON COLUMN _terms.is_cpu IS 'Host and device are the same: wall = floor + work.';
COMMENT ON COLUMN _terms.is_cold IS 'Measured without warm-up: a first call has no steady state.';
COMMENT ON COLUMN _terms.overhead_us IS 'Overhead of a step: issue_us, on the CPU floor_us; microseconds.';
COMMENT ON COLUMN _terms.overhead_us_low IS 'Low end of the 95 % interval of overhead_us.';
COMMENT ON COLUMN _terms.overhead_us_high IS 'High end of the 95 % interval of overhead_us.';
COMMENT ON COLUMN _terms.work_us IS 'Work of a step: device_us, on the CPU wall_us - floor_us; microseconds.';
COMMENT ON COLUMN _terms.work_us_low IS 'Low end of work_us; on the CPU wall_us_low - floor_us_high.';
COMMENT ON COLUMN _terms.work_us_high IS 'High end of work_us; on the CPU wall_us_high - floor_us_low.';
COMMENT ON COLUMN _terms.has_ratio IS 'Both terms are known, and on the CPU the work is above the noise of the floor.';
COMMENT ON COLUMN _terms.in_rounds IS 'The ratio was formed within each round of measuring, and is taken as it is.';
COMMENT ON COLUMN _terms.margin IS
    'overhead_us / work_us, within each round where the run tells it, else of the two values; above 1 overhead binds.';
COMMENT ON COLUMN _terms.margin_low IS 'Low end of margin; without rounds lowest overhead / highest work.';
COMMENT ON COLUMN _terms.margin_high IS 'High end of margin; without rounds highest overhead / lowest work.';
COMMENT ON COLUMN _terms.blocks IS 'A synchronizing call was seen inside the step.';
COMMENT ON COLUMN _terms.blocking_names IS 'Names of the synchronizing calls.';
COMMENT ON COLUMN _terms.without_overhead_us IS
    'The step without overhead: replay_us, else held device_us, else busy_us + gap x launches; on the CPU work_us.';
