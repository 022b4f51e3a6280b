"""Measuring one point in a worker: prepare, warm up, take the times, then the profile."""

from __future__ import annotations

import contextlib
import gc
import itertools
import math
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, replace
from functools import partial
from importlib import metadata, util
from pathlib import Path
from typing import Any

import torch

from runner import afterwards, allocating, compiling, custom, doubling, host, memory, numerics, timing
from runner.clock import Clock, host_clock
from runner.condition import HostCounters
from runner.device import Device
from runner.dynamics import FirstCycles
from runner.nsys_window import record_window
from runner.point import Point, Schedule
from runner.profiling import Profile, record, warm_profiler
from runner.quiet import quiet_host
from runner.ranges import module_names, ranges
from runner.rounds import Rounds, Sample, Take, Target, completed, lacking, take_rounds
from runner.slopes import take_slopes
from runner.task import Measurement, Recorder, Task
from runner.workloads import Built, predicted_step_s

Step = Callable[[], Any]
MOST_INPUTS = 16384
BLOCKING_SPAN_US = 50_000.0
DEVICE_ALONE = ("device", "replay")
"""Times that the host has no part in, so that its pace does not matter."""
ONE_TIME = dict.fromkeys(
    ("issue_us", "device_us", "replay_us", "single_us", "blocked_us", "host_slope", "device_slope"),
    "on a synchronous device the host's and the device's time are one: see wall_us and floor_us",
)
"""Why a step of the CPU has none of these."""


class Skipped(Exception):
    """A point that is not measured, and why; `estimate_s` is the time predicted for a step."""

    def __init__(self, reason: str, estimate_s: float) -> None:
        super().__init__(reason)
        self.estimate_s = estimate_s


def measure(task: Task, device: Device, clock: Clock = host_clock) -> Measurement:
    """Measure a point in its steady state. Whatever goes wrong is an answer with status and reason."""
    steps: list[Step] = []
    done = _guarded(lambda facts: _warm(task, device, clock, facts, steps), task, device, clock)
    return _examined(done, steps, task, device, clock)


def measure_times(task: Task, device: Device, clock: Clock = host_clock) -> Measurement:
    """The same without a profile, but where nothing else can tell the device's time."""
    steps: list[Step] = []
    done = _guarded(lambda facts: _times_alone(task, device, clock, facts, steps), task, device, clock)
    return _examined(done, steps, task, device, clock)


def rehearse(device: Device) -> None:
    """Measure a tiny point twice and forget it: the first two profiler sessions of a process take seconds each."""
    schedule, target = Schedule(0, 0, 1), Target("rehearsal", 1.0, 0.01)
    point = Point("matmul_add", (), 2, "fp32", None, False, False, True, device.kind, schedule, "warm", None, 0)
    with tempfile.TemporaryDirectory() as folder:
        task = Task(point, target, math.inf, True, Recorder(), False, {}, folder)
        for _ in range(2):
            measure(task, device)
    numerics.forget()


def measure_first_steps(task: Task, device: Device, clock: Clock = host_clock) -> Measurement:
    """A cold point, unprofiled: the time of each of the first steps of this process."""
    return _guarded(lambda facts: _first_steps(task, device, clock, facts), task, device, clock)


def measure_cold_profile(task: Task, device: Device, clock: Clock = host_clock) -> Measurement:
    """A cold point, profiled from its very first step, behind an empty profiler session."""
    return _guarded(lambda facts: _cold_profile(task, device, facts), task, device, clock)


def measure_under_nsys(task: Task, device: Device, way: str, clock: Clock = host_clock) -> Measurement:
    """The window alone, of a step that is warm (way `warm`) or that runs for the first time (`cold_profile`), in a
    process that Nsight Systems watches."""
    return _guarded(lambda facts: _watched(task, device, way, clock, facts), task, device, clock)


# -- the frame round every measurement --------------------------------------------------------------------------------


Body = Callable[[dict[str, Any]], Measurement]


