-- Grain: one row an environment.
CREATE TABLE stg_environments AS
WITH typed AS (
    SELECT
        NULL AS environment_id, NULL AS measure_version, NULL AS torch, NULL AS python, NULL AS device,
        NULL AS device_name, NULL AS driver, NULL AS cuda_runtime, NULL AS compute_capability, NULL AS mig,
        NULL AS host_cpu, NULL AS affinity, NULL AS numa, NULL AS governor, NULL AS cgroup_cpus, NULL AS cores,
        NULL AS threads, NULL AS multiprocessors, NULL AS threads_per_multiprocessor,
        NULL AS registers_per_multiprocessor, NULL AS shared_memory_per_multiprocessor_bytes, NULL AS l2_bytes,
        NULL AS memory_bytes, NULL AS sm_clock_max_mhz, NULL AS power_limit_w, NULL AS versions, NULL AS variables
    WHERE false
)
SELECT
    environment_id::VARCHAR AS environment_id,
    measure_version::BIGINT AS measure_version,
    torch::VARCHAR AS torch,
    python::VARCHAR AS python,
    device::VARCHAR AS device,
    device_name::VARCHAR AS device_name,
    driver::VARCHAR AS driver,
    cuda_runtime::VARCHAR AS cuda_runtime,
    compute_capability::VARCHAR AS compute_capability,
    mig::BOOLEAN AS mig,
    host_cpu::VARCHAR AS host_cpu,
    affinity::VARCHAR AS affinity,
    numa::VARCHAR AS numa,
    governor::VARCHAR AS governor,
    cgroup_cpus::DOUBLE AS cgroup_cpus,
    cores::BIGINT AS cores,
    threads::BIGINT AS threads,
    multiprocessors::BIGINT AS multiprocessors,
    threads_per_multiprocessor::BIGINT AS threads_per_multiprocessor,
    registers_per_multiprocessor::BIGINT AS registers_per_multiprocessor,
    shared_memory_per_multiprocessor_bytes::BIGINT AS shared_memory_per_multiprocessor_bytes,
    l2_bytes::BIGINT AS l2_bytes,
    memory_bytes::BIGINT AS memory_bytes,
    sm_clock_max_mhz::DOUBLE AS sm_clock_max_mhz,
    power_limit_w::DOUBLE AS power_limit_w,
    versions::VARCHAR AS versions,
    variables::VARCHAR AS variables
FROM (FROM typed UNION ALL BY NAME FROM files_environments)
WHERE environment_id IS NOT NULL;

COMMENT ON TABLE stg_environments IS
    'One row an environment: where runs were measured. What could not be read is NULL.';
COMMENT ON COLUMN stg_environments.measure_version IS 'Raised whenever a rule of measuring changes.';
COMMENT ON COLUMN stg_environments.torch IS 'Version of torch.';
COMMENT ON COLUMN stg_environments.python IS 'Version of Python.';
COMMENT ON COLUMN stg_environments.device_name IS 'Model of the device.';
COMMENT ON COLUMN stg_environments.driver IS 'Version of the driver.';
COMMENT ON COLUMN stg_environments.cuda_runtime IS 'Version of the CUDA runtime.';
COMMENT ON COLUMN stg_environments.compute_capability IS 'Compute capability of the device.';
COMMENT ON COLUMN stg_environments.mig IS 'The device is a MIG slice.';
COMMENT ON COLUMN stg_environments.host_cpu IS 'Model of the host''s CPU.';
COMMENT ON COLUMN stg_environments.affinity IS 'CPUs that the process may use.';
COMMENT ON COLUMN stg_environments.numa IS 'NUMA nodes of the host.';
COMMENT ON COLUMN stg_environments.governor IS 'Frequency governor of the CPU.';
COMMENT ON COLUMN stg_environments.cgroup_cpus IS 'CPU quota of the process, in CPUs.';
COMMENT ON COLUMN stg_environments.cores IS 'CPUs of the host.';
COMMENT ON COLUMN stg_environments.threads IS 'Threads that torch uses for one operation.';
COMMENT ON COLUMN stg_environments.multiprocessors IS 'Multiprocessors of the device.';
COMMENT ON COLUMN stg_environments.threads_per_multiprocessor IS 'Resident threads that a multiprocessor holds.';
COMMENT ON COLUMN stg_environments.registers_per_multiprocessor IS 'Registers of a multiprocessor.';
COMMENT ON COLUMN stg_environments.shared_memory_per_multiprocessor_bytes IS 'Shared memory of a multiprocessor.';
COMMENT ON COLUMN stg_environments.l2_bytes IS 'Size of the L2 cache.';
COMMENT ON COLUMN stg_environments.memory_bytes IS 'Memory of the device.';
COMMENT ON COLUMN stg_environments.sm_clock_max_mhz IS 'Highest clock of the multiprocessors; MHz.';
COMMENT ON COLUMN stg_environments.power_limit_w IS 'Power limit of the card; W.';
COMMENT ON COLUMN stg_environments.versions IS 'JSON object of package versions.';
COMMENT ON COLUMN stg_environments.variables IS 'JSON object of the environment variables that change results.';
