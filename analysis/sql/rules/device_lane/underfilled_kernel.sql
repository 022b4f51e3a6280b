-- Rule: Kernels have fewer blocks than the device has multiprocessors.
-- Topic: device lane
-- Severity: costs
-- Needs: device work, step, launch parameters
-- Otherwise: no kernel of the step has a grid
-- Means: A block runs on one multiprocessor. With fewer blocks than multiprocessors some have nothing to do, however
--     fast each block is. A tenth of all multiprocessors over the kernels' time is told: 128 blocks on 132 lose 3 %,
--     64 lose half. Collectives take few blocks on purpose and are left out. It costs where the device binds: a step
--     that waits for its host would not be shorter with full kernels.
-- Cure: Make the work of one launch larger (batch it), or split it finer (split-K for a product).
-- See: docs/findings.md
WITH launched AS (
    SELECT
        w.run_id, w.event_id, w.dur_ns, s.multiprocessors, s.bound,
        regexp_extract(w.name, '^(?:void )?((?:[^<(]|\(anonymous namespace\))+)', 1) AS name,
        list_product(w.grid)::BIGINT AS blocks,
        blocks < s.multiprocessors AS is_underfilled,
        dur_ns * greatest(0, 1 - blocks / s.multiprocessors) AS unused_ns
    FROM work AS w
    JOIN subjects AS s USING (run_id)
    WHERE w.category = 'kernel' AND w.grid IS NOT NULL AND s.multiprocessors IS NOT NULL AND s.status = 'ok'
        AND NOT _is_collective(w.name)
),
filled AS (
    SELECT
        run_id,
        sum(dur_ns) AS total_ns,
        coalesce(sum(dur_ns) FILTER (is_underfilled), 0) AS underfilled_ns,
        sum(unused_ns) AS unused_ns,
        arg_max({'name': name, 'blocks': blocks, 'dur_ns': dur_ns}, unused_ns) FILTER (is_underfilled) AS top,
        list(event_id ORDER BY unused_ns DESC) FILTER (is_underfilled)[:8] AS event_ids,
        any_value(multiprocessors) AS multiprocessors,
        any_value(bound) AS bound,
        coalesce(any_value(bound) IN ('overhead-bound', 'input-bound'), false) AS is_elsewhere
    FROM launched
    GROUP BY run_id
)
SELECT
    run_id,
    unused_ns >= 0.1 * total_ns AND NOT is_elsewhere AS fired,
    _percent(underfilled_ns / total_ns) || ' of the kernels'' time is in grids of fewer than ' || multiprocessors
        || ' blocks, which leaves ' || _percent(unused_ns / total_ns)
        || ' of the multiprocessors'' time unused (limit 10 %)'
        || CASE WHEN is_elsewhere THEN '; the step is ' || bound ELSE '' END AS reason,
    top.name || ' has ' || _counted(top.blocks, 'block') || ' for ' || multiprocessors || ' multiprocessors ('
        || _time(top.dur_ns / 1e3)
        || '); ' || _percent(underfilled_ns / total_ns)
        || ' of the kernels'' time is in kernels that do not fill the device, and '
        || _percent(unused_ns / total_ns) || ' of the multiprocessors'' time is unused.' AS sentence,
    coalesce(event_ids, []) AS event_ids,
    {'underfilled_us': underfilled_ns / 1e3, 'unused_us': unused_ns / 1e3, 'kernels_us': total_ns / 1e3,
        'blocks': top.blocks} AS figures
FROM filled
