"""What the measuring says of a simulated device whose truth is known: runner.timing, slopes and measure together."""

from __future__ import annotations

import contextlib
import gc
import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import torch
from simulated import REPLAY_ISSUE_NS, SYNC_NS, Simulated

from runner import measure, tables, timing
from runner.blocking import BlockingCalls
from runner.device import Cpu
from runner.point import WARM_SCHEDULE, Point
from runner.rounds import Target
from runner.slopes import take_slopes
from runner.task import Measurement, Recorder, Task
from runner.window import summarize
from runner.workloads import WORKLOADS, MatmulAdd, Operation

POINT = Point("matmul_add", (), 64, "bf16", None, False, False, True, "cuda", WARM_SCHEDULE, "warm", None, 0)
TARGET = Target("default", 0.02, 1.0)
SYNC_US = SYNC_NS / 1000
# issue and device time of a step: overhead binds, barely, device binds barely, by far, and for a long step.
REGIMES = [(20, 5), (20, 18), (20, 22), (20, 200), (8, 9000)]

Step = Callable[[], None]


def task(slopes: bool = True, **changes: Any) -> Task:
    """What the parent would ask for."""
    given = Task(POINT, TARGET, 5.0, slopes, Recorder(), False, {}, "")
    return replace(given, **changes)


def measured(step: Step, device: Simulated, slopes: bool = True, kernels: int | None = None) -> dict[str, Any]:
    """The stored row of a step that was measured on the simulated device; of its profile at most the kernels a step."""
    facts: dict[str, Any] = {}
    rounds, slope_values = measure._asynchronous(task(slopes), step, device, device.clock, facts)
    done = Measurement("ok", None, rounds.samples, slope_values, {**facts, "stopped": rounds.stopped})
    identity = tables.Identity("run", "sweep", "environment", datetime(2026, 1, 1, tzinfo=UTC), 0, "given")
    window = None if kernels is None else replace(summarize([], "step", None), kernels=[kernels])
    return tables.run_row(POINT, identity, done, window, 1, {})


def facts_of(row: dict[str, Any]) -> dict[str, Any]:
    """The facts of a row."""
    return json.loads(row["facts"])


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> Simulated:
    """A device with a deep launch queue and no noise."""
    return Simulated().installed(monkeypatch)


# -- the times --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("issue_us", "device_us"), REGIMES)
def test_times_are_the_truth(device: Simulated, issue_us: float, device_us: float) -> None:
    """Wall is the larger term; issue and held device time are right on both sides of the crossing; so is replay."""
    row = measured(device.step(issue_us, device_us), device)
    assert row["wall_us"][0] == pytest.approx(max(issue_us, device_us), rel=0.03)
    assert row["issue_us"][0] == pytest.approx(issue_us, rel=0.02)
    assert row["device_us"][0] == pytest.approx(device_us, rel=0.01)
    assert row["replay_us"][0] == pytest.approx(device_us, rel=0.01)
    assert row["single_us"][0] == pytest.approx(issue_us + device_us + SYNC_US, rel=0.01)
    assert row["margin"][0] == pytest.approx(issue_us / device_us, rel=0.03)
    assert facts_of(row)["device_method"] == "held"
    assert row["blocked_us"] is None and "no synchronizing call" in facts_of(row)["reasons"]["blocked_us"]


def test_verdicts_are_right_on_both_sides_under_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    """With 3 % of noise and a device that slows down, points 15 % from the crossing fall on their side."""
    for issue_us, device_us, bound in ((23, 20, "overhead-bound"), (20, 23, "device-bound")):
        device = Simulated(noise=0.03, drift_per_s=0.05, seed=7).installed(monkeypatch)
        row = measured(device.step(issue_us, device_us, launches=2), device)
        assert tables.verdict(row).bound == bound
        assert row["wall_us"][0] == pytest.approx(max(issue_us, device_us), rel=0.06)


def test_a_full_queue_leaves_the_issue_time_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    """A step of more launches than the queue holds has no issue time, and says why; replay gives the device time."""
    device = Simulated(queue=4).installed(monkeypatch)
    row = measured(device.step(10, 900, launches=8), device)
    assert row["issue_us"] is None
    assert facts_of(row)["reasons"]["issue_us"].startswith("queue-full")
    assert facts_of(row)["device_method"] == "replay"
    assert row["device_us"][0] == pytest.approx(900, rel=0.02)
    assert row["margin"] is None


