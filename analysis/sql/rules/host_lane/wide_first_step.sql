-- Rule: The first recorded step takes the host several times as long as the others.
-- Topic: host lane
-- Severity: misleads
-- Needs: trace, steps
-- Otherwise: the trace marks no steps, so that how long the host takes for one is not known
-- Means: A first step pays once for what later steps find ready: the device's context, code that is loaded, libraries
--     that make their handles and choose algorithms, memory, compilation, the profiler's first buffer. A mean over all
--     steps counts it as if each step paid. Wide is three times the median of the others, and 150 us more. The parts
--     are what the trace names: loading of libraries and making of handles leave no row of their own and are in the
--     rest.
-- Cure: Warm up before the window (warmup=true, and a schedule that skips steps such as 1/1/20/1), and leave the first
--     step out of means.
-- See: docs/article.md#3-why-does-the-first-recorded-step-take-so-long
WITH marked AS (
    SELECT
        p.run_id, p.step, p.host_us, p.start_ns, p.end_ns,
        row_number() OVER (PARTITION BY p.run_id ORDER BY p.step) AS place
    FROM spans AS p
    JOIN typical AS t ON t.run_id = p.run_id AND t.kind IS NOT DISTINCT FROM p.kind
    JOIN subjects AS s ON s.run_id = p.run_id
    WHERE s.status = 'ok' AND p.host_us IS NOT NULL
        AND (NOT s.is_import OR _fact(s.step_facts, 'method') IN ('profiler', 'annotation'))
),
steady AS (
    SELECT run_id, median(host_us) FILTER (place > 1) AS steady_us, count(*) AS steps
    FROM marked
    GROUP BY run_id
    HAVING count(*) >= 3
),
compared AS (
    SELECT
        s.run_id, s.steady_us, s.steps,
        max_by(m.host_us, -m.place) AS first_us,
        max_by(m.step, -m.place) AS step,
        max_by(m.start_ns, -m.place) AS start_ns,
        max_by(m.end_ns, -m.place) AS end_ns,
        min(m.place) FILTER (m.host_us <= 1.5 * s.steady_us) AS steady_place,
        first_us > 3 * s.steady_us AND first_us > s.steady_us + 150 AS fired
    FROM marked AS m
    JOIN steady AS s USING (run_id)
    GROUP BY s.run_id, s.steady_us, s.steps
),
named AS (
    SELECT
        c.run_id, e.event_id, e.name, e.category, e.ts_ns, least(e.ts_ns + e.dur_ns, c.end_ns) AS end_ns,
        CASE
            WHEN e.category = 'overhead' AND regexp_matches(e.name, '(?i)loading') THEN 'loading code'
            WHEN e.category = 'overhead' THEN 'buffers of the profiler'
            WHEN NOT _is_runtime(e.category) THEN 'compiling'
            WHEN regexp_matches(e.name, '^(cuda|hip)(Malloc|HostAlloc|HostMalloc|ExtMalloc)|^cuMem(Alloc|Create|Map)')
                THEN 'allocating memory'
            WHEN regexp_matches(e.name, '(?i)Module(Load|Get)|LibraryLoad|FuncSetAttribute|GetSymbolAddress')
                THEN 'loading code'
            WHEN regexp_matches(e.name, '(cu|hip)Init|CtxCreate|PrimaryCtx|DeviceGetAttr|DeviceProp|GetDeviceCount')
                OR e.name IN ('cudaFree', 'hipFree', 'cudaSetDevice', 'hipSetDevice')
                THEN 'making the context and asking the device'
            WHEN regexp_matches(e.name, 'Occupancy') THEN 'occupancy queries'
            WHEN _is_waiting(e.name) THEN 'waiting for the device'
            ELSE e.name
        END AS part
    FROM (FROM compared WHERE fired) AS c
    JOIN (
        FROM events SEMI JOIN chosen_runs USING (run_id)
        WHERE _is_runtime(category) OR category = 'overhead'
            OR category = 'cpu_op' AND (name IN ('dynamo', 'entire_frame_compile', 'backend_compile')
                OR ends_with(name, '(dynamo_timed)'))
    ) AS e ON e.run_id = c.run_id AND e.ts_ns >= c.start_ns AND e.ts_ns < c.end_ns
),
ordered AS (
    -- a call that loads code holds the row of the loading: all of it is for that
    SELECT
        * REPLACE (CASE
            WHEN _is_runtime(category) AND lead(part) OVER so_far = 'loading code'
                AND lead(ts_ns) OVER so_far < end_ns THEN 'loading code'
            ELSE part
        END AS part),
        greatest(0, end_ns - greatest(ts_ns, coalesce(max(end_ns) OVER before, ts_ns))) / 1e3 AS added_us
    FROM named
    WINDOW
        so_far AS (PARTITION BY run_id ORDER BY ts_ns, end_ns DESC),
        before AS (so_far ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
),
parts AS (
    SELECT run_id, part, sum(added_us) AS us, max_by(event_id, added_us) AS event_id
    FROM ordered
    GROUP BY run_id, part
),
split AS (
    SELECT
        run_id,
        sum(us) AS named_us,
        array_to_string(list_transform(
            list_slice(list({'us': us, 'part': part} ORDER BY us DESC) FILTER (us > least(c.first_us / 50, 50)), 1,
                4), lambda p: _time(p.us) || ' ' || p.part
        ), ', ') AS told,
        list_slice(list(event_id ORDER BY us DESC) FILTER (us > 0), 1, 8) AS event_ids
    FROM parts
    JOIN compared AS c USING (run_id)
    GROUP BY run_id
),
inside AS (
    SELECT e.run_id, e.event_id, e.parent_id, e.name, e.category, e.dur_ns
    FROM (FROM events SEMI JOIN chosen_runs USING (run_id) WHERE NOT is_device AND step IS NOT NULL) AS e
    JOIN (FROM compared WHERE fired) AS c ON c.run_id = e.run_id AND c.step = e.step
    WHERE e.category <> 'overhead'
),
opaque AS (
    SELECT
        i.run_id,
        max_by(i.name, i.dur_ns - coalesce(c.dur_ns, 0)) AS name,
        max(i.dur_ns - coalesce(c.dur_ns, 0)) / 1e3 AS self_us
    FROM inside AS i
    LEFT JOIN (SELECT run_id, parent_id, sum(dur_ns) AS dur_ns FROM inside GROUP BY run_id, parent_id) AS c
        ON c.run_id = i.run_id AND c.parent_id = i.event_id
    WHERE starts_with(i.name, 'aten::')
    GROUP BY i.run_id
),
marks AS (
    SELECT run_id, max_by(event_id, dur_ns) AS event_id
    FROM (
        SELECT e.run_id, e.event_id, e.dur_ns
        FROM (FROM events SEMI JOIN chosen_runs USING (run_id) WHERE category = 'user_annotation') AS e
        JOIN (FROM compared WHERE fired) AS c ON c.run_id = e.run_id AND c.step = e.step
        WHERE e.ts_ns >= c.start_ns
    )
    GROUP BY run_id
)
SELECT
    c.run_id,
    c.fired,
    'the first recorded step takes the host ' || _time(c.first_us)
        || ' under the profiler, the median of the others is '
        || _time(c.steady_us) || ': ' || _number(c.first_us / c.steady_us)
        || ' times (limit 3, and 150 us more)' AS reason,
    'The first recorded step (' || c.step || ') takes the host ' || _time(c.first_us) || ' under the profiler, '
        || _number(c.first_us / c.steady_us)
        || ' times the median of the others (' || _time(c.steady_us) || '): '
        || coalesce(p.told || ', ', '') || _time(greatest(0, c.first_us - coalesce(p.named_us, 0)))
        || ' that no call of the trace names'
        || CASE WHEN o.self_us > greatest(0, c.first_us - coalesce(p.named_us, 0)) / 2 THEN ', most of it in '
        || o.name || ' itself' ELSE '' END || '; '
        || CASE
            WHEN c.steady_place IS NULL THEN 'no later step is steady'
            WHEN c.steady_place = 2 THEN 'the next step is steady'
            ELSE 'steady from step ' || (c.step + c.steady_place - 1) || ' on'
        END || '.' AS sentence,
    CASE
        WHEN s.is_cold THEN 'Nothing to cure where the first call is what is asked; for steady times use warmup=true.'
    END AS cure,
    list_slice(list_concat(CASE WHEN m.event_id IS NULL THEN [] ELSE [m.event_id] END, coalesce(p.event_ids, [])), 1,
        8) AS event_ids,
    {'first_us': c.first_us, 'steady_us': c.steady_us, 'unnamed_us': greatest(0, c.first_us - coalesce(p.named_us,
        0)), 'steps_until_steady': c.steady_place - 1} AS figures
FROM compared AS c
JOIN subjects AS s USING (run_id)
LEFT JOIN split AS p USING (run_id)
LEFT JOIN opaque AS o USING (run_id)
LEFT JOIN marks AS m USING (run_id)
