-- Rule: Temporaries hold most of the memory at the peak of the step.
-- Topic: memory
-- Severity: costs
-- Needs: sweep
-- Otherwise: who holds the memory of its steps was not recorded
-- Means: A result that the next operation uses up is written whole before it is read: the matrix of scores of naive
--     attention, which grows with the square of the sequence length, or the steps of an expression.
-- Cure: Operations that keep such results on chip: scaled_dot_product_attention for attention, torch.compile for
--     elementwise chains; in-place operations where nothing else needs the input.
-- See: https://arxiv.org/abs/2205.14135
WITH sized AS (
    SELECT s.run_id, h.* EXCLUDE (run_id), coalesce(h.held['temporaries'], 0) AS temporary_bytes
    FROM subjects AS s
    JOIN memory_held AS h USING (run_id)
    WHERE s.status = 'ok'
),
measured AS (
    SELECT
        t.run_id,
        min(h.peak_bytes) AS other_peak_bytes,
        arg_min(t.key || '=' || t.other_value, h.peak_bytes) AS other_setting,
        arg_min(t.gain, h.peak_bytes) AS gain
    FROM setting_twins AS t
    JOIN memory_held AS h ON h.run_id = t.other_run_id
    WHERE t.key IN ('impl', 'attention', 'backend')
    GROUP BY t.run_id
),
attending AS (
    SELECT run_id, bool_or(contains(name, 'softmax')) AND bool_or(regexp_matches(name,
        '^aten::(b?mm|matmul)$')) AS is_attention
    FROM operators
    GROUP BY run_id
)
SELECT
    run_id,
    temporary_bytes > 0.4 * total_bytes AND largest = 'temporaries' AS fired,
    'temporaries have ' || _percent(temporary_bytes / total_bytes) || ' of the peak, ' || replace(largest, '_', ' ')
        || ' most (limit: 40 %, and most)' AS reason,
    'Temporaries hold ' || _bytes(temporary_bytes) || ' of the ' || _bytes(peak_bytes) || ' at the peak of the step, '
        || _percent(temporary_bytes / total_bytes) || ' of it'
        || CASE WHEN phase_path <> 'step' THEN ', in ' || phase_path ELSE '' END
        || CASE WHEN is_attention THEN ': products and a softmax between them keep the scores of attention in memory'
            ELSE '' END
        || '.' AS sentence,
    CASE
        WHEN m.other_peak_bytes < s.peak_bytes THEN other_setting || ' saves '
            || _bytes(s.peak_bytes - m.other_peak_bytes)
            || ' of the peak' || coalesce(', and a step is ' || _number(m.gain) || ' times as fast', '')
            || ' (measured: it is in the store).'
        WHEN is_attention THEN 'scaled_dot_product_attention keeps the scores on chip: at most '
            || _bytes(temporary_bytes)
            || ' less (predicted).'
        ELSE 'Operations that keep such results on chip (torch.compile fuses elementwise chains), or in-place ones: '
            || 'at most ' || _bytes(temporary_bytes) || ' less (predicted).'
    END AS cure,
    CASE WHEN m.other_peak_bytes < s.peak_bytes THEN m.gain END AS gain,
    {
        'temporary_bytes': temporary_bytes, 'peak_bytes': s.peak_bytes,
        'saved_bytes': CASE WHEN m.other_peak_bytes < s.peak_bytes THEN s.peak_bytes - m.other_peak_bytes
            ELSE temporary_bytes END,
        'basis': CASE WHEN m.other_peak_bytes < s.peak_bytes THEN 'measured' ELSE 'predicted' END
    } AS figures
FROM sized AS s
LEFT JOIN measured AS m USING (run_id)
LEFT JOIN attending AS a USING (run_id)