@pytest.mark.parametrize(("issue_us", "device_us"), [(1500, 195), (1545, 1967)])
def test_an_uneven_host_is_no_full_queue(monkeypatch: pytest.MonkeyPatch, issue_us: float, device_us: float) -> None:
    """A long step of a host whose pace varies by 15 % from step to step has an issue time, however the pilot looks."""
    for seed in range(10):
        device = Simulated(noise=0.15, seed=seed).installed(monkeypatch)
        row = measured(device.step(issue_us, device_us), device, kernels=46)
        assert row["issue_us"] is not None, facts_of(row)["reasons"]
        assert row["issue_us"][0] == pytest.approx(issue_us, rel=0.1)


def test_a_shallow_queue_shortens_the_burst(monkeypatch: pytest.MonkeyPatch) -> None:
    """A queue of 16 launches holds the burst far enough down that its issue time is right."""
    device = Simulated(queue=16).installed(monkeypatch)
    row = measured(device.step(10, 60), device)
    assert row["issue_us"][0] == pytest.approx(10, rel=0.02)
    assert row["wall_us"][0] == pytest.approx(60, rel=0.03)


def test_held_is_none_when_the_host_is_late(device: Simulated) -> None:
    """A hold that is too short for the burst gives no device time in place of a wrong one."""
    step = device.step(100, 5)
    assert timing.held_us(step, 50, 100, device) == pytest.approx(5)
    assert timing.held_us(step, 50, 10, device) is None


def test_held_is_none_when_the_step_waits(device: Simulated) -> None:
    """A step that waits for the device waits for the hold as well."""
    assert timing.held_us(device.waiting_step(20, 50), 4, 20, device) is None


def test_a_waiting_step_has_its_wait_apart(device: Simulated) -> None:
    """The host's 20 us and the cost of the call are issue, the 200 us spent waiting are blocked, and wall is both."""
    row = measured(device.waiting_step(20, 200), device)
    assert row["blocked_us"][0] == pytest.approx(200, rel=0.02)
    assert row["issue_us"][0] == pytest.approx(20 + SYNC_US, rel=0.05)
    assert row["wall_us"][0] == pytest.approx(220 + SYNC_US, rel=0.02)
    assert facts_of(row)["blocking_calls"] == {"torch.cuda.synchronize": 1.0}
    assert facts_of(row)["blocked_method"] == "timed calls"
    assert row["replay_us"] is None and "cannot capture" in facts_of(row)["reasons"]["replay_us"]


def test_a_wait_that_no_call_shows_is_seen(device: Simulated) -> None:
    """A step that waits outside of Python is found by the device's own watch, and its wait is left to the profile."""
    row = measured(device.hidden_waiting_step(20, 200), device, slopes=False)
    assert facts_of(row)["blocking_calls"] == {"unnamed": 1.0}
    assert facts_of(row)["blocked_method"] == "profile"
    assert tables.verdict(row).bound != "overhead-bound"


def test_a_step_that_cannot_be_captured_says_so(device: Simulated) -> None:
    """Replay is NULL with the error's text, and everything else stands."""
    step = device.step(20, 50)

    def uncapturable() -> None:
        if device.captured_ns is not None:
            raise RuntimeError("not on this stream")
        step()

    row = measured(uncapturable, device)
    assert row["replay_us"] is None
    assert facts_of(row)["reasons"]["replay_us"] == "cannot be captured: not on this stream"
    assert row["device_us"][0] == pytest.approx(50, rel=0.01)


def test_a_short_step_is_replayed_many_times(device: Simulated) -> None:
    """A graph holds enough steps that its launch costs nothing against them."""
    graphs: list[int] = []
    captured = device.captured
    device.captured = lambda step, steps: (graphs.append(steps), captured(step, steps))[1]  # type: ignore[method-assign]
    row = measured(device.step(10, 4), device)
    assert graphs[0] * 4 * 1000 > 50 * REPLAY_ISSUE_NS
    assert row["replay_us"][0] == pytest.approx(4, rel=0.01)


# -- slopes -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("issue_us", "device_us", "slopes"),
    [(20, 5, (1, 0)), (20, 14, (1, 0)), (20, 30, (0, 1)), (20, 200, (0, 1)), (8, 9000, (0, 1))],
)
def test_slopes_tell_the_bound(device: Simulated, issue_us: float, device_us: float, slopes: tuple[int, int]) -> None:
    """Added host time counts where overhead binds, added device time where the device does, of however few steps."""
    row = measured(device.step(issue_us, device_us), device)
    found = (row["host_slope"][0], row["device_slope"][0])
    assert found == (pytest.approx(slopes[0], abs=0.05), pytest.approx(slopes[1], abs=0.05))


