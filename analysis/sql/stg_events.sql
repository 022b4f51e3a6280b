-- Grain: one row a profiler event of a live run. Lazy: events can be many, so they stay in their files.
CREATE VIEW stg_events AS
WITH typed AS (
    SELECT
        NULL AS run_id, NULL AS event_id, NULL AS name, NULL AS category, NULL AS ts_ns, NULL AS dur_ns,
        NULL AS is_device, NULL AS device, NULL AS stream, NULL AS pid, NULL AS tid, NULL AS step,
        NULL AS parent_id, NULL AS depth, NULL AS correlation, NULL AS launch_id, NULL::BIGINT[] AS grid,
        NULL::BIGINT[] AS block, NULL AS registers_per_thread, NULL AS shared_memory_bytes, NULL AS bytes,
        NULL AS shapes, NULL AS args
    WHERE false
)
SELECT
    run_id::VARCHAR AS run_id,
    event_id::BIGINT AS event_id,
    name::VARCHAR AS name,
    category::VARCHAR AS category,
    ts_ns::BIGINT AS ts_ns,
    dur_ns::BIGINT AS dur_ns,
    is_device::BOOLEAN AS is_device,
    device::BIGINT AS device,
    stream::BIGINT AS stream,
    pid::VARCHAR AS pid,
    tid::VARCHAR AS tid,
    step::BIGINT AS step,
    parent_id::BIGINT AS parent_id,
    depth::BIGINT AS depth,
    correlation::BIGINT AS correlation,
    launch_id::BIGINT AS launch_id,
    grid::BIGINT[] AS grid,
    block::BIGINT[] AS block,
    registers_per_thread::BIGINT AS registers_per_thread,
    shared_memory_bytes::BIGINT AS shared_memory_bytes,
    bytes::BIGINT AS bytes,
    shapes::VARCHAR AS shapes,
    args::VARCHAR AS args
FROM (FROM typed UNION ALL BY NAME FROM files_events) AS raw
WHERE run_id IN (SELECT run_id FROM stg_runs);

COMMENT ON VIEW stg_events IS 'One row a profiler event; only events whose run is there.';
COMMENT ON COLUMN stg_events.event_id IS 'Order in the trace, from 0, unique in the run.';
COMMENT ON COLUMN stg_events.name IS 'Name of the operation, call or kernel.';
COMMENT ON COLUMN stg_events.category IS
    'Kineto name, lower case: cpu_op, user_annotation, cuda_runtime, kernel, gpu_memcpy, ...';
COMMENT ON COLUMN stg_events.ts_ns IS 'Start, nanoseconds, exact; the trace''s base time included.';
COMMENT ON COLUMN stg_events.dur_ns IS 'Duration, nanoseconds, exact.';
COMMENT ON COLUMN stg_events.is_device IS 'Work of the device: a kernel, a copy or a fill.';
COMMENT ON COLUMN stg_events.device IS 'Number of the device; NULL for host events.';
COMMENT ON COLUMN stg_events.stream IS 'Number of the stream; NULL for host events.';
COMMENT ON COLUMN stg_events.pid IS 'Process of the event.';
COMMENT ON COLUMN stg_events.tid IS 'Thread or lane of the event.';
COMMENT ON COLUMN stg_events.step IS 'Profiler step; of device work the step of its launch; NULL = none.';
COMMENT ON COLUMN stg_events.parent_id IS 'event_id of the enclosing host event on the same thread; NULL at the top.';
COMMENT ON COLUMN stg_events.depth IS 'Number of enclosing host events on the same thread.';
COMMENT ON COLUMN stg_events.correlation IS 'Id that ties a launch to its device work.';
COMMENT ON COLUMN stg_events.launch_id IS
    'event_id of the call that started this device event; NULL = not in the trace.';
COMMENT ON COLUMN stg_events.grid IS 'Blocks of the kernel in x, y, z.';
COMMENT ON COLUMN stg_events.block IS 'Threads of a block in x, y, z.';
COMMENT ON COLUMN stg_events.registers_per_thread IS 'Registers of a thread of the kernel.';
COMMENT ON COLUMN stg_events.shared_memory_bytes IS 'Shared memory of a block of the kernel.';
COMMENT ON COLUMN stg_events.bytes IS 'Bytes of a copy or fill.';
COMMENT ON COLUMN stg_events.shapes IS 'JSON of the input shapes.';
COMMENT ON COLUMN stg_events.args IS 'JSON of all other arguments.';
