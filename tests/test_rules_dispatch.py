"""Rules of the dispatch chain: each with a case where it fires, and a near miss."""

from collections.abc import Callable
from pathlib import Path

from rule_given import Trace, outcome

OVERHEAD_BOUND = {"wall_us": 50, "issue_us": 50, "device_us": 10}
DEVICE_BOUND = {"wall_us": 100, "issue_us": 20, "device_us": 100}


def repeated(fill: Callable[[Trace, int, float], object], steps: int = 4) -> Trace:
    """A trace of steps of 50 us on the host, 100 us apart, each filled by fill(trace, step, start_us)."""
    trace = Trace()
    for step in range(steps):
        trace.step(step, 100.0 * step, 50)
        fill(trace, step, 100.0 * step)
    return trace


# -- products ----------------------------------------------------------------------------------------------------------


def product(name: str, shapes: str) -> Trace:
    """Steps of aten::matmul, which calls this operation."""

    def fill(trace: Trace, step: int, at: float) -> None:
        trace.host("aten::matmul", at + 1, 30, step)
        trace.host(name, at + 2, 20, step, shapes=shapes)
        trace.launched("gemm", at + 5, at + 12, 10, step)

    return repeated(fill)


def test_matmul_dispatch_fires(tmp_path: Path) -> None:
    """The operation, who called it, and the shapes that decided."""
    found = outcome(tmp_path / "mm", "matmul_dispatch", product("aten::mm", "[[64, 32], [32, 8]]"))
    assert found["outcome"] == "fired"
    assert "1 product by aten::mm (called by aten::matmul), two matrices: [64,32] and [32,8]." in found["sentence"]
    found = outcome(tmp_path / "bmm", "matmul_dispatch", product("aten::bmm", "[[8, 64, 64], [8, 64, 64]]"))
    assert "aten::bmm (called by aten::matmul), a batch of matrices: [8,64,64] and [8,64,64]." in found["sentence"]


def test_matmul_dispatch_leaves_the_output_out(tmp_path: Path) -> None:
    """A call that is given its output has its shape behind the inputs."""
    found = outcome(tmp_path, "matmul_dispatch", product("aten::mm", "[[64, 32], [32, 8], [64, 8]]"))
    assert found["sentence"].endswith("two matrices: [64,32] and [32,8].")


def test_matmul_dispatch_near_miss(tmp_path: Path) -> None:
    """An elementwise product is none of matrices."""
    found = outcome(tmp_path, "matmul_dispatch", product("aten::mul", "[[64, 32], [64, 32]]"))
    assert found["outcome"] == "not applicable"


def biased(copy: str | None, inside: str | None = None, operation: str = "aten::addmm") -> Trace:
    """Steps of one addmm that launches a GEMM of 30 us, and before it this copy of 10 us, if any, by `inside`."""

    def fill(trace: Trace, step: int, at: float) -> None:
        trace.host(operation, at + 1, 40, step)
        if copy and inside:
            trace.host(inside, at + 2, 10, step)
        if copy:
            category = "gpu_memcpy" if copy.startswith("Memcpy") else "kernel"
            call = "cudaMemcpyAsync" if category == "gpu_memcpy" else "cudaLaunchKernel"
            trace.launched(copy, at + 5, at + 12, 10, step, call, category, bytes=8192)
        trace.launched("nvjet_sm90_tst_64x8_64x16_1x4_h_badd_NNT", at + 20, at + 30, 30, step)

    return repeated(fill)


def test_fused_at_dispatcher_only_fires(tmp_path: Path) -> None:
    """One call of the dispatcher, a copy and a kernel on the device."""
    found = outcome(tmp_path, "fused_at_dispatcher_only", biased("Memcpy DtoD (Device -> Device)"))
    assert found["outcome"] == "fired"
    assert "aten::addmm launches a copy of 8.00 KiB and a kernel: 10.0 us of its 40.0 us" in found["sentence"]


