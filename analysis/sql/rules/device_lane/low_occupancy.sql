-- Rule: Kernels that live from many threads have few on each multiprocessor.
-- Topic: device lane
-- Severity: costs
-- Needs: device work, step, launch parameters
-- Otherwise: no kernel of the step has a grid, or registers and shared memory are not known
-- Means: An elementwise kernel or a reduction hides the latency of memory behind other threads; below a quarter of
--     the threads that a multiprocessor holds there are often too few. Matrix products, convolutions and attention
--     work with few threads and much shared memory on purpose, so they are left out, and so are grids of less than a
--     wave, which have few threads because the work is small. A tenth of the kernels' time is told, where the step is
--     not bound by its host.
-- Cure: Fewer registers or less shared memory a block (num_warps and the block size of a Triton kernel,
--     __launch_bounds__).
WITH launched AS (
    SELECT
        w.run_id, w.event_id, w.name, w.family, w.dur_ns, w.args, w.registers_per_thread, w.shared_memory_bytes,
        l.warps, l.multiprocessors,
        list_product(w.grid)::BIGINT AS blocks,
        (list_product(w.block)::BIGINT + 31) // 32 AS block_warps,
        -- registers are given out in units of 256 a warp, on four parts of a multiprocessor
        coalesce(
            l.registers // 4 // nullif((w.registers_per_thread * 32 + 255) // 256 * 256, 0) * 4 // block_warps, l.blocks
        ) AS by_registers,
        coalesce(l.shared_bytes // nullif(w.shared_memory_bytes + l.reserved_bytes, 0), l.blocks) AS by_shared,
        least(l.blocks, l.warps // block_warps, by_registers, by_shared) AS resident
    FROM work AS w
    JOIN multiprocessor_limits AS l USING (run_id)
    WHERE w.category = 'kernel' AND w.grid IS NOT NULL AND w.block IS NOT NULL AND w.registers_per_thread IS NOT NULL
        AND w.shared_memory_bytes IS NOT NULL AND l.registers IS NOT NULL AND l.shared_bytes IS NOT NULL
),
occupied AS (
    SELECT
        *,
        resident * block_warps / warps AS occupancy,
        CASE resident
            WHEN by_registers THEN registers_per_thread || ' registers a thread'
            WHEN by_shared THEN _bytes(shared_memory_bytes) || ' of shared memory a block'
            ELSE 'blocks of ' || block_warps * 32 || ' threads'
        END AS limited_by
    FROM launched
    WHERE resident > 0
),
summed AS (
    SELECT
        run_id,
        count(*) AS kernels,
        sum(dur_ns) AS total_ns,
        coalesce(sum(dur_ns) FILTER (is_low), 0) AS low_ns,
        arg_max({'name': name, 'occupancy': occupancy, 'limited_by': limited_by, 'dur_ns': dur_ns,
            'kineto': TRY_CAST(_fact(args, '"est. achieved occupancy %"') AS DOUBLE)}, dur_ns) FILTER (is_low) AS top,
        list(event_id ORDER BY dur_ns DESC) FILTER (is_low)[:8] AS event_ids
    FROM (
        SELECT
            *,
            occupancy < 0.25 AND blocks >= resident * multiprocessors AND coalesce(family IN (
                'elementwise', 'reduce', 'copy', 'fill', 'norm', 'softmax', 'multi_tensor', 'index', 'cat', 'embedding',
                'pooling', 'scan', 'random', 'quantize'
            ), false) AS is_low
        FROM occupied
    )
    GROUP BY run_id
)
SELECT
    run_id,
    low_ns >= 0.1 * total_ns AND NOT is_elsewhere AS fired,
    _percent(low_ns / total_ns) || ' of the time of ' || kernels || CASE WHEN kernels = 1 THEN ' kernel'
        ELSE ' kernels' END
        || ' is in elementwise ones and reductions that fill the device with below 25 % occupancy (limit 10 %)'
        || CASE WHEN is_elsewhere THEN '; the step is ' || bound ELSE '' END AS reason,
    regexp_extract(top.name, '^(?:void )?((?:[^<(]|\(anonymous namespace\))+)', 1) || ' keeps '
        || _percent(top.occupancy)
        || ' of a multiprocessor''s threads busy'
        || coalesce(' (the profiler''s own estimate: ' || _number(nullif(top.kineto, 0)) || ' %)', '')
        || ', limited by ' || top.limited_by || '; '
        || _percent(low_ns / total_ns) || ' of the kernels'' time is in such kernels.' AS sentence,
    coalesce(event_ids, []) AS event_ids,
    {'low_us': low_ns / 1e3, 'kernels_us': total_ns / 1e3, 'occupancy_frac': top.occupancy} AS figures
FROM (
    SELECT d.*, s.bound, coalesce(s.bound IN ('overhead-bound', 'input-bound'), false) AS is_elsewhere
    FROM summed AS d
    JOIN subjects AS s USING (run_id)
)
