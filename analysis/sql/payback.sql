-- Grain: one row a compiled point and another choice for the same work, in one environment.
-- A choice is eager, or a mode of torch.compile with its dynamic. What it loses at the start is what its first cycles
-- took beyond steady ones: compilations above all. After n steps it has taken lost + n wall, so that it has paid
-- against the other from n = (lost - other's lost) / (other's wall - wall) on.
CREATE VIEW payback AS
WITH choices AS (
    SELECT
        p.*,
        concat_ws(' ',
            CASE compile WHEN 'false' THEN 'eager' WHEN 'true' THEN 'compiled' ELSE compile END,
            CASE WHEN compile <> 'false' THEN 'dynamic=' || dynamic END,
            CASE WHEN compile <> 'false' AND _fact(params, 'static_inputs') = 'true' THEN 'static_inputs' END
        ) AS choice,
        _canonical(json_merge_patch(params::JSON, '{"static_inputs": null}')) AS work,
        coalesce(c.first_cycles_us, [first_call_us]) AS first_us,
        greatest(0, list_sum(first_us) - len(first_us) * wall_us) / 1e6 AS lost_s
    FROM points AS p
    LEFT JOIN stg_cycles AS c USING (run_id)
    WHERE p.source = 'sweep' AND p.warmup <> 'false'
    QUALIFY row_number() OVER (
        PARTITION BY p.environment_id, p.workload, p.size, p.dtype, p.batch, p.warmup, p.device, work, choice
        ORDER BY p.run_id DESC
    ) = 1
),
paired AS (
    SELECT
        a.*,
        b.choice AS against, b.point_id AS other_point_id, b.status AS other_status, b.reason AS other_failure,
        b.compilations AS against_compilations, b.lost_s AS against_lost_s, b.wall_us AS against_wall_us,
        b.device_us AS against_device_us,
        a.wall_us / nullif(b.wall_us, 0) AS wall_ratio,
        a.wall_us_low / nullif(b.wall_us_high, 0) AS wall_ratio_low,
        a.wall_us_high / nullif(b.wall_us_low, 0) AS wall_ratio_high,
        a.device_us / nullif(b.device_us, 0) AS device_ratio,
        (a.lost_s - b.lost_s) * 1e6 / nullif(b.wall_us - a.wall_us, 0) AS meeting
    FROM choices AS a
    JOIN choices AS b
        ON b.environment_id IS NOT DISTINCT FROM a.environment_id AND b.workload = a.workload
        AND b.size IS NOT DISTINCT FROM a.size AND b.dtype = a.dtype AND b.batch IS NOT DISTINCT FROM a.batch
        AND b.warmup = a.warmup AND b.device = a.device AND b.work = a.work AND b.choice <> a.choice
    WHERE a.compile <> 'false'
),
judged AS (
    SELECT
        *,
        CASE
            WHEN status <> 'ok' THEN choice || ' ' || status || coalesce(': ' || reason, '')
            WHEN other_status <> 'ok' THEN against || ' ' || other_status || coalesce(': ' || other_failure, '')
            WHEN wall_us IS NULL OR against_wall_us IS NULL THEN 'a steady time is unknown'
            WHEN lost_s IS NULL OR against_lost_s IS NULL THEN 'what was lost at the start is unknown'
            WHEN wall_ratio_high < 1 THEN NULL
            WHEN wall_ratio_low > 1
                THEN CASE
                    WHEN lost_s < against_lost_s THEN 'it loses less at the start and takes longer a step'
                    ELSE 'never: it loses no less at the start and takes longer a step'
                END
            ELSE 'the steady times do not differ beyond their intervals'
        END AS unpaid
    FROM paired
)
SELECT
    point_id, other_point_id, environment_id, run_id,
    workload, size, dtype, batch, compile, dynamic, warmup, device, params,
    choice, against,
    compilations, compile_s, cache_hits,
    lost_s, against_lost_s,
    wall_us, against_wall_us, wall_ratio, wall_ratio_low, wall_ratio_high,
    device_us, against_device_us, device_ratio,
    CASE WHEN unpaid IS NULL THEN greatest(0, ceil(meeting))::BIGINT END AS steps,
    CASE WHEN starts_with(unpaid, 'it loses less') THEN ceil(meeting)::BIGINT END AS ahead_steps,
    unpaid AS reason,
    choice || ' against ' || against || ': ' || CASE
        WHEN unpaid IS NULL AND meeting > 0 THEN 'loses ' || _time(lost_s * 1e6) || ' at the start against '
            || _time(against_lost_s * 1e6) || ', takes ' || _time(wall_us) || ' a step against '
            || _time(against_wall_us) || ', and has paid after ' || _counted(steps, 'step') || '.'
        WHEN unpaid IS NULL THEN 'is ahead from the first step on.'
        WHEN ahead_steps IS NOT NULL
            THEN unpaid || ' (' || _number(wall_ratio) || ' times): it is ahead for ' || _counted(ahead_steps, 'step')
                || '.'
        WHEN starts_with(unpaid, 'the steady times')
            THEN unpaid || ', so that the start decides: it loses ' || _time(lost_s * 1e6) || ' against '
                || _time(against_lost_s * 1e6) || '.'
        ELSE unpaid || '.'
    END AS sentence
FROM judged;

COMMENT ON VIEW payback IS
    'One row a compiled point and another choice for the same work (eager, other dynamic or mode): from which step on it
    has paid.';
COMMENT ON COLUMN payback.other_point_id IS 'The point of the other choice.';
COMMENT ON COLUMN payback.choice IS 'How the point was compiled, in words: mode, dynamic, static_inputs.';
COMMENT ON COLUMN payback.against IS 'The other choice in the same words, or eager.';
COMMENT ON COLUMN payback.cache_hits IS
    'Hits in torch''s compile caches: with any, the seconds are fewer than those of a compilation from nothing.';
COMMENT ON COLUMN payback.lost_s IS
    'Seconds by which the first cycles exceeded steady ones: compilations, recording of graphs, loading of kernels.';
COMMENT ON COLUMN payback.against_lost_s IS 'The same of the other choice.';
COMMENT ON COLUMN payback.against_wall_us IS 'wall_us of the other choice.';
COMMENT ON COLUMN payback.wall_ratio IS
    'wall_us / against_wall_us: above 1 a steady step takes longer. Generic (dynamic=true, mark) against specialised
    (dynamic=false) it is the price of the generic kernels, guards included.';
COMMENT ON COLUMN payback.wall_ratio_low IS 'Low end of its 95 % interval, from those of both times.';
COMMENT ON COLUMN payback.wall_ratio_high IS 'High end of its 95 % interval.';
COMMENT ON COLUMN payback.against_device_us IS 'device_us of the other choice.';
COMMENT ON COLUMN payback.device_ratio IS 'The same ratio of device_us: of the kernels alone; NULL on the CPU.';
COMMENT ON COLUMN payback.steps IS
    'Steps after which the choice has taken less in all; 0 = from the beginning; NULL = never, or unknown: see reason.';
COMMENT ON COLUMN payback.ahead_steps IS
    'Of a choice that loses less at the start and takes longer a step: for so many steps it is ahead.';
COMMENT ON COLUMN payback.reason IS 'Why steps is NULL.';
COMMENT ON COLUMN payback.sentence IS 'The row in words.';
