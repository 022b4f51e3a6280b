-- Grain: one row a point and environment.
-- The verdict in a word (bound), in numbers (margin, gain) and in words (reason, sentence). The rules are in _verdicts,
-- those of imported traces, where no time without a profiler is known, in _import_verdicts.
-- A table: everything below reads it, so it is computed once.
CREATE TABLE bounds AS
WITH judged AS (
    SELECT
        * REPLACE (
            CASE WHEN rule = 'by the law' THEN wall_us / device_us ELSE margin END AS margin,
            CASE WHEN rule = 'by the law' THEN wall_us_low / device_us_high ELSE margin_low END AS margin_low,
            CASE WHEN rule = 'by the law' THEN wall_us_high / device_us_low ELSE margin_high END AS margin_high
        ),
        CASE
            WHEN rule = 'input' THEN wall_us / nullif(without_input_us, 0)
            WHEN bound <> 'unknown' THEN wall_us / nullif(without_overhead_us, 0)
        END AS gain,
        CASE
            WHEN device_kind = 'compute'
                THEN 'at ' || _percent(flops_share) || ' of the ' || limiting_dtypes || ' FLOP/s roof'
            WHEN device_kind = 'memory'
                THEN 'at ' || _percent(bytes_share) || ' of the ' || upper(bytes_roof) || ' bytes/s roof'
            WHEN device_kind = 'mixed'
                THEN 'mixed: ' || _percent(flops_share) || ' of it at the FLOP/s roof and '
                    || _percent(bytes_share) || ' at the bytes/s roof'
            WHEN device_kind = 'underfilled'
                THEN 'underfilled: ' || _percent(underfilled_frac)
                    || ' of the busy time is in kernels of fewer blocks than the device has multiprocessors'
            WHEN device_kind = 'inefficient'
                THEN 'inefficient: the roofs explain ' || _percent(roof_share) || ' of it'
            WHEN operations IS NULL THEN 'no cost model'
            ELSE 'no roof was measured for its operations' || coalesce(' in ' || missing_dtypes, '')
        END AS device_reason
    FROM _verdicts
    WHERE NOT coalesce(source = 'import' AND status = 'ok', false)
),
reasoned AS (
    SELECT
        *,
        CASE rule
            WHEN 'not ok' THEN coalesce(status, 'no status') || coalesce(': ' || reason, '')
            WHEN 'noop' THEN 'noop does no work, so it has no times'
            WHEN 'cold' THEN 'a first call has no steady state'
            WHEN 'input' THEN 'the host waits ' || _percent(data_us / wall_us) || ' of a step for its input ('
                || _time(coalesce(data_us_low, data_us)) || ' to ' || _time(coalesce(data_us_high, data_us)) || ')'
            WHEN 'no times' THEN 'no time was measured' || coalesce(': ' || _fact(reasons, 'wall_us'), '')
            WHEN 'no floor' THEN 'no floor was measured' || coalesce(': ' || _fact(reasons, 'floor_us'), '')
            WHEN 'noise' THEN 'the work is within the noise of the floor'
            WHEN 'hidden' THEN 'the noise hides whether the work is above or below the floor'
            WHEN 'no device time' THEN 'no device time was measured'
                || coalesce(': ' || _fact(reasons, 'device_us'), '')
            WHEN 'by the law' THEN 'the issue time is unknown'
                || coalesce(' (' || _fact(reasons, 'issue_us') || ')', '')
                || ', but a step takes ' || _number(wall_us / device_us)
                || ' times its device time and nothing in it waits'
            WHEN 'no issue time' THEN 'no issue time was measured' || coalesce(': ' || _fact(reasons, 'issue_us'), '')
            WHEN 'serialized' THEN 'the host waits inside the step: ' || blocking_names
            WHEN 'unexplained' THEN 'issue and device time are both smaller than the wall time by '
                || _percent(1 - coalesce(larger_us, greatest(issue_us, device_us)) / wall_us) || ', and no synchronizing call was seen'
            WHEN 'device' THEN device_reason
            ELSE (CASE WHEN is_cpu THEN 'floor / work = ' ELSE 'issue / device = ' END) || _number(margin)
                || coalesce(' (' || _number(margin_low) || ' to ' || _number(margin_high) || ')', '')
        END || CASE
            WHEN bound NOT IN ('unknown', 'serialized', 'input-bound') AND roof_share > 1.05
                THEN '; ' || _percent(roof_share) || ' of the roofs is more than there can be: data that stays in the '
                    || (CASE WHEN is_cpu THEN 'cache' ELSE 'L2' END) || ', or a roof that was measured too low'
            ELSE ''
        END AS why,
        CASE
            WHEN gain > 1 AND rule = 'input'
                THEN '; without that wait it would take ' || _time(without_input_us) || ', '
                    || _number(gain) || ' times less'
            WHEN gain > 1 AND is_cpu
                THEN '; the work alone takes ' || _time(without_overhead_us) || ', ' || _number(gain) || ' times less'
            WHEN gain > 1
                THEN '; without launch overhead it would take ' || _time(without_overhead_us) || ', '
                    || _number(gain) || ' times less'
            ELSE ''
        END AS gain_text,
        CASE
            WHEN rule = 'input' THEN 'A step comes every ' || _time(wall_us)
                || CASE
                    WHEN is_cpu THEN ''
                    ELSE ' although the host issues it in ' || _time(issue_us) || ' and the device works '
                        || _time(device_us)
                END || ', and for ' || _time(data_us) || ' of that the host waits for its input'
            WHEN is_cpu THEN 'Of ' || _time(wall_us) || ' a step ' || _time(overhead_us) || ' are overhead and '
                || _time(work_us) || ' are work'
            WHEN rule = 'overhead' THEN 'The host needs ' || _time(issue_us)
                || ' to issue a step that the device finishes in ' || _time(device_us)
            ELSE 'The device works ' || _time(device_us) || ' on a step that the host issues in ' || _time(issue_us)
        END AS terms_text
    FROM judged
)
SELECT
    point_id, environment_id, run_id, runs, ok_runs,
    workload, size, dtype, batch, compile, dynamic, warmup, device, params,
    status,
    bound, margin, margin_low, margin_high,
    CASE
        WHEN margin_low = margin_high THEN CASE WHEN margin = 1 THEN 0.5 ELSE 1 END
        WHEN margin > 1 AND margin_low > 0 THEN _normal_below(1.959964 * ln(margin) / ln(margin / margin_low))
        WHEN margin <= 1 AND margin > 0 THEN _normal_below(1.959964 * ln(margin) / ln(margin / margin_high))
    END AS confidence,
    gain,
    why AS reason,
    CASE
        WHEN bound = 'unknown' THEN 'Unknown: ' || why
        WHEN rule = 'overhead' THEN terms_text || ': overhead-bound' || gain_text
        WHEN rule = 'input' THEN terms_text || ': input-bound' || gain_text
        WHEN rule = 'noise' THEN 'A step takes ' || _time(wall_us) || ' and its floor ' || _time(floor_us)
            || ': overhead-bound, the work is within the noise'
        WHEN rule = 'hidden' THEN 'A step takes ' || _time(wall_us) || ' and its floor ' || _time(floor_us)
            || ': balanced, the noise hides whether the work is above or below it'
        WHEN rule = 'by the law' THEN 'A step takes ' || _time(wall_us) || ' although the device needs '
            || _time(device_us) || ' and nothing in it waits: overhead-bound' || gain_text
        WHEN rule = 'serialized' THEN 'A step takes ' || _time(wall_us) || ', more than its issue time of '
            || _time(issue_us) || ' or its device time of ' || _time(device_us) || ': serialized by ' || blocking_names
        WHEN rule = 'balanced' THEN terms_text || ': balanced, the difference is within the noise'
        WHEN bound = 'device-bound' THEN terms_text || ': device-bound, ' || why
        ELSE terms_text || ': ' || bound || ' ' || why
    END || '.' || CASE WHEN host_contended THEN ' Something else used the host meanwhile.' ELSE '' END || CASE
        WHEN host_noise THEN ' Host noise: here the step was issued in ' || _time(own_issue_us) || ', while '
            || _counted(issue_points, 'point') || ' that launch the same take ' || _time(issue_us) || '.'
        ELSE ''
    END || CASE
        WHEN bound <> 'input-bound' AND data_us > wall_us / 10
            THEN ' In ' || _time(data_us) || ' of a step of ' || _time(wall_us) || ' it waits for its input.'
        ELSE ''
    END AS sentence,
    overhead_us, overhead_us_low, overhead_us_high,
    work_us, work_us_low, work_us_high,
    larger_us,
    wall_us, wall_us_low, wall_us_high,
    issue_us, issue_us_low, issue_us_high,
    device_us, device_us_low, device_us_high,
    replay_us, replay_us_low, replay_us_high,
    single_us, single_us_low, single_us_high,
    busy_us, busy_us_low, busy_us_high,
    blocked_us, blocked_us_low, blocked_us_high,
    floor_us, floor_us_low, floor_us_high,
    data_us, data_us_low, data_us_high,
    host_slope, host_slope_low, host_slope_high,
    device_slope, device_slope_low, device_slope_high,
    without_overhead_us, roof_us, flops_share, bytes_share, flops_roof_per_s, flops_dtypes, missing_dtypes,
    bytes_roof, flops, bytes, bytes_min, fusion_headroom,
    underfilled_frac, launches, kernels,
    device_method, blocking_calls, host_contended, own_issue_us, issue_points, host_noise
