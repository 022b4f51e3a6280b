"""Rules of the host lane: each with a case where it fires, and a near miss."""

from pathlib import Path
from typing import Any

import pytest
from rule_given import Trace, outcome

COPY = "Memcpy DtoD (Device -> Device)"
ADD = "void at::native::vectorized_elementwise_kernel<8, at::native::CUDAFunctor_add<float>>()"
LOADER = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"


def steps_of(op: str = "aten::mm", kernel: str = "gemm", call: str = "cudaLaunchKernel", inside: str = "") -> Trace:
    """Four steps of 100 us, 200 us apart: an operation of 40 us that launches a kernel; `inside`: a call before it."""
    trace = Trace()
    for step in range(4):
        at = 200.0 * step
        trace.step(step, at, 100)
        trace.host(op, at + 5, 40, step)
        if inside:
            trace.call(inside, at + 6, 3, step)
        trace.launched(kernel, at + 10, at + 20, 30, step, call)
    return trace


def cold(first_us: float, **calls_us: float) -> Trace:
    """Four steps, the first of `first_us`, the others of 100 us; in the first one these calls, one after another."""
    trace = Trace()
    begins = [0.0, first_us + 100, first_us + 300, first_us + 500]
    for step, at in enumerate(begins):
        trace.step(step, at, first_us if step == 0 else 100)
        trace.host("aten::mm", at + 5, (first_us if step == 0 else 100) - 10, step)
    at = 20.0
    for name, us in calls_us.items():
        trace.call(name, at, us, 0)
        at += us
    return trace


def test_wide_first_step_fires(tmp_path: Path) -> None:
    """The first step is split by what its calls are, the rest is named as such."""
    trace = cold(1000, cudaMalloc=200, cudaFuncSetAttribute=300)
    trace.host("Runtime Triggered Module Loading", 230, 200, 0, "overhead", tid="overhead")
    found = outcome(tmp_path, "wide_first_step", trace)
    assert found["outcome"] == "fired"
    assert (
        "(0) takes the host 1.00 ms under the profiler, 10.0 times the median of the others (100 us)"
        in found["sentence"]
    )
    assert "300 us loading code, 200 us allocating memory, 500 us that no call of the trace names" in found["sentence"]
    assert "most of it in aten::mm itself; the next step is steady" in found["sentence"]


def test_wide_first_step_counts_compilation_once(tmp_path: Path) -> None:
    """What is called while torch compiles is part of it."""
    trace = cold(1000)
    trace.host("dynamo", 100, 600, 0)
    trace.host("backend_compile", 200, 300, 0)
    trace.call("cudaMalloc", 250, 100, 0)
    sentence = outcome(tmp_path, "wide_first_step", trace)["sentence"]
    assert "600 us compiling, 400 us that no call" in sentence


def test_wide_first_step_near_miss(tmp_path: Path) -> None:
    """Twice as long as the others is let pass; so are three times, where that is 120 us more."""
    assert outcome(tmp_path, "wide_first_step", cold(290))["outcome"] == "clear"


def starting(first_gap_us: float, gap_us: float) -> Trace:
    """Four steps of 100 us that begin with so long a stretch before the first operation."""
    trace = Trace()
    for step in range(4):
        at = 200.0 * step
        trace.step(step, at, 100)
        gap = first_gap_us if step == 0 else gap_us
        trace.host("aten::mm", at + gap, 10, step)
    return trace


def test_dead_stretch_fires(tmp_path: Path) -> None:
    """In the first step alone; in every step."""
    first = outcome(tmp_path / "first", "dead_stretch", starting(60, 5))
    assert (
        "In the first recorded step (0) 60.0 us go by before its first operation, in the others 5.00 us"
        in first["sentence"]
    )
    every = outcome(tmp_path / "every", "dead_stretch", starting(40, 40))
    assert "In every step 40.0 us go by before its first operation, 40.0 % of its host time" in every["sentence"]


def test_dead_stretch_near_miss(tmp_path: Path) -> None:
    """30 us against 5 us is what a first entry of the profiler takes."""
    assert outcome(tmp_path, "dead_stretch", starting(30, 5))["outcome"] == "clear"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"inside": "cudaOccupancyMaxActiveBlocksPerMultiprocessor"}, "aten::mm asks the device first"),
        ({"call": "cuLaunchKernelEx"}, "aten::mm launches gemm by cuLaunchKernelEx (2.00 us a step"),
        ({"call": "hipExtModuleLaunchKernel"}, "by hipExtModuleLaunchKernel"),
    ],
)
def test_adaptive_launch_fires(tmp_path: Path, given: dict[str, str], said: str) -> None:
    """An occupancy query before a product; a launch by the driver."""
    found = outcome(tmp_path, "adaptive_launch", steps_of(**given))
    assert found["outcome"] == "fired"
    assert said in found["sentence"]


