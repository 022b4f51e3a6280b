-- Rule: Collectives run while nothing else does.
-- Topic: device lane
-- Severity: costs
-- Needs: device work, step
-- Otherwise: no collective runs in the step
-- Means: A collective that runs beside kernels is hidden; where it runs alone, the step is longer by as much. A
--     collective also lasts as long as it waits for the other devices, so that a long one may tell of a slow
--     neighbour rather than of a slow network. A twentieth of the step is told.
-- Cure: Start collectives while the backward pass still runs (buckets of DistributedDataParallel, FSDP's prefetch),
--     and compare the traces of all ranks: the one that waits least is late.
WITH collectives AS (
    SELECT
        run_id,
        count(*) AS calls,
        sum(dur_ns) / 1e3 AS total_us,
        arg_max(name, dur_ns) AS name,
        max(dur_ns) / 1e3 AS longest_us,
        list(event_id ORDER BY dur_ns DESC)[:8] AS event_ids
    FROM work
    WHERE _is_collective(name)
    GROUP BY run_id
),
judged AS (
    SELECT c.*, t.wall_us, t.busy_us - t.compute_us AS alone_us, (t.busy_us - t.compute_us) / t.wall_us AS frac
    FROM collectives AS c
    JOIN typical AS t USING (run_id)
    JOIN subjects AS s USING (run_id)
    WHERE s.status = 'ok' AND t.wall_us > 0 AND t.busy_us IS NOT NULL
)
SELECT
    run_id,
    frac >= 0.05 AS fired,
    'nothing but collectives runs for ' || _time(alone_us) || ' of a step of ' || _time(wall_us) || ', '
        || _percent(frac)
        || ' (limit 5 %); ' || CASE WHEN calls = 1 THEN 'it takes ' ELSE 'all ' || calls || ' take ' END
        || _time(total_us) AS reason,
    'For ' || _time(alone_us) || ', ' || _percent(frac)
        || ' of a step under the profiler, the device runs nothing but collectives ('
        || calls || ' of together ' || _time(total_us) || ', the longest ' || name || ' with ' || _time(longest_us)
        || ').' AS sentence,
    event_ids,
    {'alone_us': alone_us, 'collectives_us': total_us, 'step_us': wall_us, 'collectives': calls} AS figures
FROM judged