FROM reasoned
UNION ALL BY NAME
SELECT
    point_id, environment_id, run_id, p.runs, p.ok_runs,
    workload, size, dtype, batch, compile, dynamic, warmup, device, params,
    p.status,
    v.bound, v.margin, v.margin_low, v.margin_high, v.gain, v.reason, v.sentence,
    v.overhead_us, v.overhead_us_low, v.overhead_us_high,
    v.compute_us AS work_us,
    coalesce(p.busy_us, v.busy_us) AS busy_us, p.busy_us_low, p.busy_us_high,
    v.blocked_us,
    v.launches, v.kernels,
    v.blocking_calls
FROM points AS p
JOIN _import_verdicts AS v USING (run_id);

COMMENT ON TABLE bounds IS
    'One row a point and environment: what binds it, by how much, why, and what it would gain without overhead.';
COMMENT ON COLUMN bounds.run_id IS 'Latest ok run of the point, else its latest run.';
COMMENT ON COLUMN bounds.bound IS
    'overhead-bound, compute-bound, memory-bound, device-bound, serialized, balanced or unknown; of a watched program and of
    an imported trace also input-bound, of the latter communication-bound.';
COMMENT ON COLUMN bounds.margin IS
    'overhead / work, above 1 the overhead binds; without an issue time wall / device; NULL where it has no meaning. Of an
    import the overhead is the profiled host time / 1.75, the low and high end that / 3.2 and that as it is.';
