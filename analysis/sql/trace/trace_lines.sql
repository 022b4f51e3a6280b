-- Grain: one row an event of the run `trace_run`, as one object of a Chrome trace, times relative to `trace_base_ns`
-- (both are variables).
-- What an allocator did is an instant, as Kineto writes it.
-- The arguments with a column come first, under Kineto's names; the text of all others stays as it is stored.
-- Readers take a device or stream that is no argument from a whole number in its place as pid or tid. So where the
-- column is unknown, that number stays a text; and where an argument of that name is no number, it stands alone.
CREATE OR REPLACE TEMP VIEW trace_lines AS
WITH merged AS (
    SELECT
        *,
        concat(
            CASE WHEN NOT _has_key(args, 'device') THEN '"device": ' || device || ', ' END,
            CASE WHEN NOT _has_key(args, 'stream') THEN '"stream": ' || stream || ', ' END,
            '"correlation": ' || correlation || ', ',
            '"grid": ' || to_json(grid)::VARCHAR || ', ',
            '"block": ' || to_json(block)::VARCHAR || ', ',
            '"registers per thread": ' || registers_per_thread || ', ',
            '"shared memory": ' || shared_memory_bytes || ', ',
            CASE WHEN category = 'cpu_instant_event' THEN '"Bytes": ' ELSE '"bytes": ' END || bytes || ', ',
            '"Input Dims": ' || shapes || ', '
        ) AS own,
        nullif(args, '{}') AS rest,
        coalesce(category = 'cpu_instant_event' AND name = '[memory]' AND dur_ns = 0, false) AS is_instant
    FROM events
    WHERE run_id = getvariable('trace_run')
)
SELECT
    event_id,
    concat(
        CASE WHEN is_instant THEN '{"ph": "i", "s": "t", "cat": ' ELSE '{"ph": "X", "cat": ' END,
        to_json(coalesce(category, '')), ', "name": ', to_json(coalesce(name, '')),
        ', "pid": ', _trace_row(pid, _on_device(category) AND device IS NULL),
        ', "tid": ', _trace_row(tid, _on_device(category) AND stream IS NULL),
        ', "ts": ', _trace_us(ts_ns - getvariable('trace_base_ns')),
        CASE WHEN NOT is_instant THEN ', "dur": ' || _trace_us(dur_ns) END,
        CASE
            WHEN own = '' THEN ', "args": ' || rest
            WHEN rest IS NULL THEN concat(', "args": {', own[:-3], '}')
            ELSE concat(', "args": {', own, rest[2:])
        END,
        '}'
    ) AS line
FROM merged;

COMMENT ON VIEW trace_lines IS 'One row an event of the exported run: its text in a Chrome trace.';
COMMENT ON COLUMN trace_lines.event_id IS 'Order in the trace.';
COMMENT ON COLUMN trace_lines.line IS 'The event as a JSON object.';
