-- Rule: Activations hold most of the memory at the peak of the step.
-- Topic: memory
-- Severity: explains
-- Needs: sweep
-- Otherwise: who holds the memory of its steps was not recorded
-- Means: What forward keeps for backward piles up until backward begins, and grows with batch and sequence length,
--     while parameters and their states stay. It decides the largest batch that fits.
-- Cure: Activation checkpointing (torch.utils.checkpoint): keep the inputs of each layer alone and compute the rest
--     again in backward, for up to a third more arithmetic; or a smaller micro-batch with gradients added up.
-- See: https://arxiv.org/abs/1604.06174
WITH sized AS (
    SELECT
        s.run_id, h.* EXCLUDE (run_id),
        coalesce(h.held['activations'], 0) AS activation_bytes,
        TRY_CAST(_fact(s.params, 'layers') AS BIGINT) AS layers,
        coalesce(_fact(s.params, 'checkpoint'), 'false') = 'true' AS is_checkpointed
    FROM subjects AS s
    JOIN memory_held AS h USING (run_id)
    WHERE s.status = 'ok'
),
measured AS (
    SELECT t.run_id, h.peak_bytes AS other_peak_bytes, t.gain
    FROM setting_twins AS t
    JOIN memory_held AS h ON h.run_id = t.other_run_id
    WHERE t.key = 'checkpoint' AND t.other_value = 'true'
),
saving AS (
    SELECT
        s.*, m.other_peak_bytes, m.gain AS time_ratio,
        CASE
            WHEN m.other_peak_bytes IS NOT NULL THEN s.peak_bytes - m.other_peak_bytes
            -- those of the layer that is computed again are there even then
            WHEN layers > 1 THEN activation_bytes - activation_bytes // layers
        END AS saved_bytes,
        CASE WHEN m.other_peak_bytes IS NOT NULL THEN 'measured' WHEN layers > 1 THEN 'predicted' END AS basis
    FROM sized AS s
    LEFT JOIN measured AS m USING (run_id)
)
SELECT
    run_id,
    activation_bytes > 0.4 * total_bytes AND largest = 'activations' AND NOT is_checkpointed AS fired,
    CASE WHEN is_checkpointed THEN 'checkpointed already: ' ELSE '' END || 'activations have '
        || _percent(activation_bytes / total_bytes)
        || ' of the peak, ' || replace(largest, '_', ' ') || ' most (limit: 40 %, and most)' AS reason,
    'Activations hold ' || _bytes(activation_bytes) || ' of the ' || _bytes(peak_bytes)
        || ' at the peak of the step, in '
        || phase_path || ', ' || _percent(activation_bytes / total_bytes) || ' of it.' AS sentence,
    'Activation checkpointing' || CASE basis
        WHEN 'measured' THEN CASE
            WHEN saved_bytes > 0 THEN ' saves ' || _bytes(saved_bytes) || ' of the peak'
            ELSE ' does not lower the peak'
        END || coalesce(', and a step takes ' || _number(1 / time_ratio) || ' times as long', '')
            || ' (measured: checkpoint=true is in the store).'
        WHEN 'predicted' THEN ' saves at most ' || _bytes(saved_bytes) || ' (predicted: of ' || layers
            || ' layers one at a time has its activations, computed again in backward); try checkpoint=true.'
        ELSE ': keep the inputs of each layer alone and compute the rest again in backward; or a smaller '
            || 'micro-batch with gradients added up.'
    END AS cure,
    {'activation_bytes': activation_bytes, 'peak_bytes': peak_bytes, 'saved_bytes': saved_bytes,
        'basis': basis} AS figures
FROM saving