def _guarded(body: Body, task: Task, device: Device, clock: Clock) -> Measurement:
    """Run `body` in the point's settings; exceptions become answers. `body` fills the facts, kept even if it fails."""
    facts: dict[str, Any] = _packages(task.point)
    start = clock()
    counters = memory.read(device.kind)
    try:
        with _settings(task.point, device):
            _clean(device)
            _refuse_impossible(task, device)
            done = body(facts)
            facts["peak_bytes"] = device.peak_bytes()
    except Skipped as skip:
        done = Measurement("skipped", str(skip))
        facts["estimate_s"] = skip.estimate_s
    except Exception as error:
        done = Measurement(*_failure(error))
    _remember(facts, memory.troubles(counters, memory.read(device.kind)))
    facts["elapsed_s"] = (clock() - start) / 1e9
    facts["worker_bytes"] = host.resident_bytes()
    return replace(done, facts=facts, lost=_is_lost(device))


def _packages(point: Point) -> dict[str, Any]:
    """Versions of what a step needs beside torch; None for a package that is not installed."""
    if not point.spec.packages:
        return {}
    installed = {name: metadata.version(name) for name in point.spec.packages if util.find_spec(name)}
    return {"packages": {name: installed.get(name) for name in point.spec.packages}}


def _remember(facts: dict[str, Any], found: Mapping[str, float | None]) -> None:
    """Add to facts.memory; a device that counts nothing has none."""
    if found:
        facts["memory"] = {**facts.get("memory", {}), **found}


@contextlib.contextmanager
def _host_watched(facts: dict[str, Any]) -> Iterator[None]:
    """The host's condition while times are taken; a compiler that keeps its CPUs busy before is no stranger."""
    counters = HostCounters()
    counters.start()
    yield
    facts["condition"] = counters.finish()


@contextlib.contextmanager
def _settings(point: Point, device: Device) -> Iterator[None]:
    threads = torch.get_num_threads()
    if point.threads is not None:
        torch.set_num_threads(point.threads)
    try:
        with device.numerics(point.dtype), point.spec.settings(point):
            yield
    finally:
        torch.set_num_threads(threads)


def _clean(device: Device) -> None:
    """Nothing of one point reaches the next: memory, peaks, compiled code."""
    gc.collect()
    device.empty_cache()
    device.reset_peak()
    compiling.forget()
    allocating.restore()


def _refuse_impossible(task: Task, device: Device) -> None:
    point = task.point
    if (refusal := device.refusal(point.dtype)) is not None:
        raise ValueError(f"dtype={point.dtype}: {refusal}")
    cost = point.spec.cost(point)
    estimate = predicted_step_s(cost.operations, point.dtype, task.roofs) if cost else None
    if estimate is not None and estimate > task.max_step_s:
        raise Skipped(f"a step is predicted to take {estimate:.3g} s, above max_step_s={task.max_step_s:g}", estimate)


def _failure(error: Exception) -> tuple[str, str]:
    """Status and reason of an exception: memory that is not there apart from everything else."""
    text = " ".join(str(error).split()) or type(error).__name__
    memory = isinstance(error, torch.OutOfMemoryError | MemoryError) or "can't allocate memory" in text
    return ("oom" if memory else "failed"), f"{custom.place(error)}{type(error).__name__}: {text}"[:1000]


def _is_lost(device: Device) -> bool:
    """Whether an error has stuck to the device, so that nothing works in this process any more."""
    try:
        device.synchronize()
    except Exception:
        return True
    return False


def _examined(done: Measurement, steps: list[Step], task: Task, device: Device, clock: Clock) -> Measurement:
    """The answer with what runner/afterwards.py finds out; the time that it takes is part of elapsed_s."""
    built = getattr(steps[0], "built", None) if steps else None
    if done.status != "ok" or done.lost or built is None:
        return done
    start = clock()
    with _settings(task.point, device):
        done = afterwards.examined(done, steps[0], built, task, device)
    done.facts["elapsed_s"] += (clock() - start) / 1e9
    return replace(done, lost=_is_lost(device))


# -- a warm point ------------------------------------------------------------------------------------------------------


def _warm(task: Task, device: Device, clock: Clock, facts: dict[str, Any], steps: list[Step]) -> Measurement:
    """steps: takes the step, where it may be called again afterwards."""
    step, done = _timed(task, device, clock, facts)
    steps.append(step)
    if task.recorder.tool == "nsys":  # another process records the window
        return done
    traces, table = _profiled(task, step, device, clock, facts)
    return replace(done, traces=traces, table=table)


