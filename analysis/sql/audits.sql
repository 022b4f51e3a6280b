-- Grain: one row an imported run.
-- What the import read of a file, what it kept, and everything that it set aside, repaired or could not read.
CREATE VIEW audits AS
WITH unfolded AS (
    SELECT
        *,
        from_json(imported, '{"file": "VARCHAR", "path": "VARCHAR", "file_bytes": "BIGINT", "json_bytes": "BIGINT"}')
            AS i,
        from_json(audit, '{
            "line": "VARCHAR", "events": "BIGINT", "complete": "BIGINT", "kept": "BIGINT",
            "set_aside": "JSON", "repaired": "JSON", "lost_events": "BIGINT", "lost_bytes": "BIGINT", "lost": "JSON",
            "truncated": "BOOLEAN", "device_events": "BIGINT", "kernels": "BIGINT", "kernel_names": "BIGINT",
            "busy_ns": "JSON", "device_dur_ns": "BIGINT", "unlinked": "BIGINT", "unlinked_dur_ns": "BIGINT",
            "overlapping": "BIGINT", "outside_steps": "BIGINT", "before_launch": "BIGINT",
            "suspiciously_long": "BIGINT", "profiler_steps": "BIGINT"
        }') AS a,
        from_json(step_facts, '{"method": "VARCHAR", "number": "BIGINT", "kinds": "JSON", "reason": "VARCHAR"}') AS s
    FROM stg_runs
    WHERE source = 'import'
)
SELECT
    run_id,
    i.file AS file,
    i.path AS path,
    i.file_bytes AS file_bytes,
    i.json_bytes AS json_bytes,
    a.events AS events,
    a.complete AS complete_events,
    a.kept AS kept,
    _total(a.set_aside) AS set_aside,
    a.set_aside::VARCHAR AS set_aside_why,
    _total(a.repaired) AS repaired,
    a.repaired::VARCHAR AS repaired_why,
    a.lost_events AS lost_events,
    a.lost_bytes AS lost_bytes,
    a.lost::VARCHAR AS lost,
    a.truncated AS truncated,
    a.device_events AS device_events,
    a.kernels AS kernels,
    a.kernel_names AS kernel_names,
    a.busy_ns::VARCHAR AS busy_ns,
    a.device_dur_ns AS device_dur_ns,
    a.unlinked AS unlinked,
    a.unlinked_dur_ns AS unlinked_dur_ns,
    a.overlapping AS overlapping,
    a.outside_steps AS outside_steps,
    a.before_launch AS before_launch,
    a.suspiciously_long AS suspiciously_long,
    a.profiler_steps AS profiler_steps,
    s.method AS step_method,
    s.number AS steps,
    s.kinds::VARCHAR AS step_kinds,
    s.reason AS step_reason,
    rank,
    world_size,
    a.line AS line
FROM unfolded;

COMMENT ON VIEW audits IS 'One row an imported run: what its file held, what was kept, set aside, repaired and lost.';
COMMENT ON COLUMN audits.file IS 'Name of the file.';
COMMENT ON COLUMN audits.path IS 'Path of the file as it was given.';
COMMENT ON COLUMN audits.file_bytes IS 'Size of the file.';
COMMENT ON COLUMN audits.json_bytes IS 'Size of its JSON text, uncompressed.';
COMMENT ON COLUMN audits.events IS 'Elements of traceEvents that were read, of every phase.';
COMMENT ON COLUMN audits.complete_events IS 'Complete events (phase X) among them.';
COMMENT ON COLUMN audits.kept IS 'Events of the run in `events`.';
COMMENT ON COLUMN audits.set_aside IS 'Events that were read and not kept; NULL = not told.';
COMMENT ON COLUMN audits.set_aside_why IS 'JSON object: why -> number of events set aside.';
COMMENT ON COLUMN audits.repaired IS 'Repairs of events whose JSON was damaged; an event may have several.';
COMMENT ON COLUMN audits.repaired_why IS 'JSON object: kind of damage -> number of events repaired.';
COMMENT ON COLUMN audits.lost_events IS 'Pieces of the file that could not be read as events.';
COMMENT ON COLUMN audits.lost_bytes IS 'Bytes of JSON text that could not be read.';
COMMENT ON COLUMN audits.lost IS 'JSON list of the first 20 of them: offset in the JSON text, bytes, why.';
COMMENT ON COLUMN audits.truncated IS 'The file ends before its JSON does.';
COMMENT ON COLUMN audits.device_events IS 'Kernels, copies and fills.';
COMMENT ON COLUMN audits.kernels IS 'Kernels.';
COMMENT ON COLUMN audits.kernel_names IS 'Distinct names of kernels.';
COMMENT ON COLUMN audits.busy_ns IS 'JSON object: device -> nanoseconds in which it did anything, collectives included.';
COMMENT ON COLUMN audits.device_dur_ns IS 'Sum of the durations of device events, overlaps counted twice; nanoseconds.';
COMMENT ON COLUMN audits.unlinked IS 'Device events whose launch is not in the trace; they count as device time.';
COMMENT ON COLUMN audits.unlinked_dur_ns IS 'Sum of their durations; nanoseconds.';
COMMENT ON COLUMN audits.overlapping IS 'Device events that begin before the one before them on their stream has ended.';
COMMENT ON COLUMN audits.outside_steps IS 'Device events that belong to no step.';
COMMENT ON COLUMN audits.before_launch IS 'Device events that begin before their launch does.';
COMMENT ON COLUMN audits.suspiciously_long IS 'Device events that are long against those that follow them.';
COMMENT ON COLUMN audits.profiler_steps IS 'Distinct ProfilerStep#N.';
COMMENT ON COLUMN audits.step_method IS
    'How steps were found: profiler (ProfilerStep#N), annotation (--step), sequence (repeated kernels), window (none).';
COMMENT ON COLUMN audits.steps IS 'Number of steps.';
COMMENT ON COLUMN audits.step_kinds IS 'JSON list of the kinds of step, each with the ranges of its steps.';
COMMENT ON COLUMN audits.step_reason IS 'Why steps were found so, or not found.';
COMMENT ON COLUMN audits.line IS 'The audit in one sentence.';
