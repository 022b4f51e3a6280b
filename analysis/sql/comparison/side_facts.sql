-- Grain: one row an environment of the side and fact that is known of it.
CREATE OR REPLACE TEMP VIEW side_facts AS
WITH used AS (
    SELECT
        environment_id,
        string_agg(DISTINCT host, ', ' ORDER BY host) AS hosts,
        string_agg(DISTINCT measure, ', ' ORDER BY measure) AS measures
    FROM stg_runs
    GROUP BY environment_id
),
named AS (
    SELECT environment_id, unnest([
        {'fact': 'torch', 'value': torch},
        {'fact': 'torch commit', 'value': _fact(versions, 'torch_git')},
        {'fact': 'card', 'value': CASE WHEN device <> 'cpu' THEN device_name END},
        {'fact': 'driver', 'value': driver},
        {'fact': 'CUDA', 'value': cuda_runtime},
        {'fact': 'host CPU', 'value': host_cpu},
        {'fact': 'CPUs', 'value': affinity},
        {'fact': 'cores', 'value': cores::VARCHAR},
        {'fact': 'threads', 'value': threads::VARCHAR},
        {'fact': 'CPU quota', 'value': cgroup_cpus::VARCHAR},
        {'fact': 'NUMA nodes', 'value': numa},
        {'fact': 'governor', 'value': governor},
        {'fact': 'host', 'value': hosts},
        {'fact': 'Python', 'value': python},
        {'fact': 'multiprocessors', 'value': multiprocessors::VARCHAR},
        {'fact': 'device memory', 'value': CASE WHEN device <> 'cpu' THEN _bytes(memory_bytes) END},
        {'fact': 'highest clock in MHz', 'value': sm_clock_max_mhz::BIGINT::VARCHAR},
        {'fact': 'power limit in W', 'value': power_limit_w::BIGINT::VARCHAR},
        {'fact': 'MIG', 'value': mig::VARCHAR},
        {'fact': 'measure', 'value': measures},
        {'fact': 'rules of measuring', 'value': measure_version::VARCHAR}
    ] || [
        {'fact': k, 'value': json_extract_string(versions, _pointer(k))}
        FOR k IN coalesce(json_keys(versions), []) IF k NOT IN ('torch', 'torch_git', 'cuda')
    ] || [
        {'fact': 'variable ' || k, 'value': json_extract_string(variables, _pointer(k))}
        FOR k IN coalesce(json_keys(variables), [])
    ], recursive := true)
    FROM used
    JOIN environments USING (environment_id)
)
SELECT environment_id, fact, "value", row_number() OVER (PARTITION BY environment_id) AS place
FROM named
WHERE "value" IS NOT NULL;

COMMENT ON VIEW side_facts IS 'One row an environment of one side and fact: what may explain a difference.';
COMMENT ON COLUMN side_facts.environment_id IS 'Which environment.';
COMMENT ON COLUMN side_facts.fact IS 'torch, card, driver, host CPU, measure, `variable NAME`, ...';
COMMENT ON COLUMN side_facts."value" IS 'What is known, as text; what is not known is no row.';
COMMENT ON COLUMN side_facts.place IS 'Place in the order of telling.';
