-- Grain: one row a point and cure.
-- What the same work gains under another setting in the same environment: measured where the store holds it, else
-- predicted by the step law, with the command that would measure it. Of several larger batches the best one stands. A
-- prediction is an upper limit: below 1.05 it is left out, and where the step waits for the device inside (serialized)
-- or is not decided, only what ends that is predicted. A cold point has one cure, to warm up.
-- A larger batch is a larger size where a workload takes no other batch (_size_is_batch).
-- Settings of a workload that are ways to the same result (_ways: impl, backend, cache, checkpoint, ...) are measured
-- alone: nothing predicts what they do.
-- A cure may be one of memory: peaks are compared by what the steps hold themselves where both were watched, else
-- between eager points by the allocator's (of a compiled one that holds compilation too). What ran out of memory is
-- cured by what runs.
CREATE MACRO _reach(low, high) AS coalesce(' (' || _number(low) || ' to ' || _number(high) || ')', '');

CREATE VIEW cures AS
WITH facts AS (
    SELECT
        b.* EXCLUDE (flops, bytes, gain, sentence, reason),
        p.first_call_us,
        b.status = 'oom' AS is_oom,
        p.source IS NOT DISTINCT FROM 'watch' AS is_program, -- no command of the runner measures it
        CASE WHEN b.compile = 'false' THEN p.peak_bytes END AS allocator_bytes,
        _own_bytes(h.peak_bytes, h.holders_at_peak, b.compile, b.device) AS own_bytes,
        h.holders_at_peak AS held,
        p.cudagraph_copies,
        p.cudagraph_copied_bytes,
        regexp_matches(p.operations, -- products by their names in cost models, and by torch's where it counted
            '\b(matmul|linear|attention|qkv|gate|up|down|out|scores|values|head|mlp in|mlp out)\b|mm\b|mv\b|dot\b|conv'
        ) AS has_product,
        t.flops, t.bytes, t.flops_roof_per_s, t.bytes_roof_per_s,
        b.warmup = 'false' AS is_cold,
        b.device = 'cpu' AS is_cpu,
        _size_is_batch(b.workload) AS size_is_batch,
        CASE WHEN size_is_batch THEN b.size ELSE coalesce(b.batch, 1) END AS items,
        b.bound NOT IN ('unknown', 'serialized') AS is_decided,
        coalesce(b.overhead_us, 0) AS spent_us,
        coalesce(_fact(b.params, 'static_inputs'), 'false') = 'true' AS is_static,
        coalesce(_fact(b.params, 'l2'), 'warm') AS l2,
        coalesce(_fact(b.params, 'schedule'), '') AS schedule,
        b.workload = 'addmm' AND _fact(b.params, 'bias') = '2' AS is_full_addmm,
        CASE WHEN is_full_addmm THEN 'matmul_add' ELSE b.workload END AS task,
        _canonical(json_merge_patch(b.params, CASE
            WHEN is_full_addmm THEN '{"schedule": null, "static_inputs": null, "l2": null, "bias": null}'
            ELSE '{"schedule": null, "static_inputs": null, "l2": null}'
        END)) AS others,
        CASE b.compile
            WHEN 'false' THEN 'eager' WHEN 'true' THEN 'compile' WHEN 'default' THEN 'compile' ELSE b.compile
        END
            || CASE WHEN b.compile <> 'false' AND b.dynamic <> 'false' THEN ' dynamic=' || b.dynamic ELSE '' END
            || CASE WHEN is_static THEN ' static_inputs' ELSE '' END AS way,
        concat_ws(' ', b.workload, 'size=' || b.size, b.dtype, 'batch=' || b.batch,
            CASE b.compile WHEN 'false' THEN 'eager' ELSE 'compile=' || b.compile END,
            CASE WHEN b.warmup <> 'true' THEN 'warmup=' || b.warmup END, nullif(_settings(b.params), '')) AS axes,
        nullif(_settings(json_merge_patch(b.params, CASE WHEN is_cold
            THEN '{"static_inputs": null, "schedule": null}' ELSE '{"static_inputs": null}' END)), '') AS settings,
        CASE b.dtype WHEN 'fp32' THEN 3 WHEN 'tf32' THEN 2 ELSE 1 END AS exactness,
        1e6 * greatest(coalesce(t.flops / t.flops_roof_per_s, 0), p.bytes_min / t.bytes_roof_per_s) AS fused_roof_us,
        -- the device's time if one kernel touched every byte once, at the same share of the roofs
        CASE
            WHEN b.compile = 'false' AND NOT is_full_addmm AND b.roof_us > fused_roof_us AND b.roof_us > b.work_us / 2
                THEN b.work_us * fused_roof_us / b.roof_us
            ELSE b.work_us
        END AS fused_us
    FROM bounds AS b
    JOIN points AS p
        ON p.point_id IS NOT DISTINCT FROM b.point_id AND p.environment_id IS NOT DISTINCT FROM b.environment_id
    LEFT JOIN _roof_times AS t ON t.point_id = b.point_id AND t.environment_id = b.environment_id
    LEFT JOIN _phase_memory AS h ON h.run_id = b.run_id AND len(h.path) = 0
    WHERE (b.status = 'ok' OR is_oom AND b.warmup <> 'false') AND b.workload <> 'noop'
        AND coalesce(p.source, 'sweep') <> 'import'
),
varied AS (
    SELECT *, false AS is_way, unnest(['compile', 'batch', 'dtype', 'l2', 'workload', 'warmup']) AS setting
    FROM facts
    UNION ALL BY NAME
    SELECT
        f.* REPLACE (_canonical(json_merge_patch(w.others, '{"l2": null}')) AS others),
        true AS is_way, w.setting, w.chosen, w.plainness, w.is_exact
    FROM facts AS f
    JOIN _chosen_ways('bounds') AS w USING (workload, params)
),
settings AS (
    SELECT
        *,
        CASE
            WHEN is_way THEN chosen
            WHEN setting = 'compile' THEN way
            WHEN setting = 'batch' THEN items::VARCHAR
            WHEN setting = 'dtype' THEN dtype
            WHEN setting = 'l2' THEN l2
            WHEN setting = 'workload' THEN workload
            ELSE warmup
        END AS "value",
        concat_ws(chr(31), environment_id, setting, task,
            CASE WHEN setting = 'batch' AND size_is_batch THEN '' ELSE coalesce(size::VARCHAR, '') END, device, others,
            CASE WHEN setting <> 'compile' THEN way END, CASE WHEN setting <> 'batch' THEN items::VARCHAR END,
            CASE WHEN setting <> 'dtype' THEN dtype END, CASE WHEN setting <> 'l2' THEN l2 END,
            CASE WHEN setting <> 'workload' THEN workload END, CASE WHEN setting <> 'warmup' THEN warmup END) AS alike
    FROM varied
),
pairs AS (
    SELECT
        n.*,
        m."value" AS then_value, m.way AS then_way, m.workload AS then_workload, m.point_id AS other_point_id,
        m.items AS then_items, m.exactness AS then_exactness, m.overhead_us AS then_overhead_us,
        m.wall_us AS then_wall_us, m.wall_us_low AS then_wall_us_low, m.wall_us_high AS then_wall_us_high,
        m.issue_us AS then_issue_us, m.issue_us_low AS then_issue_us_low, m.issue_us_high AS then_issue_us_high,
        n.own_bytes IS NOT NULL AND m.own_bytes IS NOT NULL AS is_watched,
        CASE WHEN n.setting NOT IN ('batch', 'warmup')
            THEN CASE WHEN is_watched THEN n.own_bytes ELSE n.allocator_bytes END END AS peak_bytes,
        CASE WHEN n.setting NOT IN ('batch', 'warmup')
            THEN CASE WHEN is_watched THEN m.own_bytes ELSE m.allocator_bytes END END AS then_peak_bytes,
        m.held AS then_held, m.replay_us AS then_replay_us
    FROM settings AS n
    JOIN settings AS m ON n.alike = m.alike
    WHERE n.point_id <> m.point_id AND n."value" <> m."value" AND m.wall_us IS NOT NULL
        AND n.is_cold = (n.setting = 'warmup')
        AND CASE n.setting
            WHEN 'batch' THEN m.items > n.items
            WHEN 'dtype' THEN m.exactness <= n.exactness
            WHEN 'l2' THEN n.l2 = 'cold'
            ELSE NOT n.is_way OR n.is_exact OR n.plainness = 1
        END
    -- the profiler's schedule changes no times: of points alike but for it, the one with this point's own
    QUALIFY row_number() OVER (
        PARTITION BY n.point_id, n.environment_id, n.setting, m."value"
        ORDER BY n.schedule = m.schedule DESC, m.run_id DESC
    ) = 1
),
changes AS ( -- what a change usually does to the overhead of a step of the same task: another's tells little of it
    SELECT
        environment_id, task, setting, "value", then_value,
        median(then_overhead_us / overhead_us) AS overhead_ratio,
        count(then_overhead_us / overhead_us) AS pairs
    FROM pairs
    WHERE setting IN ('compile', 'workload') AND overhead_us > 0
    GROUP BY environment_id, task, setting, "value", then_value
),
measured AS (
    SELECT
        *,
        CASE
            WHEN is_way THEN setting || '=' || then_value
            WHEN setting = 'compile' THEN then_way
            WHEN setting = 'batch' THEN 'larger batch'
            WHEN setting = 'dtype' THEN then_value
            WHEN setting = 'l2' THEN 'inputs in the L2'
            WHEN setting = 'workload' THEN then_workload
            ELSE 'warm up'
        END AS cure,
        peak_bytes / nullif(then_peak_bytes, 0) AS memory_gain,
        CASE WHEN is_cold THEN first_call_us ELSE wall_us END AS now_us,
        then_items / items AS factor,
        factor * now_us / then_wall_us AS gain,
        CASE WHEN NOT is_cold THEN factor * wall_us_low / then_wall_us_high END AS gain_low,
        CASE WHEN NOT is_cold THEN factor * wall_us_high / then_wall_us_low END AS gain_high,
        factor * issue_us / then_issue_us AS issue_gain,
        factor * issue_us_low / then_issue_us_high AS issue_gain_low,
        factor * issue_us_high / then_issue_us_low AS issue_gain_high
    FROM pairs
    QUALIFY setting NOT IN ('batch', 'warmup') OR row_number() OVER (
        PARTITION BY point_id, environment_id, setting
        ORDER BY setting = 'warmup' AND then_value = 'true' DESC, gain DESC
    ) = 1
    UNION ALL BY NAME
    SELECT
        *,
        'graph' AS setting, 'CUDA graph' AS cure, 'replay' AS then_value, wall_us AS now_us, 1 AS factor,
        replay_us AS then_wall_us, replay_us_low AS then_wall_us_low, replay_us_high AS then_wall_us_high,
        wall_us / replay_us AS gain, wall_us_low / replay_us_high AS gain_low, wall_us_high / replay_us_low AS gain_high
    FROM facts
    WHERE NOT is_cold AND wall_us > 0 AND replay_us > 0
),
modes AS (
    FROM (VALUES
        ('compile', 'compile', 'true', false, false, false),
        ('compile', 'reduce-overhead', 'reduce-overhead', true, false, false),
        ('compile', 'reduce-overhead static_inputs', 'reduce-overhead', true, true, false),
        ('compile', 'max-autotune', 'max-autotune', true, false, false),
        ('compile', 'max-autotune-no-cudagraphs', 'max-autotune-no-cudagraphs', false, false, false),
        ('compile', 'eager', 'false', false, false, false),
        ('workload', 'addmm', 'false', false, false, true)
    ) AS mode (setting, cure, to_compile, is_graph, to_static, to_addmm)
),
changed AS (
    SELECT
        f.*, m.*, c.overhead_ratio, c.pairs,
        CASE
            WHEN m.cure = 'eager' THEN f.work_us
            WHEN m.is_graph THEN least(fused_us, without_overhead_us)
            ELSE fused_us
        END AS least_us,
        m.is_graph AND least_us < fused_us AS is_launchless,
        fused_us < f.work_us AND m.cure <> 'eager' AS is_fused
    FROM facts AS f
    JOIN modes AS m ON m.cure <> f.way AND CASE
        WHEN m.to_addmm THEN f.workload = 'matmul_add' AND f.compile = 'false'
        WHEN m.is_graph AND (f.is_cpu OR f.blocking_calls IS NOT NULL) THEN false
        WHEN m.cure = 'eager' THEN true
        WHEN m.to_static THEN f.way IN ('eager', 'compile', 'reduce-overhead')
        ELSE f.compile IN ('false', 'true', 'default')
    END
    LEFT JOIN changes AS c
        ON c.environment_id = f.environment_id AND c.task = f.task AND c.setting = m.setting AND c.then_value = m.cure
        AND c."value" = CASE m.setting WHEN 'compile' THEN f.way ELSE f.workload END
    WHERE NOT f.is_cold AND f.is_decided
        -- what a mode does to the overhead is known from other points alone; without them only what it could do at best
        AND (
            c.overhead_ratio IS NOT NULL OR m.to_static
            OR m.cure IN ('compile', 'addmm') AND f.fused_us < f.work_us
        )
),
predicted AS (
    SELECT
        *,
        cure AS then_value,
        CASE
            WHEN is_cpu THEN coalesce(spent_us * overhead_ratio, 0) + least_us
            ELSE greatest(coalesce(spent_us * overhead_ratio, 0), least_us)
        END AS then_wall_us,
        concat_ws(' and ',
            CASE
                WHEN overhead_ratio IS NOT NULL THEN 'the overhead becomes ' || _number(overhead_ratio)
                    || ' times what it is (median of ' || _counted(pairs, 'pair') || ' of this workload''s points)'
                ELSE 'no overhead is left (no pair of this workload''s points tells what becomes of it)'
            END,
            CASE
                WHEN is_fused THEN 'one kernel touches every byte once, at the same share of the roofs'
                WHEN is_launchless THEN 'the device loses no time between launches'
                ELSE 'the work takes as long as now'
            END
        ) AS rests
    FROM changed
    UNION ALL BY NAME
    SELECT
        *, 'batch' AS setting, 'larger batch' AS cure, (8 * items)::VARCHAR AS then_value, 8 AS factor,
        CASE
            WHEN is_cpu THEN spent_us + greatest(work_us, coalesce(8 * roof_us, 0))
            ELSE greatest(spent_us, work_us, coalesce(8 * roof_us, 0))
        END AS then_wall_us,
        'the overhead stays, and the work of 8 times the items takes ' || CASE
            WHEN 8 * roof_us > work_us THEN 'no longer than the roofs make it'
            ELSE 'no longer than that of one'
        END AS rests
    FROM facts
    WHERE NOT is_cold
        AND (bound = 'overhead-bound' OR bound = 'device-bound' AND underfilled_frac > 0.5)
    UNION ALL BY NAME
    SELECT
        f.*, 'dtype' AS setting, r.dtype AS cure, r.dtype AS then_value,
        greatest(CASE WHEN is_cpu THEN 0 ELSE spent_us END, 1e6 * greatest(
            flops / r.value_per_s,
            bytes * CASE WHEN f.exactness > 1 AND r.exactness = 1 THEN 0.5 ELSE 1 END / bytes_roof_per_s
        )) + CASE WHEN is_cpu THEN spent_us ELSE 0 END AS then_wall_us,
        'the work takes no longer than the roofs for ' || r.dtype || ' make it' AS rests
    FROM facts AS f
    JOIN (
        SELECT environment_id, dtype, max(value_per_s) AS value_per_s,
            CASE dtype WHEN 'fp32' THEN 3 WHEN 'tf32' THEN 2 ELSE 1 END AS exactness
        FROM roofs
        WHERE roof = 'flops' AND value_per_s > 0
        GROUP BY environment_id, dtype
    ) AS r ON r.environment_id = f.environment_id AND r.exactness < f.exactness
    WHERE NOT is_cold
        AND _chosen(params, 'autocast') = 'null' -- else the dtype is that of its weights alone
        AND CASE bound
            WHEN 'compute-bound' THEN has_product -- the roofs of FLOPs are those of products
            WHEN 'memory-bound' THEN r.exactness = 1
        END
    UNION ALL BY NAME
    SELECT
        *, 'compile' AS setting, way || ' static_inputs' AS cure, way || ' static_inputs' AS then_value,
        without_overhead_us - coalesce(2e6 * cudagraph_copied_bytes / bytes_roof_per_s, 0) AS then_wall_us,
        'no launch and no copy of an input is left' AS rests
    FROM facts
    WHERE NOT is_cold AND is_decided AND NOT is_cpu AND compile IN ('reduce-overhead', 'max-autotune') AND NOT is_static
        AND way <> 'reduce-overhead'
        AND NOT coalesce(cudagraph_copies = 0, false)
    UNION ALL BY NAME
    SELECT
        *, 'code' AS setting, 'wait for nothing' AS cure, 'no synchronizing call' AS then_value,
        greatest(issue_us, device_us) AS then_wall_us,
        'host and device overlap once the step does not wait inside' AS rests
    FROM facts
    WHERE bound = 'serialized'
    UNION ALL BY NAME
    SELECT
        *, 'warmup' AS setting, 'warm up' AS cure, 'true' AS then_value, NULL::DOUBLE AS then_wall_us,
        'a first call tells nothing of the ones that follow' AS rests
    FROM facts
    WHERE is_cold
),
unmeasured AS (
    SELECT
        *,
        coalesce(factor, 1) * wall_us / nullif(then_wall_us, 0) AS gain,
        CASE WHEN is_cold THEN first_call_us ELSE wall_us END AS now_us
    FROM predicted
    ANTI JOIN measured USING (point_id, environment_id, cure)
    WHERE is_cold OR coalesce(factor, 1) * wall_us / nullif(then_wall_us, 0) >= 1.05
),
worded AS (
    SELECT
        *,
        memory_gain >= 1.05 AS is_lighter,
        memory_gain <= 1 / 1.05 AS is_heavier,
        setting IN ('checkpoint', 'optimizer') AND then_value <> 'false' AS is_of_memory,
        CASE WHEN is_watched AND (is_lighter OR is_heavier) THEN list_sort([
            {'moved': CASE WHEN is_lighter THEN 1 ELSE -1 END * (_held(held, k) - _held(then_held, k)), 'holder': k}
            FOR k IN list_distinct(json_keys(held) || json_keys(then_held)) IF k <> 'other'
        ])[-1].holder END AS mover,
        CASE
            WHEN is_watched THEN 'it holds ' || _bytes(then_peak_bytes) || ' at its peak'
            ELSE 'the allocator''s peak is ' || _bytes(then_peak_bytes)
        END || ' instead of ' || _bytes(peak_bytes) || ', ' || CASE
                WHEN is_lighter THEN _number(memory_gain) || ' times less'
                ELSE _number(1 / memory_gain) || ' times as much'
            END || coalesce(' (' || replace(mover, '_', ' ') || ' ' || _bytes(_held(then_held, mover)) || ' instead of '
                || _bytes(_held(held, mover)) || ')', '') AS memory_words,
        cure || CASE WHEN setting = 'batch' THEN ' (' || then_value || ')' ELSE '' END AS named,
        ' takes ' || CASE
            WHEN setting = 'batch'
                THEN _time(then_wall_us / then_items) || ' an item instead of ' || _time(now_us / items)
            ELSE _time(then_wall_us) || ' a step instead of ' || _time(now_us)
        END
            || CASE WHEN is_way THEN ' with ' || setting || '=' || "value" ELSE '' END || ', ' AS time_words
    FROM measured
),
told AS (
    SELECT
        *, 'measured' AS basis, NULL AS command,
        CASE
            WHEN is_oom
                THEN 'Measured: ' || named || ' runs, a step in ' || _time(then_wall_us)
                    || '; this point ran out of memory'
            WHEN is_lighter AND gain_high < 1 THEN 'Measured, a cure of memory: with ' || cure || ' ' || memory_words
                || '; it' || time_words || _number(1 / gain) || ' times as long' || _reach(1 / gain_high, 1 / gain_low)
            WHEN is_cold THEN 'A warm step takes ' || _time(then_wall_us) || ', the first call took '
                || coalesce(_time(now_us) || ', ' || _number(gain) || ' times as long', 'an unknown time')
            ELSE 'Measured: ' || named || time_words || CASE
                    WHEN gain_low > 1 THEN _number(gain) || ' times less' || _reach(gain_low, gain_high)
                    WHEN gain_high < 1 THEN 'worse: ' || _number(1 / gain) || ' times as long'
                        || _reach(1 / gain_high, 1 / gain_low)
                    ELSE 'which is within the noise: a gain of ' || _number(gain) || _reach(gain_low, gain_high)
                END || CASE
                    WHEN issue_gain_low > 1 THEN '; the host issues it ' || _number(issue_gain) || ' times as fast'
                    WHEN issue_gain_high < 1
                        THEN '; the host takes ' || _number(1 / issue_gain) || ' times as long to issue it'
                    ELSE ''
                END || CASE
                    WHEN is_lighter OR is_heavier THEN '; ' || memory_words
                    WHEN is_of_memory AND memory_gain IS NULL THEN '; what it saves of memory was not recorded'
                    WHEN is_of_memory THEN '; its peak stays, ' || _bytes(then_peak_bytes)
                    ELSE ''
                END
        END || CASE
            WHEN is_way AND replay_us IS NULL AND then_replay_us > 0
                THEN '; it can be replayed as a CUDA graph, in ' || _time(then_replay_us) || ' a step'
            ELSE ''
        END || CASE
            WHEN setting = 'dtype' AND then_exactness < exactness OR NOT is_exact THEN '; its results are less exact'
            ELSE ''
        END || '.' AS sentence
    FROM worded
    UNION ALL BY NAME
    SELECT
        *, 'predicted' AS basis,
        CASE
            WHEN is_cold THEN 'The first call took ' || coalesce(_time(now_us), 'an unknown time')
                || '; what a warm step takes is not in the store: ' || rests
            ELSE 'Predicted: at most ' || _number(gain) || ' times less'
                || CASE WHEN setting = 'batch' THEN ' an item' ELSE '' END || ', if ' || rests
        END || CASE WHEN setting = 'dtype' THEN '; its results are less exact' ELSE '' END || '.' AS sentence,
        CASE WHEN setting <> 'code' AND NOT is_program THEN concat_ws(' ',
            'python -m runner -m',
            _word('workload', CASE WHEN setting = 'workload' THEN cure ELSE workload END),
            CASE WHEN setting = 'workload' THEN 'workload.bias=2' END,
            _word('size', CASE WHEN setting = 'batch' AND size_is_batch THEN then_value ELSE size::VARCHAR END),
            _word('dtype', CASE WHEN setting = 'dtype' THEN then_value ELSE dtype END),
            _word('batch', CASE WHEN setting = 'batch' AND NOT size_is_batch THEN then_value ELSE batch::VARCHAR END),
            _word('compile', coalesce(to_compile, compile)),
            CASE
                WHEN dynamic <> 'false' AND coalesce(to_compile, compile) <> 'false' THEN _word('dynamic', dynamic)
            END,
            CASE WHEN warmup <> 'true' AND NOT is_cold THEN _word('warmup', warmup) END,
            _word('device', device),
            CASE WHEN coalesce(to_static, is_static OR ends_with(cure, ' static_inputs')) THEN 'static_inputs=true' END,
            settings
        ) END AS command
    FROM unmeasured
)
SELECT
    point_id, environment_id, run_id,
    axes, cure, setting, then_value AS "value", basis,
    gain, gain_low, gain_high, issue_gain, issue_gain_low, issue_gain_high,
    now_us AS wall_us, then_wall_us, memory_gain, peak_bytes, then_peak_bytes, other_point_id, sentence, command,
    row_number() OVER (
        PARTITION BY point_id, environment_id ORDER BY gain DESC NULLS LAST, basis, then_wall_us, cure
    ) AS "rank"
