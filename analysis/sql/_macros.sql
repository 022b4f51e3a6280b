-- Macros that the relations share. Private: names begin with `_`.

-- A number, or NULL where it is not finite: what could not be measured is unknown.
CREATE MACRO _finite(x) AS CASE WHEN isfinite(x::DOUBLE) THEN x::DOUBLE END;

-- A number as text with 3 significant digits; what rounds to a power of ten counts as one.
-- (A macro repeats its argument wherever it uses it, so that a long one would be planned many times: the list has it once.)
CREATE MACRO _number(x) AS [CASE
    WHEN v IS NULL OR isnan(v) THEN NULL
    WHEN isinf(v) THEN CASE WHEN v < 0 THEN '-' ELSE '' END || 'infinity'
    WHEN abs(v) >= 999.5 THEN format('{:.0f}', round(v, 2 - floor(log10(abs(v)))::INTEGER))
    WHEN abs(v) >= 99.95 THEN format('{:.0f}', v)
    WHEN abs(v) >= 9.995 THEN format('{:.1f}', v)
    WHEN abs(v) >= 0.9995 THEN format('{:.2f}', v)
    ELSE format('{:.3g}', v)
END FOR v IN [x::DOUBLE]][1];

-- A time with its unit: us, ms from 1,000 us on, s from 1,000,000 us on, as the runner and the report's page write it.
-- (With three digits 999.5 is 1000.)
CREATE MACRO _time(us) AS [
    _number(t / CASE WHEN abs(t) >= 999.5e3 THEN 1e6 WHEN abs(t) >= 999.5 THEN 1e3 ELSE 1 END)
        || CASE WHEN abs(t) >= 999.5e3 THEN ' s' WHEN abs(t) >= 999.5 THEN ' ms' ELSE ' us' END
FOR t IN [us::DOUBLE]][1];

-- An amount of memory with its unit, a power of 1,024; what was freed is negative. (Rates, GB/s, are powers of ten.)
CREATE MACRO _bytes(x) AS [
    CASE
        WHEN abs(n) >= 2^10
            THEN _number(n / CASE WHEN abs(n) >= 2^30 THEN 2^30 WHEN abs(n) >= 2^20 THEN 2^20 ELSE 2^10 END)
                || CASE WHEN abs(n) >= 2^30 THEN ' GiB' WHEN abs(n) >= 2^20 THEN ' MiB' ELSE ' KiB' END
        ELSE n::BIGINT || ' B'
    END
FOR n IN [round(x::DOUBLE)]][1];

-- A fraction as a percentage.
CREATE MACRO _percent(x) AS _number(100.0 * x::DOUBLE) || ' %';

-- A count of things, `1 point` or `3 points`.
CREATE MACRO _counted(n, thing) AS n::VARCHAR || ' ' || thing || CASE WHEN n = 1 THEN '' ELSE 's' END;

-- The value of an axis as text: whole numbers whole, others with at most 4 significant digits.
CREATE MACRO _axis_text(x) AS CASE
    WHEN x = floor(x) OR abs(x) >= 1000 THEN format('{:.0f}', x::DOUBLE)
    ELSE format('{:.4g}', x::DOUBLE)
END;

-- The JSON pointer of a key, whatever characters it has (RFC 6901).
CREATE MACRO _pointer(k) AS '/' || replace(replace(k, '~', '~0'), '/', '~1');

-- A JSON object with its keys in order and no spaces, so that equal objects are equal texts.
CREATE MACRO _canonical(object) AS '{' || coalesce(array_to_string([
    to_json(k)::VARCHAR || ':' || (object -> _pointer(k))::VARCHAR FOR k IN list_sort(json_keys(object))
], ','), '') || '}';

-- One scalar of a JSON object, by the path of its keys; NULL where it is missing or null.
CREATE MACRO _fact(object, path) AS json_extract_string(object, '$.' || path);

-- The key of a further axis on the command line: of the sweep, or of its workload.
CREATE MACRO _setting(axis) AS
    CASE WHEN axis IN ('size', 'batch', 'l2', 'threads', 'seed', 'schedule', 'static_inputs') THEN axis ELSE 'workload.' || axis END;

-- A word of a command line, in single quotes only where the shell or Hydra needs them.
CREATE MACRO _word(key, text) AS CASE
    WHEN regexp_full_match(text, '[A-Za-z0-9_.,/:+-]+') THEN key || '=' || text
    ELSE '''' || key || '="' || replace(text, '''', '''\''''') || '"'''
END;

