"""runner.window: the figures of one profiled window, from given events to expected numbers."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.profiler import ProfilerActivity, profile, record_function, schedule

from runner.trace import Event, read_trace
from runner.window import Window, summarize

RECORDED = Path(__file__).parent / "data" / "traces"


def complete(name: str, ts: float, dur: float, cat: str, tid: int = 1, **args: Any) -> dict[str, Any]:
    """One complete event of process 1."""
    return {"ph": "X", "cat": cat, "name": name, "pid": 1, "tid": tid, "ts": ts, "dur": dur, "args": args}


def call(name: str, ts: float, dur: float = 1, tid: int = 1, correlation: int = 0) -> dict[str, Any]:
    """A call of the device's runtime."""
    return complete(name, ts, dur, "cuda_runtime", tid, correlation=correlation)


def kernel(ts: float, dur: float, correlation: int, blocks: int = 200, stream: int = 7) -> dict[str, Any]:
    """A kernel of so many blocks."""
    return complete("kernel", ts, dur, "kernel", stream, correlation=correlation, grid=[blocks, 1, 1], stream=stream)


def step(number: int, ts: float, dur: float = 100) -> list[dict[str, Any]]:
    """A profiler step and, 10 us inside it on both sides, the annotation of the workload."""
    return [
        complete(f"ProfilerStep#{number}", ts, dur, "user_annotation"),
        complete("work", ts + 10, dur - 20, "user_annotation"),
    ]


def window(*events: dict[str, Any], multiprocessors: int | None = 132) -> Window:
    """Figures of a window of these events."""
    return summarize(read_trace(json.dumps({"traceEvents": events}).encode()), "work", multiprocessors)


def recorded(name: str, annotation: str = "matmul_add") -> Window:
    """Figures of a trace recorded on an H200 (132 multiprocessors)."""
    return summarize(read_trace((RECORDED / f"h200_{name}.json.gz").read_bytes()), annotation, 132)


def test_host_time() -> None:
    """Host time is the annotation's, whatever lies inside or before it."""
    figures = window(
        *step(0, 0),
        *step(1, 100, dur=60.5),
        complete("aten::zero_", 5, 1, "cpu_op"),
        complete("aten::other", 11, 1, "cpu_op", tid=2),
        complete("aten::mm", 14.25, 8, "cpu_op"),
    )
    assert figures.steps == [0, 1]
    assert figures.host_us == [80.0, 40.5]


def test_busy_is_the_union_of_what_the_step_launched() -> None:
    """Overlaps count once, and late work counts for the step that launched it."""
    figures = window(
        *step(0, 0),
        *step(1, 100),
        call("cudaLaunchKernel", 20, correlation=1),
        call("cudaLaunchKernel", 22, correlation=2),
        call("cudaLaunchKernel", 24, correlation=3, tid=2),
        call("cudaLaunchKernel", 120, correlation=4),
        kernel(30, 10, 1),
        kernel(35, 10, 2, stream=8),
        kernel(150, 7, 3),
        kernel(157, 2, 4),
    )
    assert figures.busy_us == [22.0, 2.0]
    assert (figures.launches, figures.kernels) == ([3, 1], [3, 1])
    assert (figures.trace_incomplete, figures.unattributed_frac) == (False, 0.0)


def test_blocked_time_leaves_out_fences_and_other_threads() -> None:
    """Only synchronizing calls of the step's thread inside the annotation count; nested ones are not counted twice."""
    figures = window(
        *step(0, 0),
        *step(1, 100),
        call("cudaStreamSynchronize", 20, 30),
        call("cudaMemcpy", 60, 10, correlation=5),
        call("cudaDeviceSynchronize", 62, 4),
        call("cudaMemcpyAsync", 75, 3, correlation=6),
        call("cudaDeviceSynchronize", 92, 5),
        call("cudaEventSynchronize", 20, 40, tid=2),
        call("hipEventSynchronize", 130, 8),
        complete("Memcpy DtoH", 61, 8, "gpu_memcpy", 7, correlation=5),
        complete("Memcpy DtoH", 80, 1, "gpu_memcpy", 7, correlation=6),
    )
    assert figures.blocked_us == [40.0, 8.0]
    assert figures.blocking_calls == {
        "cudaDeviceSynchronize": 0.5,
        "cudaMemcpy": 0.5,
        "cudaStreamSynchronize": 0.5,
        "hipEventSynchronize": 0.5,
    }


