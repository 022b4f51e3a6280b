-- Grain: one row a rule.
-- Filled from the comments of the files of `rules/`, which hold the queries.
CREATE TABLE rules (
    "rule" VARCHAR, topic VARCHAR, severity VARCHAR, title VARCHAR, means VARCHAR, cure VARCHAR, needs VARCHAR[],
    otherwise VARCHAR, excludes VARCHAR[], see VARCHAR, query VARCHAR
);

COMMENT ON TABLE rules IS 'One row a rule: a pattern that an expert reads in a profile, what it means, and its cure.';
COMMENT ON COLUMN rules."rule" IS 'Name of the rule.';
COMMENT ON COLUMN rules.topic IS
    'Where the pattern is seen: summary, host lane, device lane, dispatch chain, torch.compile, kernel names, memory, data
    quality.';
COMMENT ON COLUMN rules.severity IS
    'misleads (figures are not what they seem), costs (time or memory is lost, a cure is known) or explains (in order).';
COMMENT ON COLUMN rules.title IS 'The pattern in one sentence.';
COMMENT ON COLUMN rules.means IS 'What it means.';
COMMENT ON COLUMN rules.cure IS 'What helps, or what to do about it.';
COMMENT ON COLUMN rules.needs IS 'What a run must have for the rule to apply.';
COMMENT ON COLUMN rules.otherwise IS 'Why the rule does not apply to a run that has all of it.';
COMMENT ON COLUMN rules.excludes IS 'Rules that never fire with this one.';
COMMENT ON COLUMN rules.see IS 'Where the pattern is explained.';
COMMENT ON COLUMN rules.query IS 'Its SQL, over the relations of sql/findings/.';
