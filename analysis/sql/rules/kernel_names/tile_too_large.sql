-- Rule: The tile of a matrix product is larger than the problem.
-- Topic: kernel names
-- Severity: costs
-- Needs: device work, step, shapes
-- Otherwise: no product's name tells a tile, or its shapes were not recorded
-- Means: A block computes one tile of the output (tiles of 32 x 128 and more are judged: libraries have smaller ones).
--     Where the output has fewer rows or columns than the tile, what is beyond its edge is computed for nothing. Half of a tile in both directions together is told.
-- Cure: A larger batch, another layout (transpose, so that the long side meets the long side), or max-autotune.
WITH products AS (
    SELECT
        w.run_id, w.name, w.event_id, w.dur_ns, w.tile_m, w.tile_n, w.op_name,
        from_json(TRY_CAST(o.shapes AS JSON), '["JSON"]') AS shape,
        CASE WHEN w.op_name IN ('aten::addmm', 'aten::baddbmm') THEN 2 ELSE 1 END AS first
    FROM work AS w
    JOIN step_events AS o ON o.run_id = w.run_id AND o.event_id = w.op_id
    WHERE w.family = 'gemm' AND w.tile_m > 0 AND w.tile_n > 0 AND o.shapes IS NOT NULL
        AND w.op_name IN ('aten::mm', 'aten::bmm', 'aten::addmm', 'aten::baddbmm')
),
sized AS (
    SELECT
        *,
        TRY_CAST(shape[first] ->> '$[#-2]' AS BIGINT) AS rows_m,
        TRY_CAST(shape[first + 1] ->> '$[#-1]' AS BIGINT) AS columns_n,
        -- which side of the kernel's tile the rows meet, a name does not tell: the better fit is taken
        greatest(
            least(1, rows_m / tile_m) * least(1, columns_n / tile_n), least(1, rows_m / tile_n) * least(1, columns_n / tile_m)
        ) AS used_frac
    FROM products
),
largest AS (
    SELECT *
    FROM sized
    WHERE used_frac IS NOT NULL
    QUALIFY row_number() OVER (PARTITION BY run_id ORDER BY dur_ns DESC, event_id) = 1
)
SELECT
    run_id,
    used_frac <= 0.5 AND greatest(tile_m, tile_n) >= 128 AND least(tile_m, tile_n) >= 32 AS fired,
    'an output of ' || rows_m || ' x ' || columns_n || ' uses ' || _percent(used_frac) || ' of a tile of ' || tile_m || ' x ' || tile_n
        || ' (limit 50 %)' AS reason,
    op_name || ' computes an output of ' || rows_m || ' x ' || columns_n || ' with a tile of ' || tile_m || ' x ' || tile_n || ': '
        || _percent(1 - used_frac) || ' of what ' || name || ' computes is thrown away.' AS sentence,
    [event_id] AS event_ids,
    {'rows': rows_m, 'columns': columns_n, 'tile_m': tile_m, 'tile_n': tile_n, 'used_frac': used_frac} AS figures
FROM largest
