-- Rule: A function was compiled again.
-- Topic: torch.compile
-- Severity: costs
-- Needs: compiled
-- Otherwise: nothing tells how often it was compiled
-- Means: When a guard fails (a new shape, dtype or value), torch compiles the function anew, seconds in which nothing else
--     happens, and keeps both codes. In a trace `Torch-Compiled Region: K/M` with M above 0 shows it.
-- Cure: TORCH_LOGS=recompiles names the guard: keep what it checks from changing.
WITH told AS (
    SELECT
        run_id, compilations, compile_s,
        [r FOR r IN coalesce(from_json(compile_reasons, '["VARCHAR"]'), []) IF r IS NOT NULL] AS reasons,
        from_json(compile_frames, '[{"frame": "VARCHAR", "seconds": "DOUBLE", "reason": "VARCHAR"}]') AS frames,
        [
            f FOR f IN coalesce(frames, [])
            IF f.reason IS NOT NULL OR TRY_CAST(split_part(f.frame, '/', 2) AS BIGINT) > 0
        ] AS repeated,
        CASE WHEN frames IS NOT NULL THEN list_sum([f.seconds FOR f IN repeated]) END AS again_s
    FROM subjects
    WHERE status = 'ok' AND is_compiled
),
seen AS (
    SELECT
        run_id,
        max(TRY_CAST(regexp_extract(name, '\d+/(\d+)', 1) AS BIGINT)) AS again,
        max_by(name, TRY_CAST(regexp_extract(name, '\d+/(\d+)', 1) AS BIGINT)) AS name,
        max_by(first_id, TRY_CAST(regexp_extract(name, '\d+/(\d+)', 1) AS BIGINT)) AS event_id
    FROM operators
    WHERE starts_with(name, 'Torch-Compiled Region')
    GROUP BY run_id
),
counted AS (
    SELECT
        t.*, s.name, s.event_id, s.again,
        greatest(len(t.reasons), len(t.repeated), coalesce(s.again, 0)) AS times,
        array_to_string(list_distinct(t.reasons)[:2], ' ') AS why
    FROM told AS t
    LEFT JOIN seen AS s USING (run_id)
    WHERE t.compilations IS NOT NULL OR s.again IS NOT NULL
)
SELECT
    run_id,
    times > 0 AS fired,
    CASE WHEN times = 0 THEN 'no function was compiled again' ELSE 'compiled again ' || _counted(times, 'time') END
        || coalesce(' (' || _counted(compilations, 'compilation') || ' in ' || _time(compile_s * 1e6) || ')', '') AS reason,
    CASE
        WHEN compilations IS NULL
            THEN 'The step runs ' || name || ': its function had been compiled again ' || _counted(again, 'time') || ' before.'
        ELSE 'Of ' || _counted(compilations, 'compilation') || ', ' || _time(compile_s * 1e6) || ' in all, ' || times
            || CASE WHEN times = 1 THEN ' was' ELSE ' were' END || ' made again'
            || coalesce(', ' || _time(again_s * 1e6), '')
            || CASE WHEN why <> '' THEN ': ' || left(regexp_replace(why, '\s+', ' ', 'g'), 200) ELSE '' END || '.'
    END AS sentence,
    CASE WHEN regexp_matches(why, '(?i)size|shape|stride')
        THEN 'Compile once for all shapes: dynamic=true or torch._dynamo.mark_dynamic, for slightly slower code; '
            || 'or pad inputs to few shapes.'
    END AS cure,
    [event_id] AS event_ids,
    {'compilations': compilations, 'compiled_again': times, 'compile_s': compile_s, 'compiled_again_s': again_s} AS figures
FROM counted
