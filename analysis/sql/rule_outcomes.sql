-- Grain: one row a run and rule.
CREATE VIEW rule_outcomes AS FROM _outcomes_of('stg_runs');

COMMENT ON VIEW rule_outcomes IS 'One row a run and rule: whether it fired, was clear or does not apply, and why.';
COMMENT ON COLUMN rule_outcomes.outcome IS 'fired, clear or not applicable.';
COMMENT ON COLUMN rule_outcomes.reason IS 'The figures that decided, or why the rule does not apply.';
COMMENT ON COLUMN rule_outcomes."rule" IS 'Name of the rule; see rules.';