@pytest.mark.parametrize(
    ("name", "launches"),
    [
        *[(name, 1) for name in ("cudaLaunchKernel", "cudaLaunchKernelExC", "cuLaunchKernel", "cuLaunchKernelEx")],
        *[
            (name, 1)
            for name in ("cudaMemcpyAsync", "cudaMemsetAsync", "cudaGraphLaunch", "cudaLaunchCooperativeKernel")
        ],
        *[(name, 1) for name in ("hipLaunchKernel", "hipExtModuleLaunchKernel", "hipModuleLaunchKernel", "cudaMemcpy")],
        *[(name, 1) for name in ("hipMemcpyWithStream", "hipGraphLaunch", "cuMemcpyHtoDAsync_v2")],
        *[(name, 0) for name in ("cudaStreamIsCapturing", "cudaGetErrorString", "cudaDeviceSynchronize", "cudaMalloc")],
        *[(name, 0) for name in ("cudaLaunchHostFunc", "cudaGraphAddMemcpyNode", "cudaFuncGetAttributes")],
    ],
)
def test_what_counts_as_a_launch(name: str, launches: int) -> None:
    """Calls that start device work count, and one whose work is missing makes the trace incomplete."""
    figures = window(*step(0, 0), call(name, 20, correlation=3))
    assert figures.launches == [launches]
    assert figures.trace_incomplete == (launches == 1)


def test_a_graph_launch_has_many_kernels() -> None:
    """One launch of a graph starts all of its kernels."""
    figures = window(
        *step(0, 0), call("cudaGraphLaunch", 20, correlation=3), kernel(30, 1, 3), kernel(32, 1, 3), kernel(34, 1, 3)
    )
    assert (figures.launches, figures.kernels, figures.trace_incomplete) == ([1], [3], False)


def test_a_capture_starts_nothing() -> None:
    """What a stream captures runs only when the graph is launched; other threads go on launching."""
    figures = window(
        *step(0, 0),
        call("cudaStreamBeginCapture", 20),
        call("cudaLaunchKernel", 25, correlation=1),
        call("cudaLaunchKernel", 26, correlation=2, tid=2),
        call("cudaStreamEndCapture", 30),
        call("cudaGraphLaunch", 35, correlation=3),
        kernel(40, 1, 2),
        kernel(41, 1, 3),
    )
    assert (figures.launches, figures.kernels, figures.trace_incomplete) == ([2], [2], False)


def test_a_launch_outside_the_steps_may_lack_its_kernel() -> None:
    """Only what a step launched must be there: the window may end while other work still runs."""
    assert window(*step(0, 0), call("cudaLaunchKernel", 120, correlation=1)).trace_incomplete is False


def test_shares_of_device_time() -> None:
    """Work of no step is unattributed; kernels with fewer blocks than multiprocessors are underfilled."""
    events = [
        *step(0, 0),
        call("cudaLaunchKernel", 20, correlation=1),
        call("cudaLaunchKernel", 22, correlation=2),
        call("cudaLaunchKernel", 150, correlation=3),
        kernel(30, 6, 1, blocks=131),
        kernel(40, 2, 2, blocks=132),
        kernel(160, 8, 3, blocks=1),
    ]
    figures = window(*events)
    assert (figures.unattributed_frac, figures.underfilled_frac) == (0.5, 0.75)
    assert window(*events, multiprocessors=None).underfilled_frac is None
    gridless = complete("kernel", 50, 1, "kernel", 7, correlation=1)
    assert window(*events, gridless).underfilled_frac is None


def test_without_a_device_its_figures_are_unknown() -> None:
    """A CPU trace knows the host's times alone: the device's are None, not zero."""
    figures = window(*step(0, 0), complete("aten::mm", 12, 5, "cpu_op"))
    assert figures.host_us == [80.0]
    assert figures.busy_us is figures.blocked_us is figures.launches is figures.kernels is None
    assert figures.blocking_calls is figures.trace_incomplete is figures.unattributed_frac is None
    assert figures.underfilled_frac is None


def test_only_steps_with_one_annotation_count() -> None:
    """A step that holds the workload twice or not at all is no step of it."""
    figures = window(
        complete("ProfilerStep#0", 0, 100, "user_annotation"),
        *step(1, 100),
        complete("work", 130, 5, "user_annotation"),
        *step(2, 200),
        complete("work", 230, 5, "gpu_user_annotation", 7),
        complete("work", 310, 5, "user_annotation"),
    )
    assert figures.steps == [2]


def test_without_steps_nothing_is_known() -> None:
    """A trace without profiler steps has no figures of a step, and says nothing about completeness."""
    figures = recorded("mlp_64_eager", annotation="step")
    assert (figures.steps, figures.host_us, figures.busy_us, figures.trace_incomplete) == ([], [], None, None)
    assert figures.unattributed_frac == 1.0


def test_compiled_region() -> None:
    """A compiled point shows its region, an eager one does not."""
    assert recorded("1024_bfloat16_b0_default").region_ran
    assert not recorded("64_bf16_cold_eager_sched0").region_ran


def test_cold_window_of_an_h200() -> None:
    """Twenty cold steps: the first waits for the profiler's buffers, and small kernels never fill the device."""
    figures = recorded("64_bf16_cold_eager_sched0")
    assert figures.steps == list(range(20))
    assert figures.host_us[:3] == [3043.579, 129.104, 71.768]
    assert (figures.busy_us or [])[:3] == [2.752, 2.752, 2.752]
    assert figures.launches == figures.kernels == [2] * 20
    assert (figures.trace_incomplete, figures.unattributed_frac, figures.underfilled_frac) == (False, 0.0, 1.0)


