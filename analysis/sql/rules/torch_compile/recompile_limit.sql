-- Rule: A function was compiled as often as torch allows, and runs eager beyond that.
-- Topic: torch.compile
-- Severity: misleads
-- Needs: sweep, compiled
-- Otherwise: the run was recorded without it
-- Means: Behind the limit (torch._dynamo.config.recompile_limit, 8 by default) a call that fits none of the compiled
--     codes runs eager without a word, and still checks the guards of all of them first. A point of a sweep fails
--     there: its times would be those of a mixture.
-- Cure: Keep what the failing guard checks from changing, or compile with dynamic shapes (dynamic=true).
SELECT
    run_id,
    limit_reached AS fired,
    CASE WHEN limit_reached THEN 'the limit was reached after ' ELSE 'the limit was not reached by ' END
        || _counted(coalesce(compilations, 0), 'compilation') AS reason,
    'After ' || _counted(coalesce(compilations, 0), 'compilation')
        || ' torch gave up compiling a function again: calls that fit none of its codes run eager.' AS sentence,
    {'compilations': compilations, 'compile_s': compile_s} AS figures
FROM subjects
WHERE (status = 'ok' OR limit_reached) AND is_compiled AND limit_reached IS NOT NULL
