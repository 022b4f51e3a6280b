-- Grain: one row a name of a kernel that ran in a typical step, decoded (see kernel_names).
WITH named AS (
    SELECT DISTINCT name
    FROM step_events
    WHERE category = 'kernel'
)
FROM _kernel_names('named')
