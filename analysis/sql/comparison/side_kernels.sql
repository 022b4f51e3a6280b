-- Grain: one row a point of the side and name of a kernel, copy or fill that its profiled steps hold.
CREATE OR REPLACE TEMP VIEW side_kernels AS
WITH steps AS (
    SELECT run_id, greatest(1, count(DISTINCT step)) AS steps, count(step) = 0 AS is_one_window
    FROM events
    WHERE is_device
    GROUP BY run_id
)
SELECT
    axes, name,
    count(*) / any_value(steps) AS calls,
    sum(dur_ns) / any_value(steps) / 1e3 AS us,
    us / nullif(sum(us) OVER (PARTITION BY axes), 0) AS share
FROM side_points
JOIN events USING (run_id)
JOIN steps USING (run_id)
WHERE is_device AND status = 'ok' AND (step IS NOT NULL OR is_one_window)
GROUP BY axes, name;

COMMENT ON VIEW side_kernels IS
    'One row a point of one side and kernel, copy or fill: its share of the device''s time.';
COMMENT ON COLUMN side_kernels.axes IS 'JSON object of all axes.';
COMMENT ON COLUMN side_kernels.name IS 'Name of the kernel, copy or fill.';
COMMENT ON COLUMN side_kernels.calls IS 'Calls a step.';
COMMENT ON COLUMN side_kernels.us IS 'Sum of its durations a step; microseconds.';
COMMENT ON COLUMN side_kernels.share IS 'Its share of all durations of the step.';
