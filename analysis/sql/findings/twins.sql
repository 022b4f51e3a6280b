-- Grain: one row a run and point that differs from it in one setting alone: the same work in the same environment.
-- setting: compile, warmup, batch, dtype, schedule, static_inputs or l2; other_*: the other point, its latest ok run.
WITH keyed AS (
    SELECT
        run_id, point_id, environment_id, workload, size, dtype, batch, compile, dynamic, warmup, device,
        coalesce(json_extract_string(params, '/schedule'), '') AS schedule,
        coalesce(json_extract_string(params, '/static_inputs'), 'false') AS static_inputs,
        coalesce(json_extract_string(params, '/l2'), 'warm') AS l2,
        _canonical(json_merge_patch(params, '{"schedule": null, "static_inputs": null, "l2": null}')) AS others,
        wall_us, wall_us_low, wall_us_high, issue_us, device_us, replay_us, bound, margin, typical_step,
        is_compiled, status, is_latest
    FROM subjects
    WHERE NOT is_import
),
settings AS (
    SELECT *, unnest(['compile', 'warmup', 'batch', 'dtype', 'schedule', 'static_inputs', 'l2']) AS setting
    FROM keyed
),
masked AS (
    SELECT
        *,
        concat_ws(chr(31), environment_id, workload, coalesce(size::VARCHAR, ''), device, others,
            CASE WHEN setting <> 'dtype' THEN coalesce(dtype, '') END, CASE WHEN setting <> 'batch' THEN coalesce(batch::VARCHAR, '') END,
            CASE WHEN setting <> 'compile' THEN compile || ' ' || coalesce(dynamic, '') END,
            CASE WHEN setting <> 'warmup' THEN warmup END,
            CASE WHEN setting <> 'schedule' AND (setting <> 'warmup') THEN schedule END,
            CASE WHEN setting <> 'static_inputs' THEN static_inputs END, CASE WHEN setting <> 'l2' THEN l2 END) AS alike,
        CASE setting
            WHEN 'compile' THEN compile || CASE WHEN compile <> 'false' AND dynamic <> 'false' THEN ' dynamic=' || dynamic ELSE '' END
            WHEN 'warmup' THEN warmup WHEN 'batch' THEN coalesce(batch::VARCHAR, 'null') WHEN 'dtype' THEN dtype
            WHEN 'schedule' THEN schedule WHEN 'static_inputs' THEN static_inputs ELSE l2
        END AS chosen_value
    FROM settings
)
SELECT a.run_id, a.setting, a.chosen_value, b.chosen_value AS other_value, b.run_id AS other_run_id, b.point_id AS other_point_id
FROM masked AS a
JOIN masked AS b
    ON a.setting = b.setting AND a.alike = b.alike AND a.point_id <> b.point_id AND a.chosen_value <> b.chosen_value
WHERE b.status = 'ok' AND b.is_latest