@pytest.mark.parametrize(("issue_us", "device_us"), [(20, 200), (20, 1000), (20, 30_000)])
def test_a_waiting_step_has_both_slopes(device: Simulated, issue_us: float, device_us: float) -> None:
    """Host and device take turns: each added microsecond lengthens the step, whatever it is added to.

    The device time added at the start of the step is hidden while the host issues the rest of it.
    """
    row = measured(device.waiting_step(issue_us, device_us), device)
    seen = 1 - issue_us / (0.75 * row["wall_us"][0])
    assert row["host_slope"][0] == pytest.approx(1, abs=0.05)
    assert row["device_slope"][0] == pytest.approx(seen, abs=0.05)


def test_a_step_that_waits_twice_has_both_slopes(device: Simulated) -> None:
    """However often it waits, added device time is waited for once."""
    half = device.waiting_step(10, 50)
    row = measured(lambda: (half(), half())[1], device)
    assert facts_of(row)["blocking_calls"] == {"torch.cuda.synchronize": 2.0}
    assert row["host_slope"][0] == pytest.approx(1, abs=0.05)
    assert row["device_slope"][0] == pytest.approx(1 - 10 / (0.75 * 126), abs=0.05)


def test_slopes_not_asked_for_have_a_reason(device: Simulated) -> None:
    """Without slopes there are none, and the setting that brings them is named."""
    row = measured(device.step(20, 5), device, slopes=False)
    assert row["host_slope"] is None and row["device_slope"] is None
    assert "measure.slopes_every" in facts_of(row)["reasons"]["host_slope"]


def test_a_slow_sleep_is_timed_by_events(monkeypatch: pytest.MonkeyPatch) -> None:
    """A device whose clock is lowered sleeps longer than it was told; the slope is per microsecond really slept."""

    class Slowed(Simulated):
        def sleep(self, us: float) -> None:
            super().sleep(1.6 * us)

    device = Slowed().installed(monkeypatch)
    row = measured(device.step(20, 200), device)
    assert row["device_slope"][0] == pytest.approx(1, abs=0.1)


def test_slopes_take_one_value_a_round(device: Simulated) -> None:
    """Both slopes have as many values as there were rounds, three at least."""
    step = device.step(20, 5)
    plan = timing.plan(step, device, device.clock)
    rounds = measure.take_rounds({"issue": lambda: 20.0, "device": lambda: 5.0}, (), TARGET, device.clock)
    values = take_slopes(step, plan, rounds, device, device.clock, False)
    assert len(values["host_slope"]) == len(values["device_slope"]) >= 3


# -- plan and warm-up -------------------------------------------------------------------------------------------------


def test_plan_fills_its_spans(device: Simulated) -> None:
    """A wall sample is long against its synchronize, and a burst short against the queue."""
    plan = timing.plan(device.step(20, 5), device, device.clock)
    assert plan.wall_steps * 20 >= timing.WALL_SPAN_US * 0.95
    assert plan.wall_steps >= timing.WALL_STEPS * 0.95
    assert plan.burst is not None and 10 <= plan.burst <= 25
    assert plan.issue_us == pytest.approx(20, rel=0.02)


def test_plan_of_a_long_step_is_one_step(device: Simulated) -> None:
    """A step of more than 50 ms is a sample of its own."""
    plan = timing.plan(device.step(20, 60_000), device, device.clock)
    assert (plan.wall_steps, plan.burst) == (1, 1)


def test_plan_of_a_tiny_step_is_bounded(device: Simulated) -> None:
    """No sample takes more than MOST_STEPS steps."""
    plan = timing.plan(device.step(0.3, 0.1), device, device.clock)
    assert plan.wall_steps <= timing.MOST_STEPS
    assert plan.burst is not None and plan.burst <= timing.MOST_STEPS


def test_plan_of_a_waiting_step_stays_short(device: Simulated) -> None:
    """A step that waits 30 ms is issued in 30 ms as well; a sample of it does not take seconds."""
    plan = timing.plan(device.waiting_step(20, 30_000), device, device.clock)
    assert plan.wall_steps * 30_000 <= 4 * timing.LONG_STEP_US


def test_plan_leaves_little_device_work_behind(device: Simulated) -> None:
    """A burst of a device-bound step queues a few milliseconds, not seconds."""
    plan = timing.plan(device.step(10, 800), device, device.clock)
    assert plan.burst is not None and 2 * plan.burst * 800 <= 4 * timing.DEVICE_SPAN_US


def test_warm_up_ends_when_two_windows_agree(device: Simulated) -> None:
    """A steady step needs two windows and no more."""
    done = timing.warm_up(device.step(20, 5), device, device.clock, 0.02)
    window = timing.steps_for(5 * timing.WALL_SPAN_US / 2, 25 + SYNC_US, 2)
    assert done.steady
    assert done.steps == pytest.approx(1 + 2 * window, rel=0.02)