-- Whether a further axis has the value that it has when nobody sets it.
CREATE MACRO _is_default(axis, value) AS
    value IS NULL OR axis || '=' || value IN ('l2=warm', 'seed=0', 'schedule=1/1/20/1');

-- The further axes that somebody has set, as words of a command line; '' where nobody has.
CREATE MACRO _settings(params) AS coalesce(array_to_string([
    _word(_setting(k), json_extract_string(params, _pointer(k)))
    FOR k IN json_keys(params) IF NOT _is_default(k, json_extract_string(params, _pointer(k)))
], ' '), '');

-- A JSON object without the keys whose values are numbers.
CREATE MACRO _without_numbers(object) AS coalesce(array_to_string([
    to_json(k)::VARCHAR || ':' || (object -> _pointer(k))::VARCHAR
    FOR k IN list_sort(json_keys(object)) IF json_type(object, _pointer(k)) NOT IN ('UBIGINT', 'BIGINT', 'DOUBLE')
], ','), '');

-- The 97.5 % quantile of Student's t, by its expansion about the normal one (Abramowitz and Stegun, 26.7.5).
CREATE MACRO _t_quantile(dof) AS CASE
    WHEN dof < 2 THEN 12.7062
    WHEN dof < 3 THEN 4.30265
    ELSE 1.959964 + 2.372271 / dof + 2.822499 / pow(dof, 2) + 2.555849 / pow(dof, 3) + 1.589534 / pow(dof, 4)
END;

-- Variance of the median of n normal values, as a share of the variance of one; exact for one.
CREATE MACRO _median_share(n) AS pi() / (2 * n + pi() - 2);

-- The distribution function of the normal distribution at x >= 0, within 7.5e-8 (Abramowitz and Stegun, 26.2.17).
CREATE MACRO _normal_below(x) AS 1 - exp(-x * x / 2) / sqrt(2 * pi()) * list_sum([
    c.factor / pow(1 + 0.2316419 * x, c.power) FOR c IN [
        {'power': 1, 'factor': 0.319381530}, {'power': 2, 'factor': -0.356563782}, {'power': 3, 'factor': 1.781477937},
        {'power': 4, 'factor': -1.821255978}, {'power': 5, 'factor': 1.330274429}
    ]
]);

-- What is left of the device's time without launches by the host, each of which costs it gap_us more than one in a graph:
-- never below what it was seen busy, never above the device's time. An unknown gap is 0.
CREATE MACRO _without_launches(device_us, busy_us, launches, gap_us) AS CASE
    WHEN device_us IS NOT NULL
        THEN least(device_us, greatest(device_us - coalesce(gap_us * launches, 0), coalesce(busy_us, 0)))
END;

-- A logarithm, or NULL where there is none.
CREATE MACRO _log(x) AS CASE WHEN x > 0 THEN ln(x::DOUBLE) END;

-- Where a straight line is 0; NULL where it is level.
CREATE MACRO _root(intercept, slope) AS -(intercept) / nullif(slope, 0);

-- The sum of a JSON object of counts; NULL without one.
CREATE MACRO _total(object) AS CASE
    WHEN object IS NOT NULL THEN coalesce(list_sum([
        json_extract_string(object, _pointer(k))::BIGINT FOR k IN json_keys(object)
    ]), 0)::BIGINT
END;

-- Whether a host event is a call of a device's runtime or driver, of any vendor.
CREATE MACRO _is_runtime(category) AS ends_with(category, '_runtime') OR ends_with(category, '_driver');

-- Whether a kernel is a collective: it waits for other devices.
CREATE MACRO _is_collective(kernel) AS regexp_matches(kernel, '(?i)^(nccl|rccl|onccl)');

-- Whether a call of the host copies and returns when the copy is there.
CREATE MACRO _is_blocking_copy(call) AS
    regexp_full_match(call, '(cuda|cu|hip)Memcpy\w*') AND NOT contains(call, 'Async');

-- Whether a call of the host waits for the device: those of runner/window.py.
CREATE MACRO _is_waiting(call) AS
    regexp_full_match(call, '(cuda|cu|hip)(Stream|Device|Event|Ctx)Synchronize(_v\d+)?') OR _is_blocking_copy(call);

