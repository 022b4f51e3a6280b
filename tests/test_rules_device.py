"""Rules of the device lane: each with a case where it fires, and a near miss."""

from collections.abc import Callable
from pathlib import Path

import pytest
from rule_given import Trace, outcome

DEVICE_BOUND = {"wall_us": 100, "issue_us": 20, "device_us": 100}
OVERHEAD_BOUND = {"wall_us": 50, "issue_us": 50, "device_us": 10}


def repeated(fill: Callable[[Trace, int, float], object], steps: int = 4, every_us: float = 100) -> Trace:
    """A trace of steps of 50 us on the host, each filled by fill(trace, step, start_us)."""
    trace = Trace()
    for step in range(steps):
        trace.step(step, every_us * step, 50)
        fill(trace, step, every_us * step)
    return trace


def products(blocks: int) -> Trace:
    """Four steps with a kernel of so many blocks."""

    def fill(trace: Trace, step: int, at: float) -> None:
        trace.host("aten::mm", at + 5, 20, step)
        trace.launched("gemm", at + 10, at + 20, 10, step, grid=[blocks, 1, 1], block=[128, 1, 1])

    return repeated(fill)


# -- what the kernels are ----------------------------------------------------------------------------------------------


def test_underfilled_kernel_fires(tmp_path: Path) -> None:
    """66 blocks leave half of 132 multiprocessors without work."""
    found = outcome(tmp_path, "underfilled_kernel", products(66))
    assert found["outcome"] == "fired"
    assert "gemm has 66 blocks for 132 multiprocessors (10.0 us)" in found["sentence"]
    assert "50.0 % of the multiprocessors' time is unused" in found["sentence"]


def test_underfilled_kernel_near_miss(tmp_path: Path) -> None:
    """128 blocks leave 3 % unused."""
    found = outcome(tmp_path, "underfilled_kernel", products(128))
    assert found["outcome"] == "clear"
    assert "leaves 3.03 % of the multiprocessors' time unused" in found["reason"]


def test_underfilled_kernel_costs_nothing_where_the_host_binds(tmp_path: Path) -> None:
    """The same kernel in a step that waits for its host."""
    found = outcome(tmp_path, "underfilled_kernel", products(66), OVERHEAD_BOUND)
    assert found["outcome"] == "clear"
    assert found["reason"].endswith("; the step is overhead-bound")


def waves(blocks: int, registers: int = 128) -> Trace:
    """Kernels of 256 threads: with 128 registers two blocks are resident on a multiprocessor, 264 on an H200."""
    more = {"grid": [blocks, 1, 1], "block": [256, 1, 1], "registers_per_thread": registers, "shared_memory_bytes": 0}
    return repeated(lambda trace, step, at: trace.launched("gemm", at + 10, at + 20, 100, step, **more), every_us=150)


def test_tail_wave_fires(tmp_path: Path) -> None:
    """330 blocks are 1.25 waves of 264, and take the time of two."""
    found = outcome(tmp_path, "tail_wave", waves(330))
    assert found["outcome"] == "fired"
    assert "gemm runs 330 blocks, 1.25 waves of 132 x 2 blocks" in found["sentence"]
    assert "its last wave fills 25.0 % of the device, up to 37.5 % of its 100 us" in found["sentence"]


def test_tail_wave_near_miss(tmp_path: Path) -> None:
    """528 blocks are two whole waves; and 330 fit into one where the registers allow eight blocks."""
    assert outcome(tmp_path / "whole", "tail_wave", waves(528))["outcome"] == "clear"
    assert outcome(tmp_path / "one", "tail_wave", waves(330, 32))["outcome"] == "not applicable"


