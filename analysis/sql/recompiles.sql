-- Grain: one row a run and compilation.
-- What torch.compile compiled for a run, in the order in which it did: when, why, and how long everything else waited.
-- The id of a frame is FUNCTION/CODE, counted from 0: 0/2 is the third code of the first function.
CREATE VIEW recompiles AS
WITH frames AS (
    SELECT
        *,
        from_json(compile_frames, '[{
            "frame": "VARCHAR", "name": "VARCHAR", "seconds": "DOUBLE", "reason": "VARCHAR", "guards": "BIGINT",
            "cycle": "BIGINT", "phase": "VARCHAR"
        }]') AS compiled
    FROM stg_runs
    WHERE compile_frames IS NOT NULL
),
numbered AS (
    SELECT *, unnest(compiled) AS frame_, generate_subscripts(compiled, 1) AS compilation
    FROM frames
)
SELECT
    run_id, point_id, environment_id,
    workload, size, dtype, batch, compile, dynamic, warmup, device, params, status,
    compilation,
    frame_.frame AS frame,
    frame_.name AS name,
    coalesce(frame_.reason IS NOT NULL OR TRY_CAST(split_part(frame_.frame, '/', 2) AS BIGINT) > 0, false) AS is_again,
    frame_.seconds AS seconds,
    frame_.cycle AS cycle,
    frame_.phase AS phase,
    frame_.reason AS reason,
    frame_.guards AS guards
FROM numbered;

COMMENT ON VIEW recompiles IS
    'One row a run and compilation: how long torch.compile took, in which cycle, and why it compiled again.';
COMMENT ON COLUMN recompiles.compilation IS 'Its place among those of the run, from 1.';
COMMENT ON COLUMN recompiles.frame IS 'Id of the frame, FUNCTION/CODE from 0.';
COMMENT ON COLUMN recompiles.name IS 'The function; torch_dynamo_resume_in_ names what follows a graph break.';
COMMENT ON COLUMN recompiles.is_again IS 'The function had been compiled before, for other inputs.';
COMMENT ON COLUMN recompiles.seconds IS 'Seconds of this compilation; those that torch''s caches shorten too.';
COMMENT ON COLUMN recompiles.cycle IS
    'The step in which it was made, from 1; NULL = behind the first ones, or not recorded.';
COMMENT ON COLUMN recompiles.phase IS
    'The phase of the step in which it was made: of shape_sequence the length; NULL = in none, or unknown.';
COMMENT ON COLUMN recompiles.reason IS 'Which guard of which earlier code failed; NULL for a first compilation.';
COMMENT ON COLUMN recompiles.guards IS 'Guards of the new code.';
