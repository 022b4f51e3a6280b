-- Grain: one row a compared point and quantity that a side has, and one row a point that does not compare.
-- SLOWER: b is larger, by more than the threshold, and not by chance (the probability, corrected for all rows, is at
-- most 0.05). FASTER the same the other way. SAME: the whole 95 % interval lies within the threshold. UNCLEAR:
-- neither.
CREATE VIEW changes AS
WITH judged AS (
    SELECT
        r.*,
        exp(log_ratio) AS ratio,
        exp(log_ratio - _t_quantile(dof) * error) AS low,
        exp(log_ratio + _t_quantile(dof) * error) AS high,
        threshold,
        chance,
        corrected
    FROM _ratios AS r
    JOIN _chances USING (axes, quantity)
    JOIN _thresholds USING (quantity)
),
alone AS (
    SELECT t.axes, t.quantity, t.side, t."value", t.runs
    FROM given_times AS t
    JOIN matched_points USING (axes)
    ANTI JOIN _ratios AS r ON r.axes = t.axes AND r.quantity = t.quantity
    WHERE state = 'compared'
),
rows AS (
    SELECT
        axes, quantity, a_value, b_value, ratio, low, high, threshold, chance, corrected, basis, a_runs, b_runs,
        a_method, b_method,
        CASE
            WHEN corrected <= 0.05 AND ratio > 1 + threshold THEN 'SLOWER'
            WHEN corrected <= 0.05 AND ratio < 1 / (1 + threshold) THEN 'FASTER'
            WHEN low >= 1 / (1 + threshold) AND high <= 1 + threshold THEN 'SAME'
            ELSE 'UNCLEAR'
        END AS verdict
    FROM judged
    UNION ALL BY NAME
    SELECT
        axes, quantity,
        CASE WHEN side = 'a' THEN "value" END AS a_value, CASE WHEN side = 'b' THEN "value" END AS b_value,
        CASE WHEN side = 'a' THEN runs END AS a_runs, CASE WHEN side = 'b' THEN runs END AS b_runs,
        CASE WHEN side = 'a' THEN 'ONLY IN A' ELSE 'ONLY IN B' END AS verdict
    FROM alone
    UNION ALL BY NAME
    SELECT axes, a_runs, b_runs, upper(state) AS verdict FROM matched_points WHERE state <> 'compared'
)
SELECT
    verdict, point, workload, size, dtype, batch, compile, dynamic, warmup, device, params,
    quantity,
    CASE
        WHEN quantity = 'compile' THEN 's'
        WHEN quantity = 'memory' THEN 'bytes'
        WHEN quantity IS NOT NULL THEN 'us'
    END AS unit,
    r.a_value, r.b_value, ratio, low, high, threshold, chance, corrected, basis,
    r.a_runs, r.b_runs, a_status, b_status,
    CASE
        WHEN state = 'newly measured' THEN 'in a ' || a_reason
        WHEN state <> 'compared' THEN b_reason
        ELSE nullif(concat_ws('; ',
            CASE WHEN a_method <> b_method
                THEN 'device time was taken otherwise: ' || a_method || ' in a, ' || b_method || ' in b' END,
            CASE WHEN source_differs THEN 'the workload''s source differs' END,
            CASE
                WHEN a_contended AND b_contended THEN 'something else used the host in a and b'
                WHEN a_contended THEN 'something else used the host in a'
                WHEN b_contended THEN 'something else used the host in b'
            END
        ), '')
    END AS note,
    a_environment_id, b_environment_id, a_run_id, b_run_id, axes
FROM rows AS r
JOIN matched_points USING (axes);

COMMENT ON VIEW changes IS
    'One row a matched point and quantity: both values, their ratio with its interval, a verdict.';
COMMENT ON COLUMN changes.verdict IS
    'SLOWER (b takes longer, or more memory), FASTER, SAME, UNCLEAR; of a point without quantity NEWLY FAILED, SKIPPED
    (in b), NEWLY MEASURED, FAILED ON BOTH; ONLY IN A, ONLY IN B, with a quantity where one side lacks that alone.';
COMMENT ON COLUMN changes.point IS 'The axes in words.';
COMMENT ON COLUMN changes.workload IS 'What was measured.';
COMMENT ON COLUMN changes.size IS 'Axis size.';
COMMENT ON COLUMN changes.dtype IS 'Number format.';
COMMENT ON COLUMN changes.batch IS 'Axis batch; NULL = none.';
COMMENT ON COLUMN changes.compile IS 'false, true or the mode of torch.compile.';
COMMENT ON COLUMN changes.dynamic IS 'dynamic of torch.compile; NULL for eager points.';
COMMENT ON COLUMN changes.warmup IS 'true, false (a cold point) or a number of steps.';
COMMENT ON COLUMN changes.device IS 'Kind of device: cpu, cuda.';
COMMENT ON COLUMN changes.params IS 'JSON object of the further axes.';
COMMENT ON COLUMN changes.quantity IS 'wall, issue, device, compile or memory; NULL = the point as a whole.';
COMMENT ON COLUMN changes.unit IS 'Of a_value and b_value: us a step, s, bytes.';
COMMENT ON COLUMN changes.a_value IS 'Median of the runs of a.';
COMMENT ON COLUMN changes.b_value IS 'Median of the runs of b.';
COMMENT ON COLUMN changes.ratio IS 'b_value / a_value: above 1 b takes longer, or more.';
COMMENT ON COLUMN changes.low IS 'Low end of the 95 % interval of ratio, of this row alone; NULL = unknown.';
COMMENT ON COLUMN changes.high IS 'High end of the 95 % interval of ratio, of this row alone; NULL = unknown.';
COMMENT ON COLUMN changes.threshold IS 'A change up to this fraction is none.';
COMMENT ON COLUMN changes.chance IS
    'Probability of a ratio as far from 1 as this one where nothing has changed; NULL = unknown.';
COMMENT ON COLUMN changes.corrected IS 'chance, corrected for the number of rows (Holm).';
COMMENT ON COLUMN changes.basis IS
    'What the interval rests on: repeated runs, points among each other, runs alone, nothing.';
COMMENT ON COLUMN changes.a_runs IS 'Runs of a behind the value.';
COMMENT ON COLUMN changes.b_runs IS 'Runs of b behind the value.';
COMMENT ON COLUMN changes.a_status IS 'Status in a.';
COMMENT ON COLUMN changes.b_status IS 'Status in b.';
COMMENT ON COLUMN changes.note IS
    'Why a point does not compare; else what else differs, and whether the host was disturbed.';
COMMENT ON COLUMN changes.a_environment_id IS 'Where a was measured.';
COMMENT ON COLUMN changes.b_environment_id IS 'Where b was measured.';
COMMENT ON COLUMN changes.a_run_id IS 'Latest run of a.';
COMMENT ON COLUMN changes.b_run_id IS 'Latest run of b.';
COMMENT ON COLUMN changes.axes IS 'JSON object of all axes.';