def _times_alone(task: Task, device: Device, clock: Clock, facts: dict[str, Any], steps: list[Step]) -> Measurement:
    step, done = _timed(task, device, clock, facts)
    steps.append(step)
    taken = {sample.quantity for sample in done.samples}
    if not device.asynchronous or taken & set(DEVICE_ALONE):
        return done
    traces, table = _profiled(task, step, device, clock, facts)
    return replace(done, traces=traces, table=table)


def _timed(task: Task, device: Device, clock: Clock, facts: dict[str, Any]) -> tuple[Step, Measurement]:
    """The step, warm, and its times and slopes."""
    floor = None if device.asynchronous else _floor_step(task.point, device)
    step = build_step(task.point, device)
    if floor is not None and task.point.compile is not False:
        compiling.forget_counters()
    first = FirstCycles(task.point, step, device, clock)
    with _compilation_told(task.point, first, facts):
        facts["first_cycles_us"] = first.times_us
        facts["first_call_us"] = first.take()
        _refuse_long(first.take, task.max_step_s)
        first.take_more()
        facts |= _warmed(task, step, device, clock, len(first.times_us))
    _remember(facts, memory.sizes(memory.read(device.kind)))
    if device.kind == "cuda":
        facts["allocator"] = allocating.at_rest(first.counters, device)
    doubled = _doubled_step(task, device) if floor is not None else None
    gc.collect()
    gc.disable()
    try:
        with _host_watched(facts):
            if device.asynchronous:
                rounds, slopes = _asynchronous(task, step, device, clock, facts)
            elif floor is not None:
                rounds, slopes = _synchronous(task, step, floor, doubled, device, clock, facts), {}
            else:
                rounds, slopes = _without_floor(task, step, device, clock, facts), {}
    finally:
        gc.enable()
    facts["measure"] = asdict(task.target)
    facts |= {"stopped": rounds.stopped, "rounds": rounds.count, "measured_s": rounds.seconds}
    if device.kind == "cuda":
        facts["allocator"] |= allocating.cold_cycles(step, device, clock)
    return step, Measurement("ok", None, rounds.samples, slopes, facts)


@contextlib.contextmanager
def _compilation_told(point: Point, first: FirstCycles, facts: dict[str, Any]) -> Iterator[None]:
    """Whatever becomes of the first steps, facts.compile says what was compiled in them."""
    try:
        yield
    finally:
        if point.compile is not False:
            facts["compile"] = first.placed(compiling.facts())


def build_step(point: Point, device: Device) -> Step:
    """The step with its inputs bound; with l2=cold a cycle over inputs of three times the cache."""
    return bound(build(point, device), point, device)


def build(point: Point, device: Device) -> Built:
    """The point's step and what it is called with, before its first call."""
    generator = torch.Generator(device.torch).manual_seed(point.seed)
    built = point.spec.build(point, device.torch, generator, partial(compiling.of_point, point))
    if point.static_inputs:
        compiling.mark_static(built.arguments)
    return built


def bound(built: Built, point: Point, device: Device) -> Step:
    """The step as it is called, with what it was made of as `built`; with l2=cold further inputs are made behind the
    first."""
    first = built.arguments
    step: Any
    if point.l2 == "warm":
        step = partial(built.function, *first)
    else:
        generator = torch.Generator(device.torch).manual_seed(point.seed + 1)
        more = [point.spec.inputs(point, device.torch, generator) for _ in range(cold_sets(first, device) - 1)]
        step = Rotation([partial(built.function, *each) for each in (first, *more)])
    step.built = built
    bound_step: Step = step
    return bound_step


class Rotation:
    """A step that takes the next of its inputs at every call; `length` calls go round once."""

    def __init__(self, steps: list[Step]) -> None:
        self.length = len(steps)
        self._next = itertools.cycle(steps).__next__

    def __call__(self) -> Any:
        return self._next()()


def cold_sets(inputs: tuple[torch.Tensor, ...], device: Device) -> int:
    """How many sets of inputs are three times the cache. Raises ValueError where that cannot be had."""
    if device.l2_bytes is None:
        raise ValueError("l2=cold: the size of the cache cannot be read; use l2=warm")
    bytes_each = sum(each.numel() * each.element_size() for each in inputs)
    sets = math.ceil(3 * device.l2_bytes / bytes_each)
    if sets > MOST_INPUTS:
        raise ValueError(
            f"l2=cold: {sets} sets of {bytes_each} bytes of inputs are needed, above {MOST_INPUTS}; use a larger size"
        )
    return max(2, sets)


