-- Rule: The optimizer's states hold most of the memory at the peak of the step.
-- Topic: memory
-- Severity: explains
-- Needs: sweep
-- Otherwise: who holds the memory of its steps was not recorded
-- Means: Adam keeps two numbers for every weight, usually in float32: twice the weights, whatever the batch.
-- Cure: States of 8 bits (two bytes a weight, and a scale for every 256 of them), states shared out over the ranks
--     (ZeRO, FSDP), or an optimizer with fewer.
-- See: https://arxiv.org/abs/2110.02861
WITH sized AS (
    SELECT
        s.run_id, h.* EXCLUDE (run_id),
        coalesce(h.held['optimizer_state'], 0) AS state_bytes,
        coalesce(_fact(s.params, 'optimizer'), '') AS optimizer,
        CASE WHEN s.dtype IN ('bf16', 'fp16') THEN 2 ELSE 4 END AS item_bytes
    FROM subjects AS s
    JOIN memory_held AS h USING (run_id)
    WHERE s.status = 'ok'
),
measured AS (
    SELECT t.run_id, min(h.peak_bytes) AS other_peak_bytes, arg_min(t.other_value, h.peak_bytes) AS other_value
    FROM setting_twins AS t
    JOIN memory_held AS h ON h.run_id = t.other_run_id
    WHERE t.key = 'optimizer' AND contains(t.other_value, '8bit')
    GROUP BY t.run_id
),
saving AS (
    SELECT
        s.*, m.other_value,
        -- each state: one byte, and 4 bytes of scale for every 256 of them
        coalesce(s.peak_bytes - m.other_peak_bytes,
            (state_bytes * (1 - (1 + 4 / 256) / item_bytes))::BIGINT) AS saved_bytes,
        CASE WHEN m.other_value IS NULL THEN 'predicted' ELSE 'measured' END AS basis
    FROM sized AS s
    LEFT JOIN measured AS m USING (run_id)
)
SELECT
    run_id,
    state_bytes > 0.4 * total_bytes AND largest = 'optimizer_state' AND NOT contains(optimizer, '8bit') AS fired,
    'states of the optimizer have ' || _percent(state_bytes / total_bytes) || ' of the peak, ' || replace(largest,
        '_', ' ')
        || ' most (limit: 40 %, and most)' AS reason,
    'The states of the optimizer' || CASE WHEN optimizer <> '' THEN ' (' || optimizer || ')' ELSE '' END || ' hold '
        || _bytes(state_bytes) || ' of the ' || _bytes(peak_bytes) || ' at the peak of the step, '
        || _percent(state_bytes / total_bytes) || ' of it'
        || coalesce(', ' || _number(state_bytes / nullif(held['parameters'], 0))
            || ' bytes for each byte of the parameters', '')
        || '.' AS sentence,
    CASE basis
        WHEN 'measured' THEN CASE
            WHEN saved_bytes > 0 THEN other_value || ' saves ' || _bytes(saved_bytes) || ' of the peak'
            ELSE other_value || ' does not lower the peak'
        END || ' (measured: it is in the store)'
        ELSE 'States of 8 bits save about ' || _bytes(saved_bytes) || ' (predicted: a byte for each of ' || item_bytes
            || ', and 4 bytes of scale for every 256)'
    END || '; shared out over N ranks each keeps 1/N of them.' AS cure,
    {'state_bytes': state_bytes, 'peak_bytes': peak_bytes, 'saved_bytes': saved_bytes, 'basis': basis} AS figures
FROM saving
