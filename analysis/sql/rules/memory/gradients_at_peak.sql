-- Rule: Gradients hold much of the memory at the peak of the step.
-- Topic: memory
-- Severity: explains
-- Needs: sweep
-- Otherwise: who holds the memory of its steps was not recorded
-- Means: At the end of backward there is a gradient for every weight. In forward none is needed: those that are there
--     are left from the step before.
-- Cure: zero_grad(set_to_none=True) before forward; an optimizer that updates each weight as soon as its gradient
--     comes, in backward, so that few are there at a time (not with gradients added up over micro-batches).
-- See: https://docs.pytorch.org/tutorials/intermediate/optimizer_step_in_backward_tutorial.html
WITH sized AS (
    SELECT
        s.run_id, h.* EXCLUDE (run_id),
        coalesce(h.held['gradients'], 0) AS gradient_bytes,
        starts_with(h.phase_path, 'forward') AS is_left
    FROM subjects AS s
    JOIN memory_held AS h USING (run_id)
    WHERE s.status = 'ok'
)
SELECT
    run_id,
    gradient_bytes > 0.2 * total_bytes OR is_left AND gradient_bytes > 0.05 * total_bytes AS fired,
    'gradients have ' || _percent(gradient_bytes / total_bytes) || ' of the peak, which is in ' || phase_path
        || ' (limit: 20 %, in forward 5 %)' AS reason,
    'Gradients hold ' || _bytes(gradient_bytes) || ' of the ' || _bytes(peak_bytes) || ' at the peak of the step, '
        || _percent(gradient_bytes / total_bytes) || ' of it' || CASE
            WHEN is_left THEN ', in forward, where none is needed: they are left from the step before.'
            ELSE ', in ' || phase_path || '.'
        END AS sentence,
    CASE
        WHEN is_left THEN 'zero_grad(set_to_none=True) before forward: the peak falls by at most '
            || _bytes(gradient_bytes)
            || ' (predicted).'
        ELSE 'Update each weight as soon as its gradient comes, in backward: the peak falls by at most '
            || _bytes(gradient_bytes)
            || ' (predicted). With set_to_none=True they are gone before the next forward.'
    END AS cure,
    {'gradient_bytes': gradient_bytes, 'peak_bytes': peak_bytes, 'saved_bytes': gradient_bytes,
        'basis': 'predicted'} AS figures
FROM sized
