-- Grain: one row a point and sweep that has a chosen run of it (table `_history_runs`).
-- Of the quantity that the variable `history_quantity` names. A sweep that measured a point in several environments
-- has a row for each.
CREATE OR REPLACE TEMP TABLE _history AS
WITH measured AS (
    SELECT
        r.*,
        unnest([
            {'quantity': 'wall_us', 'value': wall_us, 'low': wall_us_low, 'high': wall_us_high},
            {'quantity': 'issue_us', 'value': issue_us, 'low': issue_us_low, 'high': issue_us_high},
            {'quantity': 'device_us', 'value': device_us, 'low': device_us_low, 'high': device_us_high},
            {'quantity': 'replay_us', 'value': replay_us, 'low': replay_us_low, 'high': replay_us_high},
            {'quantity': 'single_us', 'value': single_us, 'low': single_us_low, 'high': single_us_high},
            {'quantity': 'busy_us', 'value': busy_us, 'low': busy_us_low, 'high': busy_us_high},
            {'quantity': 'blocked_us', 'value': blocked_us, 'low': blocked_us_low, 'high': blocked_us_high},
            {'quantity': 'floor_us', 'value': floor_us, 'low': floor_us_low, 'high': floor_us_high},
            {'quantity': 'margin', 'value': margin, 'low': margin_low, 'high': margin_high},
            {'quantity': 'compile_s', 'value': compile_s, 'low': NULL, 'high': NULL},
            {'quantity': 'peak_bytes', 'value': peak_bytes, 'low': NULL, 'high': NULL}
        ], recursive := true)
    FROM stg_runs AS r
    SEMI JOIN _history_runs USING (run_id)
),
named AS (
    SELECT
        _axes_key(workload, size, dtype, batch, compile, dynamic, warmup, device, params) AS axes,
        _axes_words(workload, size, dtype, batch, compile, warmup, params) AS name,
        *,
        status = 'ok' AND "value" IS NOT NULL AS counts
    FROM measured
    WHERE quantity = getvariable('history_quantity')
)
SELECT
    axes,
    any_value(name) AS name,
    NULL::VARCHAR AS axis,
    concat_ws(' ', any_value(quantity), compile <> 'false', CASE
        WHEN any_value(quantity) = 'wall_us' THEN median(issue_us) FILTER (counts) > median(device_us) FILTER (counts)
    END) AS kind,
    CASE
        WHEN any_value(quantity) <> 'wall_us' THEN replace(any_value(quantity), '_us', '')
        WHEN median(issue_us) FILTER (counts) > median(device_us) FILTER (counts) THEN 'wall by the host'
        ELSE 'wall'
    END AS differs_as,
    CASE WHEN any_value(quantity) = 'device_us'
        THEN string_agg(DISTINCT device_method, ', ' ORDER BY device_method) FILTER (counts) END AS method,
    sweep_id,
    min(started_at) AS started_at,
    environment_id,
    count(*) FILTER (counts) AS runs,
    median("value") FILTER (counts) AS "value",
    min(low) FILTER (counts) AS low,
    max(high) FILTER (counts) AS high,
    avg(pow(ln(high / low) / 2 / 1.959964, 2)) FILTER (counts AND low > 0) AS own_variance,
    CASE WHEN runs = 0 THEN arg_max(status, run_id) ELSE 'ok' END AS status,
    CASE WHEN runs = 0 THEN arg_max(
        coalesce(reason, _fact(reasons, getvariable('history_quantity')), 'it was not measured'), run_id
    ) END AS reason
FROM named
GROUP BY axes, compile, sweep_id, environment_id;

COMMENT ON TABLE _history IS 'One row a point and sweep: one quantity of it.';
COMMENT ON COLUMN _history.axes IS 'JSON object of all axes.';
COMMENT ON COLUMN _history.kind IS
    'Points of one kind differ between sweeps alike: eager or compiled; of wall times, bound by the host or not.';
COMMENT ON COLUMN _history.differs_as IS 'Quantity whose spread between runs it has: relation _spread.';
COMMENT ON COLUMN _history.method IS 'How a device time was taken; NULL for all others.';
COMMENT ON COLUMN _history.own_variance IS
    'Variance of the logarithm by the runs'' own intervals; NULL = they have none.';
