-- Rule: A step runs code that torch.compile made.
-- Topic: torch.compile
-- Severity: explains
-- Needs: compiled, trace, step
-- Otherwise: no step of the trace runs a compiled region
-- Means: In `Torch-Compiled Region: K/M`, K counts the functions (frames) that were compiled, and M how often this one was
--     compiled again before: 0/0 is the first code of the first function. What runs inside it is compiled, all else is not.
-- Cure: Nothing to cure. Operations of the step that lie outside of its regions run eager.
-- Excludes: compiled_ran_eager
-- See: docs/article.md
WITH regions AS (
    SELECT
        run_id,
        count(DISTINCT name) AS regions,
        sum(calls)::BIGINT AS calls,
        list(DISTINCT nullif(regexp_extract(name, '\d+/\d+'), '') ORDER BY nullif(regexp_extract(name, '\d+/\d+'), '')) AS frames,
        count(DISTINCT nullif(regexp_extract(name, '(\d+)/', 1), '')) AS functions,
        coalesce(max(TRY_CAST(regexp_extract(name, '/(\d+)', 1) AS BIGINT)), 0) AS again,
        max_by(longest_id, total_us) AS event_id
    FROM operators
    WHERE starts_with(name, 'Torch-Compiled Region')
    GROUP BY run_id
)
SELECT
    run_id,
    true AS fired,
    _counted(calls, 'call') || ' of a compiled region in the typical step' AS reason,
    'The typical step makes ' || _counted(calls, 'call') || ' of compiled code' || CASE
        WHEN len(list_filter(frames, lambda f: f IS NOT NULL)) = 0 THEN ''
        ELSE ' (' || array_to_string(frames[:6], ', ') || '), of ' || _counted(functions, 'function') || CASE
            WHEN again = 0 THEN ', none compiled again' ELSE ', compiled again up to ' || _counted(again, 'time') END
    END || '.' AS sentence,
    [event_id] AS event_ids,
    {'regions': regions, 'calls': calls, 'functions': functions, 'compiled_again': again} AS figures
FROM regions
