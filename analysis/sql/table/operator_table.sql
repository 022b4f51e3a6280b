-- Grain: one row a name (with its shapes where they are asked for) and kind: of the host operators and calls together,
-- annotations apart; of the device work, and shadows of annotations apart. As torch.profiler's key_averages() has them.
-- Self time is a duration less that of the direct children. Totals count what happened once, also where an event lies
-- in another of its own row; torch counts the inner one again, by recounted_us.
CREATE OR REPLACE TEMP TABLE operator_table AS
WITH children AS (
    SELECT parent_id AS event_id, sum(dur_ns) AS dur_ns
    FROM _table_events
    WHERE parent_id IS NOT NULL AND kind <> 'memory'
    GROUP BY parent_id
),
keyed AS (
    SELECT
        e.*,
        CASE
            WHEN kind IN ('work', 'shadow', 'annotation') THEN kind
            WHEN kind = 'memory' AND parent_id IS NULL THEN 'host'
            WHEN kind <> 'memory' THEN 'host'
        END AS row_kind,
        e.dur_ns - coalesce(c.dur_ns, 0) AS own_ns
    FROM _table_events AS e
    LEFT JOIN children AS c USING (event_id)
),
timed AS (
    SELECT
        name, shapes, row_kind,
        count(*) FILTER (NOT is_repeat) AS calls,
        sum(own_ns) FILTER (is_host) / 1e3 AS self_host_us,
        sum(dur_ns) FILTER (is_host AND is_outermost) / 1e3 AS host_us,
        sum(dur_ns) FILTER (is_host AND NOT is_outermost AND NOT is_repeat) / 1e3 AS recounted_us,
        sum(dur_ns) FILTER (NOT is_host) / 1e3 AS work_us,
        any_value(kind) AS kind,
        min((ts_ns, -end_ns, event_id)) AS first
    FROM keyed
    WHERE row_kind IS NOT NULL
    GROUP BY ALL
),
inside AS (
    SELECT DISTINCT k.name, k.shapes, k.row_kind, i.inner_id, i.device_ns, i.host_bytes, i.device_bytes
    FROM _table_inner AS i
    JOIN keyed AS k USING (event_id)
),
moved AS (
    SELECT
        name, shapes, row_kind, sum(device_ns) / 1e3 AS device_us,
        sum(host_bytes)::BIGINT AS host_bytes, sum(device_bytes)::BIGINT AS device_bytes
    FROM inside
    GROUP BY ALL
),
moved_itself AS (
    SELECT
        name, shapes, row_kind, sum(device_ns) / 1e3 AS self_device_us,
        sum(host_bytes)::BIGINT AS self_host_bytes, sum(device_bytes)::BIGINT AS self_device_bytes
    FROM keyed
    JOIN _table_inner AS i USING (event_id)
    WHERE i.inner_id = event_id
    GROUP BY ALL
),
held AS (
    SELECT coalesce(bool_or(kind = 'memory'), false) AS has_memory, coalesce(bool_or(NOT is_host), false) AS has_device
    FROM _table_events
),
rows AS (
    SELECT
        name, shapes, calls, self_host_us, host_us, recounted_us, work_us, first,
        CASE WHEN row_kind <> 'host' THEN row_kind ELSE kind END AS kind,
        work_us IS NULL AS is_host,
        CASE WHEN has_device THEN coalesce(work_us, self_device_us, 0) END AS self_device_us,
        CASE WHEN has_device THEN coalesce(work_us, device_us, 0) END AS device_us,
        CASE WHEN has_memory THEN coalesce(host_bytes, 0) END AS host_bytes,
        CASE WHEN has_memory THEN coalesce(self_host_bytes, 0) END AS self_host_bytes,
        CASE WHEN has_memory AND has_device THEN coalesce(device_bytes, 0) END AS device_bytes,
        CASE WHEN has_memory AND has_device THEN coalesce(self_device_bytes, 0) END AS self_device_bytes
    FROM timed
    LEFT JOIN moved USING (name, shapes, row_kind)
    LEFT JOIN moved_itself USING (name, shapes, row_kind)
    CROSS JOIN held
)
SELECT
    row_number() OVER (ORDER BY first) AS place,
    name, kind, nullif(shapes, '') AS shapes, calls,
    coalesce(self_host_us, 0) AS self_host_us,
    self_host_us / nullif(sum(self_host_us) OVER (), 0) AS self_host_frac,
    coalesce(host_us, 0) AS host_us,
    host_us / nullif(sum(self_host_us) OVER (), 0) AS host_frac,
    coalesce(host_us, 0) / calls AS host_average_us,
    self_device_us,
    CASE WHEN kind <> 'shadow' THEN self_device_us / nullif(sum(work_us) FILTER (kind = 'work') OVER (), 0) END
        AS self_device_frac,
    device_us,
    device_us / calls AS device_average_us,
    host_bytes, self_host_bytes, device_bytes, self_device_bytes,
    coalesce(recounted_us, 0) AS recounted_us,
    CASE
        WHEN recounted_us > 0 THEN 'lies in itself: torch counts ' || _time(recounted_us) || ' of its host time again'
        WHEN kind = 'shadow' THEN 'a span on the device with its gaps: no work, in no total'
        WHEN kind = 'profiler'
            THEN 'the profiler''s own: torch also gives it device time of what was launched meanwhile'
    END AS note
