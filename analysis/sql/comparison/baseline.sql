-- Grain: one row a baseline: all that a later comparison needs of one side, each table as one list.
CREATE OR REPLACE TEMP VIEW baseline AS
SELECT
    1 AS baseline_version,
    getvariable('side_label')::VARCHAR AS label,
    getvariable('side_store')::VARCHAR AS store,
    (SELECT list(DISTINCT sweep_id ORDER BY sweep_id) FROM stg_runs) AS sweep_ids,
    (SELECT min(started_at) FROM stg_runs) AS first_at,
    (SELECT max(started_at) FROM stg_runs) AS last_at,
    getvariable('side_imports')::BIGINT AS imports_left_out,
    (SELECT list(t) FROM side_points AS t) AS points,
    (SELECT list(t) FROM side_times AS t) AS times,
    (SELECT list(t) FROM side_crossovers AS t) AS crossovers,
    (SELECT list(t) FROM side_kernels AS t) AS kernels,
    (SELECT list(t) FROM side_facts AS t) AS facts;

COMMENT ON VIEW baseline IS 'One row: a side of a comparison, as it is written to a file and read back.';
COMMENT ON COLUMN baseline.baseline_version IS 'Raised when a later version writes what an earlier one would misread.';
COMMENT ON COLUMN baseline.label IS 'What the side was called on the command line.';
COMMENT ON COLUMN baseline.store IS 'Folder of the store it was taken from.';
COMMENT ON COLUMN baseline.sweep_ids IS 'Sweeps whose runs it holds.';
COMMENT ON COLUMN baseline.first_at IS 'When the first of its runs began, UTC.';
COMMENT ON COLUMN baseline.last_at IS 'When the last of its runs began, UTC.';
COMMENT ON COLUMN baseline.imports_left_out IS
    'Imported traces that were left out: they have no times without a profiler.';
COMMENT ON COLUMN baseline.points IS 'Rows of relation side_points.';
COMMENT ON COLUMN baseline.times IS 'Rows of relation side_times.';
COMMENT ON COLUMN baseline.crossovers IS 'Rows of relation side_crossovers.';
COMMENT ON COLUMN baseline.kernels IS 'Rows of relation side_kernels.';
COMMENT ON COLUMN baseline.facts IS 'Rows of relation side_facts.';
