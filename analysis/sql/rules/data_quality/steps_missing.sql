-- Rule: The numbers of the recorded steps have holes, or fewer steps were recorded than the schedule asks for.
-- Topic: data quality
-- Severity: misleads
-- Needs: trace, step
-- Otherwise: the trace marks no steps by number
-- Means: Steps that the trace lost are in no sum, and the steps beside a hole are no neighbours: what lies between them
--     is not the time between two steps.
-- Cure: Profile fewer steps, or without stacks and memory events, so that the trace is written completely.
WITH numbered AS (
    SELECT
        p.run_id,
        min(p.step) AS first_step, max(p.step) AS last_step, count(DISTINCT p.step) AS found,
        list_sort(list(DISTINCT p.step)) AS numbers,
        CASE WHEN NOT any_value(s.is_import)
            THEN TRY_CAST(split_part(json_extract_string(any_value(s.params), '/schedule'), '/',
                3) AS BIGINT) END AS active,
        bool_or(s.is_import AND _fact(s.step_facts, 'method') <> 'profiler') AS is_unnumbered
    FROM spans AS p
    JOIN subjects AS s USING (run_id)
    WHERE s.status = 'ok'
    GROUP BY p.run_id
),
counted AS (
    SELECT
        *,
        last_step - first_step + 1 - found AS holes,
        greatest(0, coalesce(active - found, 0)) AS lost,
        list_filter(range(first_step, least(last_step, first_step + 1000)), lambda n: NOT list_contains(numbers,
            n))[1] AS first_hole
    FROM numbered
    WHERE NOT is_unnumbered
)
SELECT
    run_id,
    holes > 0 OR lost > 0 AS fired,
    _counted(found, 'step') || ' from ' || first_step || ' to ' || last_step
        || CASE WHEN active IS NOT NULL THEN ', ' || active || ' are asked for by the schedule' ELSE '' END AS reason,
    CASE
        WHEN holes > 0 THEN 'Of the steps ' || first_step || ' to ' || last_step || ' the trace holds ' || found || ': '
            || _counted(holes, 'step') || CASE WHEN holes = 1 THEN ' is' ELSE ' are' END || ' missing'
            || coalesce(', the first is ' || first_hole, '') || '.'
        ELSE 'The schedule asks for ' || _counted(active, 'step') || ' and the trace holds ' || found
            || ': it was cut short.'
    END AS sentence,
    {'steps': found, 'missing_steps': greatest(holes, lost)} AS figures
FROM counted
