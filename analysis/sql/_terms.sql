-- Grain: one row a point and environment.
-- The two terms of the step law: overhead (issue; on the CPU the floor) and work (device; on the CPU wall - floor),
-- their ratio, and what the step would take if the overhead went away.
-- Where at least three points launch the same, they share one issue time, and the margin of the rounds moves with it.
CREATE VIEW _terms AS
WITH alike AS (
    SELECT
        p.*,
        p.issue_us AS own_issue_us,
        i.issue_us AS pooled_us, i.issue_us_low AS pooled_us_low, i.issue_us_high AS pooled_us_high,
        i.points AS pooled_points,
        greatest(0.1, 3 * i.sd_frac) AS noise_log,
        coalesce(i.issue_us IS NOT NULL AND p.device_us_low > 0, false) AS is_pooled
    FROM points AS p
    LEFT JOIN _launch_points USING (point_id, environment_id)
    LEFT JOIN _issue_times AS i USING (environment_id, launch_group)
),
pooled AS (
    SELECT
        *,
        coalesce(margin / own_issue_us, 1 / device_us) * pooled_us AS pooled_margin,
        exp(sqrt(pow(ln(pooled_us_high / pooled_us), 2) + pow(ln(device_us_high / device_us_low) / 2, 2))) AS reach,
        pooled_points AS issue_points,
        abs(ln(own_issue_us / pooled_us)) > noise_log AS host_noise
    FROM alike
    WHERE is_pooled
),
issued AS (
    SELECT * REPLACE (
        pooled_us AS issue_us, pooled_us_low AS issue_us_low, pooled_us_high AS issue_us_high,
        pooled_margin AS margin, pooled_margin / reach AS margin_low, pooled_margin * reach AS margin_high
    )
    FROM pooled
    UNION ALL BY NAME
    FROM alike WHERE NOT is_pooled
),
sides AS (
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
    FROM issued
),
ratios AS (
    SELECT
        *,
        overhead_us IS NOT NULL AND work_us > 0
            AND (margin IS NOT NULL OR NOT is_cpu OR coalesce(work_us_low, work_us) > 0) AS has_ratio,
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
        WHEN device_method = 'held' AND device_us IS NOT NULL
            THEN _without_launches(device_us, busy_us, launches, graph_gap_us)
        ELSE busy_us + launch_gap_us * launches
    END AS without_overhead_us
FROM ratios
LEFT JOIN _launch_gaps USING (environment_id)
LEFT JOIN _graph_gaps AS g ON g.environment_id = ratios.environment_id AND g.half IS NULL;

COMMENT ON VIEW _terms IS
    'One row a point and environment: overhead and work of a step, their ratio, the step without overhead.';
COMMENT ON COLUMN _terms.issue_us IS
    'Host time to issue one step, that of all points that launch the same where there are three; microseconds.';
COMMENT ON COLUMN _terms.own_issue_us IS 'Issue time of the point''s own runs; microseconds.';
COMMENT ON COLUMN _terms.is_pooled IS 'issue_us is that of all points that launch the same.';
COMMENT ON COLUMN _terms.issue_points IS
    'Number of points that launch the same and share issue_us; NULL = issue_us is the point''s own.';
COMMENT ON COLUMN _terms.host_noise IS
    'own_issue_us is farther from issue_us than 3 robust standard deviations and 10 %: something disturbed the host.';
COMMENT ON COLUMN _terms.is_cpu IS 'Host and device are the same: wall = floor + work.';
COMMENT ON COLUMN _terms.is_cold IS 'Measured without warm-up: a first call has no steady state.';
COMMENT ON COLUMN _terms.overhead_us IS 'Overhead of a step: issue_us, on the CPU floor_us; microseconds.';
COMMENT ON COLUMN _terms.overhead_us_low IS 'Low end of the 95 % interval of overhead_us.';
COMMENT ON COLUMN _terms.overhead_us_high IS 'High end of the 95 % interval of overhead_us.';
COMMENT ON COLUMN _terms.work_us IS 'Work of a step: device_us, on the CPU wall_us - floor_us; microseconds.';
COMMENT ON COLUMN _terms.work_us_low IS 'Low end of work_us; on the CPU wall_us_low - floor_us_high.';
COMMENT ON COLUMN _terms.work_us_high IS 'High end of work_us; on the CPU wall_us_high - floor_us_low.';
COMMENT ON COLUMN _terms.has_ratio IS
    'Both terms are known, and on the CPU the work is above the noise of the floor, in every round where those are told.';
COMMENT ON COLUMN _terms.in_rounds IS 'The ratio was formed within each round of measuring, and is taken as it is.';
COMMENT ON COLUMN _terms.margin IS
    'overhead_us / work_us, within each round where the run tells it, else of the two values; above 1 overhead binds.';
COMMENT ON COLUMN _terms.margin_low IS 'Low end of margin; without rounds lowest overhead / highest work.';
COMMENT ON COLUMN _terms.margin_high IS 'High end of margin; without rounds highest overhead / lowest work.';
COMMENT ON COLUMN _terms.blocks IS 'A synchronizing call was seen inside the step.';
COMMENT ON COLUMN _terms.blocking_names IS 'Names of the synchronizing calls.';
COMMENT ON COLUMN _terms.without_overhead_us IS
    'The step without overhead: replay_us, else held device_us less what its launches cost beyond those in a graph, else
    busy_us + gap x launches; on the CPU work_us.';
