-- Rule: The measured times of the point spread so much that its figures are not reproducible.
-- Topic: data quality
-- Severity: misleads
-- Needs: sweep, times
-- Otherwise: the times of the point have no interval
-- Means: The 95 % interval of a time is wider than a tenth of the time, or one run of the point says another side than
--     all runs together. A ratio of two such times is a guess.
-- Cure: Measure again with measure=thorough on an idle host, or more runs of the same point.
WITH spread AS (
    SELECT
        s.run_id,
        list_filter([
            {'name': 'wall', 'us': s.wall_us, 'low': s.wall_us_low, 'high': s.wall_us_high},
            {'name': 'issue', 'us': s.issue_us, 'low': s.issue_us_low, 'high': s.issue_us_high},
            {'name': 'device', 'us': s.device_us, 'low': s.device_us_low, 'high': s.device_us_high}
        ], lambda t: t.us > 0 AND t.low IS NOT NULL AND t.high IS NOT NULL) AS times,
        list_reverse_sort([{'frac': (t.high - t.low) / t.us, 'time': t} FOR t IN times])[1] AS widest,
        coalesce(c.flips AND c.confidence < 0.95, false) AS flips,
        CASE c.run_side WHEN 'device' THEN 'device-bound' ELSE c.run_side END AS run_side,
        s.bound, c.confidence
    FROM subjects AS s
    LEFT JOIN confidence AS c USING (run_id)
    WHERE s.status = 'ok' AND NOT s.is_import AND s.wall_us IS NOT NULL
)
SELECT
    run_id,
    widest.frac > 0.1 OR flips AS fired,
    'the widest 95 % interval is that of the ' || widest.time.name || ' time, ' || _time(widest.time.low) || ' to '
        || _time(widest.time.high) || ', ' || _percent(widest.frac) || ' of it (limit 10 %)'
        || CASE WHEN flips THEN '; this run alone says ' || run_side ELSE '' END AS reason,
    CASE
        WHEN widest.frac > 0.1 THEN 'The ' || widest.time.name || ' time of a step is only known to lie between '
            || _time(widest.time.low)
            || ' and ' || _time(widest.time.high) || ', an interval of ' || _percent(widest.frac) || '.'
        ELSE 'This run alone says ' || run_side || ', all runs together ' || bound || ' at a confidence of '
            || _percent(confidence) || '.'
    END AS sentence,
    {'low_us': widest.time.low, 'high_us': widest.time.high, 'width_frac': widest.frac} AS figures
FROM spread
WHERE widest IS NOT NULL