def test_adaptive_launch_near_miss(tmp_path: Path) -> None:
    """A product that is launched plainly; an add is no product, whatever launches it."""
    assert outcome(tmp_path / "plain", "adaptive_launch", steps_of())["outcome"] == "clear"
    add = steps_of("aten::add", ADD, "cuLaunchKernelEx")
    assert outcome(tmp_path / "add", "adaptive_launch", add)["outcome"] == "not applicable"


def test_plain_launch_fires(tmp_path: Path) -> None:
    """One call, and its time beside the kernel's."""
    found = outcome(tmp_path, "plain_launch", steps_of("aten::add", ADD))
    assert found["outcome"] == "fired"
    assert "in aten::add, is launched by cudaLaunchKernel alone: 2.00 us of the host" in found["sentence"]
    assert "for 30.0 us of the device" in found["sentence"]


def test_plain_launch_near_miss(tmp_path: Path) -> None:
    """A query before it; a product is not elementwise."""
    asked = steps_of("aten::add", ADD, inside="cudaOccupancyMaxActiveBlocksPerMultiprocessor")
    assert outcome(tmp_path / "asked", "plain_launch", asked)["outcome"] == "clear"
    assert outcome(tmp_path / "product", "plain_launch", steps_of())["outcome"] == "not applicable"


def waiting(wait_us: float, kernel_us: float, name: str = "cudaStreamSynchronize", outer: str = "aten::item") -> Trace:
    """Four steps whose kernel begins as a call begins that waits for so long."""
    trace = Trace()
    for step in range(4):
        at = 1000.0 * step
        trace.step(step, at, wait_us + 50)
        trace.launched("gemm", at + 5, at + 20, kernel_us, step)
        trace.host(outer, at + 19, wait_us + 2, step, "user_annotation" if outer == "crossover: fence" else "cpu_op")
        trace.call(name, at + 20, wait_us, step)
    return trace


def test_long_synchronize_fires(tmp_path: Path) -> None:
    """100 us of waiting for 10 us of work."""
    found = outcome(tmp_path, "long_synchronize", waiting(100, 10))
    assert found["outcome"] == "fired"
    assert (
        "cudaStreamSynchronize takes 100 us under the profiler while the device works 10.0 us: 90.0 %"
        in found["sentence"]
    )


def test_long_synchronize_near_miss(tmp_path: Path) -> None:
    """The device works for most of the wait; a fence of the runner is not the step's."""
    assert outcome(tmp_path / "busy", "long_synchronize", waiting(100, 90))["outcome"] == "clear"
    fence = waiting(100, 10, outer="crossover: fence")
    assert outcome(tmp_path / "fence", "long_synchronize", fence)["outcome"] == "not applicable"


def fenced(wait_us: float, work_us: float, in_fence: bool = True) -> Trace:
    """Four steps whose last kernel ends `work_us` after a synchronize of `wait_us` at the end has begun."""
    trace = steps_of()
    if in_fence:
        trace.host("crossover: fence", 719, wait_us + 2, 3, "user_annotation")
    trace.call("cudaDeviceSynchronize", 720, wait_us, 3 if in_fence else None)
    trace.work("gemm", 700, 20 + work_us, 3, None)
    return trace


def test_window_fence_fires(tmp_path: Path) -> None:
    """The queue of all steps is waited for, or the device was done long before."""
    queued = outcome(tmp_path / "queued", "window_fence", fenced(900, 890))
    assert queued["outcome"] == "fired"
    assert "is the runner's fence: it waits 890 us until the device has done what 4 steps queued" in queued["sentence"]
    flush = outcome(tmp_path / "flush", "window_fence", fenced(900, 9, in_fence=False))
    assert (
        "outside of every step: the device is done 9.00 us after it begins, 99.0 % of it is idle" in flush["sentence"]
    )


def test_window_fence_near_miss(tmp_path: Path) -> None:
    """30 us are no long fence."""
    assert outcome(tmp_path, "window_fence", fenced(30, 20))["outcome"] == "clear"