def _floor_step(point: Point, device: Device) -> Step | None:
    """The same operations at the workload's floor, compiled on its own where the point is.

    None where it is not known what the step does when there is nothing to do, as for a step of the user's own.
    """
    small = point.spec.at_floor(replace(point, l2="warm"))
    if small is None:
        return None
    generator = torch.Generator(device.torch).manual_seed(small.seed)
    built = small.spec.build(small, device.torch, generator, partial(compiling.apart, small))
    step = partial(built.function, *built.arguments)
    step()
    return step


def _doubled_step(task: Task, device: Device) -> Step | None:
    """The step on twice the rows, where slopes are asked for and it can be made."""
    return doubling.doubled_step(task.point, device) if task.slopes and not doubling.refusal(task.point) else None


def _refuse_long(sample: Callable[[], float], max_step_s: float) -> None:
    """The second call shows what no cost model has predicted; a third one, that it was no hiccup."""
    for _ in range(2):
        step_s = sample() / 1e6
        if step_s <= max_step_s:
            return
    raise Skipped(f"a step took {step_s:.3g} s, above max_step_s={max_step_s:g}", step_s)


def _warmed(task: Task, step: Step, device: Device, clock: Clock, taken: int = 2) -> dict[str, Any]:
    """Warm-up: so many steps, or until two windows agree; then caches, clocks and autotuning have settled.

    taken: steps before this, which count for a number of steps.
    """
    if task.point.warmup is not True:
        timing.repeat(step, int(task.point.warmup) - taken)
        return {"warmup_steps": max(taken, int(task.point.warmup))}
    done = timing.warm_up(step, device, clock, task.target.target_frac)
    return {"warmup_steps": done.steps} | ({} if done.steady else {"unsteady": True})


