-- Grain: one row a thing compared (a kind of step, an operator, a kernel) and quantity.
-- What one side lacks is NULL there and took it no time: its change is all of the other side. A kind of step that one
-- side lacks has no change.
CREATE OR REPLACE TEMP VIEW comparison AS
WITH rows AS (
    SELECT
        'step' AS "by", kind AS name, NULL::VARCHAR AS shapes, quantity,
        a_steps::DOUBLE AS a_calls, b_steps::DOUBLE AS b_calls, a_us, b_us, b_us - a_us AS change_us,
        a_low_us, a_high_us, b_low_us, b_high_us,
        NULL::DOUBLE AS a_call_us, NULL::DOUBLE AS b_call_us
    FROM compared_steps
    UNION ALL BY NAME
    SELECT
        'operator' AS "by", name, shapes, unnest(['host', 'device']) AS quantity, a_calls, b_calls,
        unnest([a_host_us, a_device_us]) AS a_us, unnest([b_host_us, b_device_us]) AS b_us,
        unnest([coalesce(b_host_us, 0) - coalesce(a_host_us, 0), coalesce(b_device_us, 0) - coalesce(a_device_us, 0)])
            AS change_us
    FROM compared_operators
    UNION ALL BY NAME
    SELECT
        'kernel' AS "by", name, 'device' AS quantity, a_calls, b_calls, a_us, b_us,
        coalesce(b_us, 0) - coalesce(a_us, 0) AS change_us, a_call_us, b_call_us
    FROM compared_kernels
)
SELECT
    "by", name, shapes, quantity, a_calls, b_calls, a_us, b_us, b_us / nullif(a_us, 0) AS ratio, change_us,
    a_low_us, a_high_us, b_low_us, b_high_us, a_call_us, b_call_us
FROM rows
WHERE "by" = 'step' OR a_us > 0 OR b_us > 0;

COMMENT ON VIEW comparison IS 'One row a kind of step, operator or kernel, and quantity: both sides and their change.';
COMMENT ON COLUMN comparison."by" IS 'step, operator or kernel.';
COMMENT ON COLUMN comparison.name IS 'Kind of step, name of the operator, or name of the kernel, copy or fill.';
COMMENT ON COLUMN comparison.shapes IS 'JSON of an operator''s input shapes, where they are asked for.';
COMMENT ON COLUMN comparison.quantity IS
    'Of steps: wall, busy (device), host; of operators: host (self time), device (what they launched); of kernels: device.';
COMMENT ON COLUMN comparison.a_calls IS 'Calls a step of a; of a kind of step, how many steps there are.';
COMMENT ON COLUMN comparison.b_calls IS 'Calls a step of b; of a kind of step, how many steps there are.';
COMMENT ON COLUMN comparison.a_us IS 'Time a step of a (of steps the median), under the profiler; microseconds; NULL = none.';
COMMENT ON COLUMN comparison.b_us IS 'Time a step of b (of steps the median), under the profiler; microseconds; NULL = none.';
COMMENT ON COLUMN comparison.ratio IS 'b_us / a_us: above 1 b is slower.';
COMMENT ON COLUMN comparison.change_us IS 'b_us - a_us: above 0 b is slower; microseconds a step.';
COMMENT ON COLUMN comparison.a_low_us IS 'First quartile of a''s steps; microseconds.';
COMMENT ON COLUMN comparison.a_high_us IS 'Third quartile of a''s steps; microseconds.';
COMMENT ON COLUMN comparison.b_low_us IS 'First quartile of b''s steps; microseconds.';
COMMENT ON COLUMN comparison.b_high_us IS 'Third quartile of b''s steps; microseconds.';
COMMENT ON COLUMN comparison.a_call_us IS 'Median duration of a kernel''s call in a; microseconds.';
COMMENT ON COLUMN comparison.b_call_us IS 'Median duration of a kernel''s call in b; microseconds.';
