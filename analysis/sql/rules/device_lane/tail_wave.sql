-- Rule: The last wave of blocks fills the device only in part.
-- Topic: device lane
-- Severity: costs
-- Needs: device work, step, launch parameters
-- Otherwise: no kernel of the step has more blocks than the device runs at once, or registers and shared memory are
--     not known
-- Means: A multiprocessor runs as many blocks at once as its threads, registers and shared memory allow; all of them
--     together are a wave. Behind the last whole wave the rest of the blocks takes as long as a whole one, while part
--     of the device is idle. It matters with few waves: 1.1 waves take the time of two. It is reckoned as if all
--     blocks take equally long, so that the loss is an upper limit, the more so for a kernel bound by memory. A tenth
--     of the kernels' time is told.
-- Cure: Another size or tile, so that the blocks make whole waves; for elementwise work a kernel that strides over
--     its data, as compiled ones do.
WITH launched AS (
    SELECT
        w.run_id, w.event_id, w.name, w.dur_ns, l.multiprocessors,
        list_product(w.grid)::BIGINT AS blocks,
        (list_product(w.block)::BIGINT + 31) // 32 AS block_warps,
        -- registers are given out in units of 256 a warp, on four parts of a multiprocessor
        least(
            l.blocks,
            l.warps // block_warps,
            coalesce(
                l.registers // 4 // nullif((w.registers_per_thread * 32 + 255) // 256 * 256, 0) * 4 // block_warps,
                l.blocks
            ),
            l.shared_bytes // nullif(w.shared_memory_bytes + l.reserved_bytes, 0)
        ) AS resident
    FROM work AS w
    JOIN multiprocessor_limits AS l USING (run_id)
    WHERE w.category = 'kernel' AND w.grid IS NOT NULL AND w.block IS NOT NULL AND w.registers_per_thread IS NOT NULL
        AND w.shared_memory_bytes IS NOT NULL AND l.registers IS NOT NULL AND l.shared_bytes IS NOT NULL
        AND NOT _is_collective(w.name)
),
waved AS (
    SELECT
        *,
        blocks / (resident * multiprocessors) AS waves,
        dur_ns * (1 - waves / ceil(waves)) AS lost_ns
    FROM launched
    WHERE resident > 0
),
summed AS (
    SELECT
        run_id,
        sum(dur_ns) AS total_ns,
        coalesce(sum(lost_ns) FILTER (waves > 1), 0) AS lost_ns,
        arg_max({
            'name': name, 'blocks': blocks, 'resident': resident, 'waves': waves, 'dur_ns': dur_ns, 'lost_ns': lost_ns,
            'multiprocessors': multiprocessors
        }, lost_ns) FILTER (waves > 1) AS top,
        list(event_id ORDER BY lost_ns DESC) FILTER (waves > 1)[:8] AS event_ids
    FROM waved
    GROUP BY run_id
)
SELECT
    run_id,
    m.lost_ns >= 0.1 * total_ns AND NOT is_elsewhere AS fired,
    'the last waves leave at most ' || _percent(m.lost_ns / total_ns)
        || ' of the kernels'' time unused (limit 10 %); the most '
        || short_name || ' with ' || _number(top.waves) || ' waves'
        || CASE WHEN is_elsewhere THEN '; the step is ' || bound ELSE '' END AS reason,
    short_name || ' runs ' || top.blocks || ' blocks, ' || _number(top.waves) || ' waves of '
        || top.multiprocessors || ' x ' || top.resident || ' blocks'
        || ': its last wave fills ' || _percent(1 - ceil(top.waves) + top.waves) || ' of the device, up to '
        || _percent(top.lost_ns / top.dur_ns) || ' of its ' || _time(top.dur_ns / 1e3)
        || ' and of all kernels'' time up to '
        || _percent(m.lost_ns / total_ns) || '.' AS sentence,
    event_ids,
    {'lost_us': m.lost_ns / 1e3, 'kernels_us': total_ns / 1e3, 'waves': top.waves, 'blocks': top.blocks,
        'blocks_per_multiprocessor': top.resident} AS figures
FROM (
    SELECT
        d.*, s.bound,
        coalesce(s.bound IN ('overhead-bound', 'input-bound'), false) AS is_elsewhere,
        regexp_extract(top.name, '^(?:void )?((?:[^<(]|\(anonymous namespace\))+)', 1) AS short_name
    FROM summed AS d
    JOIN subjects AS s USING (run_id)
    WHERE top IS NOT NULL
) AS m
