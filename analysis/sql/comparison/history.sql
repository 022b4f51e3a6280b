-- Grain: one row a point (or series, of a crossover) and sweep.
-- SLOWER: the value is larger than the one before, by more than the threshold, and not by chance (corrected for all
-- rows); FASTER the same the other way. A crossover is HIGHER or LOWER where the two brackets lie apart.
CREATE OR REPLACE TEMP VIEW history AS
WITH judged AS (
    SELECT
        c.*,
        exp(log_ratio) AS ratio,
        exp(log_ratio - _t_quantile(dof) * error) AS ratio_low,
        exp(log_ratio + _t_quantile(dof) * error) AS ratio_high,
        getvariable('history_threshold')::DOUBLE AS threshold,
        chance, corrected
    FROM _history_changes AS c
    LEFT JOIN _history_chances USING (axes, sweep_id, environment_id)
)
SELECT
    h.name, h.axis, h.sweep_id, h.started_at, h.environment_id,
    h."value", h.low, h.high, h.runs, h.status,
    j.previous, j.ratio, j.ratio_low, j.ratio_high, j.chance, j.corrected,
    CASE
        WHEN h."value" IS NULL AND h.axis IS NULL THEN 'NOT MEASURED'
        WHEN h.axis IS NOT NULL AND j.previous_high <= h.low THEN 'HIGHER'
        WHEN h.axis IS NOT NULL AND j.previous_low >= h.high THEN 'LOWER'
        WHEN j.previous IS NULL THEN 'FIRST'
        WHEN j.is_otherwise THEN 'UNCLEAR'
        WHEN h.axis IS NULL AND corrected <= 0.05 AND ratio > 1 + threshold THEN 'SLOWER'
        WHEN h.axis IS NULL AND corrected <= 0.05 AND ratio < 1 / (1 + threshold) THEN 'FASTER'
        WHEN h.axis IS NULL AND ratio_low >= 1 / (1 + threshold) AND ratio_high <= 1 + threshold THEN 'SAME'
        WHEN h.axis IS NOT NULL AND ratio BETWEEN 1 / (1 + threshold) AND 1 + threshold THEN 'SAME'
        ELSE 'UNCLEAR'
    END AS verdict,
    concat_ws('; ', h.reason,
        CASE WHEN j.is_otherwise THEN 'taken otherwise: ' || j.previous_method || ' before, ' || j.method || ' now' END,
        CASE WHEN j.previous_environment_id <> h.environment_id THEN coalesce(
        nullif(concat_ws(', ',
            CASE WHEN e.torch IS DISTINCT FROM p.torch THEN 'torch ' || concat_ws(' to ', p.torch, e.torch) END,
            CASE WHEN e.device_name IS DISTINCT FROM p.device_name
                THEN 'device ' || concat_ws(' to ', p.device_name, e.device_name) END,
            CASE WHEN e.driver IS DISTINCT FROM p.driver THEN 'driver ' || concat_ws(' to ', p.driver, e.driver) END,
            CASE WHEN e.host_cpu IS DISTINCT FROM p.host_cpu
                THEN 'host CPU ' || concat_ws(' to ', p.host_cpu, e.host_cpu) END,
            CASE WHEN e.affinity IS DISTINCT FROM p.affinity
                THEN 'CPUs ' || concat_ws(' to ', p.affinity, e.affinity) END,
            CASE WHEN e.measure_version IS DISTINCT FROM p.measure_version THEN 'rules of measuring '
                || concat_ws(' to ', p.measure_version::VARCHAR, e.measure_version::VARCHAR) END
        ), ''),
        'another environment') END) AS note,
    j.basis, h.axes
FROM _history AS h
LEFT JOIN judged AS j ON j.axes = h.axes AND j.axis IS NOT DISTINCT FROM h.axis AND j.sweep_id = h.sweep_id
    AND j.environment_id IS NOT DISTINCT FROM h.environment_id
LEFT JOIN environments AS e ON e.environment_id = h.environment_id
LEFT JOIN environments AS p ON p.environment_id = j.previous_environment_id;

COMMENT ON VIEW history IS
    'One row a point or series and sweep: one quantity, and whether it changed since the one before.';
COMMENT ON COLUMN history.name IS 'The axes of the point, or of the series, in words.';
COMMENT ON COLUMN history.axis IS 'Of a crossover, the axis that it lies on; NULL = the row is a point''s.';
COMMENT ON COLUMN history.sweep_id IS 'The command that measured it.';
COMMENT ON COLUMN history.started_at IS 'When the first of the sweep''s runs of it began, UTC.';
COMMENT ON COLUMN history.environment_id IS 'Where it was measured.';
COMMENT ON COLUMN history."value" IS 'Median of the sweep''s ok runs, or the crossover; NULL = not measured, see note.';
COMMENT ON COLUMN history.low IS 'Least low end of the runs'' 95 % intervals, or of the crossover''s bracket.';
COMMENT ON COLUMN history.high IS 'Greatest high end of the runs'' 95 % intervals, or of the crossover''s bracket.';
COMMENT ON COLUMN history.runs IS 'Number of runs behind the value.';
COMMENT ON COLUMN history.status IS 'ok; else why there is no value; of a crossover its status.';
COMMENT ON COLUMN history.previous IS 'The value in the sweep before that has one.';
COMMENT ON COLUMN history.ratio IS 'value / previous.';
COMMENT ON COLUMN history.ratio_low IS 'Low end of the 95 % interval of ratio.';
COMMENT ON COLUMN history.ratio_high IS 'High end of the 95 % interval of ratio.';
COMMENT ON COLUMN history.chance IS 'Probability of such a ratio where nothing has changed; NULL = unknown.';
COMMENT ON COLUMN history.corrected IS 'chance, corrected for the number of rows (Holm).';
COMMENT ON COLUMN history.verdict IS
    'FIRST, SAME, SLOWER, FASTER, UNCLEAR, NOT MEASURED; of a crossover HIGHER or LOWER for SLOWER and FASTER.';
COMMENT ON COLUMN history.note IS 'Why there is no value; what changed in the environment since the sweep before.';
COMMENT ON COLUMN history.basis IS
    'What ratio_low and ratio_high rest on: sweeps among each other; runs alone, which say nothing of another session.';
COMMENT ON COLUMN history.axes IS 'JSON object of all axes.';
