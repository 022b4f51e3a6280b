-- Grain: one row a command that measures suspects again: all that differ in size alone, on the side of b.
-- Reads the table `_suspects` (axes).
CREATE OR REPLACE TEMP VIEW remeasure AS
SELECT
    concat_ws(' ',
        'python -m runner -m',
        _word('workload', workload),
        CASE WHEN count(size) > 0 THEN 'size=' || array_to_string(list(DISTINCT size ORDER BY size), ',') END,
        _word('dtype', dtype),
        _word('batch', batch::VARCHAR),
        _word('compile', compile),
        CASE WHEN dynamic <> 'false' THEN _word('dynamic', dynamic) END,
        CASE WHEN warmup <> 'true' THEN _word('warmup', warmup) END,
        _word('device', device),
        nullif(_settings(params), ''),
        _word('python', b_interpreter),
        CASE WHEN b_measure IN ('quick', 'thorough') THEN _word('measure', b_measure) END,
        'rerun=true',
        _word('store', getvariable('remeasure_store')::VARCHAR)
    ) AS command,
    count(*) AS points
FROM matched_points
SEMI JOIN _suspects USING (axes)
GROUP BY workload, dtype, batch, compile, dynamic, warmup, device, params, b_interpreter, b_measure;

COMMENT ON VIEW remeasure IS 'One row a command that measures suspects again.';
COMMENT ON COLUMN remeasure.command IS 'The command, its axes as they are given to the runner.';
COMMENT ON COLUMN remeasure.points IS 'How many suspects it measures.';
