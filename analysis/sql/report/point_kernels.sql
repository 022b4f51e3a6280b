-- Grain: one row a run of point_runs and kernel: name, grid and block (see kernels).
-- With what its name says (see kernel_names), and its share of the time of all kernels of the run.
SELECT
    k.*,
    k.total_us / nullif(sum(k.total_us) OVER (PARTITION BY k.run_id), 0) AS share,
    n.library, n.family, n.operation, n.functor, n.fused_ops, n.tile, n.stages, n.input_type,
    n.accumulation_type, n.output_type,
    n.element_type, n.tensor_core, n.split_k, n.epilogue, coalesce(n.architecture::VARCHAR, n.gfx) AS architecture
FROM kernels AS k
LEFT JOIN _kernel_names('point_kernel_names') AS n USING (name)
WHERE k.run_id IN (FROM point_runs)
ORDER BY k.run_id, k.total_us DESC, k.name