def fat(registers: int, name: str = "void at::native::vectorized_elementwise_kernel<4, X>(int)") -> Trace:
    """Elementwise kernels of 64 threads and 10,000 blocks, of which the profiler estimates 13 % occupancy."""
    more = {
        "grid": [10000, 1, 1], "block": [64, 1, 1], "registers_per_thread": registers, "shared_memory_bytes": 0,
        "args": '{"est. achieved occupancy %": 13}',
    }  # fmt: skip
    return repeated(lambda trace, step, at: trace.launched(name, at + 10, at + 20, 60, step, **more))


def test_low_occupancy_fires(tmp_path: Path) -> None:
    """255 registers a thread leave room for 8 warps of 64."""
    found = outcome(tmp_path, "low_occupancy", fat(255))
    assert found["outcome"] == "fired"
    assert "at::native::vectorized_elementwise_kernel keeps 12.5 % of a multiprocessor's threads" in found["sentence"]
    assert "(the profiler's own estimate: 13.0 %), limited by 255 registers a thread" in found["sentence"]


def test_low_occupancy_near_miss(tmp_path: Path) -> None:
    """96 registers leave room for 20 warps; and a product works with few threads on purpose."""
    assert outcome(tmp_path / "few", "low_occupancy", fat(96))["outcome"] == "clear"
    assert outcome(tmp_path / "gemm", "low_occupancy", fat(255, "ampere_sgemm_128x64_nn"))["outcome"] == "clear"


def uneven(times_us: list[float], name: str = "gemm") -> Trace:
    """A step of one kernel for each of these times."""
    return repeated(
        lambda trace, step, at: trace.launched(name, at + 10, at + 20, times_us[step], step), len(times_us), 2000
    )


CLOCKS = {
    "profile": {
        "window": {
            "before": {"sm_clock_mhz": 1980, "power_w": 300, "temperature_c": 50, "throttle_reasons": []},
            "behind": {"sm_clock_mhz": 1410, "power_w": 690, "temperature_c": 70, "throttle_reasons": ["sw_power_cap"]},
        }
    }
}


def test_uneven_kernel_fires(tmp_path: Path) -> None:
    """Median, mean, the step that stands out, and the clocks around the window."""
    found = outcome(tmp_path, "uneven_kernel", uneven([100, 100, 100, 100, 600, 100]), {"facts": CLOCKS})
    assert found["outcome"] == "fired"
    assert (
        "gemm takes 100 us at the median of 6 steps and 183 us on average, from 100 us to 600 us" in found["sentence"]
    )
    assert "; step 4 stands out; the clock was 1980 MHz before the window and 1410 MHz behind it" in found["sentence"]
    assert "at 690 W and 70.0 degrees C, held by sw_power_cap." in found["sentence"]


def test_uneven_kernel_tells_the_first_step_apart(tmp_path: Path) -> None:
    """A slow first step is a cold start; without clocks that is said."""
    found = outcome(tmp_path, "uneven_kernel", uneven([600, 100, 100, 100, 100, 100]))
    assert found["sentence"].endswith("only the first step stands out; the clock is not known.")


def test_uneven_kernel_near_miss(tmp_path: Path) -> None:
    """The mean lies 8 % above the median; and a collective waits for others, so that its times say nothing."""
    assert outcome(tmp_path / "even", "uneven_kernel", uneven([100, 100, 100, 100, 148, 100]))["outcome"] == "clear"
    collective = uneven([100, 100, 100, 100, 600, 100], "ncclDevKernel_AllReduce")
    assert outcome(tmp_path / "nccl", "uneven_kernel", collective)["outcome"] == "not applicable"


# -- where the device stands still -------------------------------------------------------------------------------------


def requested(start_us: float, step: int | None) -> Trace:
    """Steps of two kernels, and a buffer request of 80 us; step 1 has 85 us between its kernels, the others 2 us."""

    def fill(trace: Trace, step: int, at: float) -> None:
        trace.launched("first", at + 2, at + 10, 10, step)
        trace.launched("second", at + 5, at + (105 if step == 1 else 22), 10, step)

    trace = repeated(fill, every_us=200)
    trace.host("Activity Buffer Request", start_us, 80, step, "overhead", pid="-1")
    trace.host("Lazy Function Loading", 1000, 30, None, "overhead", pid="-1")
    return trace