def test_fused_at_dispatcher_only_near_miss(tmp_path: Path) -> None:
    """A bias that the kernel adds needs no copy."""
    found = outcome(tmp_path, "fused_at_dispatcher_only", biased(None))
    assert (found["outcome"], found["reason"]) == ("clear", "calls that launch a copy and a kernel: 0 of 1")


def test_fused_for_the_dispatcher_and_really_fused_exclude_each_other(tmp_path: Path) -> None:
    """The copy belongs to the call whoever launches it: a product that needs one adds no bias inside."""
    copied = biased("void at::native::elementwise_kernel<128, 2>(int)", "aten::copy_", "aten::baddbmm")
    found = outcome(tmp_path / "copy", "fused_at_dispatcher_only", copied)
    assert "aten::baddbmm launches a copy" in found["sentence"]
    for number, trace in enumerate((copied, biased("Memcpy DtoD (Device -> Device)"))):
        assert outcome(tmp_path / f"{number}", "really_fused", trace)["outcome"] == "not applicable"


def test_really_fused_fires(tmp_path: Path) -> None:
    """A product with its bias inside; and a kernel of Triton that names what it does."""
    found = outcome(tmp_path / "bias", "really_fused", biased(None))
    assert "badd_NNT adds the bias inside the product in 30.0 us; 1 kernel of the step" in found["sentence"]
    triton = repeated(lambda trace, step, at: trace.launched("triton_poi_fused_add_mul_0", at + 5, at + 12, 10, step))
    found = outcome(tmp_path / "triton", "really_fused", triton)
    assert "triton_poi_fused_add_mul_0 fuses add, mul in 10.0 us" in found["sentence"]


def test_really_fused_near_miss(tmp_path: Path) -> None:
    """A kernel of Triton with one operation fuses nothing."""
    triton = repeated(lambda trace, step, at: trace.launched("triton_poi_fused_add_0", at + 5, at + 12, 10, step))
    assert outcome(tmp_path, "really_fused", triton)["outcome"] == "not applicable"


# -- what costs the host -----------------------------------------------------------------------------------------------


def viewed(view_us: float, copies: bool = False) -> Trace:
    """Steps of a reshape of `view_us`, which copies or not, and a kernel."""

    def fill(trace: Trace, step: int, at: float) -> None:
        trace.host("aten::reshape", at + 1, view_us, step)
        trace.host("aten::clone" if copies else "aten::view", at + 2, view_us - 2, step)
        trace.host("aten::mm", at + 20, 20, step)
        trace.launched("gemm", at + 25, at + 30, 10, step)

    return repeated(fill)


def test_free_views_fires(tmp_path: Path) -> None:
    """6 of 50 us; the view inside the reshape is not counted twice."""
    found = outcome(tmp_path, "free_views", viewed(6), OVERHEAD_BOUND)
    assert found["outcome"] == "fired"
    assert "1 view a step (aten::reshape) takes 6.00 us of the host under the profiler, 12.0 %" in found["sentence"]


def test_free_views_near_miss(tmp_path: Path) -> None:
    """4 of 50 us; where the device binds; and a reshape that copies is no view."""
    assert outcome(tmp_path / "few", "free_views", viewed(4), OVERHEAD_BOUND)["outcome"] == "clear"
    assert outcome(tmp_path / "device", "free_views", viewed(6), DEVICE_BOUND)["outcome"] == "clear"
    assert outcome(tmp_path / "copy", "free_views", viewed(6, True), OVERHEAD_BOUND)["outcome"] == "not applicable"


def launching(kernels: int) -> Trace:
    """Steps of so many kernels, inside of a compiled region where there is but one."""

    def fill(trace: Trace, step: int, at: float) -> None:
        if kernels == 1:
            trace.host("Torch-Compiled Region: 0/0", at + 1, 40, step)
        for number in range(kernels):
            trace.launched("kernel", at + 3 + 5 * number, at + 10 + 5 * number, 2, step)

    return repeated(fill)


def test_launches_per_step_fires(tmp_path: Path) -> None:
    """A compiled run beside its eager twin."""
    runs = [{"compile": "true"}, {"compile": "false"}]
    found = outcome(tmp_path, "launches_per_step", [launching(1), launching(4)], runs)
    assert found["sentence"] == "A compiled step makes 1 launch (1 kernel), an eager one 4 (4 kernels)."


