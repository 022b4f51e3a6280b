-- Grain: one row a name of a kernel that ran in a typical step, decoded (see kernel_names).
SELECT name, NULL AS family
FROM (SELECT DISTINCT name FROM step_events WHERE category = 'kernel')