COMMENT ON COLUMN bounds.confidence IS
    'Probability that the margin lies on the side of 1 that it is said to, its interval read as a normal one on logarithms;
    NULL without a margin, and for imports, whose interval is no measured one.';
COMMENT ON COLUMN bounds.gain IS
    'wall_us / without_overhead_us: how many times less a step would take if the overhead went away; NULL = unknown. Of an
    overhead-bound import the profiled step over its computing time, an upper limit; of an input-bound watched program the
    same without the wait for its input.';
COMMENT ON COLUMN bounds.issue_us IS
    'Host time to issue one step, that of all points that launch the same where there are three; microseconds.';
COMMENT ON COLUMN bounds.issue_us_low IS 'Low end of the 95 % interval of issue_us.';
COMMENT ON COLUMN bounds.issue_us_high IS 'High end of the 95 % interval of issue_us.';
COMMENT ON COLUMN bounds.reason IS 'Why this bound, with the figures it rests on.';
COMMENT ON COLUMN bounds.sentence IS 'The verdict as one English sentence.';
COMMENT ON COLUMN bounds.runs IS 'Number of runs of the point in the environment.';
COMMENT ON COLUMN bounds.ok_runs IS 'Number of its ok runs.';
COMMENT ON COLUMN bounds.overhead_us IS
    'Overhead of a step: issue_us, on the CPU floor_us; of an import the profiled host time over the usual inflation; us.';
COMMENT ON COLUMN bounds.overhead_us_low IS 'Low end of overhead_us.';
COMMENT ON COLUMN bounds.overhead_us_high IS 'High end of overhead_us.';
COMMENT ON COLUMN bounds.bytes IS 'Bytes that the operations of a step move by the workload''s formula.';
