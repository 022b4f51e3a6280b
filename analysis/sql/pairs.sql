-- Grain: one row a pair of points that differ in exactly one thing, and quantity.
-- kind says in what: compile (eager, each mode), warmup (cold, warm), profiler (one point with and without it), dtype,
-- environment, dynamic, static_inputs, setting (a way of the workload to the same result, _ways: impl, checkpoint).
-- A is the plain, exact, cold or earlier side, B the other; ratio = A / B, so that above 1 B takes less. Points alike
-- in every axis (a source that has changed, another schedule of the profiler, which changes no times) count once, the
-- latest. A quantity that neither side has is left out, but for the wall time. Peak memory is what the steps hold
-- themselves where both sides were watched by holder, else the allocator's peak, compilation included.
CREATE VIEW pairs AS
WITH further AS ( -- what the further axes say, once for each set of them
    SELECT
        params,
        _canonical(json_merge_patch(params, '{"schedule": null, "static_inputs": null}')) AS others,
        coalesce(_fact(params, 'static_inputs'), 'false') AS inputs
    FROM (SELECT DISTINCT params FROM bounds)
),
described AS (
    SELECT
        environment_id,
        coalesce(CASE WHEN device = 'cpu' THEN host_cpu ELSE device_name END, device) AS model,
        'torch ' || torch AS version,
        min(model) OVER () <> max(model) OVER () AS models_differ,
        min(version) OVER () <> max(version) OVER () AS versions_differ,
        count(*) OVER (PARTITION BY model, version) > 1 AS has_double
    FROM environments
),
named AS ( -- an environment by what tells it from the others
    SELECT
        environment_id,
        coalesce(nullif(concat_ws(' ',
            CASE WHEN models_differ THEN model END,
            CASE WHEN versions_differ THEN version END,
            CASE WHEN has_double THEN '[' || environment_id[:8] || ']' END), ''), model) AS place
    FROM described
),
seen AS (
    SELECT environment_id, row_number() OVER (ORDER BY min(run_id)) AS place_in_time
    FROM stg_runs
    GROUP BY environment_id
),
facts AS (
    SELECT
        b.*,
        b.device = 'cpu' AS is_cpu,
        b.warmup = 'false' AS is_cold,
        b.compile = 'false' AS is_eager,
        CASE WHEN b.compile <> 'false' THEN b.dynamic END AS dynamics,
        CASE WHEN b.compile <> 'false' THEN x.inputs END AS inputs,
        concat_ws(' ',
            CASE b.compile WHEN 'false' THEN 'eager' WHEN 'true' THEN 'compiled' ELSE b.compile END,
            'dynamic=' || nullif(dynamics, 'false'), CASE WHEN x.inputs = 'true' THEN 'static_inputs' END) AS way,
        coalesce(list_position(['fp32', 'tf32', 'fp16', 'bf16'], b.dtype), 0) AS coarseness,
        coalesce(n.place, b.environment_id) AS place, s.place_in_time,
        p.first_call_us, p.compile_s, p.allocated_peak_bytes AS allocator_bytes,
        _own_bytes(h.peak_bytes, h.holders_at_peak, b.compile, b.device) AS own_bytes,
        concat_ws(chr(31), b.workload, coalesce(b.batch::VARCHAR, '-'), b.device) AS kept,
        concat_ws(chr(31), kept, x.others) AS tasks,
        concat_ws(chr(31), tasks, coalesce(b.size::VARCHAR, '-')) AS task
    FROM bounds AS b
    JOIN points AS p
        ON p.point_id IS NOT DISTINCT FROM b.point_id AND p.environment_id IS NOT DISTINCT FROM b.environment_id
    LEFT JOIN further AS x ON x.params IS NOT DISTINCT FROM b.params
    LEFT JOIN named AS n ON n.environment_id = b.environment_id
    LEFT JOIN seen AS s ON s.environment_id = b.environment_id
    LEFT JOIN _phase_memory AS h ON h.run_id = b.run_id AND len(h.path) = 0
    WHERE p.source IS DISTINCT FROM 'import'
    QUALIFY row_number() OVER (
        PARTITION BY b.environment_id, task, b.dtype, b.compile, dynamics, inputs, b.warmup ORDER BY b.run_id DESC
    ) = 1
),
varied AS (
    SELECT *
    FROM facts
    CROSS JOIN unnest(['compile', 'warmup', 'dtype', 'environment', 'dynamic', 'static_inputs']) AS each (kind)
    WHERE NOT (is_eager AND kind IN ('dynamic', 'static_inputs'))
    UNION ALL BY NAME
    SELECT
        f.* REPLACE (
            concat_ws(chr(31), kept, w.setting, w.others) AS tasks,
            concat_ws(chr(31), kept, w.setting, w.others, coalesce(size::VARCHAR, '-')) AS task
        ),
        'setting' AS kind, w.setting, w.chosen, w.plainness, w.is_exact
    FROM facts AS f
    JOIN _chosen_ways('bounds') AS w USING (workload, params)
),
sides AS (
    SELECT
        *,
        CASE kind
            WHEN 'compile' THEN way
            WHEN 'warmup'
                THEN CASE warmup WHEN 'false' THEN 'cold' WHEN 'true' THEN 'warm' ELSE warmup || ' warm-up steps' END
            WHEN 'dtype' THEN dtype
            WHEN 'environment' THEN place
            WHEN 'dynamic' THEN 'dynamic=' || dynamics
            WHEN 'setting' THEN setting || '=' || chosen
            ELSE CASE inputs WHEN 'true' THEN 'static inputs' ELSE 'copied inputs' END
        END AS side,
        CASE kind
            WHEN 'compile' THEN CASE WHEN is_eager THEN 0 ELSE 1 END
            WHEN 'warmup' THEN CASE WHEN is_cold THEN 0 ELSE 1 END
            WHEN 'dtype' THEN coarseness
            WHEN 'environment' THEN place_in_time
            WHEN 'dynamic' THEN CASE dynamics WHEN 'false' THEN 0 ELSE 1 END
            WHEN 'setting' THEN plainness
            ELSE CASE inputs WHEN 'true' THEN 1 ELSE 0 END
        END AS "order",
        concat_ws(chr(31), kind,
            CASE WHEN kind <> 'environment' THEN environment_id END,
            CASE WHEN kind <> 'dtype' THEN dtype END,
            CASE WHEN kind <> 'warmup' THEN warmup END,
            CASE WHEN kind <> 'compile' THEN concat_ws(' ', compile,
                CASE WHEN kind <> 'dynamic' THEN 'dynamic=' || dynamics END,
                CASE WHEN kind <> 'static_inputs' THEN 'inputs=' || inputs END) END) AS alike
    FROM varied
),
met AS (
    SELECT
        b.kind, b.alike, b.tasks, a.side AS a, b.side AS b,
        a.point_id AS a_point_id, a.environment_id AS a_environment_id, a.bound AS a_bound,
        a.status AS a_status, a.reason AS a_reason,
        b.point_id, b.environment_id, b.run_id,
        b.workload, b.size, b.dtype, b.batch, b.compile, b.dynamic, b.warmup, b.device, b.params,
        b.bound, b.status AS b_status, b.reason AS b_reason,
        a.wall_us - b.wall_us AS saved_us,
        a.own_bytes IS NOT NULL AND b.own_bytes IS NOT NULL AS is_watched,
        CASE
            WHEN b.kind = 'warmup' THEN [
                {'quantity': 'first call', 'unit': 'us',
                    'a': [a.first_call_us, NULL, NULL], 'b': [b.wall_us, b.wall_us_low, b.wall_us_high]}
            ]
            WHEN b.is_cold THEN [
                {'quantity': 'first call', 'unit': 'us',
                    'a': [a.first_call_us, NULL, NULL], 'b': [b.first_call_us, NULL, NULL]},
                {'quantity': 'compilation', 'unit': 's', 'a': [a.compile_s, NULL, NULL], 'b': [b.compile_s, NULL, NULL]}
            ]
            ELSE [
                {'quantity': 'wall', 'unit': 'us',
                    'a': [a.wall_us, a.wall_us_low, a.wall_us_high], 'b': [b.wall_us, b.wall_us_low, b.wall_us_high]},
                {'quantity': CASE WHEN b.is_cpu THEN 'floor' ELSE 'issue' END, 'unit': 'us',
                    'a': [a.overhead_us, a.overhead_us_low, a.overhead_us_high],
                    'b': [b.overhead_us, b.overhead_us_low, b.overhead_us_high]},
                {'quantity': CASE WHEN b.is_cpu THEN 'work' ELSE 'device' END, 'unit': 'us',
                    'a': [a.work_us, a.work_us_low, a.work_us_high], 'b': [b.work_us, b.work_us_low, b.work_us_high]},
                {'quantity': 'compilation', 'unit': 's',
                    'a': [a.compile_s, NULL, NULL], 'b': [b.compile_s, NULL, NULL]},
                {'quantity': 'peak memory', 'unit': 'bytes',
                    'a': [CASE WHEN is_watched THEN a.own_bytes ELSE a.allocator_bytes END, NULL, NULL],
                    'b': [CASE WHEN is_watched THEN b.own_bytes ELSE b.allocator_bytes END, NULL, NULL]}
            ]
        END AS quantities
    FROM sides AS a
    JOIN sides AS b ON b.alike = a.alike AND b.task = a.task
        AND (a."order" < b."order" OR a.kind = 'setting' AND a."order" = b."order" AND a.chosen < b.chosen)
    WHERE a.kind <> 'setting' OR a.is_exact OR a.plainness = 1
    UNION ALL BY NAME
    SELECT
        'profiler' AS kind, concat_ws(chr(31), 'profiler', f.environment_id, f.dtype, f.warmup, way) AS alike, f.tasks,
        'profiled' AS a, 'unprofiled' AS b,
        f.point_id AS a_point_id, f.environment_id AS a_environment_id, f.bound AS a_bound,
        f.status AS a_status, coalesce(t.reason, f.reason) AS a_reason,
        f.point_id, f.environment_id, f.run_id,
        f.workload, f.size, f.dtype, f.batch, f.compile, f.dynamic, f.warmup, f.device, f.params,
        f.bound, f.status AS b_status, coalesce(t.reason, f.reason) AS b_reason,
        [
            {'quantity': 'host', 'unit': 'us', 'a': [t.profiled_host_us, NULL, NULL], 'b': [t.unprofiled_host_us,
                CASE WHEN is_cpu THEN r.wall_us_low ELSE r.issue_us_low + coalesce(r.blocked_us_low, 0) END,
                CASE WHEN is_cpu THEN r.wall_us_high ELSE r.issue_us_high + coalesce(r.blocked_us_high, 0) END]}
        ] AS quantities
    FROM facts AS f
    JOIN perturbation AS t USING (run_id)
    JOIN stg_runs AS r USING (run_id)
    WHERE NOT f.is_cold
),
measured AS (
    SELECT
        * EXCLUDE (q, quantities),
        q.quantity, q.unit,
        q.a[1]::DOUBLE AS a_value, q.a[2] AS a_low, q.a[3] AS a_high,
        q.b[1]::DOUBLE AS b_value, q.b[2] AS b_low, q.b[3] AS b_high,
        kind = 'compile' AND q.quantity = 'compilation' AS is_price,
        a_value > 0 AND b_value > 0 AS has_ratio,
        CASE WHEN has_ratio THEN a_value / b_value END AS ratio,
        CASE WHEN has_ratio AND a_low IS NOT NULL AND b_high > 0 THEN greatest(a_low, 0) / b_high END AS ratio_low,
        CASE WHEN has_ratio AND b_low > 0 THEN a_high / b_low END AS ratio_high
    FROM (SELECT *, unnest(quantities) AS q FROM met)
    WHERE q.quantity IN ('wall', 'first call', 'host') OR q.a[1] IS NOT NULL OR q.b[1] IS NOT NULL
),
worded AS (
    SELECT
        *,
        CASE
            WHEN NOT has_ratio OR ratio IS NULL THEN NULL
            WHEN ratio_low > 1 THEN 'less'
            WHEN ratio_high < 1 THEN 'more'
            WHEN ratio_low <= 1 AND ratio_high >= 1 THEN 'same'
        END AS change,
        CASE
            WHEN ratio IS NOT NULL THEN NULL
            WHEN is_price THEN 'an eager step compiles nothing'
            WHEN a_status <> 'ok' THEN a || ': ' || coalesce(a_reason, a_status)
            WHEN b_status <> 'ok' THEN b || ': ' || coalesce(b_reason, b_status)
            WHEN kind = 'profiler' THEN coalesce(b_reason, 'no host time with and without the profiler')
            ELSE 'no ' || quantity || ' above zero is known of ' || CASE WHEN a_value > 0 THEN b ELSE a END
        END AS why,
        CASE unit WHEN 'us' THEN _time(a_value) WHEN 's' THEN _time(1e6 * a_value) ELSE _bytes(a_value) END AS a_text,
        CASE unit WHEN 'us' THEN _time(b_value) WHEN 's' THEN _time(1e6 * b_value) ELSE _bytes(b_value) END AS b_text,
        CASE WHEN kind = 'setting' THEN ' with ' ELSE ' ' END AS joint,
        CASE
            WHEN kind = 'warmup' THEN 'The first call took ' || a_text || ', a warm step takes ' || b_text
            ELSE CASE
                WHEN quantity = 'host' THEN 'Host time of a step is '
                WHEN quantity = 'wall' THEN 'A step takes '
                WHEN quantity = 'first call' THEN 'The first call took '
                WHEN unit = 'us' THEN 'Its ' || quantity || ' time is '
                ELSE 'Its ' || quantity || ' is '
            END || a_text || joint || a || ' and ' || b_text || joint || b
        END AS facts
    FROM measured
)
SELECT
    kind, a, b, quantity, unit,
    point_id, environment_id, run_id,
    workload, size, dtype, batch, compile, dynamic, warmup, device, params,
    md5(concat_ws(chr(31), alike, tasks, a, b)) AS series,
    a_point_id, a_environment_id, a_bound, bound,
    a_value, a_low, a_high, b_value, b_low, b_high,
    ratio, ratio_low, ratio_high, change,
    why AS reason,
    CASE
        WHEN is_price THEN 'Compiling took ' || b_text || CASE
            WHEN saved_us > 0 THEN ', which ' || _number(ceil(1e6 * b_value / saved_us)) || ' steps pay back.'
            WHEN saved_us <= 0 THEN ', which no number of steps pays back.'
            ELSE '.'
        END
        WHEN ratio IS NULL THEN 'Unknown: ' || why || '.'
        ELSE facts || ': ' || CASE
            WHEN change = 'same' THEN 'the difference is within the noise, a ratio of ' || _number(ratio)
                || ' (' || _number(ratio_low) || ' to ' || _number(ratio_high) || ')'
            WHEN change IS NULL AND abs(ratio - 1) < 0.005 THEN 'the same'
            WHEN ratio >= 1 THEN _number(ratio) || ' times less'
                || coalesce(' (' || _number(ratio_low) || ' to ' || _number(ratio_high) || ')', '')
            ELSE _number(1 / ratio) || ' times as much'
                || coalesce(' (' || _number(1 / ratio_high) || ' to ' || _number(1 / ratio_low) || ')', '')
        END || '.'
    END AS sentence
