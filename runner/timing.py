"""The times of a step, without a profiler: how each sample is taken.

On an asynchronous device: wall, issue, device, replay and single; on the CPU: wall and floor. The law in one line:
max(issue, device) <= wall <= issue + device.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from runner.blocking import BlockingCalls
from runner.clock import Clock
from runner.rounds import AGREEMENT, LEADING

Step = Callable[[], Any]

WALL_SPAN_US = 1500.0  # a wall sample's length: the synchronize at its end is about 1 % of it
ISSUE_SPAN_US = 400.0  # a burst's length: long against the clock, short against the launch queue
DEVICE_SPAN_US = 2000.0  # a burst leaves at most about this much device work behind
REPLAY_SPAN_US = 1600.0  # device time put into one graph, so that a replay lasts 1 ms or more
WALL_STEPS = 100  # at least so long, in issue times: waking up and draining are then about 1 % of it
LONG_STEP_US = 50_000.0  # one step is a sample of its own
MOST_STEPS = 1000
HOLD_MARGIN = 1.5
FILLED = 1.25  # issue(2k) above this multiple of one step's: the queue was full before the burst began
WARMUP_WINDOWS = 40


class AsyncDevice(Protocol):
    """What timing needs of an asynchronous device (runner/device.py; tests give a simulated one)."""

    def synchronize(self) -> None: ...
    def sleep(self, us: float) -> None: ...
    def mark(self) -> Any: ...
    def reached(self, mark: Any) -> bool: ...
    def between_us(self, first: Any, last: Any) -> float: ...


@dataclass(frozen=True, slots=True)
class Plan:
    """How many steps each sample takes; from a pilot. burst: k, the steps of a burst that should not fill the queue."""

    wall_steps: int
    burst: int
    issue_us: float


def repeat(step: Step, times: int) -> None:
    """Call the step `times` times."""
    for _ in range(times):
        step()


def host_us(step: Step, times: int, clock: Clock) -> float:
    """Host time of each of `times` calls, microseconds."""
    start = clock()
    repeat(step, times)
    return (clock() - start) / 1000 / times


def wall_us(step: Step, times: int, device: Any, clock: Clock) -> float:
    """Steady time of a step: `times` steps back to back, one synchronize at the end, microseconds a step."""
    device.synchronize()
    start = clock()
    repeat(step, times)
    device.synchronize()
    return (clock() - start) / 1000 / times


def sustained_us(step: Step, times: int, device: Any, clock: Clock) -> float:
    """wall_us behind a step that is under way already: what the first step adds to the host can be hidden as well."""
    device.synchronize()
    step()
    start = clock()
    repeat(step, times)
    device.synchronize()
    return (clock() - start) / 1000 / times


def burst_us(step: Step, times: int, device: Any, clock: Clock) -> float:
    """Host time to issue a step, in a burst behind a synchronize; LEADING steps wake what the wait put to sleep."""
    device.synchronize()
    repeat(step, min(LEADING, times // 2))
    return host_us(step, times, clock)


def held_us(step: Step, times: int, issue_us: float, device: AsyncDevice) -> float | None:
    """Device time of a step whose host is never late: the stream is held while the steps queue between two marks.

    None when the device had reached the first mark before issuing ended: the host was late, or waited.
    """
    device.synchronize()
    device.sleep(HOLD_MARGIN * times * issue_us + 100)
    first = device.mark()
    repeat(step, times)
    last = device.mark()
    early = device.reached(first)
    device.synchronize()
    return None if early else device.between_us(first, last) / times


def single_us(step: Step, device: Any, clock: Clock, times: int = 5) -> float:
    """One step between two synchronizes, as an interactive caller sees it; the median of `times`, microseconds."""
    return statistics.median(wall_us(step, 1, device, clock) for _ in range(times))


def watched_us(
    step: Step, times: int, device: Any, clock: Clock, before: Step | None = None
) -> tuple[float, dict[str, float]]:
    """Time of a step inside synchronizing calls, microseconds, and how often it makes each (see `BlockingCalls`)."""
    device.synchronize()
    with BlockingCalls(clock, before, getattr(device, "kind", None)).watched() as calls:
        repeat(step, times)
    return calls.inside_ns / 1000 / times, {name: count / times for name, count in calls.counts.items()}


def steps_for(span_us: float, step_us: float, least: int = 1) -> int:
    """How many steps fill a span."""
    return max(least, min(MOST_STEPS, round(span_us / max(step_us, 0.01))))


def plan(step: Step, device: Any, clock: Clock) -> Plan:
    """Look at the step and choose how many of it each sample takes."""
    once = single_us(step, device, clock, 3)
    if once > LONG_STEP_US:
        return Plan(1, 1, burst_us(step, 1, device, clock))
    wall = wall_us(step, steps_for(WALL_SPAN_US, once, 2), device, clock)
    issue = burst_us(step, steps_for(ISSUE_SPAN_US / 2, wall), device, clock)
    longest = steps_for(DEVICE_SPAN_US, wall)
    burst = unfilled_burst(step, min(steps_for(ISSUE_SPAN_US, issue, 2), max(2, longest)), device, clock)
    span = max(WALL_SPAN_US, min(WALL_STEPS * min(issue, wall), LONG_STEP_US))
    return Plan(steps_for(span, wall, 4), burst, issue)


def unfilled_burst(step: Step, most: int, device: Any, clock: Clock) -> int:
    """The longest k <= `most` for which issue(2k) is not slower than issue(k): the launch queue does not fill. Else 1:
    whether even that fills it, or the host's pace alone varied, is for the samples of all rounds to say.

    A queue that the leading steps alone fill slows both alike; one step behind a synchronize is then much faster.
    """
    burst = most
    while burst > 1:
        one, short, long = (
            min(burst_us(step, times, device, clock) for _ in range(3)) for times in (1, burst, 2 * burst)
        )
        if long <= min(AGREEMENT * short, FILLED * one):
            return burst
        burst //= 2
    return 1


@dataclass(frozen=True, slots=True)
class Warmup:
    """Steps taken until steady, and whether two windows agreed at all."""

    steps: int
    steady: bool


def warm_up(step: Step, device: Any, clock: Clock, target_frac: float) -> Warmup:
    """Run windows of steps until two in a row agree within `target_frac`: caches, clocks and heat have settled."""
    window = steps_for(5 * WALL_SPAN_US / 2, wall_us(step, 1, device, clock), 2)
    before = wall_us(step, window, device, clock)
    for number in range(2, WARMUP_WINDOWS + 1):
        now = wall_us(step, window, device, clock)
        if abs(now - before) <= target_frac * before or now * window > 1e6:
            return Warmup(1 + number * window, abs(now - before) <= target_frac * before)
        before = now
    return Warmup(1 + WARMUP_WINDOWS * window, False)
