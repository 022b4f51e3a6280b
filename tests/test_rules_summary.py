"""Rules of the summary: each with a case where it fires, and a near miss."""

from pathlib import Path
from typing import Any

from rule_given import Trace, outcome


def products(work_us: float, step_us: float = 100, fence_us: float = 0) -> Trace:
    """Twenty steps of `step_us` on the host, each with a kernel of `work_us`; a wait of `fence_us` behind the last."""
    trace = Trace()
    every = max(step_us, work_us) + 10
    for step in range(20):
        at = every * step
        trace.step(step, at, step_us)
        trace.host("aten::mm", at + 1, 15, step)
        trace.launched("gemm", at + 5, at + 20, work_us, step)
    if fence_us:
        trace.host("crossover: fence", every * 20, fence_us, None, "user_annotation")
        trace.call("cudaDeviceSynchronize", every * 20, fence_us, None)
    return trace


OVERHEAD = {"wall_us": 50, "issue_us": 50, "device_us": 10}
DEVICE = {"wall_us": 100, "issue_us": 20, "device_us": 100}


def test_host_far_above_device_fires(tmp_path: Path) -> None:
    """2.04 ms against 0.2 ms, and the times without a profiler agree."""
    found = outcome(tmp_path, "host_far_above_device", products(10), OVERHEAD)
    assert found["outcome"] == "fired"
    assert "2.04 ms of host and 200 us of device time (9.80 %)" in found["sentence"]
    assert "the host needs 50.0 us for a step that takes the device 10.0 us" in found["sentence"]


def test_host_far_above_device_near_miss(tmp_path: Path) -> None:
    """60 % is not far above."""
    assert outcome(tmp_path, "host_far_above_device", products(61.2), OVERHEAD)["outcome"] == "clear"


def test_host_and_device_alike_fires(tmp_path: Path) -> None:
    """Alike, since the host waits for the device at the end: told as such."""
    found = outcome(tmp_path, "host_and_device_alike", products(100, 20, 1600), DEVICE)
    assert found["outcome"] == "fired"
    assert "2.04 ms of host and 2.00 ms of device time" in found["sentence"]
    assert "1.60 ms of the host's total is waiting" in found["sentence"]


def test_host_and_device_alike_near_miss(tmp_path: Path) -> None:
    """The device's total is 70 % of the host's."""
    assert outcome(tmp_path, "host_and_device_alike", products(100, 20, 2417), DEVICE)["outcome"] == "clear"


def test_totals_mislead_fires(tmp_path: Path) -> None:
    """The profiler has doubled the host's time: the totals say overhead, the times without it the device."""
    found = outcome(tmp_path, "totals_mislead", products(40), {"wall_us": 40, "issue_us": 30, "device_us": 40})
    assert found["outcome"] == "fired"
    assert "reads as overhead-bound, but without the profiler the host needs 30.0 us" in found["sentence"]


def test_totals_mislead_near_miss(tmp_path: Path) -> None:
    """The same totals and an overhead-bound step: the reading is right."""
    run = {"wall_us": 60, "issue_us": 60, "device_us": 40}
    assert outcome(tmp_path, "totals_mislead", products(40), run)["outcome"] == "clear"


def two_kernels(first_us: float, second_us: float) -> Trace:
    """Four steps with two kernels of such lengths."""
    trace = Trace()
    for step in range(4):
        at = 1000.0 * step
        trace.step(step, at, 50)
        trace.host("aten::mm", at + 5, 10, step)
        trace.launched("gemm", at + 6, at + 100, first_us, step)
        trace.host("aten::add", at + 20, 10, step)
        trace.launched("add", at + 21, at + 500, second_us, step)
    return trace


def test_one_event_dominates_fires(tmp_path: Path) -> None:
    """Three quarters of the device's time, with the operation that launched it."""
    found = outcome(tmp_path, "one_event_dominates", two_kernels(75, 25), DEVICE)
    assert found["outcome"] == "fired"
    assert (
        "75.0 % of the device's time in a step (75.0 us of 100 us) goes to gemm, launched by aten::mm"
        in found["sentence"]
    )


def test_one_event_dominates_near_miss(tmp_path: Path) -> None:
    """Half of it is not most, and an overhead-bound step has no use of it."""
    assert outcome(tmp_path / "half", "one_event_dominates", two_kernels(50, 50), DEVICE)["outcome"] == "clear"
    assert outcome(tmp_path / "host", "one_event_dominates", two_kernels(75, 25), OVERHEAD)["outcome"] == "clear"


def many_calls(calls: int) -> Trace:
    """Four steps that call aten::mul so often: 9 us on the host, 2 us on the device each."""
    trace = Trace()
    for step in range(4):
        at = 1000.0 * step
        trace.step(step, at, 200)
        for call in range(calls):
            trace.host("aten::mul", at + 10 * call, 9, step)
            trace.launched("mul", at + 10 * call + 3, at + 10 * call + 8, 2, step)
    return trace


def test_many_cheap_calls_fires(tmp_path: Path) -> None:
    """Eight calls, which take 36 % of the step's host time."""
    found = outcome(tmp_path, "many_cheap_calls", many_calls(8), OVERHEAD)
    assert found["outcome"] == "fired"
    assert "aten::mul is called 8 times a step" in found["sentence"]
    assert "together 36.0 %" in found["sentence"]


def test_many_cheap_calls_near_miss(tmp_path: Path) -> None:
    """Seven calls."""
    assert outcome(tmp_path, "many_cheap_calls", many_calls(7), OVERHEAD)["outcome"] == "clear"


def nested(self_us: float, **run: Any) -> Trace:
    """Four steps in which aten::matmul of 20 us calls aten::mm, and has `self_us` for itself."""
    trace = Trace()
    for step in range(4):
        at = 100.0 * step
        trace.step(step, at, 50)
        trace.host("aten::matmul", at + 5, 20, step)
        trace.host("aten::mm", at + 6, 20 - self_us, step)
    return trace


def test_time_in_children_fires(tmp_path: Path) -> None:
    """85 % lies in aten::mm."""
    found = outcome(tmp_path, "time_in_children", nested(3))
    assert found["outcome"] == "fired"
    assert "Of the 20.0 us that aten::matmul takes" in found["sentence"]
    assert "85.0 % lie in what it calls, most of it (17.0 us) in aten::mm" in found["sentence"]


def test_time_in_children_near_miss(tmp_path: Path) -> None:
    """A quarter of the time is its own."""
    assert outcome(tmp_path, "time_in_children", nested(5))["outcome"] == "clear"