FROM worded;

COMMENT ON VIEW pairs IS
    'One row a quantity of two points that differ in one thing alone: both values, their ratio and interval.';
COMMENT ON COLUMN pairs.kind IS
    'In what they differ: compile, warmup, profiler, dtype, environment, dynamic, static_inputs, setting (a way of the
    workload to the same result, which both sides name).';
COMMENT ON COLUMN pairs.a IS
    'Side A in words: eager, cold, profiled, the more exact dtype, the older environment, the plainer way (impl=loop).';
COMMENT ON COLUMN pairs.b IS
    'Side B in words: compiled or its mode, warm, unprofiled, the other dtype or environment or way (impl=fused).';
COMMENT ON COLUMN pairs.quantity IS
    'wall; issue and device, on the CPU floor and work; first call (against a warm step where kind is warmup);
    compilation (of an eager A none, so without a ratio); peak memory; host (with and without the profiler).';
COMMENT ON COLUMN pairs.unit IS 'Unit of the values: us, s, bytes.';
COMMENT ON COLUMN pairs.point_id IS 'Point of side B.';
COMMENT ON COLUMN pairs.environment_id IS 'Environment of side B.';
COMMENT ON COLUMN pairs.run_id IS 'Run of side B.';
COMMENT ON COLUMN pairs.series IS 'Key of all pairs that are alike but for size.';
COMMENT ON COLUMN pairs.a_point_id IS 'Point of side A.';
COMMENT ON COLUMN pairs.a_environment_id IS 'Environment of side A.';
COMMENT ON COLUMN pairs.a_bound IS 'Bound of side A.';
COMMENT ON COLUMN pairs.bound IS 'Bound of side B.';
COMMENT ON COLUMN pairs.a_value IS 'The quantity on side A; NULL = unknown.';
COMMENT ON COLUMN pairs.a_low IS 'Low end of its 95 % interval; NULL = it has none.';
COMMENT ON COLUMN pairs.a_high IS 'High end of its 95 % interval.';
COMMENT ON COLUMN pairs.b_value IS 'The quantity on side B; NULL = unknown.';
COMMENT ON COLUMN pairs.b_low IS 'Low end of its 95 % interval; NULL = it has none.';
COMMENT ON COLUMN pairs.b_high IS 'High end of its 95 % interval.';
COMMENT ON COLUMN pairs.ratio IS 'a_value / b_value: how many times less B takes; NULL = one is unknown.';
COMMENT ON COLUMN pairs.ratio_low IS 'a_low / b_high, the least that both intervals allow; NULL = one has none.';
COMMENT ON COLUMN pairs.ratio_high IS 'a_high / b_low, the most that both intervals allow.';
COMMENT ON COLUMN pairs.change IS
    'less (B takes less than A), more, same (the interval holds 1); NULL = it cannot be told.';
COMMENT ON COLUMN pairs.reason IS 'Why there is no ratio; NULL = there is one.';
COMMENT ON COLUMN pairs.sentence IS 'The pair as one English sentence.';