-- Host time under a profiler over host time without: usual, least, most. The only figures of an import that are not taken
-- from its trace. They come from points that were timed both ways (view perturbation of docs/results/h200: 279 runs on
-- one H200): the median is 1.68 eager and 1.82 compiled; one run lies below 1, two lie above 3.2. The medians of the other
-- stores there are 1.66 to 2.01, and at most 7 % of a store's compiled points lie above 3.2. Another host, Python stacks or
-- recorded shapes may cost more.
CREATE MACRO _host_inflation() AS {'usual': 1.75::DOUBLE, 'least': 1.0::DOUBLE, 'most': 3.2::DOUBLE};

-- Workloads whose size is the batch: they take no other.
CREATE MACRO _size_is_batch(workload) AS workload IN ('train_step', 'llm_decode');

-- The settings that are ways to one and the same result: two points that differ in one of them alone are a measured
-- cure. choices: known values, the plainest first. workloads: whose setting it is; NULL = of all, so that `impl` and
-- `backend` of somebody's own function count too. is_exact: false where the first choice is more exact than the others,
-- so that only the way from it to them counts. The list stands here, so that a store made before it is read in the same
-- way. Not in it is what changes the work (sizes, model, causal, pattern, seed, kind of optimizer), what guards the
-- result (scaler), and `threads`, an axis along which series run.
CREATE MACRO _ways() AS [
    {'setting': 'impl', 'workloads': NULL::VARCHAR[], 'is_exact': true,
        'choices': ['naive', 'inplace', 'sdpa', 'loop', 'foreach', 'fused', 'default']},
    {'setting': 'backend', 'workloads': NULL, 'is_exact': true,
        'choices': ['math', 'efficient', 'flash', 'cudnn', 'auto']},
    {'setting': 'attention', 'workloads': ['llm_prefill', 'llm_decode'], 'is_exact': true,
        'choices': ['eager', 'sdpa']},
    {'setting': 'cache', 'workloads': ['llm_decode'], 'is_exact': true, 'choices': ['dynamic', 'static']},
    {'setting': 'pool', 'workloads': ['shape_sequence'], 'is_exact': true,
        'choices': ['none', 'fraction', 'warmup', 'preallocated']},
    {'setting': 'checkpoint', 'workloads': ['train_step'], 'is_exact': true, 'choices': ['false', 'true']},
    {'setting': 'capturable', 'workloads': ['train_step'], 'is_exact': true, 'choices': ['false', 'true']},
    {'setting': 'set_to_none', 'workloads': ['train_step'], 'is_exact': true, 'choices': ['false', 'true']},
    {'setting': 'autocast', 'workloads': ['train_step'], 'is_exact': false, 'choices': ['null', 'bf16', 'fp16']},
    {'setting': 'optimizer', 'workloads': ['train_step'], 'is_exact': false, 'choices': ['adam', 'adam8bit']}
];

-- The value of a way as a word of its own: `null` where nothing is chosen.
CREATE MACRO _chosen(params, setting) AS coalesce(json_extract_string(params, _pointer(setting)), 'null');

-- Whether a setting of a workload is a way to the same result, as these parameters choose it.
CREATE MACRO _is_way(way, workload, params) AS json_exists(params, _pointer(way.setting))
    AND (way.workloads IS NULL OR list_contains(way.workloads, workload))
    AND (way.is_exact OR list_contains(way.choices, _chosen(params, way.setting)));

-- What a step itself holds at its peak: without `other`, libraries' workspaces, which depend on what ran before it.
-- Unknown where its holders are, and where torch.compile makes CUDA graphs: the temporaries of a replay lie in the graph's
-- pool, which the allocator counts as free.
CREATE MACRO _own_bytes(peak_bytes, holders, compile, device) AS CASE
    WHEN json_type(holders) = 'OBJECT' AND (device = 'cpu' OR compile NOT IN ('reduce-overhead', 'max-autotune'))
        THEN peak_bytes - coalesce(TRY_CAST(json_extract_string(holders, '/other') AS BIGINT), 0)
END;

-- One row a workload and set of further axes of a relation, and way to the same result: what is chosen there, its place
-- among the choices (behind them where it is none of them), and what the further axes say besides.
CREATE MACRO _chosen_ways(relation) AS TABLE (
    SELECT
        workload, params, w.setting, w.is_exact,
        _chosen(params, w.setting) AS chosen,
        coalesce(list_position(w.choices, chosen), 1 + len(w.choices)) AS plainness,
        _canonical(json_merge_patch(
            params, json_object(w.setting, NULL, 'schedule', NULL, 'static_inputs', NULL)
        )) AS others
    FROM (SELECT DISTINCT workload, params FROM query_table(relation))
    CROSS JOIN (SELECT unnest(_ways()) AS w)
    WHERE _is_way(w, workload, params)
);