def copying(*ops: str, nbytes: int = 4_000_000) -> Trace:
    """Four steps: operations within each other, the innermost copies on the device and launches a kernel."""
    trace = Trace()
    for step in range(4):
        at = 200.0 * step
        trace.step(step, at, 100)
        for depth, op in enumerate(ops):
            trace.host(op, at + 5 + depth, 60 - 2 * depth, step)
        trace.launched(COPY, at + 15, at + 20, 10, step, "cudaMemcpyAsync", "gpu_memcpy", bytes=nbytes)
        trace.launched("gemm", at + 25, at + 32, 30, step)
    return trace


def test_hidden_copy_fires(tmp_path: Path) -> None:
    """A reshape that had to copy: what copies is aten::copy_, but nobody wrote that."""
    found = outcome(tmp_path, "hidden_copy", copying("aten::reshape", "aten::clone", "aten::copy_"))
    assert found["outcome"] == "fired"
    assert (
        "aten::copy_ in aten::reshape makes the device copy 3.81 MiB to itself, once a step: 10.0 us"
        in found["sentence"]
    )
    assert "25.0 % of the device's busy time" in found["sentence"]


@pytest.mark.parametrize("ops", [("aten::clone", "aten::copy_"), ("aten::addmm",)])
def test_hidden_copy_near_miss(tmp_path: Path, ops: tuple[str, ...]) -> None:
    """A clone was written; the bias of a product has a rule of its own."""
    assert outcome(tmp_path, "hidden_copy", copying(*ops))["outcome"] == "clear"


def test_addmm_bias_copy_fires(tmp_path: Path) -> None:
    """The copy and the product of one aten::addmm."""
    found = outcome(tmp_path, "addmm_bias_copy", copying("aten::addmm"))
    assert found["outcome"] == "fired"
    assert (
        "aten::addmm copies its bias (3.81 MiB) before the product: 10.0 us of the device beside 30.0 us"
        in found["sentence"]
    )


def test_addmm_bias_copy_near_miss(tmp_path: Path) -> None:
    """No copy: a bias of one dimension; no bias: aten::mm."""
    assert outcome(tmp_path / "one", "addmm_bias_copy", steps_of("aten::addmm"))["outcome"] == "clear"
    assert outcome(tmp_path / "none", "addmm_bias_copy", copying("aten::mm"))["outcome"] == "not applicable"


def test_synchronize_in_step_fires(tmp_path: Path) -> None:
    """Who waits, for how long, and what is lost by the times without a profiler."""
    run = {"wall_us": 120, "issue_us": 60, "device_us": 50, "blocked_us": 55}
    found = outcome(tmp_path, "synchronize_in_step", waiting(100, 90), run)
    assert found["outcome"] == "fired"
    assert (
        "in cudaStreamSynchronize, called by aten::item under the profiler, and 55.0 us of 120 us without"
        in found["sentence"]
    )
    assert found["gain"] == pytest.approx(2.0)


def test_synchronize_in_step_near_miss(tmp_path: Path) -> None:
    """Without the profiler it hardly waits; a fence of the runner is none of the step's."""
    run = {"wall_us": 120, "issue_us": 119, "device_us": 50, "blocked_us": 1}
    assert outcome(tmp_path / "short", "synchronize_in_step", waiting(100, 90), run)["outcome"] == "clear"
    fence = waiting(100, 90, outer="crossover: fence")
    assert outcome(tmp_path / "fence", "synchronize_in_step", fence)["outcome"] == "clear"


def two_kernels(second_call_us: float) -> Trace:
    """Four steps of two kernels of 10 us, the second launched so long after the first."""
    trace = Trace()
    for step in range(4):
        at = 200.0 * step
        trace.step(step, at, 100)
        trace.launched("gemm", at + 5, at + 10, 10, step)
        call = at + 5 + second_call_us
        trace.host("aten::add", call - 1, 8, step)
        trace.launched(ADD, call, max(call + 5, at + 20), 10, step)
    return trace


HOST_BOUND = {"wall_us": 100, "issue_us": 100, "device_us": 20}
DEVICE_BOUND = {"wall_us": 100, "issue_us": 20, "device_us": 100}


def test_host_late_fires(tmp_path: Path) -> None:
    """The gap before the second kernel, and the operation that launches it."""
    found = outcome(tmp_path, "host_late", two_kernels(70), HOST_BOUND)
    assert found["outcome"] == "fired"
    assert "device waits 60.0 us for late launches (1 gap), most for aten::add (60.0 us)" in found["sentence"]
    assert "works 20.0 us" in found["sentence"]


