-- Grain: one row a gap of a device in the window of a run (see gaps), the longest first.
-- start_ns: from the start of the window. place: 1 for the longest.
SELECT
    g.run_id, g.device, g.step, g.start_ns - w.start_ns AS start_ns, g.dur_ns, g.cause, g.detail, g.next_event_id,
    row_number() OVER (PARTITION BY g.run_id ORDER BY g.dur_ns DESC, g.start_ns) AS place
FROM _gaps_of('point_runs') AS g
JOIN point_windows AS w USING (run_id)
WHERE g.start_ns < w.end_ns AND g.start_ns + g.dur_ns > w.start_ns
ORDER BY g.run_id, place
