-- Grain: one row a run and point that differs from it in one of its workload's own settings alone: the same work in the
-- same environment. key: the setting; chosen_value, other_value: its values; other_run_id: the other's latest ok run.
WITH keyed AS (
    SELECT
        run_id, point_id, status, is_latest, wall_us, wall_us_low, wall_us_high,
        unnest(list_filter(json_keys(params), lambda k: k NOT IN ('schedule', 'static_inputs', 'l2', 'seed',
            'threads'))) AS key,
        params,
        concat_ws(chr(31), environment_id, workload, coalesce(size::VARCHAR, ''), coalesce(batch::VARCHAR, ''), dtype,
            device,
            compile, coalesce(dynamic, ''), warmup) AS axes
    FROM subjects
    WHERE NOT is_import
),
masked AS (
    SELECT
        *,
        coalesce(json_extract_string(params, _pointer(key)), 'null') AS chosen_value,
        axes || chr(31) || key || chr(31) || json_merge_patch(params, json_object(key, NULL, 'schedule',
            NULL))::VARCHAR AS alike
    FROM keyed
)
SELECT
    a.run_id, a.key, a.chosen_value, b.chosen_value AS other_value, b.run_id AS other_run_id,
        b.wall_us AS other_wall_us,
    a.wall_us / nullif(b.wall_us, 0) AS gain
FROM masked AS a
JOIN masked AS b ON a.alike = b.alike AND a.point_id <> b.point_id AND a.chosen_value <> b.chosen_value
WHERE b.status = 'ok' AND b.is_latest
