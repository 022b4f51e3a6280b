-- Rule: Tensors are copied to lie contiguous.
-- Topic: dispatch chain
-- Severity: costs
-- Needs: device work, step
-- Otherwise: nothing is copied to lie contiguous in the step
-- Means: contiguous(), and reshape of what no view can express, read the whole tensor and write it in another order. A
--     twentieth of the device's time is told.
-- Cure: Keep the layout that the consumer wants (channels_last, a transposed weight), or use operations that read strided
--     tensors.
WITH copied AS (
    SELECT
        run_id,
        count(*) AS calls,
        sum(dur_ns) AS device_ns,
        max_by(outer_name, dur_ns) AS caller,
        list(event_id ORDER BY dur_ns DESC)[:8] AS event_ids
    FROM work
    WHERE op_name = 'aten::clone' OR op_name = 'aten::copy_' AND outer_name IN ('aten::clone', 'aten::contiguous', 'aten::reshape')
    GROUP BY run_id
)
SELECT
    c.run_id,
    c.device_ns / 1e3 >= t.busy_us / 20 AS fired,
    c.calls || CASE WHEN c.calls = 1 THEN ' copy, ' ELSE ' copies, ' END || _percent(c.device_ns / 1e3 / t.busy_us) || ' of the device''s time (limit 5 %)' AS reason,
    c.calls || CASE WHEN c.calls = 1 THEN ' copy' ELSE ' copies' END || ' a step only put tensors in another order (' || c.caller || '): '
        || _time(c.device_ns / 1e3) || ' of the device, ' || _percent(c.device_ns / 1e3 / t.busy_us) || ' of what it does.' AS sentence,
    c.event_ids,
    {'copies': c.calls, 'device_us': c.device_ns / 1e3} AS figures
FROM copied AS c
JOIN typical AS t USING (run_id)
WHERE t.busy_us > 0
