"""Figures of one profiled window, computed from its events alone (`runner.trace`).

A step is the annotation with the workload's name inside `ProfilerStep#N`. Everything a step launched counts for it, on
whatever thread it was launched and whenever it ran. Times are microseconds. The profiler slows the host, so host times
explain a step and never decide its bound.
"""

import hashlib
import math
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from runner.trace import RUNTIME, Event

REGION = "Torch-Compiled Region"
_LAUNCH = re.compile(
    r"(cuda|cu|hip)(Ext)?(Module)?(Launch(Cooperative)?Kernel(Ex|ExC|MultiDevice)?|GraphLaunch|Mem(cpy|set)\w*)(_v\d+)?"
)
# hipMemcpyWithStream waits for its stream, unlike every other copy that takes one.
_BLOCKING = re.compile(r"(cuda|cu|hip)((Stream|Device|Event|Ctx)Synchronize|Memcpy(?!\w*Async)\w*)(_v\d+)?")
_WAITS = re.compile(r"(cuda|cu|hip)\w*(Synchronize|Query)(_v\d+)?")
_HOST_CALLS = RUNTIME | {"cpu_op"}
_CAPTURE_BEGINS = re.compile(r"(cuda|cu|hip)StreamBeginCapture(_v\d+)?")
_CAPTURE_ENDS = re.compile(r"(cuda|cu|hip)StreamEndCapture(_v\d+)?")


@dataclass(frozen=True)
class Window:
    """What one profiled window says. Lists hold one value a step, in the order of `steps`.

    The device's figures are None where the trace shows neither device work nor calls of a device's runtime (on a CPU,
    and where the profiler could not see the device), and where it holds no step.
    """

    steps: list[int]
    host_us: list[float]
    """Duration of the step's annotation on the host."""
    busy_us: list[float] | None
    """Union of the intervals in which the device worked for the step."""
    blocked_us: list[float] | None
    """Time the step's host thread spent in synchronizing calls inside the annotation."""
    launches: list[int] | None
    """Calls that start device work; what a stream captures is recorded, not started."""
    kernels: list[int] | None
    """Kernels, copies and fills that ran for the step."""
    blocking_calls: dict[str, float] | None
    """Name of a synchronizing call -> calls a step."""
    trace_incomplete: bool | None
    """A launch inside a step has no device work: the profiler lost some, and device figures are too small."""
    unattributed_frac: float | None
    """Share of the summed device time that belongs to no step; None without device time."""
    underfilled_frac: float | None
    """Share of busy time in kernels of fewer blocks than the device has multiprocessors; None where that is unknown."""
    launch_sequence: str | None
    """Hash of the host operators and runtime calls of most steps, in their order; None where steps differ."""
    region_ran: bool
    """A region compiled by torch.compile ran in the window."""


def summarize(events: list[Event], annotation: str, multiprocessors: int | None) -> Window:
    """Figures of the steps that hold exactly one host annotation of this name.

    `multiprocessors` is the number the device has; None leaves only `underfilled_frac` unknown.
    """
    marks = _marks(events, annotation)
    steps = list(marks)
    sees_device = bool(steps) and any(event.is_device or event.category in RUNTIME for event in events)
    work = _by_step((event for event in events if event.is_device), steps)
    launches = _by_step(_launch_calls(events), steps)
    waits = {step: _waits(events, mark) for step, mark in marks.items()}
    return Window(
        steps=steps,
        host_us=[mark.dur_ns / 1000 for mark in marks.values()],
        busy_us=_union_us(work) if sees_device else None,
        blocked_us=_union_us(waits) if sees_device else None,
        launches=_counts(launches) if sees_device else None,
        kernels=_counts(work) if sees_device else None,
        blocking_calls=_calls_a_step(waits) if sees_device else None,
        trace_incomplete=_lost_work(events, launches) if sees_device else None,
        unattributed_frac=_unattributed_frac(events),
        underfilled_frac=_underfilled_frac(work, multiprocessors),
        launch_sequence=_launch_sequence(events, marks) if sees_device else None,
        region_ran=any(event.name.startswith(REGION) for event in events),
    )


def _marks(events: list[Event], annotation: str) -> dict[int, Event]:
    """Step -> its annotation. A step that holds none or several is no step of this workload."""
    found = [e for e in events if e.category == "user_annotation" and e.name == annotation and e.step is not None]
    times = Counter(event.step for event in found)
    return {event.step: event for event in found if event.step is not None and times[event.step] == 1}


def _by_step(events: Iterable[Event], steps: list[int]) -> dict[int, list[Event]]:
    groups: dict[int, list[Event]] = {step: [] for step in steps}
    for event in events:
        if event.step in groups:
            groups[event.step].append(event)
    return groups


def _counts(groups: dict[int, list[Event]]) -> list[int]:
    return [len(group) for group in groups.values()]


def _union_us(groups: dict[int, list[Event]]) -> list[float]:
    return [_union_ns(group) / 1000 for group in groups.values()]