def test_warm_up_waits_for_a_step_that_grows_faster(device: Simulated) -> None:
    """A step that starts slow is called until it has settled."""
    calls = 0

    def settling() -> None:
        nonlocal calls
        calls += 1
        device.now_ns += round(20_000 * (1 + 4 * 0.995**calls))

    done = timing.warm_up(settling, device, device.clock, 0.02)
    assert done.steady
    assert 4 * 0.995**calls < 0.1


def test_warm_up_gives_up_on_a_step_that_never_settles(device: Simulated) -> None:
    """A step that becomes slower and slower is told as unsteady, and measuring goes on."""
    pause_ns = 20_000.0

    def heating() -> None:
        nonlocal pause_ns
        pause_ns *= 1.0005
        device.now_ns += round(pause_ns)

    assert not timing.warm_up(heating, device, device.clock, 0.02).steady


@pytest.mark.parametrize("steps", [1, 2, 3, 10])
def test_warm_up_of_a_number_of_steps_takes_that_many(device: Simulated, steps: int) -> None:
    """warmup=N: with the two steps before it (the first call, the look at its length) N steps come before the times."""
    calls = 0

    def step() -> None:
        nonlocal calls
        calls += 1

    given = task(point=replace(POINT, warmup=steps))
    facts = measure._warmed(given, step, device, device.clock)  # type: ignore[arg-type]
    assert facts["warmup_steps"] == 2 + calls == max(2, steps)


# -- the CPU's two times ----------------------------------------------------------------------------------------------


def test_wall_and_floor_on_a_synchronous_device(device: Simulated) -> None:
    """On a CPU the step and its floor are sampled in the same rounds, and the margin is floor over work."""
    facts: dict[str, Any] = {}
    step, floor, doubled = (device.host_work(us) for us in (12, 3, 21))
    rounds = measure._synchronous(task(), step, floor, doubled, device, device.clock, facts)  # type: ignore[arg-type]
    point = replace(POINT, device="cpu", dtype="fp32")
    done = Measurement("ok", None, rounds.samples, {}, facts)
    identity = tables.Identity("run", "sweep", "environment", datetime(2026, 1, 1, tzinfo=UTC), 0, "given")
    row = tables.run_row(point, identity, done, None, 0, {})
    assert (row["wall_us"][0], row["floor_us"][0]) == (pytest.approx(12, rel=0.02), pytest.approx(3, rel=0.02))
    assert row["margin"][0] == pytest.approx(3 / 9, rel=0.02)
    assert json.loads(row["facts"])["work_share"][0] == pytest.approx(9 / 12, rel=0.02)
    assert row["issue_us"] is None and "floor_us" in json.loads(row["facts"])["reasons"]["issue_us"]


def test_the_floor_runs_on_one_thread_and_the_step_on_all(device: Simulated) -> None:
    """The floor is taken on one thread; the step's threads come back after every sample."""
    before, seen = torch.get_num_threads(), {"wall": set[int](), "floor": set[int]()}
    torch.set_num_threads(2)

    def step(name: str, us: float) -> Step:
        def counted() -> None:
            seen[name].add(torch.get_num_threads())
            device.now_ns += round(us * 1000)

        return counted

    floor = step("floor", 3)
    floor_calls: list[int] = []

    def late_floor() -> None:
        floor_calls.append(torch.get_num_threads())
        floor()

    try:
        measure._synchronous(task(), step("wall", 500), late_floor, None, Cpu(), device.clock, {})
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
    assert seen["wall"] == {2}
    assert set(floor_calls[20:]) == {1}


# -- whatever goes wrong is an answer ---------------------------------------------------------------------------------


def on_the_cpu(folder: Path, **changes: Any) -> Task:
    """A quick task on this machine."""
    point = replace(POINT, device="cpu", dtype="fp32", size=4)
    return task(slopes=False, point=replace(point, **changes), target=Target("quick", 0.1, 0.05), folder=str(folder))


