-- Grain: one row a run and kernel, that is name, grid and block, over all steps of its trace.
-- times_us, event_ids, in_steps: of each call, from the longest to the shortest.
WITH called AS (
    SELECT run_id, name, grid, block, list({'ns': dur_ns, 'event_id': event_id, 'step': step}) AS times
    FROM events
    SEMI JOIN chosen_runs USING (run_id)
    WHERE category = 'kernel' AND step IS NOT NULL
    GROUP BY run_id, name, grid, block
),
ordered AS (
    SELECT * REPLACE (list_reverse_sort(times) AS times)
    FROM called
)
SELECT
    run_id, name, grid, block,
    len(times) AS calls,
    [t.ns / 1e3 FOR t IN times] AS times_us,
    [t.event_id FOR t IN times] AS event_ids,
    [t.step FOR t IN times] AS in_steps,
    list_sum(times_us) AS total_us,
    list_avg(times_us) AS mean_us,
    list_median(times_us) AS median_us,
    list_aggregate(times_us, 'quantile_cont', 0.25) AS quarter_us,
    list_aggregate(times_us, 'quantile_cont', 0.75) AS three_quarters_us,
    times_us[-1] AS min_us,
    times_us[1] AS max_us,
    event_ids[1] AS slowest_id
FROM ordered
