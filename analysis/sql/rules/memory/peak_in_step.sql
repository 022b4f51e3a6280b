-- Rule: Where in the step the memory of the device is at its peak.
-- Topic: memory
-- Severity: explains
-- Needs: memory events, step
-- Otherwise: no event of the allocator lies in the typical step, or memory does not rise in it
-- Means: What has to fit is the peak: of a training step usually the start of backward, where all activations are there and
--     the first gradients come.
-- Cure: Free or recompute what is alive there: checkpointing, in-place operations, a smaller batch.
WITH moments AS (
    SELECT
        m.run_id, m.event_id, m.ts_ns, m.bytes, m.parent_name,
        TRY_CAST(json_extract_string(m.args, '$."Total Allocated"') AS BIGINT) AS allocated_bytes,
        TRY_CAST(json_extract_string(m.args, '$."Device Type"') AS BIGINT) AS device_type
    FROM step_events AS m
    WHERE m.category = 'cpu_instant_event'
    -- the device's memory, where there is any: its type is above that of the host, 0
    QUALIFY device_type = max(device_type) OVER (PARTITION BY m.run_id)
),
peaks AS (
    SELECT
        run_id,
        max(allocated_bytes) AS peak_bytes,
        min_by(allocated_bytes - bytes, ts_ns) AS begin_bytes,
        max_by(event_id, (allocated_bytes, -ts_ns)) AS event_id,
        max_by(ts_ns, (allocated_bytes, -ts_ns)) AS peak_ns,
        max_by(parent_name, (allocated_bytes, -ts_ns)) AS parent_name
    FROM moments
    WHERE allocated_bytes IS NOT NULL
    GROUP BY run_id
)
SELECT
    p.run_id,
    p.peak_bytes > p.begin_bytes AS fired,
    'peak of ' || _bytes(p.peak_bytes) || ', ' || _bytes(p.begin_bytes) || ' before the step' AS reason,
    'Memory is at its peak of ' || _bytes(p.peak_bytes) || ' ' || _time((p.peak_ns - t.start_ns) / 1e3)
        || ' into the step (' || _percent((p.peak_ns - t.start_ns) / 1e3 / t.host_us) || ' of its host time)'
        || coalesce(', in ' || p.parent_name, '') || ': ' || _bytes(p.peak_bytes - p.begin_bytes)
        || ' more than before the step.' AS sentence,
    [p.event_id] AS event_ids,
    {'peak_bytes': p.peak_bytes, 'begin_bytes': p.begin_bytes, 'peak_us': (p.peak_ns - t.start_ns) / 1e3} AS figures
FROM peaks AS p
JOIN typical AS t USING (run_id)
WHERE t.host_us > 0
