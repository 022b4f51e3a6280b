-- What the rules say of the runs of a relation with a column run_id: the ground of views findings and rule_outcomes.

-- Grain: one row a run and rule that fired.
-- The source line is that of the innermost Python function of one's own around the first event of the evidence (of device
-- work: around its launch), where the trace holds stacks.
CREATE MACRO _findings_of(chosen) AS TABLE (
    WITH fired AS MATERIALIZED (FROM _judged_of(chosen) WHERE fired),
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
    LEFT JOIN sources AS s USING (run_id, "rule")
);

-- Grain: one row a run and rule.
CREATE MACRO _outcomes_of(chosen) AS TABLE (
    WITH judged AS MATERIALIZED (FROM _judged_of(chosen))
    SELECT
        r.run_id,
        u."rule",
        CASE WHEN j.fired THEN 'fired' WHEN j.run_id IS NOT NULL THEN 'clear' ELSE 'not applicable' END AS outcome,
        CASE
            WHEN j.run_id IS NOT NULL THEN j.reason
            ELSE coalesce(
                r.failure,
                list_filter(list_transform(u.needs, lambda need: r.lacks[need]), lambda why: why IS NOT NULL)[1],
                u.otherwise
            )
        END AS reason
    FROM (FROM judged WHERE "rule" IS NULL) AS r
    CROSS JOIN rules AS u
    LEFT JOIN judged AS j ON j.run_id = r.run_id AND j."rule" = u."rule"
);