FROM told;

COMMENT ON VIEW cures IS
    'One row a point and cure: what the same work gains under another setting in its environment, measured or
    predicted.';
COMMENT ON COLUMN cures.axes IS 'The point in words.';
COMMENT ON COLUMN cures.cure IS
    'The other setting: eager, compile or its mode (static_inputs with it), larger batch, a dtype, CUDA graph, inputs in
    the L2, addmm or matmul_add for the same arithmetic, another way of the workload (impl=fused, checkpoint=true), warm
    up, or wait for nothing.';
COMMENT ON COLUMN cures.setting IS
    'What changes: compile, batch, dtype, graph, l2, workload, warmup, a setting of the workload (impl, backend,
    attention, cache, pool, checkpoint, capturable, set_to_none, autocast, optimizer), or code, which no setting of a
    sweep changes.';
COMMENT ON COLUMN cures."value" IS 'Its value there.';
COMMENT ON COLUMN cures.basis IS 'measured (the store holds it) or predicted (by the step law; an upper limit).';
COMMENT ON COLUMN cures.gain IS
    'wall_us / then_wall_us, of a batch for each item: how many times less it takes. Below 1 it is worse; NULL =
    unknown, as of a point that ran out of memory.';
COMMENT ON COLUMN cures.gain_low IS
    'Low end of its 95 % interval, from those of both points; NULL where predicted, and for first calls.';
