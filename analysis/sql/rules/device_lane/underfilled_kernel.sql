-- Rule: The kernels that take most of the device's time have fewer blocks than the device has multiprocessors.
-- Topic: device lane
-- Severity: costs
-- Needs: device work, step, launch parameters
-- Otherwise: no kernel of the step has a grid
-- Means: A block runs on one multiprocessor. With fewer blocks than multiprocessors some have nothing to do, however fast
--     each block is.
-- Cure: Make the work of one launch larger (batch it), or split it finer (split-K for a product).
-- See: docs/findings.md
WITH filled AS (
    SELECT
        w.run_id,
        sum(dur_ns) AS total_ns,
        coalesce(sum(dur_ns) FILTER (grid[1] * grid[2] * grid[3] < s.multiprocessors), 0) AS underfilled_ns,
        max_by(w.name, dur_ns) FILTER (grid[1] * grid[2] * grid[3] < s.multiprocessors) AS name,
        max_by(w.event_id, dur_ns) FILTER (grid[1] * grid[2] * grid[3] < s.multiprocessors) AS event_id,
        max_by(grid[1] * grid[2] * grid[3], dur_ns) FILTER (grid[1] * grid[2] * grid[3] < s.multiprocessors) AS blocks,
        any_value(s.multiprocessors) AS multiprocessors
    FROM work AS w
    JOIN subjects AS s USING (run_id)
    WHERE w.category = 'kernel' AND w.grid IS NOT NULL AND s.multiprocessors IS NOT NULL
    GROUP BY w.run_id
)
SELECT
    run_id,
    underfilled_ns > total_ns / 2 AS fired,
    _percent(underfilled_ns / total_ns) || ' of the kernels'' time is in grids of fewer than '
        || multiprocessors || ' blocks (limit 50 %)' AS reason,
    name || ' has ' || _counted(blocks, 'block') || ' for ' || multiprocessors || ' multiprocessors; '
        || _percent(underfilled_ns / total_ns) || ' of the kernels'' time is in such kernels.' AS sentence,
    [event_id] AS event_ids,
    {'underfilled_us': underfilled_ns / 1e3, 'kernels_us': total_ns / 1e3, 'blocks': blocks} AS figures
FROM filled
