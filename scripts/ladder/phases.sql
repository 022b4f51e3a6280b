-- Sums over the outermost phases and what lies outside of them, against the whole profiled step (steps that launch work
-- on the device), and against what torch's own table of the profile adds up to, where it was kept; and the allocator's
-- own peak against what the holders add up to.
WITH sums AS (
    SELECT run_id, sum(device_us) AS parts_us, sum(launches) AS parts_launches
    FROM phases WHERE depth = 1 GROUP BY run_id
), whole AS (
    SELECT run_id, device_us, launches FROM phases WHERE depth = 0
)
SELECT r.workload, count(w.device_us) AS runs, max(abs(parts_us / nullif(w.device_us, 0) - 1)) * 100 AS "device time off by at most, %",
    max(abs(parts_launches - w.launches)) AS "launches off by at most",
    max(abs(m.off_frac)) * 100 AS "memory off by at most, %",
    count(t.table_us) FILTER (w.device_us IS NOT NULL) AS "tables of torch",
    max(abs(parts_us / t.table_us - 1)) * 100 AS "device time off torch's table by at most, %"
FROM sums JOIN whole w USING (run_id) JOIN runs r USING (run_id) LEFT JOIN stg_memory m USING (run_id)
LEFT JOIN (
    SELECT run_id, TRY_CAST(json_extract_string(TRY_CAST(facts AS JSON), '$.profile.torch_device_us') AS DOUBLE) AS table_us
    FROM files_runs
) t USING (run_id)
GROUP BY r.workload HAVING count(w.device_us) > 0 ORDER BY r.workload;
