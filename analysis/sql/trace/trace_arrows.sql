-- Grain: one row an arrow of the run `trace_run` (a variable): from the call that launched work of the device to that
-- work, as two objects of a Chrome trace. Its id is the number of the launched event, since one call may launch many.
CREATE OR REPLACE TEMP VIEW trace_arrows AS
WITH launched AS (
    SELECT event_id, launch_id, pid, tid, ts_ns, device, stream
    FROM events
    WHERE run_id = getvariable('trace_run') AND is_device AND launch_id IS NOT NULL
),
calls AS (
    SELECT event_id AS launch_id, pid, tid, ts_ns
    FROM events
    WHERE run_id = getvariable('trace_run') AND NOT is_device
)
SELECT
    event_id,
    concat(
        '{"ph": "s", "id": ', event_id, ', "cat": "ac2g", "name": "ac2g", "pid": ', _trace_row(c.pid, false),
        ', "tid": ', _trace_row(c.tid, false), ', "ts": ', _trace_us(c.ts_ns - getvariable('trace_base_ns')),
        '},', chr(10),
        '{"ph": "f", "bp": "e", "id": ', event_id, ', "cat": "ac2g", "name": "ac2g", "pid": ',
        _trace_row(k.pid, device IS NULL), ', "tid": ', _trace_row(k.tid, stream IS NULL),
        ', "ts": ', _trace_us(k.ts_ns - getvariable('trace_base_ns')), '}'
    ) AS line
FROM launched AS k
JOIN calls AS c USING (launch_id);

COMMENT ON VIEW trace_arrows IS 'One row an arrow from a launch to its work: its text in a Chrome trace.';
COMMENT ON COLUMN trace_arrows.event_id IS 'The work that was launched.';
COMMENT ON COLUMN trace_arrows.line IS 'Start and end of the arrow as two JSON objects.';
