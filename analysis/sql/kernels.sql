-- Grain: one row a run and kernel, that is name, grid and block.
-- Occupancy is an estimate from the CUDA occupancy calculator's rules: blocks that fit by threads, by registers
-- (allocated by warp in units of 256) and by shared memory. It leaves out the limit on blocks of a multiprocessor and
-- reserved shared memory, so it is an upper bound. Unknown limits give NULL.
CREATE VIEW kernels AS
WITH launched AS (
    SELECT
        run_id, name, grid, block,
        max(registers_per_thread) AS registers_per_thread,
        max(shared_memory_bytes) AS shared_memory_bytes,
        grid[1] * grid[2] * grid[3] AS blocks,
        block[1] * block[2] * block[3] AS threads_per_block,
        count(*) AS calls,
        sum(dur_ns) / 1e3 AS total_us,
        median(dur_ns) / 1e3 AS median_us,
        min(dur_ns) / 1e3 AS min_us,
        max(dur_ns) / 1e3 AS max_us
    FROM events
    WHERE category = 'kernel'
    GROUP BY run_id, name, grid, block
),
fitted AS (
    SELECT
        k.*,
        e.multiprocessors,
        e.threads_per_multiprocessor,
        ceil(threads_per_block / 32) AS warps,
        CASE
            WHEN e.threads_per_multiprocessor IS NULL OR e.registers_per_multiprocessor IS NULL
                OR e.shared_memory_per_multiprocessor_bytes IS NULL OR registers_per_thread IS NULL
                OR shared_memory_bytes IS NULL OR threads_per_block IS NULL THEN NULL
            ELSE least(
                floor(e.threads_per_multiprocessor / (32 * warps)),
                CASE WHEN registers_per_thread > 0
                    THEN floor(e.registers_per_multiprocessor / (256 * ceil(registers_per_thread * 32 / 256) * warps))
                END,
                CASE WHEN shared_memory_bytes > 0
                    THEN floor(e.shared_memory_per_multiprocessor_bytes / shared_memory_bytes)
                END
            )
        END AS resident_blocks
    FROM launched AS k
    JOIN stg_runs AS r USING (run_id)
    LEFT JOIN environments AS e USING (environment_id)
)
SELECT
    run_id, name, grid, block, registers_per_thread, shared_memory_bytes, blocks, threads_per_block,
    calls, total_us, median_us, min_us, max_us,
    resident_blocks::BIGINT AS resident_blocks,
    resident_blocks * 32 * warps / threads_per_multiprocessor AS occupancy,
    blocks / nullif(multiprocessors * resident_blocks, 0) AS waves
FROM fitted;

COMMENT ON VIEW kernels IS
    'One row a run and kernel (name, grid, block): its launch parameters, times, and how it fills the device.';
COMMENT ON COLUMN kernels.name IS 'Name of the kernel.';
COMMENT ON COLUMN kernels.blocks IS 'Blocks of the grid.';
COMMENT ON COLUMN kernels.threads_per_block IS 'Threads of a block.';
COMMENT ON COLUMN kernels.calls IS 'How often it ran in the profiled window.';
COMMENT ON COLUMN kernels.total_us IS 'Sum of its durations; microseconds.';
COMMENT ON COLUMN kernels.median_us IS 'Median of its durations; microseconds.';
COMMENT ON COLUMN kernels.min_us IS 'Shortest duration; microseconds.';
COMMENT ON COLUMN kernels.max_us IS 'Longest duration; microseconds.';
COMMENT ON COLUMN kernels.resident_blocks IS 'Blocks that one multiprocessor can hold at a time, an upper bound.';
COMMENT ON COLUMN kernels.occupancy IS
    'Estimated share of a multiprocessor''s threads that resident blocks use; NULL where a limit is unknown.';
COMMENT ON COLUMN kernels.waves IS 'blocks / (multiprocessors x resident_blocks): below 1 the device is not filled.';
