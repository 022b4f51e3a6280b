-- Grain: one row a run and rule.
CREATE TABLE rule_outcomes AS
SELECT
    s.run_id,
    u."rule",
    CASE WHEN j.fired THEN 'fired' WHEN j.run_id IS NOT NULL THEN 'clear' ELSE 'not applicable' END AS outcome,
    coalesce(
        j.reason,
        CASE WHEN s.status <> 'ok' THEN 'the run is ' || s.status || coalesce(': ' || s.failure, '') END,
        list_filter(list_transform(u.needs, lambda need: s.lacks[need]), lambda why: why IS NOT NULL)[1],
        u.otherwise
    ) AS reason
FROM judging.subjects AS s
CROSS JOIN rules AS u
LEFT JOIN judging.judged AS j ON j.run_id = s.run_id AND j."rule" = u."rule";

COMMENT ON TABLE rule_outcomes IS 'One row a run and rule: whether it fired, was clear or does not apply, and why.';
COMMENT ON COLUMN rule_outcomes.outcome IS 'fired, clear or not applicable.';
COMMENT ON COLUMN rule_outcomes.reason IS 'The figures that decided, or why the rule does not apply.';
COMMENT ON COLUMN rule_outcomes."rule" IS 'Name of the rule; see rules.';
