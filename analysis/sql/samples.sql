-- Grain: one row a raw sample.
CREATE VIEW samples AS
SELECT
    run_id,
    sample.quantity AS quantity,
    sample."round" AS "round",
    sample."position" AS "position",
    sample."value" AS "value"
FROM (SELECT run_id, unnest(samples) AS sample FROM stg_samples);

COMMENT ON VIEW samples IS 'One row a raw sample of a run, in the order taken.';
COMMENT ON COLUMN samples.quantity IS
    'What was timed: wall, issue, issue_half, device, replay, single, blocked, floor, doubled, first, profiled; of a
    watched program also data (between two steps) and span (from the begin of a step''s work on the device to its end).';
COMMENT ON COLUMN samples."round" IS 'Round of the sample, from 0.';
COMMENT ON COLUMN samples."position" IS 'Place among all samples of the run.';
COMMENT ON COLUMN samples."value" IS 'Microseconds a step.';
