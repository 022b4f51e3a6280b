-- Macros that read the names of kernels. Private: names begin with `_`.
-- A name is hostile text and no contract: what it does not carry, and what is not known of a letter in it, is NULL.
-- Only its first 4096 characters are read: the function and its first template arguments stand there.

-- The first match of a group, NULL where there is none.
CREATE MACRO _found(text, pattern, part) AS nullif(regexp_extract(text, pattern, part), '');

-- A whole number, NULL for anything else.
CREATE MACRO _whole(text) AS TRY_CAST(text AS BIGINT);

-- A type by its usual name, from the words and letters of libraries; NULL for one that is not known.
-- Letters: s h d c z i as in BLAS (i: int32), upper case as in Tensile; t (bf16) and q (fp8 e4m3) are nvjet's.
CREATE MACRO _kernel_type(word) AS MAP {
    'float': 'fp32', 'f32': 'fp32', 'fp32': 'fp32', 's': 'fp32', 'S': 'fp32', 'f': 'fp32',
    'double': 'fp64', 'f64': 'fp64', 'fp64': 'fp64', 'd': 'fp64', 'D': 'fp64',
    'c10::Half': 'fp16', '__half': 'fp16', 'half': 'fp16', 'f16': 'fp16', 'fp16': 'fp16', 'h': 'fp16', 'H': 'fp16',
    'DF16_': 'fp16', 'cutlass::half_t': 'fp16', 'c10::BFloat16': 'bf16', '__nv_bfloat16': 'bf16',
    '__hip_bfloat16': 'bf16', 'nv_bfloat16': 'bf16', 'bf16': 'bf16', 't': 'bf16', 'B': 'bf16', 'DF16b': 'bf16',
    'cutlass::bfloat16_t': 'bf16', 'Bfloat16': 'bf16', 'Fp16': 'fp16', 'Fp32': 'fp32', 'tf32': 'tf32',
    'e4m3': 'fp8_e4m3', 'E4m3': 'fp8_e4m3', 'q': 'fp8_e4m3', 'c10::Float8_e4m3fn': 'fp8_e4m3',
    'e5m2': 'fp8_e5m2', 'E5m2': 'fp8_e5m2', 'c10::Float8_e5m2': 'fp8_e5m2', 'mxfp4': 'mxfp4',
    'i8': 'int8', 's8': 'int8', 'I8': 'int8', 'int8_t': 'int8', 'signed char': 'int8', 'u8': 'uint8',
    'unsigned char': 'uint8', 'uint8_t': 'uint8', 'i32': 'int32', 's32': 'int32', 'i': 'int32', 'I': 'int32',
    'int': 'int32', 'long': 'int64', 'short': 'int16', 'bool': 'bool',
    'c': 'complex64', 'C': 'complex64', 'c10::complex<float>': 'complex64',
    'z': 'complex128', 'Z': 'complex128', 'c10::complex<double>': 'complex128'
}[word];

-- The shape of a matrix instruction from its digits: s16816 is 16x8x16, not 16x16x16.
CREATE MACRO _mma_shape(digits) AS MAP {
    '884': '8x8x4', '1684': '16x8x4', '1688': '16x8x8', '16816': '16x8x16', '16832': '16x8x32', '16864': '16x8x64',
    '8816': '8x8x16', '161616': '16x16x16', '32816': '32x8x16', '83216': '8x32x16'
}[digits];

-- The word of an operation in the name of ATen's functor or lambda, NULL where it does not end or begin like one.
-- Welford's functor serves both variance and deviation, so it has none; equal and unequal share one functor.
CREATE MACRO _functor_operation(functor) AS CASE
    WHEN functor = 'CompareEqFunctor' THEN 'compare'
    WHEN functor = 'NormTwoOps' THEN 'norm'
    WHEN functor = 'WelfordOps' THEN NULL
    WHEN regexp_matches(functor, '^CUDAFunctor|^launch_|(?i:kernel|cuda|cuda_out|impl|functor|ops)$') THEN nullif(lower(regexp_replace(
        regexp_replace(functor, '^(?:CUDAFunctor(?:OnSelf)?_|launch_|direct_|bfloat16tofloat32_|float16tofloat32_)', ''),
        '(?:_tensor)?(?:_scalar|Scalar)?_?(?:kernel_cuda|cuda_kernel|kernel_impl|kernel|CUDAKernelImpl|cuda_out|Functor|functor|Ops)?$', ''
    )), '')
END;