FROM rows;

COMMENT ON TABLE operator_table IS 'One row a name and kind, as the table of torch.profiler has them.';
COMMENT ON COLUMN operator_table.place IS 'Order in which they began, from 1.';
COMMENT ON COLUMN operator_table.name IS
    'Name of the operator, annotation, call, kernel, copy or fill; ProfilerStep* is any step.';
COMMENT ON COLUMN operator_table.kind IS
    'operator, annotation, call (of the runtime), profiler (its own work), memory (allocated or freed outside of all '
    'these), work (of the device), shadow (of an annotation on the device).';
COMMENT ON COLUMN operator_table.shapes IS 'JSON of its input shapes, where they are asked for.';
COMMENT ON COLUMN operator_table.calls IS 'Calls; the only child of an event of its own name is none.';
COMMENT ON COLUMN operator_table.self_host_us IS
    'Host time less that of the children; microseconds, under the profiler.';
COMMENT ON COLUMN operator_table.self_host_frac IS 'self_host_us over the sum of all rows.';
COMMENT ON COLUMN operator_table.host_us IS 'Host time; microseconds, under the profiler.';
COMMENT ON COLUMN operator_table.host_frac IS 'host_us over the sum of all self times.';
COMMENT ON COLUMN operator_table.host_average_us IS 'host_us / calls.';
COMMENT ON COLUMN operator_table.self_device_us IS
    'Device time of what it launched itself, of work its own; microseconds; NULL = no work of a device in the trace.';
COMMENT ON COLUMN operator_table.self_device_frac IS 'self_device_us over the device time of all work.';
COMMENT ON COLUMN operator_table.device_us IS 'Device time of what was launched in it, of work its own; microseconds.';
COMMENT ON COLUMN operator_table.device_average_us IS 'device_us / calls.';
COMMENT ON COLUMN operator_table.host_bytes IS
    'Host memory that was allocated in it less what was freed; bytes; NULL = memory was not recorded.';
COMMENT ON COLUMN operator_table.self_host_bytes IS 'host_bytes outside of its children.';
COMMENT ON COLUMN operator_table.device_bytes IS 'The same of device memory.';
COMMENT ON COLUMN operator_table.self_device_bytes IS 'device_bytes outside of its children.';
COMMENT ON COLUMN operator_table.recounted_us IS
    'Host time that torch counts again, of events inside others of the same row: its CPU total is host_us + this.';
COMMENT ON COLUMN operator_table.note IS 'What to mind about the row.';
