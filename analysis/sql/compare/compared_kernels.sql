-- Grain: one row a kernel, copy or fill of the device, by name, both sides beside each other.
CREATE OR REPLACE TEMP VIEW compared_kernels AS
WITH sides AS (
    SELECT
        side, name,
        count(*) / any_value(steps) AS calls,
        median(dur_ns) / 1e3 AS call_us,
        sum(dur_ns) / any_value(steps) / 1e3 AS us
    FROM compared_runs
    JOIN _compared_events USING (run_id)
    WHERE is_device AND counts
    GROUP BY ALL
)
SELECT
    name,
    a.calls AS a_calls, b.calls AS b_calls,
    a.call_us AS a_call_us, b.call_us AS b_call_us,
    a.us AS a_us, b.us AS b_us
FROM (FROM sides WHERE side = 'a') AS a
FULL JOIN (FROM sides WHERE side = 'b') AS b USING (name);

COMMENT ON VIEW compared_kernels IS 'One row a kernel, copy or fill: calls, and its time a call and a step, of both sides.';
COMMENT ON COLUMN compared_kernels.name IS 'Name of the kernel, copy or fill.';
COMMENT ON COLUMN compared_kernels.a_calls IS 'Calls a step of a; NULL = a has none.';
COMMENT ON COLUMN compared_kernels.b_calls IS 'Calls a step of b; NULL = b has none.';
COMMENT ON COLUMN compared_kernels.a_call_us IS 'Median duration of a call in a; microseconds.';
COMMENT ON COLUMN compared_kernels.b_call_us IS 'Median duration of a call in b; microseconds.';
COMMENT ON COLUMN compared_kernels.a_us IS 'Sum of its durations a step of a; microseconds.';
COMMENT ON COLUMN compared_kernels.b_us IS 'Sum of its durations a step of b; microseconds.';
