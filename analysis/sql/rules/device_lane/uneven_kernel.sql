-- Rule: The same kernel takes different times for the same work.
-- Topic: device lane
-- Severity: misleads
-- Needs: device work, steps
-- Otherwise: no kernel takes a tenth of the device's time and runs equally often in each of five or more steps
-- Means: Same name, grid and block, the same number of calls in every step: the work is the same, so that clocks,
--     heat, power, other users of the device or cold caches differ. The mean follows the outliers, the median does
--     not. Told where the mean lies a tenth above the median, or the middle half of the steps spreads over more than
--     a tenth; a call counts as an outlier from 1.25 times the median on.
-- Cure: Take the median, leave out first steps, and repeat; fixed clocks (nvidia-smi -lgc) tell whether it is the
--     clock.
-- See: docs/article.md#10-why-does-one-equal-kernel-take-longer-than-another-at-4096
WITH called AS (
    SELECT
        run_id, name, grid, block, total_us,
        unnest(times_us) AS us, unnest(event_ids) AS event_id, unnest(in_steps) AS step
    FROM kernel_times
    WHERE calls >= 5 AND NOT _is_collective(name)
),
in_a_step AS (
    SELECT
        run_id, name, grid, block, step,
        any_value(total_us) AS total_us,
        count(*) AS calls,
        sum(us) AS us,
        arg_max(event_id, us) AS event_id
    FROM called
    GROUP BY run_id, name, grid, block, step
),
kernels AS (
    SELECT
        run_id, name,
        any_value(total_us) AS total_us,
        count(*) AS steps,
        any_value(calls) AS calls,
        median(us) AS median_us,
        avg(us) AS mean_us,
        quantile_cont(us, 0.25) AS quarter_us,
        quantile_cont(us, 0.75) AS three_quarters_us,
        min(us) AS min_us,
        max(us) AS max_us,
        list({'us': us, 'step': step, 'event_id': event_id} ORDER BY us DESC) AS slowest,
        min(step) AS first_step
    FROM in_a_step
    GROUP BY run_id, name, grid, block
    HAVING count(*) >= 5 AND min(calls) = max(calls)
),
all_kernels AS (SELECT run_id, sum(total_us) AS device_us FROM kernel_times GROUP BY run_id),
worst AS (
    SELECT
        k.*,
        k.mean_us / k.median_us - 1 AS excess_frac,
        (k.three_quarters_us - k.quarter_us) / k.median_us AS spread_frac,
        [each FOR each IN k.slowest IF each.us > 1.25 * k.median_us] AS outliers
    FROM kernels AS k
    JOIN all_kernels AS a USING (run_id)
    WHERE k.total_us >= a.device_us / 10 AND k.median_us > 0
    QUALIFY row_number() OVER (
        PARTITION BY k.run_id ORDER BY greatest(abs(excess_frac), spread_frac) * k.total_us DESC, k.name
    ) = 1
),
judged AS (
    SELECT
        w.*,
        abs(w.excess_frac) >= 0.1 OR w.spread_frac >= 0.1 AS is_uneven,
        regexp_extract(w.name, '^(?:void )?((?:[^<(]|\(anonymous namespace\))+)', 1) AS short_name,
        CASE
            WHEN s.is_import THEN 'a trace does not tell the clock'
            ELSE coalesce(
                'the clock was ' || _number(_fact(s.window_before, 'sm_clock_mhz')::DOUBLE) || ' MHz before the window and '
                    || _number(_fact(s.window_behind, 'sm_clock_mhz')::DOUBLE) || ' MHz behind it'
                    || coalesce(', at ' || _number(_fact(s.window_behind, 'power_w')::DOUBLE) || ' W', '')
                    || coalesce(' and ' || _number(_fact(s.window_behind, 'temperature_c')::DOUBLE) || ' degrees C', ''),
                'the clock over all of the run was ' || _number(s.sm_clock_mhz) || ' MHz'
                    || coalesce(' at ' || _number(s.power_w) || ' W', ''),
                'the clock is not known'
            ) || coalesce(', held by ' || nullif(replace(trim(coalesce(
                _fact(s.window_behind, 'throttle_reasons'), s.throttle_reasons
            ), '[]'), '"', ''), ''), '')
        END AS clock
    FROM worst AS w
    JOIN subjects AS s USING (run_id)
    WHERE s.status = 'ok' AND s.lacks['steps'] IS NULL
)
SELECT
    run_id,
    is_uneven AS fired,
    'the most uneven kernel of note, ' || short_name || ': median ' || _time(median_us) || ', mean ' || _time(mean_us)
        || ', middle half ' || _time(quarter_us) || ' to ' || _time(three_quarters_us) || ' over ' || steps
        || ' steps (limit 10 % of the median)' AS reason,
    short_name || CASE WHEN calls = 1 THEN ' takes ' ELSE ' (' || calls || ' calls a step) takes ' END
        || _time(median_us)
        || ' at the median of ' || steps || ' steps and ' || _time(mean_us) || ' on average, from '
        || _time(min_us) || ' to ' || _time(max_us)
        || ', for the same work; ' || CASE
            WHEN len(outliers) = 0 THEN 'no step stands out, all of them spread'
            WHEN len(outliers) = 1 AND outliers[1].step = first_step THEN 'only the first step stands out'
            WHEN len(outliers) > 8 THEN len(outliers) || ' steps stand out'
            ELSE CASE WHEN len(outliers) = 1 THEN 'step ' ELSE 'steps ' END
                || array_to_string(list_sort([o.step FOR o IN outliers]), ', ')
                || CASE WHEN len(outliers) = 1 THEN ' stands out' ELSE ' stand out' END
        END || '; ' || clock || '.' AS sentence,
    [each.event_id FOR each IN slowest][:8] AS event_ids,
    {'median_us': median_us, 'mean_us': mean_us, 'quarter_us': quarter_us, 'three_quarters_us': three_quarters_us,
        'min_us': min_us, 'max_us': max_us, 'steps': steps, 'outliers': len(outliers)} AS figures
FROM judged
