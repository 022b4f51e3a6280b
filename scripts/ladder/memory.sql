-- MiB (2^20 bytes) at the peak of the step; the phase is the innermost in which the peak lies.
SELECT r.dtype, coalesce(s.settings, '') AS settings, r.size AS batch, any_value(h."path") AS peak_in,
    any_value(h.peak_bytes) / 2^20 AS peak_mib,
    sum(h.at_peak_bytes) FILTER (h.holder = 'parameters') / 2^20 AS parameters,
    sum(h.at_peak_bytes) FILTER (h.holder = 'gradients') / 2^20 AS gradients,
    sum(h.at_peak_bytes) FILTER (h.holder = 'optimizer_state') / 2^20 AS optimizer_state,
    sum(h.at_peak_bytes) FILTER (h.holder = 'activations') / 2^20 AS activations,
    sum(h.at_peak_bytes) FILTER (h.holder = 'temporaries') / 2^20 AS temporaries,
    sum(h.at_peak_bytes) FILTER (h.holder IN ('inputs', 'other')) / 2^20 AS inputs_and_other
FROM holders h JOIN points r USING (run_id) LEFT JOIN settings s USING (point_id)
WHERE r.workload = 'train_step' AND h.is_at_peak AND r.compile = 'false'
GROUP BY h.run_id, r.dtype, s.settings, r.size
ORDER BY r.dtype, settings, batch;
