-- Rule: Checking guards takes a noticeable share of a step's host time, and the host may bind.
-- Topic: torch.compile
-- Severity: costs
-- Needs: compiled, operations, step
-- Otherwise: the typical step looks up no compiled code
-- Means: Every call checks that its inputs still fit the compiled code (TorchDynamo Cache Lookup). Where they always do, and
--     the step is short, the check can be left out; from 5 % of the host's time on it shows. The gain holds where the host
--     binds, and is an upper limit.
-- Cure: After warm-up, torch.compiler.set_stance(skip_guard_eval_unsafe=True) checks only what tells codes apart; unsafe where
--     inputs may still change.
WITH lookups AS (
    SELECT
        o.run_id, sum(o.total_us) AS lookup_us, sum(o.calls)::BIGINT AS calls, any_value(o.longest_id) AS event_id,
        any_value(t.host_us) AS host_us, sum(o.total_us) / any_value(t.host_us) AS share
    FROM operators AS o
    JOIN typical AS t USING (run_id)
    WHERE starts_with(o.name, 'TorchDynamo Cache Lookup') AND t.host_us > 0
    GROUP BY o.run_id
)
SELECT
    l.run_id,
    share > 0.05 AND NOT coalesce(s.bound IN ('compute-bound', 'memory-bound', 'device-bound'), false) AS fired,
    _time(lookup_us) || ' of the step''s ' || _time(host_us) || ' on the host under the profiler, ' || _percent(share)
        || ', are cache lookup (limit 5 %'
        || CASE WHEN s.bound IN ('compute-bound', 'memory-bound', 'device-bound') THEN ', and here the device binds' ELSE '' END
        || ')' AS reason,
    _counted(l.calls, 'cache lookup') || ' a step' || coalesce(' with ' || _counted(s.guard_count, 'guard'), '') || CASE
        WHEN l.calls = 1 THEN ' takes ' ELSE ' take ' END || _time(lookup_us) || ', ' || _percent(share) || ' of the step''s '
        || _time(host_us) || ' on the host under the profiler.' AS sentence,
    CASE WHEN s.bound = 'overhead-bound' AND share < 1 THEN 1 / (1 - share) END AS gain,
    [event_id] AS event_ids,
    {'lookup_us': lookup_us, 'host_us': host_us, 'share': share, 'guards': s.guard_count} AS figures
FROM lookups AS l
JOIN subjects AS s USING (run_id)
WHERE s.status = 'ok' AND s.is_compiled