def test_profiler_buffer_request_fires(tmp_path: Path) -> None:
    """The request covers the gap of step 1: once, and the gap is its own; loading code is told apart."""
    found = outcome(tmp_path, "profiler_buffer_request", requested(222, 1))
    assert found["outcome"] == "fired"
    assert "once (Activity Buffer Request), for 80.0 us in step 1: that is no work" in found["sentence"]
    assert "the device's gap of 85.0 us there is the profiler's; the other steps are free of it" in found["sentence"]
    assert "beside it is 1 row of 30.0 us for loading code" in found["sentence"]


def test_profiler_buffer_request_near_miss(tmp_path: Path) -> None:
    """Before the first step it is in nobody's way."""
    found = outcome(tmp_path, "profiler_buffer_request", requested(-200, None))
    assert (found["outcome"], found["reason"]) == (
        "clear",
        "Activity Buffer Request once, 80.0 us: in no step, in no gap of the device",
    )


def paused(pause_us: float) -> Trace:
    """Two kernels of 20 us a step; the second is launched `pause_us` behind the end of the first."""

    def fill(trace: Trace, step: int, at: float) -> None:
        trace.launched("first", at + 2, at + 5, 20, step)
        trace.host("aten::add", at + 25 + pause_us - 5, 6, step)
        trace.launched("second", at + 25 + pause_us - 4, at + 25 + pause_us, 20, step)

    return repeated(fill)


def test_gaps_inside_step_fires(tmp_path: Path) -> None:
    """10 us of a span of 50 us, since the launch came late; the cure is that of the cause."""
    found = outcome(tmp_path, "gaps_inside_step", paused(10))
    assert found["outcome"] == "fired"
    assert (
        "Of the 50.0 us from the first to the last work of a step the device stands still 10.0 us" in found["sentence"]
    )
    assert "in 1 gap (host late 10.0 us); the longest, 10.0 us, ends with the work of aten::add" in found["sentence"]
    assert found["cure"].startswith("The host is late")


def test_gaps_inside_step_near_miss(tmp_path: Path) -> None:
    """4 us of 44 us; and 10 us that the profiler made, where the device binds without it."""
    assert outcome(tmp_path / "short", "gaps_inside_step", paused(4))["outcome"] == "clear"
    found = outcome(tmp_path / "device", "gaps_inside_step", paused(10), DEVICE_BOUND)
    assert found["outcome"] == "clear"
    assert "slower under the profiler" in found["reason"]


def spaced(every_us: float) -> Trace:
    """Steps that begin this far apart, each a kernel of 60 us launched at once."""
    return repeated(lambda trace, step, at: trace.launched("gemm", at + 2, at + 6, 60, step), every_us=every_us)


def test_gaps_between_steps_fires(tmp_path: Path) -> None:
    """20 us of 80 us from step to step."""
    found = outcome(tmp_path, "gaps_between_steps", spaced(80))
    assert found["outcome"] == "fired"
    assert (
        "stands still 20.0 us, 25.0 % of the time from step to step under the profiler: host late" in found["sentence"]
    )


def test_gaps_between_steps_near_miss(tmp_path: Path) -> None:
    """5 us of 65 us; and 20 us that the profiler made, where the device binds without it."""
    assert outcome(tmp_path / "short", "gaps_between_steps", spaced(65))["outcome"] == "clear"
    found = outcome(tmp_path / "device", "gaps_between_steps", spaced(80), DEVICE_BOUND)
    assert (found["outcome"], "slower under the profiler" in found["reason"]) == ("clear", True)


# -- launches ----------------------------------------------------------------------------------------------------------


