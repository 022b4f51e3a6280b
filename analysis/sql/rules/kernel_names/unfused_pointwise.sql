-- Rule: Several pointwise kernels follow one another where one could do.
-- Topic: kernel names
-- Severity: costs
-- Needs: device work, step
-- Otherwise: no pointwise kernel of ATen is in the step
-- Means: Each reads its input from memory and writes its output there, and is launched for itself. As one kernel they would move
--     the bytes once. Three in a row that take a tenth of the device's time are told.
-- Cure: torch.compile fuses them; by hand, an operation that does several (addcmul, silu with multiplication, fused layer norm).
WITH ordered AS (
    SELECT
        run_id, event_id, name, dur_ns, ts_ns, library = 'ATen' AND family = 'elementwise' IS true AS is_pointwise,
        row_number() OVER (PARTITION BY run_id, device, stream ORDER BY ts_ns, event_id)
            - row_number() OVER (PARTITION BY run_id, device, stream, library = 'ATen' AND family = 'elementwise' ORDER BY ts_ns, event_id)
            AS island,
        device, stream
    FROM work
    WHERE category = 'kernel'
),
chains AS (
    SELECT
        run_id, count(*) AS kernels, sum(dur_ns) AS chain_ns,
        list(event_id ORDER BY ts_ns)[:8] AS event_ids
    FROM ordered
    WHERE is_pointwise
    GROUP BY run_id, device, stream, island
),
longest AS (
    SELECT
        run_id,
        max_by({'kernels': kernels, 'ns': chain_ns, 'event_ids': event_ids}, (kernels, chain_ns)) AS top,
        sum(chain_ns) FILTER (kernels >= 3) AS total_ns
    FROM chains
    GROUP BY run_id
)
SELECT
    l.run_id,
    l.top.kernels >= 3 AND coalesce(l.total_ns / 1e3 >= t.busy_us / 10, false) AS fired,
    'at most ' || _counted(l.top.kernels, 'pointwise kernel') || ' in a row (limit 3)'
        || coalesce(', such rows take ' || _percent(l.total_ns / 1e3 / t.busy_us) || ' of the device''s time (limit 10 %)', '') AS reason,
    l.top.kernels || ' pointwise kernels follow one another in a step, ' || _time(l.top.ns / 1e3) || ' together; such rows take '
        || _percent(l.total_ns / 1e3 / t.busy_us) || ' of the device''s time.' AS sentence,
    l.top.event_ids,
    {'kernels': l.top.kernels, 'chain_us': l.top.ns / 1e3, 'all_chains_us': l.total_ns / 1e3, 'device_us': t.busy_us} AS figures
FROM longest AS l
JOIN typical AS t USING (run_id)
