-- Grain: one row, the run `table_run`: the two totals below the profiler's table, what one would read off them, the
-- verdict of the store, and why the two differ if they do.
-- The reading is the usual one: a host total far above the device's (twice, here) is overhead; alike and at least 1 ms,
-- or a larger device total, is compute. It knows no other word. What takes less than 10 % of the host's total is no
-- reason.
CREATE OR REPLACE TEMP VIEW table_totals AS
WITH totals AS (
    SELECT
        sum(self_host_us) AS host_us,
        sum(self_device_us) FILTER (kind = 'work') AS device_us,
        coalesce(sum(self_host_us) FILTER (kind = 'profiler'), 0) AS profiler_us,
        coalesce(sum(self_host_us) FILTER (kind = 'call' AND _is_waiting(name)), 0) AS waiting_us,
        max_by(name, self_host_us) FILTER (kind = 'call' AND _is_waiting(name)) AS waiting
    FROM operator_table
),
lasting AS (
    SELECT
        pid, ts_ns, end_ns,
        max(end_ns) OVER (
            PARTITION BY pid ORDER BY ts_ns, end_ns ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS covered_ns
    FROM _table_events
    WHERE kind = 'work'
),
busy AS (
    SELECT sum(greatest(0, end_ns - greatest(ts_ns, coalesce(covered_ns, ts_ns)))) / 1e3 AS busy_us FROM lasting
),
first_step AS (
    SELECT (steps_ns[1] - list_median(steps_ns[2:])) / 1e3 AS excess_us
    FROM (
        SELECT list(dur_ns ORDER BY ts_ns) AS steps_ns
        FROM _table_events
        WHERE name = 'ProfilerStep*' AND kind = 'annotation'
    )
    WHERE len(steps_ns) >= 3
),
judged AS (
    SELECT r.run_id, r.source = 'import' IS true AS is_import, b.bound, b.sentence, p.perturbation
    FROM stg_runs AS r
    LEFT JOIN bounds AS b ON b.point_id = r.point_id AND b.environment_id IS NOT DISTINCT FROM r.environment_id
    LEFT JOIN perturbation AS p ON p.run_id = r.run_id
    WHERE r.run_id = getvariable('table_run')
),
reading AS (
    SELECT
        *,
        host_us / nullif(device_us, 0) AS ratio,
        CASE
            WHEN ratio >= 2 THEN 'overhead-bound'
            WHEN ratio <= 0.5 OR device_us >= 1e3 THEN 'compute-bound'
        END AS reading,
        CASE
            WHEN bound IS NULL OR bound = 'unknown' OR ratio IS NULL THEN NULL
            WHEN reading = 'compute-bound' THEN bound IN ('compute-bound', 'memory-bound', 'device-bound')
            ELSE coalesce(reading = bound, false)
        END AS agrees,
        coalesce(reading = 'overhead-bound', false) AND agrees IS NOT true AS is_host_too_high
    FROM judged
    LEFT JOIN totals ON true
    LEFT JOIN busy ON true
    LEFT JOIN first_step ON true
)
SELECT
    run_id, host_us, device_us, busy_us, ratio, reading, bound, sentence, agrees,
    list_filter([
        CASE WHEN is_host_too_high AND waiting_us >= 0.1 * host_us THEN
            _time(waiting_us) || ' of the host''s total (' || _percent(waiting_us / host_us)
                || ') is waiting for the device, most of it in ' || waiting END,
        CASE WHEN is_host_too_high AND profiler_us >= 0.1 * host_us THEN
            _time(profiler_us) || ' of the host''s total (' || _percent(profiler_us / host_us)
                || ') is the profiler''s own work' END,
        CASE WHEN is_host_too_high AND perturbation >= 1.1 THEN
            'the profiler makes the host ' || _number(perturbation) || ' times as slow at this point' END,
        CASE WHEN is_host_too_high AND is_import AND perturbation IS NULL THEN
            'the profiler usually makes the host ' || _number(_host_inflation().usual) || ' times as slow' END,
        CASE WHEN is_host_too_high AND excess_us >= 0.1 * host_us THEN
            'the first step took the host ' || _time(excess_us) || ' longer than the median of the others' END,
        CASE WHEN NOT agrees AND reading = 'compute-bound' AND ratio > 0.5 THEN
            'the totals are alike (host / device = ' || _number(ratio)
                || '), and which is larger decides nothing under a profiler' END,
        CASE WHEN NOT agrees AND reading IS NULL THEN
            'the totals are alike and small, for which the reading has no word' END,
        CASE WHEN NOT agrees AND reading = 'compute-bound' AND device_us >= 1.1 * busy_us THEN
            'work that overlaps counts twice: the device was busy for ' || _time(busy_us) || ' only' END,
        CASE WHEN NOT agrees AND bound IN ('serialized', 'balanced', 'input-bound', 'communication-bound') THEN
            'the totals cannot show that a step is ' || bound END,
        CASE WHEN reading = 'compute-bound' AND ratio > 0.5 AND waiting_us >= 0.5 * host_us THEN
            'the host''s total is as large as the device''s because the host waits for it: ' || _time(waiting_us)
                || ' (' || _percent(waiting_us / host_us) || '), most of it in ' || waiting END,
        CASE WHEN agrees AND reading = 'compute-bound' AND bound <> 'compute-bound' THEN
            'the totals cannot tell what the device is bound by' END
    ], lambda why: why IS NOT NULL) AS reasons
FROM reading;

COMMENT ON VIEW table_totals IS 'One row: the table''s totals, what one would read off them, and our verdict.';
COMMENT ON COLUMN table_totals.run_id IS 'The run.';
COMMENT ON COLUMN table_totals.host_us IS
    'Sum of all self host times; microseconds, under the profiler. torch: Self CPU time total.';
COMMENT ON COLUMN table_totals.device_us IS
    'Sum of the durations of all work of the device; microseconds; NULL = none. torch: Self CUDA time total.';
COMMENT ON COLUMN table_totals.busy_us IS 'Time in which a device worked: what overlaps counts once; microseconds.';
COMMENT ON COLUMN table_totals.ratio IS 'host_us / device_us.';
COMMENT ON COLUMN table_totals.reading IS
    'What one would read off the totals: overhead-bound, compute-bound; NULL = neither.';
COMMENT ON COLUMN table_totals.bound IS 'Verdict of the store (view bounds); NULL = none.';
COMMENT ON COLUMN table_totals.sentence IS 'That verdict in words.';
COMMENT ON COLUMN table_totals.agrees IS
    'The reading is on the side of the verdict; NULL = there is nothing to compare.';
COMMENT ON COLUMN table_totals.reasons IS
    'Why they differ, or what the reading overlooks, as far as the trace shows it; each in words.';
