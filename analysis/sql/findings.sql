-- Grain: one row a run and rule that fired.
CREATE VIEW findings AS FROM _findings_of('stg_runs');

COMMENT ON VIEW findings IS 'One row a run and rule that fired: what was found, its evidence, the cure and the gain.';
COMMENT ON COLUMN findings.topic IS 'Where the pattern is seen; see rules.topic.';
COMMENT ON COLUMN findings.severity IS 'misleads, costs or explains; see rules.severity.';
COMMENT ON COLUMN findings.sentence IS 'What was found, in one sentence with the run''s own figures.';
COMMENT ON COLUMN findings.cure IS 'What helps, or what to do about it.';
COMMENT ON COLUMN findings.gain IS 'How many times as fast a step would be without it; NULL where that cannot be computed.';
COMMENT ON COLUMN findings.reason IS 'The figures that decided, and their threshold.';
COMMENT ON COLUMN findings.source IS 'Line of Python that it comes from; NULL where the trace holds no stacks.';
COMMENT ON COLUMN findings.evidence IS
    'JSON object: events (event_ids, the most telling first) and figures (names with units).';
COMMENT ON COLUMN findings.see IS 'Command that shows the first event of the evidence in Perfetto; NULL without events.';