-- The operators of a Triton kernel that torch.compile made, from what its name joins by underscores.
-- Operators with underscores of their own are listed; one that is not in the list comes apart into its words.
CREATE MACRO _fused_operators(joined) AS regexp_extract_all(joined, '('
    || '_?scaled_dot_product_(?:flash|efficient|cudnn|fused|flash_attention_for_cpu)_attention(?:_backward)?'
    || '|_to_copy|_unsafe_view|_unsafe_index_put|_unsafe_index|_unsafe_masked_index(?:_put_accumulate)?'
    || '|_(?:log_)?softmax(?:_backward_data)?|_native_batch_norm_legit(?:_no_training|_functional)?'
    || '|_adaptive_avg_pool[23]d(?:_backward)?|_embedding_bag|_scaled_(?:grouped_)?mm|_assert_async|_local_scalar_dense'
    || '|_fft_[cr]2[cr]|_grouped_mm|_foreach_[a-z]+|_prelu_kernel(?:_backward)?|_weight_norm_interface|_int_mm'
    || '|native_(?:layer|batch|group)_norm(?:_backward)?|native_dropout(?:_backward)?|layer_norm|batch_norm|group_norm|rms_norm'
    || '|max_pool[123]d_with_indices(?:_backward)?|(?:max|avg|adaptive_avg|adaptive_max)_pool[123]d(?:_backward)?'
    || '|embedding_dense_backward|binary_cross_entropy(?:_with_logits)?|nll_loss(?:2d)?_(?:forward|backward)|cross_entropy_loss'
    || '|(?:mse|huber|l1|smooth_l1)_loss(?:_backward)?|log_softmax|log_sigmoid(?:_forward|_backward)?'
    || '|(?:bitwise|logical)_(?:and|or|xor|not)|bitwise_(?:left|right)_shift|constant_pad_nd|scalar_tensor|as_strided(?:_scatter)?'
    || '|(?:select|slice|diagonal|masked)_scatter|scatter_(?:add|reduce)|index_(?:put|select|add|copy|fill)|masked_fill'
    || '|split_with_sizes|unsafe_split|repeat_interleave|broadcast_(?:to|tensors)|broadcast_in_dim|expand_as|view_as|clamp_(?:min|max)'
    || '|convert_element_type|upsample_(?:nearest|bilinear|bicubic)[123]?d?(?:_backward)?|(?:reflection|replication)_pad[123]d(?:_backward)?'
    || '|grid_sampler_[23]d|leaky_relu(?:_backward)?|hardtanh_backward|pixel_(?:un)?shuffle|var_mean|std_mean|linalg_vector_norm'
    || '|nan_to_num|floor_divide|true_divide|new_(?:zeros|ones|full|empty)(?:_strided)?|empty_strided|inductor_(?:seeds|lookup_seed|random)'
    || '|moe_forward|flex_attention(?:_backward)?|[a-z0-9]+_backward|[a-z0-9]+_like|_?[a-z0-9]+)(?:_|$)', 1);