def test_host_late_near_miss(tmp_path: Path) -> None:
    """The same gaps in a step that its device binds without a profiler are the profiler's doing."""
    found = outcome(tmp_path, "host_late", two_kernels(70), DEVICE_BOUND)
    assert found["outcome"] == "clear"
    assert "but it is device-bound, late launches do not bind it" in found["reason"]


def loading(load_us: float, kernel_us: float) -> Trace:
    """Four steps that load for so long while a kernel of the step runs from 1 us behind the loader's start on."""
    trace = Trace()
    for step in range(4):
        at = 1000.0 * step
        trace.step(step, at, 900)
        trace.launched("gemm", at + 2, at + 11, kernel_us, step)
        trace.host(LOADER, at + 10, load_us, step)
    return trace


def test_loader_wait_fires(tmp_path: Path) -> None:
    """400 us of loading over 101 us of work."""
    found = outcome(tmp_path, "loader_wait", loading(400, 100))
    assert found["outcome"] == "fired"
    assert "waits 400 us" in found["sentence"]
    assert "idle for 300 us of that" in found["sentence"]


def test_loader_wait_near_miss(tmp_path: Path) -> None:
    """Loading costs nothing while the device works, be it on an earlier step; no loader, nothing to say."""
    behind = loading(400, 10)
    behind.work("gemm", 900, 3000, 0)
    assert outcome(tmp_path / "behind", "loader_wait", behind)["outcome"] == "clear"
    assert outcome(tmp_path / "hidden", "loader_wait", loading(400, 399))["outcome"] == "clear"
    assert outcome(tmp_path / "none", "loader_wait", steps_of())["outcome"] == "not applicable"


def host_copies(kind: str, call_us: float = 2) -> Trace:
    """Four steps of 100 us with a copy from the host."""
    trace = Trace()
    for step in range(4):
        at = 200.0 * step
        trace.step(step, at, 100)
        trace.host("aten::copy_", at + 5, 60, step)
        call = trace.call("cudaMemcpyAsync", at + 6, call_us, step)
        trace.work(f"Memcpy HtoD ({kind} -> Device)", at + 10, 20, step, call, "gpu_memcpy", bytes=1_000_000)
    return trace


def test_pageable_copy_fires(tmp_path: Path) -> None:
    """How much, and for how long the host is held."""
    found = outcome(tmp_path, "pageable_copy", host_copies("Pageable", 30))
    assert found["outcome"] == "fired"
    assert "Memcpy HtoD (Pageable -> Device), 977 KiB, aten::copy_" in found["sentence"]
    assert "20.0 us of the device, and the host is held for 30.0 us" in found["sentence"]


@pytest.mark.parametrize(("kind", "call_us"), [("Pinned", 30.0), ("Pageable", 1.0)])
def test_pageable_copy_near_miss(tmp_path: Path, kind: str, call_us: float) -> None:
    """Pinned memory; a hundredth of the step."""
    assert outcome(tmp_path, "pageable_copy", host_copies(kind, call_us))["outcome"] == "clear"


def with_stacks(op_us: float) -> Trace:
    """Four steps of 100 us in one Python function, which calls an operation of so long."""
    trace = Trace()
    for step in range(4):
        at = 200.0 * step
        trace.step(step, at, 100)
        trace.host("model.py(12): forward", at + 1, 98, step, "python_function")
        trace.host("aten::mm", at + 1, op_us, step)
        trace.launched("gemm", at + 2, at + 8, 10, step)
    return trace


@pytest.mark.parametrize(
    ("op_us", "run", "expected"),
    [(38.0, HOST_BOUND, "fired"), (90.0, HOST_BOUND, "clear"), (38.0, DEVICE_BOUND, "clear")],
)
def test_python_between(tmp_path: Path, op_us: float, run: dict[str, Any], expected: str) -> None:
    """60 of 100 us in Python; 8 us; and a step that its device binds."""
    found = outcome(tmp_path, "python_between", with_stacks(op_us), run)
    assert found["outcome"] == expected
    if expected == "fired":
        assert "Python itself takes 60.0 us of the step's 100 us" in found["sentence"]
        assert "most in model.py(12): forward (60.0 us in 1 call)" in found["sentence"]


def test_python_between_needs_stacks(tmp_path: Path) -> None:
    """Without stacks nothing is said."""
    assert outcome(tmp_path, "python_between", steps_of())["outcome"] == "not applicable"
