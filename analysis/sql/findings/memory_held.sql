-- Grain: one row a run whose memory was watched by holder.
-- What each holder has where the step is at its peak: phase_path, peak_bytes, total_bytes (of all holders), held (a
-- MAP), and the largest of them.
SELECT
    run_id,
    any_value(path) AS phase_path,
    any_value(peak_bytes) AS peak_bytes,
    sum(at_peak_bytes) AS total_bytes,
    map_from_entries(list((holder, at_peak_bytes) ORDER BY holder)) AS held,
    arg_max(holder, (at_peak_bytes, holder)) AS largest
FROM holders
SEMI JOIN chosen_runs USING (run_id)
WHERE is_at_peak AND at_peak_bytes IS NOT NULL
GROUP BY run_id
HAVING sum(at_peak_bytes) > 0