def test_a_step_that_raises_fails_with_its_reason(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Type and text on one line; garbage collection, threads and precision are as they were."""

    class Broken(MatmulAdd):
        """A step that works twice."""

        def function(self, point: Point) -> Callable[..., Any]:
            calls = iter(range(5))

            def broken(*_: Any) -> None:
                if next(calls) == 4:
                    raise RuntimeError("two\nlines")

            return broken

    monkeypatch.setitem(WORKLOADS, "matmul_add", Broken())
    before = (torch.get_num_threads(), torch.get_float32_matmul_precision())
    done = measure.measure(on_the_cpu(tmp_path, threads=1), Cpu())
    assert (done.status, done.reason, done.lost) == ("failed", "RuntimeError: two lines", False)
    assert done.facts["elapsed_s"] > 0 and done.facts["first_call_us"] > 0
    assert (torch.get_num_threads(), torch.get_float32_matmul_precision()) == before
    assert gc.isenabled()


def test_memory_that_is_not_there_is_told(tmp_path: Path) -> None:
    """Inputs of terabytes: status oom, before anything was measured."""
    done = measure.measure(on_the_cpu(tmp_path, size=2**21), Cpu())
    assert done.status == "oom", done.reason
    assert done.samples == ()


def test_a_step_that_turns_out_too_long_is_skipped(tmp_path: Path) -> None:
    """Without roofs the second call tells; the estimate is its time."""
    done = measure.measure(replace(on_the_cpu(tmp_path), max_step_s=1e-9), Cpu())
    assert done.status == "skipped"
    assert done.reason is not None and "above max_step_s=1e-09" in done.reason
    assert 0 < done.facts["estimate_s"] < 10


def test_a_predicted_step_is_the_sum_of_its_operations() -> None:
    """Each operation at the slower of its two roofs; without roofs there is no prediction."""
    operations = (Operation("matmul", 1000, 10), Operation("add", 10, 400))
    roofs = {("flops", "fp32"): 100.0, ("dram", None): 200.0}
    assert measure.predicted_step_s(operations, "fp32", roofs) == pytest.approx(10 + 2)
    assert measure.predicted_step_s(operations, "bf16", roofs) is None


def test_an_operation_of_another_dtype_has_its_own_roof() -> None:
    """Products of bf16 in a step of fp32 are predicted by the roof of bf16; without one nothing is."""
    roofs = {("flops", "fp32"): 100.0, ("flops", "bf16"): 1000.0, ("dram", None): 200.0}
    operations = (Operation("linear", 2000, 10, "bf16"), Operation("norm", 10, 400))
    assert measure.predicted_step_s(operations, "fp32", roofs) == pytest.approx(2 + 2)
    assert measure.predicted_step_s(operations, "fp32", {**roofs, ("flops", "bf16"): None}) is None


# -- watching calls ---------------------------------------------------------------------------------------------------


def test_watching_times_the_calls_of_real_tensors(device: Simulated) -> None:
    """Tensor.item and its like are counted with their time, a call inside another once, and all are put back."""
    originals = (torch.Tensor.item, torch.Tensor.__dict__.get("item"), torch.cuda.synchronize)
    with BlockingCalls(device.clock).watched() as calls:
        assert torch.ones(1).item() == 1.0
        assert bool(torch.ones(1)) is True
        assert torch.ones(2).tolist() == [1.0, 1.0]
        torch.cuda.synchronize()
    expected = {"Tensor.item": 1, "Tensor.__bool__": 1, "Tensor.tolist": 1, "torch.cuda.synchronize": 1}
    assert calls.counts == expected
    assert calls.inside_ns >= SYNC_NS
    assert (torch.Tensor.item, torch.Tensor.__dict__.get("item"), torch.cuda.synchronize) == originals


def test_what_tensors_elsewhere_are_asked_waits_for_nothing() -> None:
    """A counter on the host is read at once, whatever the device does; a wait without a tensor counts all the same."""
    with BlockingCalls(lambda: 0, kind="cuda").watched() as calls:
        assert torch.ones(1).item() == 1.0 and torch.equal(torch.ones(1), torch.ones(1))
        with contextlib.suppress(Exception):
            torch.cuda.synchronize()
    assert calls.counts == {"torch.cuda.synchronize": 1}


def test_watching_ends_when_the_step_fails() -> None:
    """An exception inside a watched call passes, is counted, and leaves torch as it was."""
    before = torch.Tensor.item
    calls = BlockingCalls(lambda: 0)
    with pytest.raises(RuntimeError), calls.watched():
        torch.ones(2).item()
    assert calls.counts == {"Tensor.item": 1}
    assert torch.Tensor.item is before


def test_time_before_a_watched_call_is_left_out(device: Simulated) -> None:
    """`before` runs ahead of each call and its time is not the call's: a synchronize there leaves the bare call."""
    step = device.waiting_step(20, 200)
    idle_us, _ = timing.watched_us(step, 5, device, device.clock, device.synchronize)
    waiting_us, _ = timing.watched_us(step, 5, device, device.clock)
    assert idle_us == pytest.approx(SYNC_US, abs=0.3)
    assert waiting_us == pytest.approx(200 + SYNC_US, rel=0.01)