def test_launches_per_step_near_miss(tmp_path: Path) -> None:
    """An eager run of another size is no twin."""
    runs = [{"compile": "true"}, {"compile": "false", "size": 128}]
    found = outcome(tmp_path, "launches_per_step", [launching(1), launching(4)], runs)
    assert found["outcome"] == "not applicable"


def copying(outer: str, copy_us: float, kernel: str = "void at::native::elementwise_kernel<128, 2>(int)") -> Trace:
    """Steps of a copy inside of this operation, and a kernel of 50 us."""

    def fill(trace: Trace, step: int, at: float) -> None:
        trace.host(outer, at + 1, 12, step)
        trace.host("aten::copy_", at + 2, 10, step)
        trace.launched(kernel, at + 4, at + 10, copy_us, step)
        trace.host("aten::mm", at + 20, 20, step)
        trace.launched("gemm", at + 25, at + 40, 50, step)

    return repeated(fill)


def test_dtype_conversion_fires(tmp_path: Path) -> None:
    """5 of 55 us of the device go to a conversion."""
    found = outcome(tmp_path, "dtype_conversion", copying("aten::_to_copy", 5))
    assert found["outcome"] == "fired"
    assert "1 conversion of number formats a step takes 5.00 us of the device, 9.09 %" in found["sentence"]


def test_dtype_conversion_near_miss(tmp_path: Path) -> None:
    """2 of 52 us; and a copy that nobody converts."""
    assert outcome(tmp_path / "few", "dtype_conversion", copying("aten::_to_copy", 2))["outcome"] == "clear"
    found = outcome(tmp_path / "clone", "dtype_conversion", copying("aten::clone", 5))
    assert found["outcome"] == "not applicable"


def test_contiguous_copy_fires(tmp_path: Path) -> None:
    """5 of 55 us of the device go to another order of the same numbers."""
    found = outcome(tmp_path, "contiguous_copy", copying("aten::contiguous", 5))
    assert found["outcome"] == "fired"
    assert "1 copy a step only put tensors in another order (aten::contiguous): 5.00 us" in found["sentence"]


def test_contiguous_copy_near_miss(tmp_path: Path) -> None:
    """2 of 52 us; and a conversion is another rule's."""
    assert outcome(tmp_path / "few", "contiguous_copy", copying("aten::contiguous", 2))["outcome"] == "clear"
    found = outcome(tmp_path / "to", "contiguous_copy", copying("aten::_to_copy", 5))
    assert found["outcome"] == "not applicable"


def recording(numbers: list[int], backward: bool = False) -> Trace:
    """Steps of operations with these sequence numbers of autograd, and a backward pass behind the last step or none."""

    def fill(trace: Trace, step: int, at: float) -> None:
        for place, number in enumerate(numbers):
            trace.host(
                "aten::mul", at + 2 + 5 * place, 4, step, args=f'{{"External id": 1, "Sequence number": {number}}}'
            )

    trace = repeated(fill)
    if backward:
        trace.host("autograd::engine::evaluate_function: MulBackward0", 1000, 10, None)
    return trace


def test_autograd_recording_fires(tmp_path: Path) -> None:
    """The number rises by three within a step."""
    found = outcome(tmp_path, "autograd_recording", recording([7, 8, 9, 10]))
    assert found["outcome"] == "fired"
    assert found["sentence"].startswith("Autograd records at least 3 nodes in a step, from aten::mul on")


def test_autograd_recording_near_miss(tmp_path: Path) -> None:
    """A number that stands still makes no nodes; and what is run backward is needed."""
    assert outcome(tmp_path / "still", "autograd_recording", recording([7, 7, 7, 7]))["outcome"] == "clear"
    found = outcome(tmp_path / "backward", "autograd_recording", recording([7, 8, 9, 10], backward=True))
    assert (found["outcome"], "holds 1 operation of a backward pass" in found["reason"]) == ("clear", True)
