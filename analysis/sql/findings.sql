-- Grain: one row a run and rule that fired.
-- The source line is that of the innermost Python function of one's own around the first event of the evidence (of device
-- work: around its launch), where the trace holds stacks.
CREATE TABLE findings AS
WITH fired AS MATERIALIZED (FROM judging.judged WHERE fired),
stacks AS (
    SELECT run_id, name, ts_ns, ts_ns + dur_ns AS end_ns, pid, tid
    FROM events
    SEMI JOIN fired USING (run_id)
    WHERE category = 'python_function' AND regexp_matches(name, '\.py\(\d+\): ')
        AND NOT regexp_matches(name, '(^|/)torch/|site-packages/|dist-packages/|lib/python\d')
),
shown AS (
    SELECT f.run_id, f."rule", coalesce(e.launch_id, e.event_id) AS event_id
    FROM (FROM fired SEMI JOIN stacks USING (run_id)) AS f
    JOIN events AS e ON e.run_id = f.run_id AND e.event_id = f.event_ids[1]
),
sources AS (
    SELECT s.run_id, s."rule", max_by(p.name, p.ts_ns) AS source
    FROM shown AS s
    JOIN events AS e ON e.run_id = s.run_id AND e.event_id = s.event_id
    JOIN stacks AS p
        ON p.run_id = e.run_id AND p.pid = e.pid AND p.tid = e.tid
        AND p.ts_ns <= e.ts_ns AND p.end_ns >= e.ts_ns + e.dur_ns
    GROUP BY s.run_id, s."rule"
)
SELECT
    f.run_id,
    f."rule",
    u.topic,
    u.severity,
    f.sentence,
    coalesce(f.cure, u.cure) AS cure,
    f.gain,
    f.reason,
    s.source,
    to_json({'events': coalesce(f.event_ids, []), 'figures': f.figures::JSON})::VARCHAR AS evidence,
    CASE
        WHEN f.event_ids[1] IS NOT NULL
            THEN 'python -m analysis trace ' || f.run_id || ' --open --at ' || f.event_ids[1]
    END AS see
FROM fired AS f
JOIN rules AS u USING ("rule")
LEFT JOIN sources AS s USING (run_id, "rule");

COMMENT ON TABLE findings IS 'One row a run and rule that fired: what was found, its evidence, the cure and the gain.';
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
