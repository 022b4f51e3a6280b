-- Grain: one row a name of a kernel in the store.
-- What its name says, read by _kernel_names: NULL where a name does not carry it, or where the letter is not documented.
CREATE VIEW kernel_names AS
WITH named AS (
    SELECT name, count(*) AS calls, count(DISTINCT run_id) AS runs
    FROM events
    WHERE category = 'kernel'
    GROUP BY name
)
SELECT n.calls, n.runs, k.*
FROM _kernel_names('named') AS k
JOIN named AS n USING (name);

COMMENT ON VIEW kernel_names IS
    'One row a name of a kernel in the store, and what the name says; NULL where it does not carry it.';
COMMENT ON COLUMN kernel_names.calls IS 'How often kernels of this name ran, over all runs.';
COMMENT ON COLUMN kernel_names.runs IS 'Runs in which it ran.';
COMMENT ON COLUMN kernel_names.name IS 'Name of the kernel, as the profiler gives it.';
COMMENT ON COLUMN kernel_names.library IS
    'Who made it: cuBLAS, CUTLASS, cuDNN, xmma, Triton, FlashAttention, hipBLASLt, Tensile, MIOpen, Composable Kernel, NCCL, ATen, CUB and others. A name of CUTLASS or xmma that says for which library it was built has that one.';
COMMENT ON COLUMN kernel_names.scheme IS
    'The way its name is built, where that is one with many fields: nvjet, CUTLASS, xmma, SASS (volta_sgemm_128x64_nn), Tensile, igemm (MIOpen), matmul_ogs (Triton), Inductor (torch.compile).';
COMMENT ON COLUMN kernel_names.family IS
    'Kind of work: gemm, gemv, split-k reduction, convolution, attention, moe, embedding, norm, softmax, loss, pooling, elementwise, multi_tensor (one operation over a list of tensors: optimizers, foreach), reduce, scan, sort, index, cat, copy (transpositions too), fill, random (dropout too), quantize, cache (of keys and values), collective.';
COMMENT ON COLUMN kernel_names.operation IS
    'The operation in a word, as ATen calls it where it can: add, copy, sum, softmax, all_reduce; fprop, dgrad or wgrad of a convolution.';
COMMENT ON COLUMN kernel_names.functor IS 'Functor or function that an elementwise, reduction or multi-tensor kernel of ATen applies.';
COMMENT ON COLUMN kernel_names.element_type IS 'Type of the elements by the template of a kernel that is no matrix product, of ATen and alike.';
COMMENT ON COLUMN kernel_names.fused_ops IS
    'Operators that a Triton kernel of torch.compile fuses; one with underscores that is not known comes apart into its words.';
COMMENT ON COLUMN kernel_names.triton_kind IS
    'Kind of a Triton kernel of torch.compile: poi (pointwise), red and per (reductions), tem (a template, such as a matrix product).';
COMMENT ON COLUMN kernel_names.architecture IS
    'NVIDIA architecture that it was built for: 70, 75, 80, 90, 100. A newer device may run it, and it may be the best there is.';
COMMENT ON COLUMN kernel_names.gfx IS 'AMD architecture that it was built for, such as gfx942.';
COMMENT ON COLUMN kernel_names.tensor_core IS 'Whether it multiplies on tensor cores (AMD: matrix cores).';
COMMENT ON COLUMN kernel_names.input_type IS 'Type that a product multiplies: bf16, fp16, fp32, tf32, fp64, fp8_e4m3, int8 and others.';
COMMENT ON COLUMN kernel_names.accumulation_type IS 'Type in which sums are kept.';
COMMENT ON COLUMN kernel_names.output_type IS 'Type that a product writes.';
COMMENT ON COLUMN kernel_names.mma_shape IS
    'M x N x K of a matrix instruction, such as 16x8x16; without K where the name leaves it out.';
COMMENT ON COLUMN kernel_names.tile IS 'Tile of the result that a block computes, M x N or M x N x K as the name carries it; of attention, queries x keys.';
COMMENT ON COLUMN kernel_names.tile_m IS 'Rows of the tile of a product.';
COMMENT ON COLUMN kernel_names.tile_n IS 'Columns of the tile of a product.';
COMMENT ON COLUMN kernel_names.tile_k IS 'Depth of the tile of a product.';
COMMENT ON COLUMN kernel_names.stages IS 'Tiles of the inputs that are on their way at a time.';
COMMENT ON COLUMN kernel_names.split_k_slices IS 'Into how many slices K is split, where the name has the number.';
COMMENT ON COLUMN kernel_names.split_k IS 'Whether K is split over several blocks; NULL where the name does not say.';
COMMENT ON COLUMN kernel_names.transposition IS
    'Whether A and B are transposed: nn, nt, tn or tt in the convention of BLAS (columns contiguous), in which a row-major product of torch has A and B swapped; n or t for a product with a vector.';
COMMENT ON COLUMN kernel_names.alignment IS 'Elements by which the inputs must be aligned, at least.';
COMMENT ON COLUMN kernel_names.epilogue IS
    'What it can do to the result before it is written, as named: relu, gelu, silu, swiglu, bias; badd (nvjet) adds a matrix.';