COMMENT ON COLUMN cures.gain_high IS 'High end of its 95 % interval.';
COMMENT ON COLUMN cures.issue_gain IS
    'The same ratio of the issue times: above 1 the cure lowers the host''s overhead; NULL where one is unknown.';
COMMENT ON COLUMN cures.issue_gain_low IS 'Low end of its 95 % interval.';
COMMENT ON COLUMN cures.issue_gain_high IS 'High end of its 95 % interval.';
COMMENT ON COLUMN cures.wall_us IS 'Time of a step of the point at hand; of a cold one its first call; microseconds.';
COMMENT ON COLUMN cures.then_wall_us IS
    'Time of a step with the cure, of a larger batch as a whole; NULL = unknown; microseconds.';
COMMENT ON COLUMN cures.memory_gain IS
    'peak_bytes / then_peak_bytes: how many times less memory it takes. Below 1 it takes more; NULL = unknown, or, as of
    a batch, not to be compared.';
COMMENT ON COLUMN cures.peak_bytes IS
    'Memory of the point at hand at its peak: what a step holds without libraries'' workspaces, where both points were
    watched by holder, else the allocator''s peak of an eager point; bytes.';
COMMENT ON COLUMN cures.then_peak_bytes IS 'The same of the point with the cure; bytes.';
COMMENT ON COLUMN cures.other_point_id IS
    'The point that was measured with the cure; NULL where predicted, and for the CUDA graph, which the point itself
    tried.';
COMMENT ON COLUMN cures.sentence IS 'What it gains, or at most would gain, and what that rests on.';
COMMENT ON COLUMN cures.command IS
    'The command that would measure it; NULL where it is measured, no setting does it, or the point is
    of a watched program.';
COMMENT ON COLUMN cures."rank" IS
    'Place among the cures of the point, from 1: the largest gain first, unknown ones last.';
