-- Rule: The device lowered its clock while the point was measured.
-- Topic: data quality
-- Severity: misleads
-- Needs: sweep, accelerator
-- Otherwise: the device's clock or its reasons to lower it are not known
-- Means: A card at its power or heat limit runs its kernels slower than its data sheet says, and kernels of one name
--     take different times. A reason alone does no harm: only a clock below 95 % of the highest counts.
-- Cure: Cool the card or raise its power limit; to compare two points, lock the clock (nvidia-smi --lock-gpu-clocks)
--     for both.
WITH clocked AS (
    SELECT
        run_id, bound, sm_clock_mhz, sm_clock_max_mhz, power_w, power_limit_w, temperature_c,
        sm_clock_mhz / nullif(sm_clock_max_mhz, 0) AS frac,
        list_filter(from_json(throttle_reasons::JSON, '["VARCHAR"]'), lambda why: why NOT IN ('gpu_idle')) AS whys
    FROM subjects
    WHERE status = 'ok' AND NOT is_import AND throttle_reasons IS NOT NULL
        AND sm_clock_mhz IS NOT NULL AND sm_clock_max_mhz IS NOT NULL
)
SELECT
    run_id,
    len(whys) > 0 AND frac < 0.95 AS fired,
    'the clock stood at ' || sm_clock_mhz::BIGINT || ' of ' || sm_clock_max_mhz::BIGINT || ' MHz, ' || _percent(frac)
        || ' (limit 95 %), ' || CASE WHEN len(whys) = 0 THEN 'no reason to lower it was told'
            ELSE 'the device told ' || array_to_string(whys, ', ') END AS reason,
    'The device ran at ' || sm_clock_mhz::BIGINT || ' of ' || sm_clock_max_mhz::BIGINT || ' MHz because of '
        || array_to_string(whys, ', ') || coalesce(', at ' || _number(power_w) || ' W'
            || coalesce(' of ' || _number(power_limit_w) || ' W', ''), '')
        || ': ' || CASE
            WHEN bound = 'overhead-bound' THEN 'its kernels are slower, which an overhead-bound step does not feel.'
            ELSE 'at full clock a kernel that computes would take up to ' || _percent(1 - frac) || ' less.'
        END AS sentence,
    {'sm_clock_mhz': sm_clock_mhz, 'sm_clock_max_mhz': sm_clock_max_mhz, 'power_w': power_w,
        'temperature_c': temperature_c} AS figures
FROM clocked