-- What the names of kernels say: the rows of a relation with a column `name`, and the columns that view kernel_names
-- explains. A table macro, since each stage reads the one before many times.
-- How to read a GEMM's name (scheme):
--   nvjet       cuBLAS since 12: nvjet_[sm90_]tst_128x64_64x8_1x2_h_bz_NNT. Three letters: input, accumulation, output (five:
--               A, B, C, accumulation, D); tile MxN, tile of K x stages; bz writes the product, badd adds C to it; the first
--               two of the last letters are the transpositions. Not documented, so not read: 1x2, h and v, coopA and coopB, the
--               third of the last letters.
--   CUTLASS     cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_128x64_64x6_tn_align8: output, accumulation (s) and shape of the
--               matrix instruction, input, tile MxN, tile of K x stages. No output: it is the accumulation's; no input: the
--               accumulation's, but tf32 for s on tensor cores, which multiply no fp32.
--   xmma        sm80_xmma_gemm_f32f32_tf32f32_f32_nn_n_tilesize128x64x8_stage3_...: A in memory, output; as multiplied,
--               accumulation; ffma is no tensor core, a warpgroup or tensor16x8x8 is one. execute_split_k_kernel runs behind the
--               execute_kernel of the same name, whose grid has the slices of K, and adds up the parts.
--   SASS        ampere_bf16_s16816gemm_bf16_128x64_ldg8_stages_64x6_tn: digits behind the letter are a matrix instruction,
--               without digits it runs off the tensor cores.
--   Tensile     Cijk_Alik_Bljk_BBS_BH_..._MT128x64x32_MI16x16x16x1_..._ISA942: Alik is transposed, Bjlk is; input, output,
--               accumulation; MI M x N (x K) x blocks; the gfx of the ISA; GSU slices of K.
--   igemm       MIOpen's implicit GEMM: bt tile, gkgs splits K.
--   matmul_ogs  Triton's kernels: layouts, A x B x ..., tile MxNxK x slices of K.
--   Inductor    a Triton kernel made by torch.compile: triton_poi_fused_add_mul_0.
CREATE MACRO _kernel_names(chosen) AS TABLE (
WITH cut AS (
    SELECT name, replace(left(name, 4096), '(anonymous namespace)::', '') AS text
    FROM query_table(chosen)
),
headed AS (
    SELECT *, regexp_extract(text, '^(?:std::enable_if<.*?>::type |void )?([^<(]*)', 1) AS head
    FROM cut
),
-- Launchers that name what they run as their first argument.
aimed AS (
    SELECT
        *,
        CASE
            WHEN regexp_matches(head, '^cutlass\w*::(Kernel2?|device_kernel)$') THEN coalesce(_found(text, '<((?:\w+::)*\w+)', 1), head)
            WHEN ends_with(head, '::trampoline_kernel') THEN coalesce(_found(text, '(?:\w+::)*(\w+)_config_selector', 0), head)
            ELSE head
        END AS target
    FROM headed
),
named AS (
    SELECT
        *,
        lower(CASE WHEN starts_with(target, '_Z') THEN left(target, 300) ELSE regexp_extract(target, '\w+$') END) AS func
    FROM aimed
),
schemed AS (
    SELECT
        *,
        CASE
            WHEN starts_with(func, 'nvjet_') THEN 'nvjet'
            WHEN regexp_matches(func, '^cutlass\w*?_(tensorop|simt)_') THEN 'CUTLASS'
            WHEN regexp_matches(func, '^sm\d+_xmma_') THEN 'xmma'
            WHEN regexp_matches(func, '^(cudnn_(infer_|train_)?)?(maxwell|pascal|volta|turing|ampere|hopper)_\w*(gemm|cudnn)_')
                THEN 'SASS'
            WHEN regexp_matches(func, '^(custom_)?cijk_a') THEN 'Tensile'
            WHEN regexp_matches(func, '^igemm_(fwd|bwd|wrw)_gtc') THEN 'igemm'
            WHEN starts_with(func, '_matmul_ogs_') THEN 'matmul_ogs'
            WHEN regexp_matches(func, '^triton_[a-z]+_fused_') THEN 'Inductor'
        END AS scheme
    FROM named
),
told AS (
    SELECT
        *,
        scheme IS NOT NULL AND scheme <> 'Inductor' AS is_product,
        scheme IS NULL AND regexp_matches(func, '^(vectorized_|unrolled_|legacy_)?(templated_)?elementwise_kernel') AS is_elementwise
    FROM schemed
),
read AS (
    SELECT
        *,
        CASE WHEN scheme = 'nvjet' THEN regexp_extract(target,
            '^nvjet_(?:sm\d+_)?([a-z])(?:[a-z]{2})?([a-z])([a-z])_', ['input', 'accumulation', 'output']) END AS nvjet,
        CASE WHEN scheme = 'CUTLASS' THEN regexp_extract(target,
            'cutlass_(?:\d+_)?(wmma_)?(tensorop|simt)_(?:([a-z0-9]+)_)?([a-z])(\d*)(?:tf32|bf16|f16)?(?:gemm|fprop|dgrad|wgrad)'
            || '(?:_[a-z][a-z_]*?)??(?:_(bf16|f16|tf32|f32|f64|s8|u8|e4m3|e5m2))?_\d',
            ['wmma', 'unit', 'output', 'accumulation', 'digits', 'input']) END AS cutlass,
        CASE WHEN scheme = 'xmma' THEN regexp_extract(target,
            '_(?:tf32|bf16|f32|f16|f64|i8|u8|i32|e4m3|e5m2)(tf32|bf16|f32|f16|f64|i8|u8|i32|e4m3|e5m2)'
            || '_(tf32|bf16|f32|f16|f64|i8|u8|i32|e4m3|e5m2)(tf32|bf16|f32|f16|f64|i8|u8|i32|e4m3|e5m2)_',
            ['output', 'input', 'accumulation']) END AS xmma,
        CASE WHEN scheme = 'SASS' THEN regexp_extract(target,
            '(maxwell|pascal|volta|turing|ampere|hopper)_(?:([a-z]+\d+)_)?([a-z])(\d*)(?:gemm|cudnn)(?:_([a-z]+\d+))?_',
            ['generation', 'first', 'accumulation', 'digits', 'second']) END AS sass,
        CASE WHEN scheme = 'Tensile' THEN regexp_extract(target,
            'Cijk_A(ilk|lik)_B(ljk|jlk)_(I8|[SDHBCZI])_?(?:(I8|[SDHBCZI])_?(I8|[SDHBCZI])_)?B',
            ['a', 'b', 'input', 'output', 'accumulation']) END AS tensile,
        CASE WHEN is_elementwise THEN regexp_extract(replace(replace(text, 'at::native::', ''), 'binary_internal::', ''),
            '^[^<]*<(?:\d+, |int, )*(?:gpu_kernel_impl\w*<|type_specialized_broadcast_kernel_launcher<\d+>::apply<)?'
            || '(?:(?:AUnary|BUnary|Binary)Functor<([\w:]+(?:<\w+>)?), [^,]+, [^,]+, )?(?:\w+::)*([A-Za-z_]\w*)(?:<([\w:]+(?:<\w+>)?))?',
            ['type', 'functor', 'own_type']) END AS pointwise,
        CASE WHEN scheme IS NULL AND func = 'reduce_kernel' THEN regexp_extract(replace(text, 'at::native::', ''),
            'ReduceOp<([\w:]+(?:<\w+>)?), (?:func_wrapper_t<[\w:]+(?:<\w+>)?, )?(?:\w+::)*(\w+)(?:<[^,]+, ([\w:]+))?',
            ['type', 'functor', 'accumulation']) END AS reduction,
        CASE WHEN func = 'multi_tensor_apply_kernel' THEN regexp_extract(replace(text, 'at::native::', ''),
            '(\w*Functor\w*)<([\w:]+)[^>]*>(?:, (?:std::(plus|minus|multiplies|divides)|(\w+))<)?',
            ['functor', 'type', 'arithmetic', 'unary']) END AS listed,
        CASE WHEN is_product OR regexp_matches(func, 'sdpa|fmha') THEN regexp_extract(target,
            '(?:_(?:tilesize|MT|bt)?|SeqQ)(\d+)(?:x|Kv)(\d+)(?:x(\d+))?(?:x(\d+))?(?:_(\d+)x(\d+))?(?:[_P]|$)',
            ['m', 'n', 'k', 'slices', 'depth', 'stages']) END AS tiled,
        CASE WHEN starts_with(target, '_ZN2ck') THEN regexp_extract(target,
            'BlockToCTileMap\w*?ILi(\d+)ELi(\d+)E|GemmSpecializationE\d+ELi\d+ELi(\d+)ELi(\d+)ELi(\d+)E',
            ['m', 'n', 'm3', 'n3', 'k3']) END AS ck,
        CASE WHEN scheme IN ('SASS', 'xmma') THEN regexp_extract(target, '_stages?_?(?:(\d+)x)?(\d+)_', ['depth', 'stages']) END AS staged,
        CASE WHEN scheme IS NULL AND regexp_matches(head, 'gemv|gemmSN|gemmk1|^dot_kernel') THEN regexp_extract(text,
            '<(?:int, int, )?([\w:]+), (?:([\w:]+), ([\w:]+), ([\w:]+), )?', ['first', 'second', 'third', 'fourth']) END AS blas,
        CASE WHEN scheme = 'Inductor' THEN regexp_extract(func, '^triton_[a-z]+_fused_(.*?)_?\d+$', ['joined']) END AS inductor
    FROM told
),
known AS (
    SELECT
        *,
        coalesce(nullif(pointwise.functor, ''), nullif(reduction.functor, ''), nullif(listed.functor, '')) AS functor,
        _found(func, '^triton_([a-z]+)_fused_', 1) AS triton_kind,
        CASE WHEN inductor.joined <> '' THEN _fused_operators(inductor.joined) END AS fused_ops,
        CASE
            WHEN regexp_matches(head, '^(nccl|onccl)') THEN 'NCCL'
            WHEN starts_with(func, 'rccl') THEN 'RCCL'
            WHEN scheme IN ('Inductor', 'matmul_ogs') OR regexp_matches(func, '^triton__|_triton$|^_(finalize_matmul_|sum_bitmatrix_)')
                THEN 'Triton'
            WHEN starts_with(head, 'at::') THEN 'ATen'
            WHEN regexp_matches(target, '^(at_cuda_detail::)?cub::') THEN 'CUB'
            WHEN starts_with(target, 'rocprim::') THEN 'rocPRIM'
            WHEN starts_with(target, 'thrust::') THEN 'Thrust'
            WHEN starts_with(target, 'vllm::') THEN 'vLLM'
            WHEN regexp_matches(target, '^(fbgemm_gpu::)|^((split|dense)_embedding_\w*codegen_|bounds_check_indices_kernel|permute_pooled_embs)')
                THEN 'FBGEMM'
            WHEN regexp_matches(target, '^(tensorrt_llm|moe::dev)::|^fmhaSm\d+\w*Kernel') THEN 'TensorRT-LLM'
            WHEN starts_with(target, 'flashinfer::') THEN 'FlashInfer'
            WHEN starts_with(target, 'deep_gemm::') THEN 'DeepGEMM'
            WHEN starts_with(target, 'transformer_engine::') THEN 'TransformerEngine'
            WHEN regexp_matches(target, '^(sglang|sgl_kernel|sgl_hip)::|^_ZN7sgl_hip|flashinfer_kv_indices') THEN 'SGLang'
            WHEN regexp_matches(target, '^aiter::|^_ZN5aiter') THEN 'AITER'
            WHEN regexp_matches(target, '^_ZN\d*ck\d|^_ZN7ck_tile|^ck(_tile)?::') THEN 'Composable Kernel'
            WHEN regexp_matches(target, '^(pytorch_)?flash(::|_fwd|_bwd)|FlashAttn(Fwd|Bwd)') THEN 'FlashAttention'
            WHEN scheme = 'Tensile' THEN CASE WHEN contains(target, '_UserArgs_') THEN 'hipBLASLt' ELSE 'Tensile' END
            WHEN scheme = 'igemm' OR regexp_matches(func,
                '^miopen|^batched_transpose_\d+x\d+_|^transpose_(cnhw2nchw|nchw2cnhw)|^subtensorop') THEN 'MIOpen'
            WHEN regexp_matches(left(text, 1024), 'cudnn|^void (fft[12]d_[rc]2[rc]_|nchwToNhwcKernel|nhwcToNchwKernel|(implicit|explicit)_convolve_|[dw]grad_alg)'
                || '|^void pointwise_mult_and_sum_complex') THEN 'cuDNN'
            WHEN scheme IN ('nvjet', 'SASS') OR regexp_matches(left(text, 1024), '(?i)cublas|^void sgemm_largek|gemvx::kernel') THEN 'cuBLAS'
            WHEN scheme = 'xmma' THEN 'xmma'
            WHEN scheme = 'CUTLASS' OR regexp_matches(target, '^cutlass\w*::|^(void )?fmha_cutlass') THEN 'CUTLASS'
            WHEN regexp_matches(func, '^softmax_warp_(forward|backward)$') AND starts_with(name, 'void (anonymous namespace)::') THEN 'ATen'
            WHEN regexp_matches(head, '^cusolver') THEN 'cuSOLVER'
            WHEN regexp_matches(head, '^cusparse') THEN 'cuSPARSE'
            WHEN regexp_matches(left(text, 1024), '^void curand|curandState') THEN 'cuRAND'
        END AS library
    FROM read
),
worked AS (
    SELECT
        *,
        _functor_operation(functor) AS functor_operation,
        -- Of Composable Kernel: bf16 is its unsigned short (t), and the accumulation a float (f).
        library = 'Composable Kernel' AND regexp_matches(target, '[I_E]t{2,3}f') AS is_mangled_bf16,
        CASE
            WHEN sass.first <> '' AND sass.second IN ('', sass.first) THEN sass.first
            WHEN sass.first = '' AND sass.second = '' AND (sass.digits = '' OR sass.accumulation = 'h') THEN sass.accumulation
        END AS sass_word
    FROM known
),
sorted AS (
    SELECT
        *,
        CASE
            WHEN scheme IN ('Tensile', 'nvjet', 'matmul_ogs') THEN 'gemm'
            WHEN scheme = 'igemm' THEN 'convolution'
            WHEN scheme = 'xmma' AND contains(func, 'execute_split_k_kernel') THEN 'split-k reduction'
            WHEN is_product THEN CASE WHEN regexp_matches(func, 'fprop|dgrad|wgrad|cudnn_\d|conv|winograd') THEN 'convolution' ELSE 'gemm' END
            WHEN triton_kind = 'poi' THEN 'elementwise'
            WHEN triton_kind IN ('red', 'per') THEN 'reduce'
            WHEN triton_kind = 'tem' THEN CASE
                WHEN list_has_any(fused_ops, ['mm', 'addmm', 'bmm', 'baddbmm', '_scaled_mm', '_int_mm', '_grouped_mm']) THEN 'gemm'
                WHEN list_contains(fused_ops, 'convolution') THEN 'convolution'
                WHEN list_contains(fused_ops, 'flex_attention') THEN 'attention'
            END
            WHEN scheme = 'Inductor' THEN NULL
            WHEN is_elementwise THEN CASE
                WHEN functor_operation = 'copy' THEN 'copy'
                WHEN functor_operation = 'fill' THEN 'fill'
                WHEN regexp_matches(functor, '(?i)(group|batch|layer)_?norm') THEN 'norm'
                WHEN functor IS NOT NULL THEN 'elementwise'
            END
            WHEN regexp_matches(func, '^(nccl|rccl|onccl)|all_?reduce|all_?gather|reduce_?scatter|all_?to_?all|cross_device_reduce')
                THEN 'collective'
            WHEN regexp_matches(func, 'splitk_?reduce|reduce_?splitk') THEN 'split-k reduction'
            WHEN regexp_matches(func, 'reshape_and_cache|store_?kv_?cache|concat_and_cache') THEN 'cache'
            WHEN regexp_matches(func, 'attention|fmha|flash_(fwd|bwd)|flashattn|sdpa|attn_(fwd|bwd)') THEN 'attention'
            WHEN regexp_matches(func, 'routing|moe_|_moe|sum_bitmatrix|finalize_matmul_scatter|topk_?gating') THEN 'moe'
            WHEN regexp_matches(func, 'rotary_|_rope') THEN 'elementwise'
            WHEN regexp_matches(func, 'embedding|bounds_check_indices|pooled_embs') THEN 'embedding'
            WHEN regexp_matches(func, '(layer|batch|group|rms|instance)_?norm|^bn_(fw|bw)|gammabeta|rowwisemoments|computefusedparams')
                THEN 'norm'
            WHEN regexp_matches(func, 'softmax') THEN 'softmax'
            WHEN regexp_matches(func, 'quantize|_quant_|_quant$') THEN 'quantize'
            WHEN regexp_matches(func, 'nll_loss|cross_entropy|ctc_loss|_loss_') THEN 'loss'
            WHEN regexp_matches(func, '(max|avg|average)_?pool') THEN 'pooling'
            WHEN regexp_matches(func, 'conv_(fwd|bwd)|convol|_bwd_weight|[dw]grad|fprop|winograd|im2col|col2im')
                OR library = 'cuDNN' AND regexp_matches(func, '^fft[12]d_|^pointwise_mult_and_sum|^compute\w*offsets') THEN 'convolution'
            WHEN regexp_matches(func, '^gemv') OR regexp_matches(head, 'gemvx::kernel$') THEN 'gemv'
            WHEN regexp_matches(func, 'gemm|^bmm_') THEN 'gemm'
            WHEN func = 'multi_tensor_apply_kernel' THEN 'multi_tensor'
            WHEN regexp_matches(func, 'radix_?sort|bitonic_?sort|mergesort|gathertopk') THEN 'sort'
            WHEN regexp_matches(func, 'devicescan|_scan_|^scan|scan_kernel|cumsum') THEN 'scan'
            WHEN regexp_matches(func, '^catarray') THEN 'cat'
            WHEN regexp_matches(func, 'dropout|^distribution_|philox|bernoulli') THEN 'random'
            WHEN regexp_matches(func, '^index|scatter_gather|vectorized_gather|searchsorted|bucketize|offsets_range|^permute_.*(lengths|indices)|kv_indices')
                OR func = 'compute_cuda_kernel' THEN 'index'
            WHEN regexp_matches(func, '^reduce_|^dot_kernel|^devicereduce') THEN 'reduce'
            WHEN regexp_matches(func, 'transpose|nchwtonhwc|nhwctonchw|^recat_copy|unrolled_copy') THEN 'copy'
            WHEN regexp_matches(func, 'act_and_mul|^scalepackedtensor|^subtensorop') OR head = 'epilogue::impl::globalKernel'
                THEN 'elementwise'
        END AS family
    FROM worked
),
-- The types as the names write them; where one is left out, what the scheme says of that.
lettered AS (
    SELECT
        *,
        CASE
            WHEN scheme = 'CUTLASS' THEN coalesce(nullif(cutlass.input, ''),
                CASE WHEN cutlass.unit = 'tensorop' AND cutlass.accumulation = 's' THEN 'tf32' ELSE cutlass.accumulation END)
            WHEN scheme = 'SASS' THEN sass_word
            WHEN scheme = 'nvjet' THEN CASE WHEN nvjet.input = 's' THEN _found(target, '_(tf32)_', 1) ELSE nvjet.input END
            WHEN scheme = 'igemm' THEN _found(func, '_(bf16|fp16|fp32|int8)_', 1)
            WHEN scheme = 'matmul_ogs' THEN _found(target, '_([a-z0-9]+?)x', 1)
            WHEN family = 'gemv' AND blas.fourth <> '' THEN blas.first
            WHEN blas IS NOT NULL THEN _found(text, 'TensorStridedBatched<([\w:]+) const>', 1)
            WHEN starts_with(func, 'fmhasm') THEN _found(target, '_Qkv(Bfloat16|Fp16|E4m3)', 1)
            WHEN starts_with(func, 'fmha_cutlass') THEN _found(func, '_(bf16|f16|f32)_', 1)
            WHEN is_mangled_bf16 THEN 'bf16'
            ELSE coalesce(xmma.input, tensile.input)
        END AS input_word,
        CASE
            WHEN scheme = 'Tensile' THEN coalesce(nullif(tensile.accumulation, ''), tensile.input)
            WHEN is_product THEN coalesce(nvjet.accumulation, cutlass.accumulation, xmma.accumulation, sass.accumulation)
            WHEN reduction.functor IN ('sum_functor', 'MeanOps', 'NormTwoOps', 'WelfordOps') THEN reduction.accumulation
            WHEN family = 'gemv' AND blas.fourth <> '' THEN blas.fourth
            WHEN blas IS NOT NULL THEN blas.first
            WHEN family = 'split-k reduction'
                THEN _found(text, '(?:cublasSplitKParams<|LinearCombination<[\w:]+, \d+, )([\w:]+)[,>]', 1)
            WHEN is_mangled_bf16 THEN 'fp32'
        END AS accumulation_word,
        CASE
            WHEN scheme = 'Tensile' THEN coalesce(nullif(tensile.output, ''), tensile.input)
            WHEN scheme = 'CUTLASS' THEN coalesce(nullif(cutlass.output, ''), cutlass.accumulation)
            WHEN contains(func, 'reducesplitk') THEN _found(text, 'LinearCombination<([\w:]+), \d+, ', 1)
            WHEN scheme = 'SASS' THEN sass_word
            WHEN is_product THEN coalesce(nvjet.output, xmma.output)
            WHEN family = 'gemv' AND blas.fourth <> '' THEN blas.third
            WHEN blas IS NOT NULL THEN _found(text, 'TensorStridedBatched<([\w:]+)>', 1)
            WHEN starts_with(func, 'fmhasm') THEN _found(target, 'O(Bfloat16|Fp16|E4m3)H', 1)
            WHEN family = 'quantize' THEN _found(text, '^[^<]*<[\w:]+, (c10::Float8\w+)', 1)
        END AS output_word,
        CASE
            WHEN is_product OR blas IS NOT NULL OR library IN ('CUB', 'rocPRIM', 'Thrust', 'Triton', 'cuSPARSE') OR starts_with(func, 'index_')
                OR family = 'split-k reduction' OR starts_with(func, 'reduce_1block') THEN NULL
            WHEN is_elementwise THEN coalesce(nullif(pointwise.type, ''), nullif(pointwise.own_type, ''),
                _found(text, 'lambda\((?:bool, )?((?:unsigned |signed )?[\w:]+(?:<\w+>)?)[,)]', 1))
            WHEN reduction IS NOT NULL THEN reduction.type
            WHEN listed IS NOT NULL THEN listed.type
            WHEN starts_with(func, 'nccl')
                THEN _found(func, '_(?:sum|prod|min|max|premulsum|sumpostdiv)_(bf16|f16|f32|f64|half|float|double|u?int8_t)', 1)
            WHEN starts_with(func, '_z')
                THEN _found(target, 'kernelI\d*(DF16b|DF16_|__hip_bfloat16|__nv_bfloat16|__half|f|d)', 1)
            -- Of an unknown function the first argument may be the type of an index.
            WHEN library IS NULL AND regexp_matches(text, '^[^<]*<(int|long)[,>]') THEN NULL
            ELSE coalesce(_found(text, '_and_transform<([\w:]+)', 1), _found(text,
                '^[^<]*<(?:\d+, |\([\w:]+\)\d+, |[\w:]*::Var, )?((?:unsigned |signed )?[\w:]+(?:<\w+>)?)[ ,>]', 1))
        END AS element_word
    FROM sorted
),
typed AS (
    SELECT
        * EXCLUDE (input_word, accumulation_word, output_word, element_word),
        _kernel_type(input_word) AS input_type,
        _kernel_type(accumulation_word) AS accumulation_type,
        _kernel_type(output_word) AS output_type,
        _kernel_type(element_word) AS element_type
    FROM lettered
)
SELECT
    name,
    library,
    scheme,
    family,
    coalesce(CASE
        WHEN listed IS NULL THEN functor_operation
        WHEN listed.functor IN ('AdamFunctor', 'FusedAdamMathFunctor') THEN 'adam'
        WHEN listed.arithmetic <> '' THEN MAP {'plus': 'add', 'minus': 'sub', 'multiplies': 'mul', 'divides': 'div'}[listed.arithmetic]
        WHEN regexp_matches(listed.unary, '^[A-Z][a-z]+$') THEN lower(listed.unary)
    END, CASE
        WHEN family = 'convolution' THEN CASE
            WHEN regexp_matches(func, 'fprop|_fwd_|winogradforward') THEN 'fprop'
            WHEN regexp_matches(func, 'wgrad|_wrw_|_bwd_weight') THEN 'wgrad'
            WHEN regexp_matches(func, 'dgrad|_bwd_') THEN 'dgrad'
        END
        WHEN family = 'cat' THEN 'cat'
        WHEN starts_with(func, 'indexselect') THEN 'index_select'
        WHEN starts_with(func, 'index_elementwise') THEN _found(text, '(index_put|index)_kernel_impl', 1)
        WHEN triton_kind = 'tem' THEN fused_ops[1]
        WHEN family = 'random' THEN coalesce(_found(func, 'dropout', 0), _found(text, '([a-z]+)_and_transform<', 1))
        WHEN family IN ('collective', 'norm', 'softmax', 'loss', 'pooling', 'copy', 'index', 'sort', 'scan') THEN regexp_replace(
            CASE WHEN starts_with(func, 'bn_') THEN 'batch_norm' ELSE _found(func, 'all_?reduce|all_?gather|reduce_?scatter'
                || '|all_?to_?all|broadcast|send_?recv|(?:layer|batch|group|rms)_?norm|softmax|nll_loss|max_pool|avg_pool|transpose'
                || '|searchsorted|radix_?sort|scan', 0) END,
            '^(layer|batch|group|rms|all|reduce|send|radix)_?(norm|reduce|gather|scatter|recv|sort)$', '\1_\2')
            || CASE WHEN family IN ('norm', 'softmax', 'loss', 'pooling') AND regexp_matches(func, 'backward|grad|bwd|^bn_bw')
                THEN '_backward' ELSE '' END
    END) AS operation,
    functor,
    element_type,
    fused_ops,
    triton_kind,
    CASE
        WHEN sass.generation <> '' THEN MAP {'maxwell': 50, 'pascal': 60, 'volta': 70, 'turing': 75, 'ampere': 80, 'hopper': 90}[sass.generation]
        ELSE _whole(coalesce(_found(target, '(?:^|[_:])sm(\d{2,3})[af]?(?:_|$)', 1), _found(target, '(?:^|::)cutlass_(\d{2,3})_', 1),
            CASE WHEN family IN ('attention', 'gemm') THEN _found(text, 'Sm(\d{2,3})[af]?(?:[A-Z_>,]|$)', 1) END))
    END AS architecture,
    CASE WHEN scheme = 'Tensile' THEN 'gfx' || _found(target, '_ISA([0-9a-f]{3,4})_', 1) END AS gfx,
    CASE
        WHEN scheme IN ('nvjet', 'igemm') THEN true
        WHEN scheme = 'CUTLASS' THEN contains(func, 'tensorop')
        WHEN scheme = 'SASS' THEN sass.digits <> ''
        WHEN family = 'split-k reduction' THEN NULL
        WHEN scheme = 'xmma' AND regexp_matches(target, '_tensor\d|_warpgroupsize') THEN true
        WHEN scheme = 'xmma' AND contains(target, '_ffma_') THEN false
        WHEN scheme = 'Tensile' AND regexp_matches(target, '_MI\d') THEN true
        WHEN regexp_matches(target, '_wgmma_|kernel_\w*xdl') THEN true
    END AS tensor_core,
    input_type,
    accumulation_type,
    output_type,
    CASE
        WHEN scheme IN ('CUTLASS', 'SASS') THEN coalesce(_mma_shape(coalesce(cutlass.digits, sass.digits)),
            _found(func, '^cutlass3x_\w+?_[a-z](\d+x\d+x\d+)gemm_', 1))
        WHEN scheme = 'xmma' THEN _found(target, '_tensor(\d+x\d+x\d+)', 1)
        WHEN scheme = 'Tensile' THEN _found(target, '_MI(\d+x\d+(?:x\d+)?)x\d+_', 1)
    END AS mma_shape,
    nullif(concat_ws('x', nullif(tiled.m, ''), nullif(tiled.n, ''), nullif(tiled.k, ''),
        nullif(ck.m || ck.m3, ''), nullif(ck.n || ck.n3, ''), nullif(ck.k3, '')), '') AS tile,
    _whole(CASE WHEN is_product THEN tiled.m ELSE ck.m || ck.m3 END) AS tile_m,
    _whole(CASE WHEN is_product THEN tiled.n ELSE ck.n || ck.n3 END) AS tile_n,
    CASE WHEN is_product THEN coalesce(_whole(tiled.k), _whole(staged.depth), _whole(tiled.depth)) ELSE _whole(ck.k3) END AS tile_k,
    CASE
        WHEN scheme IN ('SASS', 'xmma') THEN _whole(staged.stages)
        WHEN scheme IN ('nvjet', 'CUTLASS') THEN _whole(tiled.stages)
    END AS stages,
    CASE scheme
        WHEN 'Tensile' THEN _whole(_found(target, '_GSU(\d+)_', 1))
        WHEN 'matmul_ogs' THEN _whole(tiled.slices)
    END AS split_k_slices,
    coalesce(split_k_slices > 1, CASE
        WHEN family = 'split-k reduction' OR scheme = 'igemm' AND contains(target, '_gkgs') THEN true
        WHEN regexp_matches(target, '(?i)split_?k') AND is_product OR contains(target, 'BlockToCTileMap_KSplit') THEN true
    END) AS split_k,
    CASE
        WHEN scheme = 'Tensile' THEN CASE WHEN tensile.a = 'lik' THEN 't' WHEN tensile.a = 'ilk' THEN 'n' END
            || CASE WHEN tensile.b = 'jlk' THEN 't' WHEN tensile.b = 'ljk' THEN 'n' END
        WHEN scheme = 'nvjet' THEN lower(_found(target, '_([NT]{2})[NT]{1,2}$', 1))
        WHEN scheme = 'xmma' THEN _found(target, '_([nt]{2})_[nt]_', 1)
        WHEN scheme IN ('CUTLASS', 'SASS') THEN _found(target, '_([nt]{2})(?:_v\d+|_align\d+)?$', 1)
        WHEN family IN ('gemm', 'gemv') THEN _found(func, '^gem(?:msn_|v2)([nt]{1,2})_', 1)
    END AS transposition,
    CASE WHEN is_product THEN _whole(_found(target, '_aligna?(\d+)(?:_|$)', 1)) END AS alignment,
    CASE WHEN is_product THEN nullif(array_to_string(regexp_extract_all(func, '_(relu|gelu|silu|swiglu|bias|badd|sigmoid|tanh)', 1), '+'), '') END AS epilogue
FROM typed
);
