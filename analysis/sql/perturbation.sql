-- Grain: one row an ok run.
-- What the profiler costs the host: time of a profiled step against the same step without a profiler. The unprofiled
-- time is issue + blocked; on the CPU, where the host does the work itself, the wall time.
CREATE VIEW perturbation AS
WITH hosts AS (
    SELECT
        *,
        CASE WHEN device = 'cpu' THEN wall_us ELSE issue_us + coalesce(blocked_us, 0) END AS unprofiled_host_us
    FROM stg_runs
    WHERE status = 'ok'
)
SELECT
    run_id, point_id, environment_id,
    workload, size, dtype, batch, compile, dynamic, warmup, device, params,
    profiled_host_us,
    unprofiled_host_us,
    coalesce(profiled_host_us / unprofiled_host_us, perturbation) AS perturbation,
    CASE
        WHEN source = 'import' THEN 'imported: nothing was timed without a profiler'
        WHEN profiled_host_us IS NULL THEN coalesce(profile_reason, 'no profiled host time')
        WHEN unprofiled_host_us IS NULL THEN coalesce(_fact(reasons, 'issue_us'), 'no steady host time')
    END AS reason
FROM hosts;

COMMENT ON VIEW perturbation IS 'One row an ok run: host time of a step with and without the profiler.';
COMMENT ON COLUMN perturbation.unprofiled_host_us IS
    'Host time of a step without a profiler: issue_us + blocked_us, on the CPU wall_us; microseconds.';
COMMENT ON COLUMN perturbation.perturbation IS 'profiled_host_us / unprofiled_host_us.';
COMMENT ON COLUMN perturbation.reason IS 'Why one of the two times is NULL.';
