"""The two slopes that define a bound without trusting any of its times.

Added to every step, h microseconds of host work and d microseconds of device work lengthen the wall time by (h, 0)
where overhead binds, (0, d) where the device does, and (h, d) where host and device take turns.
"""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from functools import partial
from typing import Any

from runner import timing
from runner.clock import Clock, spin
from runner.quiet import quiet_host
from runner.rounds import Rounds, Take, Target, completed, paired, take_rounds
from runner.timing import AsyncDevice, Step

SLOPE_TARGET = Target("slopes", 0.005, 0.1)


def take_slopes(
    step: Step, plan: timing.Plan, rounds: Rounds, device: Any, clock: Clock, waits: bool
) -> dict[str, list[float]]:
    """Change of wall for each microsecond of host spin, and of device sleep, added to every step; one value a round.

    Both are compared with the same step to which a spin and a sleep of no length were added. The sleep is timed by
    events, since it counts cycles of a clock that the power limit lowers. waits: the step makes synchronizing calls.
    """
    issue, work = _median(rounds.values("issue")), _median(rounds.values("device"))
    wall = _median(rounds.values("wall")) or plan.issue_us
    amount = Perturbation.of_waiting(wall) if waits else Perturbation.local(issue or wall, work or wall)

    def spun(us: float) -> Take:
        slower = spinning(step, clock, us)
        return lambda: timing.sustained_us(slower, plan.wall_steps, device, clock)

    def slept(us: float) -> Take:
        slower = sleeping(step, device, us)
        return lambda: timing.wall_us(slower, plan.wall_steps, device, clock)

    quantities = {
        "spun": spun(amount.host_us), "unspun": spun(0), "unslept": slept(0), "slept": slept(amount.device_us),
    }  # fmt: skip
    host_cpu = quiet_host(clock)
    quiet = {name: host_cpu.undisturbed(each) for name, each in quantities.items()}
    taken = completed(take_rounds(quiet, tuple(quantities), SLOPE_TARGET, clock), tuple(quantities))
    spun_us, slept_us = _spun_us(clock, amount.host_us), _slept_us(device, amount.device_us)
    pairs = {"host_slope": ("spun", "unspun", spun_us), "device_slope": ("slept", "unslept", slept_us)}
    return {
        name: [(more - less) / added for more, less in paired(taken.samples, above, below)]
        for name, (above, below, added) in pairs.items()
    }


def _spun_us(clock: Clock, us: float) -> float:
    """What a spin of so many microseconds adds, beyond a spin of none."""
    long, none = (timing.host_us(partial(spin, clock, ns), 100, clock) for ns in (round(us * 1000), 0))
    return long - none


def _slept_us(device: Any, us: float) -> float:
    """What a sleep of so many microseconds adds on the device, beyond a sleep of none."""
    long, none = (timing.held_us(partial(device.sleep, each), 20, 10, device) for each in (us, 0))
    return us if long is None or none is None else long - none


def _median(values: list[float]) -> float | None:
    return statistics.median(values) if values else None


@dataclass(frozen=True, slots=True)
class Perturbation:
    """How much host and device time the slopes add to each step, microseconds."""

    host_us: float
    device_us: float

    @classmethod
    def local(cls, issue_us: float, device_us: float) -> Perturbation:
        """Half the distance to the crossing, so that the bound is not moved; at least a 20th of the larger term."""
        larger = max(issue_us, device_us)
        amount = min(max(abs(issue_us - device_us) / 2, larger / 20, 1.0), larger / 2)
        return cls(amount, amount)

    @classmethod
    def of_waiting(cls, wall_us: float) -> Perturbation:
        """For a step that waits: device time of most of the step, since the host hides some of it before it waits."""
        return cls(wall_us / 4, 0.75 * wall_us)


def spinning(step: Step, clock: Clock, us: float) -> Step:
    """The step with `us` microseconds of host work before it."""
    duration_ns = round(us * 1000)

    def slower() -> None:
        spin(clock, duration_ns)
        step()

    return slower


def sleeping(step: Step, device: AsyncDevice, us: float) -> Step:
    """The step with `us` microseconds of device work before it."""

    def slower() -> None:
        device.sleep(us)
        step()

    return slower