def _union_ns(events: Iterable[Event]) -> int:
    """Nanoseconds in which at least one of the events lasts."""
    total = 0
    covered_until: int | None = None
    for start, end in sorted((event.ts_ns, event.end_ns) for event in events):
        begin = start if covered_until is None else max(start, covered_until)
        total += max(0, end - begin)
        covered_until = end if covered_until is None else max(end, covered_until)
    return total


def blocking(events: Iterable[Event]) -> list[Event]:
    """Calls in which the host waits for the device, on any thread and inside steps or not."""
    return [event for event in events if event.category in RUNTIME and _BLOCKING.fullmatch(event.name)]


def launching(events: Iterable[Event]) -> list[Event]:
    """Calls that start device work, on any thread and inside steps or not."""
    return _launch_calls(list(events))


# --- the host's side


def _inside(event: Event, mark: Event) -> bool:
    return _same_thread(event, mark) and mark.ts_ns <= event.ts_ns < mark.end_ns


def _same_thread(one: Event, other: Event) -> bool:
    return (one.pid, one.tid) == (other.pid, other.tid)


def _waits(events: list[Event], mark: Event) -> list[Event]:
    """Synchronizing calls inside the annotation; the fences of the runner lie outside it."""
    return [e for e in events if e.category in RUNTIME and _BLOCKING.fullmatch(e.name) and _inside(e, mark)]


def _calls_a_step(waits: dict[int, list[Event]]) -> dict[str, float]:
    names = Counter(event.name for group in waits.values() for event in group)
    return {name: number / len(waits) for name, number in sorted(names.items())}


def _launch_calls(events: list[Event]) -> list[Event]:
    """Calls that start device work: all that name a launch, a copy or a fill, but for those that a stream captures."""
    calls = [event for event in events if event.category in RUNTIME]
    captures = _captures(calls)
    launches = (event for event in calls if _LAUNCH.fullmatch(event.name))
    return [event for event in launches if not _captured(event, captures)]


def _captures(calls: list[Event]) -> list[tuple[Event, int | None]]:
    """First call of each capture, and when it ended (None: not in this window)."""
    ends = sorted((event for event in calls if _CAPTURE_ENDS.fullmatch(event.name)), key=lambda event: event.ts_ns)
    begins = (event for event in calls if _CAPTURE_BEGINS.fullmatch(event.name))
    return [
        (begin, next((end.ts_ns for end in ends if _same_thread(end, begin) and end.ts_ns > begin.ts_ns), None))
        for begin in begins
    ]


def _captured(event: Event, captures: list[tuple[Event, int | None]]) -> bool:
    return any(
        _same_thread(event, begin) and begin.ts_ns < event.ts_ns and (end_ns is None or event.ts_ns < end_ns)
        for begin, end_ns in captures
    )


def _launch_sequence(events: list[Event], marks: dict[int, Event]) -> str | None:
    """Hash of what more than half of the steps call on their host thread, in its order.

    Kernels are left out, since a library chooses them by size, and so is what only some steps call.
    """
    calls = _by_step((event for event in events if event.category in _HOST_CALLS), list(marks))
    steps = [_names([event for event in group if _inside(event, marks[step])]) for step, group in calls.items()]
    always = frozenset.intersection(*map(frozenset, steps))
    counts = Counter(tuple(name for name in names if name in always) for names in steps)
    sequence, times = counts.most_common(1)[0]
    known = sequence and 2 * times > len(steps)
    return hashlib.sha256("\n".join(sequence).encode()).hexdigest()[:12] if known else None


def _names(calls: list[Event]) -> list[str]:
    """Names of calls in the order in which they began, without waits and queries; compiled regions without number."""
    ordered = sorted(calls, key=lambda call: (call.ts_ns, -call.dur_ns))
    names = [REGION if call.name.startswith(REGION) else call.name for call in ordered]
    return [name for name in names if not _WAITS.fullmatch(name)]


# --- the device's side


def _lost_work(events: list[Event], launches: dict[int, list[Event]]) -> bool:
    seen = {event.launch_id for event in events if event.is_device}
    return any(launch.event_id not in seen for group in launches.values() for launch in group)


def _unattributed_frac(events: list[Event]) -> float | None:
    work = [event for event in events if event.is_device]
    total_ns = sum(event.dur_ns for event in work)
    return sum(event.dur_ns for event in work if event.step is None) / total_ns if total_ns else None


def _underfilled_frac(work: dict[int, list[Event]], multiprocessors: int | None) -> float | None:
    kernels = [event for group in work.values() for event in group if event.category == "kernel"]
    busy_ns = sum(_union_ns(group) for group in work.values())
    if multiprocessors is None or not busy_ns or any(kernel.grid is None for kernel in kernels):
        return None
    underfilled = _by_step((kernel for kernel in kernels if _blocks(kernel) < multiprocessors), list(work))
    return sum(_union_ns(group) for group in underfilled.values()) / busy_ns


def _blocks(kernel: Event) -> int:
    return math.prod(kernel.grid or [])