def test_launch_queue_tells_a_host_ahead(tmp_path: Path) -> None:
    """Kernels of 100 us, launched every 10 us: each is queued."""
    trace = Trace()
    for step in range(5):
        trace.step(step, 10 * step, 8)
        trace.launched("gemm", 10 * step + 1, 100 * step + 5, 100, step)
    found = outcome(tmp_path, "launch_queue", trace)
    assert found["outcome"] == "fired"
    assert "The host runs ahead, even under the profiler: 100 % of the launches return while" in found["sentence"]


def test_launch_queue_tells_a_device_that_waits(tmp_path: Path) -> None:
    """Kernels of 10 us, launched every 100 us, each 8 us before it starts."""
    late = repeated(lambda trace, step, at: trace.launched("gemm", at + 2, at + 10, 10, step))
    found = outcome(tmp_path / "host", "launch_queue", late, OVERHEAD_BOUND)
    assert "The device waits for its launches: work starts 8.00 us after its launch" in found["sentence"]
    found = outcome(tmp_path / "device", "launch_queue", late, DEVICE_BOUND)
    assert "the profiler makes the host late here" in found["sentence"]


def test_launch_queue_near_miss(tmp_path: Path) -> None:
    """Of two launches a step one is queued and one is late: neither ahead nor waiting."""

    def fill(trace: Trace, step: int, at: float) -> None:
        trace.launched("first", at + 2, at + 10, 10, step)
        trace.launched("second", at + 6, at + 20, 10, step)

    found = outcome(tmp_path, "launch_queue", repeated(fill))
    assert found["outcome"] == "clear"
    assert found["reason"].startswith("2 of 3 launches were queued")


def graphs(call: str) -> Trace:
    """Steps of one call that starts two kernels and a copy, and one launch beside it."""

    def fill(trace: Trace, step: int, at: float) -> None:
        launch = trace.call(call, at + 5, 4, step)
        trace.work("gemm", at + 20, 10, step, launch)
        trace.work("add", at + 30, 5, step, launch)
        trace.work("Memcpy DtoD (Device -> Device)", at + 35, 1, step, launch, "gpu_memcpy")
        trace.launched("copy_inputs", at + 2, at + 10, 3, step)

    return repeated(fill)


def test_graph_replay_fires(tmp_path: Path) -> None:
    """One call starts three pieces of work of 16 us, and one kernel is launched beside it."""
    found = outcome(tmp_path, "graph_replay", graphs("cudaGraphLaunch"))
    assert "1 x cudaGraphLaunch a step, 4.00 us of the host under the profiler" in found["sentence"]
    assert "starts 2 kernels and 1 copy or fill of together 16.0 us" in found["sentence"]
    assert "beside that 1 kernel, 0 copies and 0 fills are launched one by one" in found["sentence"]


def test_graph_replay_near_miss(tmp_path: Path) -> None:
    """The same work from another call is no graph."""
    assert outcome(tmp_path, "graph_replay", graphs("cudaLaunchKernel"))["outcome"] == "not applicable"


# -- overlap -----------------------------------------------------------------------------------------------------------


def streams(start_us: float, stream: int = 20, name: str = "second") -> Trace:
    """A kernel of 40 us on stream 7 from 10 us of each step on, and one of 20 us on another stream."""

    def fill(trace: Trace, step: int, at: float) -> None:
        trace.launched("first", at + 2, at + 10, 40, step)
        trace.launched(name, at + 5, at + start_us, 20, step, stream=stream, tid=str(stream))

    return repeated(fill)


def test_stream_overlap_fires(tmp_path: Path) -> None:
    """15 of 60 us lie on each other: the device is busy 45 us."""
    found = outcome(tmp_path / "two", "stream_overlap", streams(35))
    assert "adds up to 60.0 us, but it is busy only 45.0 us: 15.0 us overlap between 2 streams" in found["sentence"]
    found = outcome(tmp_path / "one", "stream_overlap", streams(35, 7))
    assert "15.0 us overlap on the same stream" in found["sentence"]


