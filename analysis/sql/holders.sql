-- Grain: one row a run, phase and holder of its memory.
-- Who holds the device's memory when a phase is at its peak, and when it ends. The whole step is the phase `step`. In
-- the phase that `is_at_peak` the step as a whole is at its peak: of those with the highest peak the innermost, first
-- one. A holder that is not named where others are has nothing.
CREATE MACRO _held(holders, holder) AS CASE
    WHEN json_exists(holders, _pointer(holder)) THEN TRY_CAST(json_extract_string(holders, _pointer(holder)) AS BIGINT)
    WHEN json_type(holders) = 'OBJECT' THEN 0
END;

CREATE VIEW holders AS
WITH phases AS (
    SELECT
        *,
        row_number() OVER (PARTITION BY run_id ORDER BY peak_bytes DESC NULLS LAST, len(path) DESC,
            "order") = 1 AS is_at_peak
    FROM _phase_memory
),
held AS (
    SELECT
        p.*,
        unnest(list_sort(list_distinct(
            coalesce(json_keys(holders_at_peak), []) || coalesce(json_keys(holders_at_end), [])
        ))) AS holder
    FROM phases AS p
),
counted AS (
    SELECT
        *,
        _held(holders_at_peak, holder) AS at_peak_bytes,
        _held(holders_at_end, holder) AS at_end_bytes
    FROM held
)
SELECT
    run_id,
    coalesce(path[-1], 'step') AS phase,
    CASE WHEN len(path) = 0 THEN 'step' ELSE array_to_string(path, ' / ') END AS path,
    len(path) AS depth,
    "order",
    holder,
    at_peak_bytes,
    at_peak_bytes / nullif(sum(greatest(0, at_peak_bytes)) OVER of_phase, 0) AS at_peak_frac,
    at_end_bytes,
    at_end_bytes / nullif(sum(greatest(0, at_end_bytes)) OVER of_phase, 0) AS at_end_frac,
    start_bytes, peak_bytes, end_bytes,
    is_at_peak
FROM counted
WINDOW of_phase AS (PARTITION BY run_id, path);

COMMENT ON VIEW holders IS
    'One row a run, phase and holder: who holds the device''s memory at the phase''s peak and at its end.';
COMMENT ON COLUMN holders.phase IS 'Name of the phase; step = all of the step.';
COMMENT ON COLUMN holders.path IS 'Names from the outermost phase to this one.';
COMMENT ON COLUMN holders.depth IS 'How many phases it lies in, itself included; 0 = all of the step.';
COMMENT ON COLUMN holders."order" IS 'Place of the phase in the step.';
COMMENT ON COLUMN holders.holder IS
    'What holds it: parameters, gradients, optimizer_state, inputs, activations, temporaries or other.';
COMMENT ON COLUMN holders.at_peak_bytes IS 'Held when the memory of the phase is at its peak.';
COMMENT ON COLUMN holders.at_peak_frac IS 'Its share of what all holders have then.';
COMMENT ON COLUMN holders.at_end_bytes IS 'Held when the phase ends.';
COMMENT ON COLUMN holders.at_end_frac IS 'Its share of what all holders have then.';
COMMENT ON COLUMN holders.start_bytes IS 'Memory in use when the phase begins.';
COMMENT ON COLUMN holders.peak_bytes IS 'Most memory in use while the phase lasts.';
COMMENT ON COLUMN holders.end_bytes IS 'Memory in use when the phase ends.';
COMMENT ON COLUMN holders.is_at_peak IS
    'Whether the step as a whole is at its peak in this phase, the innermost of such.';
