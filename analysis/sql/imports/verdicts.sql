-- Grain: one row an imported run.
-- What binds a step, from its trace alone. No time without a profiler is known: the host's is that of a profiled step,
-- which a profiler inflates by an unknown factor (_host_inflation). All figures are medians over the steps of the kind
-- that takes most of the time. The first rule that holds:
--   no work, no kernels, few, captured, no steps   the trace shows too little: unknown
--   input          a data loader takes more of the device's idle time than all else, and more than the host is blocked
--                  or collectives run alone; and the device is idle for more than half of the step
--   communication  collectives run alone for longer than the device computes
--   serialized     the host waits for the device inside the step: host + blocked > 1.05 max(host, busy), or it is blocked
--                  for more than half of wall
--   between        the steps are sequences of kernels, and for more than half of the trace the device waits for the
--                  host, which then works between them as well: unknown where a step alone looks device-bound
--   full           the device computes for at least 95 % of the profiled step: a faster host could only fill it more
--   unlaunched     the device is idle for more than a quarter of the step, and more than half of that has no launch in
--                  the trace: unknown
--   no host        no call of the host is in the steps: unknown
--   pause          the steps are the whole window, and one gap takes more than half of it: unknown
--   overhead       host / most inflation > compute, and most of the device's gaps are the host's
--   device         host / least inflation < compute, and it is not the host that leaves the device idle
--   elsewhere      one of these two ratios without what it must go with: unknown
--   inflated       unknown: it depends on how much the profiler slowed the host
INSERT INTO _import_verdicts BY NAME
WITH traced AS (
    SELECT
        run_id,
        count(*) FILTER (is_device) AS device_events,
        count(*) FILTER (_is_runtime(category)) AS calls
    FROM events
    SEMI JOIN _imports USING (run_id)
    GROUP BY run_id
),
kinds AS (
    SELECT
        run_id, kind,
        count(*) AS steps,
        sum(wall_us) AS total_us,
        median(wall_us) AS wall_us,
        median(host_us) AS host_us,
        median(busy_us) AS busy_us,
        median(compute_us) AS compute_us,
        median(collective_us) AS collective_us,
        median(idle_us) AS idle_us,
        median(blocked_us) AS blocked_us,
        median(input_us) AS input_us,
        median(launches) AS launches,
        median(kernels) AS kernels,
        any_value(loader) AS loader,
        flatten(list(waits)) AS waits
    FROM import_steps
    GROUP BY run_id, kind
    QUALIFY row_number() OVER (PARTITION BY run_id ORDER BY total_us DESC, kind) = 1
),
idle_steps AS (
    SELECT run_id, step, cause, sum(dur_ns) AS dur_ns, sum(dur_ns) FILTER (is_unlaunched) AS unlaunched_ns
    FROM import_gaps
    GROUP BY run_id, step, cause
),
idle AS (
    SELECT run_id, cause, sum(dur_ns) AS dur_ns, sum(unlaunched_ns) AS unlaunched_ns
    FROM idle_steps AS g
    JOIN import_steps AS s USING (run_id, step)
    JOIN kinds AS k USING (run_id)
    WHERE s.kind IS NOT DISTINCT FROM k.kind
    GROUP BY run_id, cause
),
causes AS (
    SELECT
        run_id,
        max_by(cause, dur_ns) AS cause,
        max(dur_ns) / sum(dur_ns) AS cause_frac,
        -- the profiler's own gaps speak for neither side
        coalesce(sum(dur_ns) FILTER (cause IN ('host late', 'synchronize', 'memcpy')), 0)
            / nullif(sum(dur_ns) FILTER (cause <> 'profiler'), 0) AS host_frac,
        sum(dur_ns) / 1e3 AS gaps_us,
        coalesce(sum(unlaunched_ns), 0) / sum(dur_ns) AS unlaunched_frac
    FROM idle
    GROUP BY run_id
),
spanned AS (
    -- over all of the trace, between the steps as well
    SELECT
        run_id,
        max(dur_ns) / 1e3 AS longest_us,
        coalesce(sum(dur_ns) FILTER (cause IN ('host late', 'synchronize', 'memcpy')), 0)
            / nullif(any_value(span_ns), 0) AS host_idle_frac
    FROM import_gaps
    JOIN (
        SELECT run_id, sum(span_ns) AS span_ns
        FROM (
            SELECT run_id, max(ts_ns + dur_ns) - min(ts_ns) AS span_ns
            FROM events
            SEMI JOIN _imports USING (run_id)
            WHERE is_device
            GROUP BY run_id, device
        )
        GROUP BY run_id
    ) USING (run_id)
    GROUP BY run_id
),
measured AS (
    SELECT
        i.*, l.longest_us, l.host_idle_frac, k.* EXCLUDE (run_id), c.* EXCLUDE (run_id), t.* EXCLUDE (run_id), h.*,
        k.host_us / h.usual AS overhead_us, k.host_us / h.most AS overhead_us_low, k.host_us / h.least AS overhead_us_high,
        overhead_us / nullif(compute_us, 0) AS margin,
        overhead_us_low / nullif(compute_us, 0) AS margin_low,
        overhead_us_high / nullif(compute_us, 0) AS margin_high,
        array_to_string(list_sort(list_distinct(waits)), ', ') AS blocking_names,
        '{' || array_to_string([
            to_json(name)::VARCHAR || ':' || (len(list_filter(waits, lambda x: x = name)) / steps)::VARCHAR
            FOR name IN list_sort(list_distinct(waits))
        ], ',') || '}' AS blocking_calls
    FROM _imports AS i
    LEFT JOIN traced AS t USING (run_id)
    LEFT JOIN kinds AS k USING (run_id)
    LEFT JOIN causes AS c USING (run_id)
    LEFT JOIN spanned AS l USING (run_id)
    CROSS JOIN (SELECT unnest(_host_inflation())) AS h
),
ruled AS (
    SELECT
        *,
        CASE
            WHEN coalesce(device_events, 0) = 0 AND coalesce(calls, 0) = 0 THEN 'no work'
            WHEN coalesce(device_events, 0) = 0 THEN 'no kernels'
            WHEN device_events = 1 THEN 'few'
            WHEN launches > 2 * kernels + 2 THEN 'captured'
            WHEN wall_us IS NULL OR coalesce(busy_us, 0) = 0 THEN 'no steps'
            WHEN input_us > greatest(blocked_us, collective_us, idle_us - input_us) AND idle_us > wall_us / 2
                THEN 'input'
            WHEN collective_us > compute_us THEN 'communication'
            WHEN blocked_us > 0
                AND (host_us + blocked_us > 1.05 * greatest(host_us, busy_us) OR blocked_us > wall_us / 2)
                THEN 'serialized'
            WHEN step_method = 'sequence' AND host_idle_frac > 0.5
                AND (compute_us >= 0.95 * wall_us OR margin_high < 1) THEN 'between'
            WHEN compute_us >= 0.95 * wall_us THEN 'full'
            WHEN unlaunched_frac > 0.5 AND idle_us > wall_us / 4 THEN 'unlaunched'
            WHEN host_us IS NULL OR coalesce(calls, 0) = 0 THEN 'no host'
            WHEN step_method = 'window' AND longest_us > wall_us / 2 THEN 'pause'
            WHEN margin_low > 1 AND coalesce(host_frac, 1) >= 0.5 THEN 'overhead'
            WHEN margin_high < 1 AND NOT (coalesce(host_frac, 0) > 0.5 AND idle_us > wall_us / 2) THEN 'device'
            WHEN margin_low > 1 OR margin_high < 1 THEN 'elsewhere'
            ELSE 'inflated'
        END AS rule,
        CASE rule
            WHEN 'input' THEN 'input-bound'
            WHEN 'communication' THEN 'communication-bound'
            WHEN 'serialized' THEN 'serialized'
            WHEN 'overhead' THEN 'overhead-bound'
            WHEN 'full' THEN 'device-bound'
            WHEN 'device' THEN 'device-bound'
            ELSE 'unknown'
        END AS bound,
        CASE WHEN rule = 'overhead' THEN wall_us / compute_us END AS gain,
        'host without the profiler / device = ' || _number(margin) || ' (' || _number(margin_low) || ' to ' || _number(margin_high) || ')'
            AS margin_text
    FROM measured
),
reasoned AS (
    SELECT
        *,
        CASE rule
            WHEN 'no work' THEN 'the trace has neither device work nor launches, and of a CPU''s time alone no trace tells '
                || 'what is overhead and what is work'
            WHEN 'no kernels' THEN 'no device work was recorded, although the host called the device''s runtime '
                || _counted(calls, 'time')
            WHEN 'few' THEN 'the trace holds one device event, and a verdict needs more'
            WHEN 'captured' THEN 'most launches have no work in the trace (' || _number(launches) || ' a step, '
                || _number(kernels) || ' kernels), as while a graph is captured'
            WHEN 'between' THEN 'for ' || _percent(host_idle_frac) || ' of the trace the device waits for the host, '
                || 'between the sequences of kernels that were taken for steps as well: --step can name the steps'
            WHEN 'pause' THEN 'one pause of ' || _time(longest_us) || ' takes most of the window: --step can name the steps'
            WHEN 'elsewhere' THEN margin_text || ', but the device is idle for another reason: ' || cause || ' ('
                || _percent(cause_frac) || ' of its gaps)'
            WHEN 'no steps' THEN coalesce(step_reason, 'no step holds device work')
            WHEN 'input' THEN 'a step waits ' || _time(input_us) || ' for its input while the device is idle: ' || loader
            WHEN 'communication' THEN 'for ' || _time(collective_us) || ' of a step nothing but collectives runs, and the '
                || 'device computes for ' || _time(compute_us)
            WHEN 'serialized' THEN 'the host waits inside the step: ' || blocking_names
            WHEN 'unlaunched' THEN 'the launches behind ' || _percent(unlaunched_frac)
                || ' of the device''s idle time are not in the trace'
            WHEN 'no host' THEN 'no call of the host is in the trace, and the device is idle for '
                || _percent(idle_us / wall_us) || ' of a step'
            WHEN 'overhead' THEN margin_text || '; without overhead it would be at most '
                || _number(gain) || ' times as fast, an upper limit, since the profiled step is slowed'
            WHEN 'inflated' THEN 'the profiler hides which side is slower: ' || margin_text
                || ' if it slows the host ' || _number(usual) || ' times (' || _number(most) || ' to ' || _number(least) || ')'
            WHEN 'full' THEN 'it computes for ' || _percent(least(1, compute_us / wall_us))
                || ' of the step; a trace alone has no roofs, which would say by what it is bound'
            ELSE margin_text || ', and a trace alone has no roofs, which would say by what the device is bound'
        END AS reason,
        CASE
            WHEN step_method = 'window' THEN 'the ' || _time(wall_us) || ' of the whole window, in which no step was found,'
            ELSE 'a profiled step of ' || _time(wall_us) || ' (' || coalesce(kind || ', ', '')
                || CASE WHEN steps = 1 THEN 'the only one' ELSE 'median of ' || steps END || ')'
        END AS step_text
    FROM ruled
)
SELECT
    run_id, rule, bound, gain, reason,
    CASE WHEN rule IN ('full', 'overhead', 'device', 'inflated', 'serialized') THEN margin END AS margin,
    CASE WHEN rule IN ('full', 'overhead', 'device', 'inflated', 'serialized') THEN margin_low END AS margin_low,
    CASE WHEN rule IN ('full', 'overhead', 'device', 'inflated', 'serialized') THEN margin_high END AS margin_high,
    kind, steps, wall_us, host_us, compute_us, busy_us, collective_us, idle_us, blocked_us, input_us,
    overhead_us, overhead_us_low, overhead_us_high, launches, kernels,
    nullif(blocking_calls, '{}') AS blocking_calls,
    CASE
        WHEN rule IN ('no work', 'no kernels', 'no steps') THEN 'Unknown: ' || reason || '.'
        ELSE 'Of ' || step_text || ' the device is busy ' || _percent(least(1, busy_us / wall_us))
            || coalesce(', the host works for ' || _time(host_us) || ' under the profiler, which usually slows it '
                || _number(usual) || ' times (seen: ' || _number(least) || ' to ' || _number(most) || ')', '')
            || ': ' || bound || ', ' || reason || '.'
            || CASE
                WHEN input_us > wall_us / 10 AND rule <> 'input'
                    THEN ' In ' || _time(input_us) || ' of a step it waits for its input (' || loader || ').'
                ELSE ''
            END
            || CASE
                WHEN gaps_us < idle_us * steps / 2
                    THEN ' Most of its idle time lies before its first or behind its last work.'
                ELSE coalesce(' Most of its idle time: ' || cause || ' (' || _percent(cause_frac) || ').', '')
            END
    END || CASE WHEN truncated THEN ' The trace is cut off.' ELSE '' END AS sentence
FROM reasoned;
