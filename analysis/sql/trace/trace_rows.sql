-- Grain: one row a row of the timeline (a thread or stream), of the run `trace_run` (a variable): what it is, and where
-- it is drawn. Host processes stand above devices; a process that holds rows of both counts as host.
CREATE OR REPLACE TEMP VIEW trace_rows AS
WITH found AS (
    SELECT
        pid,
        tid,
        bool_and(_on_device(category)) AS on_device,
        min(device) AS device,
        min(stream) AS stream
    FROM events
    WHERE run_id = getvariable('trace_run')
    GROUP BY pid, tid
),
placed AS (
    SELECT
        pid, tid, stream,
        _trace_row(pid, on_device AND device IS NULL) AS pid_json,
        _trace_row(tid, on_device AND stream IS NULL) AS tid_json,
        bool_and(on_device) OVER (PARTITION BY pid) AS is_device,
        min(device) OVER (PARTITION BY pid) AS device
    FROM found
)
SELECT
    *,
    dense_rank() OVER (ORDER BY is_device, device NULLS LAST, TRY_CAST(pid AS HUGEINT) NULLS LAST, pid) AS process_place,
    row_number() OVER (PARTITION BY pid ORDER BY stream NULLS FIRST, TRY_CAST(tid AS HUGEINT) NULLS LAST, tid)
        AS row_place
FROM placed;

COMMENT ON VIEW trace_rows IS 'One row a thread or stream of the exported run: what it is, and where it is drawn.';
COMMENT ON COLUMN trace_rows.pid IS 'Process, or device.';
COMMENT ON COLUMN trace_rows.tid IS 'Thread, or stream.';
COMMENT ON COLUMN trace_rows.stream IS 'Stream; NULL for a thread of the host.';
COMMENT ON COLUMN trace_rows.pid_json IS 'pid as the trace has it.';
COMMENT ON COLUMN trace_rows.tid_json IS 'tid as the trace has it.';
COMMENT ON COLUMN trace_rows.is_device IS 'The process holds rows of a device alone.';
COMMENT ON COLUMN trace_rows.device IS 'Device of the process; NULL for a host.';
COMMENT ON COLUMN trace_rows.process_place IS 'Place of the process from the top, from 1.';
COMMENT ON COLUMN trace_rows.row_place IS 'Place of the row in its process, from 1.';
