-- Largest relative error against float64 of each workload, dtype and mode, over its settings; allowed is twice that of the
-- plain eager form in the same dtype and an epsilon.
SELECT workload, dtype, CASE compile WHEN 'false' THEN 'eager' WHEN 'true' THEN 'compiled' ELSE compile END AS mode,
    count(*) AS kinds, sum(checks) AS runs, sum(failures) AS failures, max("error") AS "largest error",
    max("error" / allowed) AS "error / allowed"
FROM numerics
GROUP BY ALL ORDER BY workload, dtype, mode;