def test_graph_replay_of_an_h200() -> None:
    """reduce-overhead: two copies into static buffers and one graph of two kernels a step."""
    figures = recorded("1024_bfloat16_b8_reduce-overhead")
    assert (figures.launches, figures.kernels) == ([3] * 10, [4] * 10)
    assert (figures.busy_us or [])[0] == pytest.approx(25.857 + 16.704 + 26.368 + 10.657)
    assert (figures.blocking_calls, figures.trace_incomplete) == ({}, False)


def test_unfenced_window_of_an_h200() -> None:
    """Kernels launched before the window are seen and told apart where they run between the steps."""
    figures = recorded("4096_float32_b0_eager")
    assert figures.unattributed_frac == pytest.approx(0.2308, abs=1e-4)
    assert figures.kernels == [2] * 10


def test_a_real_cpu_profile(tmp_path: Path) -> None:
    """The whole path on the CPU: schedule 1/1/3, steps 2 to 4, host times within their steps, no device figures."""
    path = tmp_path / "trace.json"
    x = torch.ones(8, 8)
    with profile(activities=[ProfilerActivity.CPU], schedule=schedule(wait=1, warmup=1, active=3)) as profiler:
        for _ in range(5):
            with record_function("matmul_add"):
                torch.matmul(x, x) + x
            profiler.step()
    profiler.export_chrome_trace(str(path))
    events = read_trace(path.read_bytes())
    figures = summarize(events, "matmul_add", None)
    steps: dict[int | None, Event] = {event.step: event for event in events if event.name.startswith("ProfilerStep#")}
    assert figures.steps == [2, 3, 4]
    for number, host_us in zip(figures.steps, figures.host_us, strict=True):
        assert 0 < host_us < steps[number].dur_ns / 1000
    assert figures.busy_us is None and not figures.region_ran


# -- what a step launches ----------------------------------------------------------------------------------------------


def sequence(*names: str, also: tuple[str, ...] = (), wait: str = "cudaStreamSynchronize") -> str | None:
    """Launch sequence of three steps of these operators, each with a launch, a wait, and an operator of its own."""
    events: list[dict[str, Any]] = []
    for number in range(3):
        start = 1000 * number
        calls = [*names, *(also if number == 1 else ())]
        events += step(number, start, dur=900)
        events += [complete(name, start + 20 + 20 * place, 15, "cpu_op") for place, name in enumerate(calls)]
        events += [call("cudaLaunchKernel", start + 22, correlation=number), call(wait, start + 800)]
        events += [kernel(start + 30, 10 + number, number)]
    return window(*events).launch_sequence


def test_the_launch_sequence_is_what_a_step_calls_in_its_order() -> None:
    """Other operators, or another order, launch something else."""
    assert sequence("aten::mm", "aten::add") == sequence("aten::mm", "aten::add") is not None
    assert sequence("aten::mm", "aten::add") != sequence("aten::add", "aten::mm")
    assert sequence("aten::mm", "aten::add") != sequence("aten::mm", "aten::mul")


def test_the_launch_sequence_leaves_out_what_says_nothing() -> None:
    """What one step alone calls, waits, and the numbers of compiled regions."""
    assert sequence("aten::mm", also=("aten::empty",)) == sequence("aten::mm")
    assert sequence("aten::mm", wait="cudaEventQuery") == sequence("aten::mm")
    assert sequence("Torch-Compiled Region: 0/0", "aten::mm") == sequence("Torch-Compiled Region: 0/1", "aten::mm")


def test_steps_that_differ_have_no_launch_sequence() -> None:
    """Where no order is that of more than half of the steps, nothing is known."""
    first, second = ("aten::mm", "aten::add"), ("aten::add", "aten::mm")
    events = [
        event
        for number, names in enumerate((first, second))
        for event in (
            *step(number, 1000 * number, dur=900),
            *(complete(name, 1000 * number + 20 + 20 * place, 15, "cpu_op") for place, name in enumerate(names)),
            call("cudaLaunchKernel", 1000 * number + 22),
        )
    ]
    assert window(*events).launch_sequence is None


def test_a_window_without_a_device_has_no_launch_sequence() -> None:
    """On a CPU nothing is launched."""
    assert window(*step(0, 0), complete("aten::mm", 20, 5, "cpu_op")).launch_sequence is None


def test_eager_and_compiled_launch_something_else() -> None:
    """Recorded on an H200."""
    eager, compiled = recorded("1024_float32_b8_eager"), recorded("1024_bfloat16_b0_default")
    assert eager.launch_sequence and compiled.launch_sequence
    assert eager.launch_sequence != compiled.launch_sequence