def test_stream_overlap_near_miss(tmp_path: Path) -> None:
    """2 of 60 us are below a twentieth."""
    found = outcome(tmp_path, "stream_overlap", streams(48))
    assert (found["outcome"], "overlap for 2.00 us, 3.33 %" in found["reason"]) == ("clear", True)


def test_no_stream_overlap_fires(tmp_path: Path) -> None:
    """A second stream that works only when the first has ended."""
    found = outcome(tmp_path, "no_stream_overlap", streams(51))
    assert found["outcome"] == "fired"
    assert "The step uses 2 streams, but they work in turn: of 20.0 us on all but the busiest" in found["sentence"]


@pytest.mark.parametrize("given", [streams(12), streams(51, 7), streams(51, name="ncclDevKernel_AllReduce")])
def test_no_stream_overlap_near_miss(tmp_path: Path, given: Trace) -> None:
    """Beside the first stream; on the same stream; and a collective, which is another rule's."""
    assert outcome(tmp_path, "no_stream_overlap", given)["outcome"] != "fired"


def copies(copy_us: float, direction: str = "HtoD (Pageable -> Device)") -> Trace:
    """A copy of 1 MB and a kernel of 30 us a step, one behind the other on one stream."""

    def fill(trace: Trace, step: int, at: float) -> None:
        trace.host("aten::copy_", at + 1, 5, step)
        trace.launched(
            f"Memcpy {direction}", at + 2, at + 10, copy_us, step, "cudaMemcpyAsync", "gpu_memcpy", bytes=1_000_000
        )
        trace.launched("gemm", at + 8, at + 10 + copy_us, 30, step)

    return repeated(fill)


def test_no_stream_overlap_tells_of_copies(tmp_path: Path) -> None:
    """20 us over the bus beside nothing; within the device there is no engine to run beside."""
    found = outcome(tmp_path / "bus", "no_stream_overlap", copies(20))
    assert "20.0 us of the 50.0 us that the device works in a step are 1 copy" in found["sentence"]
    assert "no kernel runs beside it" in found["sentence"]
    inner = copies(20, "DtoD (Device -> Device)")
    assert outcome(tmp_path / "inner", "no_stream_overlap", inner)["outcome"] == "not applicable"


def test_copies_dominate_fires(tmp_path: Path) -> None:
    """20 of 50 us, at 50 GB/s, by the operation that copies."""
    found = outcome(tmp_path, "copies_dominate", copies(20))
    assert found["outcome"] == "fired"
    assert "Copies take 20.0 us of the 50.0 us that the device works in a step, 40.0 %" in found["sentence"]
    assert "1 x Memcpy HtoD (Pageable -> Device) by aten::copy_, 977 KiB at 50.0 GB/s" in found["sentence"]


def test_copies_dominate_near_miss(tmp_path: Path) -> None:
    """10 of 40 us; and 20 of 50 us in a step that its host binds."""
    assert outcome(tmp_path / "few", "copies_dominate", copies(10))["outcome"] == "clear"
    assert outcome(tmp_path / "host", "copies_dominate", copies(20), OVERHEAD_BOUND)["outcome"] == "clear"


def test_exposed_collective_fires(tmp_path: Path) -> None:
    """The collective runs 20 us beside nothing, of a step of 100 us."""
    found = outcome(tmp_path, "exposed_collective", streams(50, name="ncclDevKernel_AllReduce"))
    assert found["outcome"] == "fired"
    assert "For 20.0 us, 20.0 % of a step under the profiler" in found["sentence"]


def test_exposed_collective_near_miss(tmp_path: Path) -> None:
    """All of it but 2 us runs beside the kernel."""
    found = outcome(tmp_path, "exposed_collective", streams(32, name="ncclDevKernel_AllReduce"))
    assert (found["outcome"], "for 2.00 us" in found["reason"]) == ("clear", True)