def _synchronous(
    task: Task, step: Step, floor: Step, doubled: Step | None, device: Device, clock: Clock, facts: dict[str, Any]
) -> Rounds:
    """wall, floor and doubled work, on a device where every call returns when its work is done."""
    wall_steps = timing.steps_for(timing.WALL_SPAN_US, timing.wall_us(step, 1, device, clock))
    floor_steps = timing.steps_for(timing.WALL_SPAN_US / 2, timing.wall_us(floor, 10, device, clock))

    def on_one_thread() -> float:
        threads = torch.get_num_threads()
        torch.set_num_threads(1)
        try:
            timing.repeat(floor, 3)
            return timing.wall_us(floor, floor_steps, device, clock)
        finally:
            torch.set_num_threads(threads)

    quantities: dict[str, Take] = {"wall": partial(_warm_wall_us, step, wall_steps, device, clock)}
    quantities["floor"] = on_one_thread
    if doubled is not None:
        quantities["doubled"] = partial(_warm_wall_us, doubled, max(1, wall_steps // 2), device, clock)
    rounds = take_rounds(quantities, ("wall", "floor"), task.target, clock)
    facts["reasons"] = dict(ONE_TIME)
    if doubled is None:
        facts["reasons"]["doubled_us"] = doubling.refusal(task.point) or "taken with slopes: measure.slopes_every"
    return rounds


def _warm_wall_us(step: Step, steps: int, device: Device, clock: Clock) -> float:
    """timing.wall_us behind a few steps that find their data where another quantity has left it."""
    timing.repeat(step, min(3, steps // 4))
    return timing.wall_us(step, steps, device, clock)


def _without_floor(task: Task, step: Step, device: Device, clock: Clock, facts: dict[str, Any]) -> Rounds:
    """wall alone, on a device where every call returns when its work is done."""
    steps = timing.steps_for(timing.WALL_SPAN_US, timing.wall_us(step, 1, device, clock))
    unknown = f"{task.point.workload} has no size at which it is known to do nothing"
    facts["reasons"] = {**ONE_TIME, "floor_us": unknown, "doubled_us": doubling.refusal(task.point)}
    return take_rounds({"wall": partial(_warm_wall_us, step, steps, device, clock)}, ("wall",), task.target, clock)


def _asynchronous(
    task: Task, step: Step, device: Any, clock: Clock, facts: dict[str, Any]
) -> tuple[Rounds, dict[str, list[float]]]:
    """wall, issue, device, replay and single, and the slopes where they are asked for."""
    reasons: dict[str, str] = {}
    facts["reasons"] = reasons
    host_cpu = quiet_host(clock)
    host_cpu.begin()
    calls = _blocking(step, device, clock, facts)
    plan = timing.plan(step, device, clock)
    facts["burst_steps"] = 2 * plan.burst
    quantities: dict[str, Take] = {"wall": lambda: timing.wall_us(step, plan.wall_steps, device, clock)}
    quantities |= _issue_quantities(step, plan, device, clock, calls, reasons)
    quantities |= _device_quantities(step, plan, device, clock, bool(calls), reasons)
    quantities["single"] = lambda: timing.single_us(step, device, clock, 1 if plan.burst == 1 else 3)
    decisive = [name for name in ("wall", "issue", "device") if name in quantities]
    quiet = {name: each if name in DEVICE_ALONE else host_cpu.undisturbed(each) for name, each in quantities.items()}
    rounds = take_rounds(quiet, decisive, task.target, clock)
    facts["host_pace"] = {**host_cpu.told(), "lacking": lacking(rounds.samples, decisive)}
    rounds = completed(rounds, tuple(quantities))
    if not task.slopes:
        reasons |= dict.fromkeys(
            ("host_slope", "device_slope"), "slopes are taken at every n-th point: measure.slopes_every"
        )
        return rounds, {}
    return rounds, take_slopes(step, plan, rounds, device, clock, bool(calls))


@dataclass(frozen=True, slots=True)
class Blocking:
    """Synchronizing calls of a step: how often each is made, and what they cost when nothing is pending."""

    counts: dict[str, float]
    idle_us: float

    def __bool__(self) -> bool:
        return bool(self.counts)


def _blocking(step: Step, device: Any, clock: Clock, facts: dict[str, Any]) -> Blocking:
    steps = min(10, timing.steps_for(BLOCKING_SPAN_US, timing.single_us(step, device, clock, 1)))
    idle_us, counts = timing.watched_us(step, steps, device, clock, device.synchronize)
    if not counts and device.synchronizes(step):
        counts = {"unnamed": 1.0}
    if counts:
        facts |= {"blocking_calls": counts, "blocked_method": "profile" if "unnamed" in counts else "timed calls"}
    return Blocking(counts, idle_us)


def _issue_quantities(
    step: Step, plan: timing.Plan, device: Any, clock: Clock, calls: Blocking, reasons: dict[str, str]
) -> dict[str, Take]:
    burst = plan.burst
    if calls:
        return _blocked_quantities(step, burst, device, clock, calls)
    reasons["blocked_us"] = "the step makes no synchronizing call"
    return {
        "issue": lambda: timing.burst_us(step, 2 * burst, device, clock),
        "issue_half": lambda: timing.burst_us(step, burst, device, clock),
    }


def _blocked_quantities(step: Step, burst: int, device: Any, clock: Clock, calls: Blocking) -> dict[str, Take]:
    """Issue time is what is left of a step without the wait for pending work; the calls' own cost stays in it."""

    def blocked() -> float:
        return max(0.0, timing.watched_us(step, 2 * burst, device, clock)[0] - calls.idle_us)

    def issue() -> float:
        return timing.burst_us(step, 2 * burst, device, clock) - blocked()

    return {"blocked": blocked, "issue": issue}


def _device_quantities(
    step: Step, plan: timing.Plan, device: Any, clock: Clock, blocks: bool, reasons: dict[str, str]
) -> dict[str, Take]:
    if blocks:
        reasons["replay_us"] = "the step waits for the device, which a graph cannot capture"
        reasons["device_us"] = "the step waits for the device, so the stream cannot be held"
        return {}
    steps = 2 * plan.burst
    held = partial(timing.held_us, step, steps, plan.issue_us, device)
    device_us = held() or held()
    quantities: dict[str, Take] = {"device": held} if device_us else {}
    replay_steps = timing.steps_for(timing.REPLAY_SPAN_US, device_us or plan.issue_us)
    if isinstance(step, Rotation):
        replay_steps = max(replay_steps, step.length)  # a graph of fewer inputs would stay in the cache
    try:
        replay = device.captured(step, replay_steps)
        device.synchronize()
    except Exception as error:
        device.synchronize()
        reasons["replay_us"] = f"cannot be captured: {' '.join(str(error).split())[:200]}"
        return quantities
    replay()
    launch_us = timing.burst_us(replay, 1, device, clock)
    return quantities | {"replay": lambda: _per_step(timing.held_us(replay, 1, launch_us, device), replay_steps)}


def _paths(files: tuple[Path, ...]) -> tuple[str, ...]:
    """As text: a Path pickled by one Python is not always one to another."""
    return tuple(str(each) for each in files)


def _per_step(total_us: float | None, steps: int) -> float | None:
    return None if total_us is None else total_us / steps


def _profiled(
    task: Task, step: Step, device: Device, clock: Clock, facts: dict[str, Any]
) -> tuple[tuple[str, ...], str | None]:
    """The profiled window, directly behind sustained steps. Without a profiler the times stand all the same."""
    _sustain(step, device, clock, facts)
    try:
        point, folder = task.point, Path(task.folder)
        inside = _ranges(task, step)
        done = record(step, point.workload, point.schedule, task.recorder, device, folder, task.table, inside)
    except Exception as error:
        facts["profile"] = {"reason": f"the profiler failed: {' '.join(str(error).split())[:300]}"}
        return (), None
    facts["profile"] = _conditions(done, task)
    return _paths(done.traces), done.table


def _ranges(task: Task, step: Step) -> AbstractContextManager[None]:
    """Phases and, where they are asked for, modules and operators of the step, as ranges of its profile."""
    arguments = step.args if isinstance(step, partial) else ()
    return ranges(task.recorder, module_names(arguments), task.point.compile is not False)


def _sustain(step: Step, device: Device, clock: Clock, facts: dict[str, Any]) -> None:
    """Steps without a pause; whether they ask the driver for memory is seen on the way."""
    before = memory.read(device.kind)
    steps = timing.steps_for(timing.WALL_SPAN_US, timing.wall_us(step, 1, device, clock))
    timing.wall_us(step, steps, device, clock)
    _remember(facts, memory.calls(before, memory.read(device.kind), 1 + steps))


def _conditions(done: Profile, task: Task) -> dict[str, Any]:
    """Under which conditions a window was recorded, for facts.profile."""
    told = {} if done.device_us is None else {"torch_device_us": done.device_us}
    return {"window": done.conditions, "options": asdict(task.recorder), **told}


# -- a cold point ------------------------------------------------------------------------------------------------------


def _first_steps(task: Task, device: Device, clock: Clock, facts: dict[str, Any]) -> Measurement:
    step = build_step(task.point, device)
    first = FirstCycles(task.point, step, device, clock)
    with _host_watched(facts), _compilation_told(task.point, first, facts):
        samples = [Sample("first", number, number, first.take()) for number in range(task.point.schedule.active)]
    facts |= {"first_call_us": samples[0].value, "first_cycles_us": first.times_us}
    _remember(facts, memory.sizes(memory.read(device.kind)))
    return Measurement("ok", None, tuple(samples), {}, facts)


def _cold_profile(task: Task, device: Device, facts: dict[str, Any]) -> Measurement:
    point, folder = task.point, Path(task.folder)
    warm_profiler(device, folder)
    step = build_step(point, device)
    inside = _ranges(task, step)
    done = record(step, point.workload, point.schedule, task.recorder, device, folder, task.table, inside)
    facts["profile"] = _conditions(done, task)
    return Measurement("ok", None, (), {}, facts, _paths(done.traces), done.table)


def _watched(task: Task, device: Device, way: str, clock: Clock, facts: dict[str, Any]) -> Measurement:
    """The step as Nsight Systems sees it; no time is taken."""
    step = build_step(task.point, device)
    if way == "warm":
        _warmed(task, step, device, clock)
        _sustain(step, device, clock, facts)
    told = replace(task, recorder=replace(task.recorder, nvtx=task.recorder.nvtx or "phases"))
    facts["profile"] = {"window": record_window(step, task.point, device, _ranges(told, step))}
    return Measurement("ok", facts=facts)


WAYS: dict[str, Callable[[Task, Device], Measurement]] = {
    "warm": measure, "times": measure_times, "first_steps": measure_first_steps,
    "cold_profile": measure_cold_profile,
}  # fmt: skip
