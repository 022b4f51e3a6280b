"""The first steps of a point, one by one: how long each takes, and what torch compiles in which of them."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from runner import compiling, memory, timing
from runner.clock import Clock
from runner.device import Device
from runner.phases import heard
from runner.point import Point

MOST_CYCLES = 8
SPAN_US = 100_000.0
"""Behind the second step no more are taken once those behind the first have lasted so long."""


class RecompileLimit(Exception):
    """A function was compiled as often as torch allows, so that some calls of the step run eager."""


class FirstCycles:
    """Takes the first steps of a point and remembers them.

    times_us: of each step, a synchronize behind it; counters: the allocator's before the first and behind each (None on
    a device that counts nothing).
    """

    def __init__(self, point: Point, step: Callable[[], Any], device: Device, clock: Clock) -> None:
        self.point, self.step, self.device, self.clock = point, step, device, clock
        self.times_us: list[float] = []
        self.counters = [memory.read(device.kind)]
        self._compiled: dict[str, tuple[int, str | None]] = {}

    def take(self) -> float:
        """One more step; returns its time, microseconds. Raises RecompileLimit where not all of it is compiled."""
        with heard(self._phase) if self.point.compile is not False else contextlib.nullcontext():
            self.times_us.append(timing.wall_us(self.step, 1, self.device, self.clock))
        self.counters.append(memory.read(self.device.kind))
        if self.point.compile is not False:
            self._note(None)
            self._refuse_mixture()
        return self.times_us[-1]

    def take_more(self) -> None:
        """Steps up to MOST_CYCLES, or to the point's own number of warm-up steps, while they are short."""
        most = MOST_CYCLES if self.point.warmup is True else min(MOST_CYCLES, int(self.point.warmup))
        while len(self.times_us) < most and sum(self.times_us[1:]) < SPAN_US:
            self.take()

    def placed(self, facts: dict[str, Any]) -> dict[str, Any]:
        """facts.compile with the cycle (from 1) and the phase in which each frame was compiled; None where unknown."""
        for frame in facts["frames"]:
            frame["cycle"], frame["phase"] = self._compiled.get(str(frame["frame"]), (None, None))
        return facts

    @contextlib.contextmanager
    def _phase(self, name: str) -> Iterator[None]:
        yield
        self._note(name)

    def _note(self, phase: str | None) -> None:
        """Whatever has been compiled since the last note was compiled here."""
        for each in compiling.frame_ids():
            self._compiled.setdefault(each, (len(self.times_us) + (phase is not None), phase))

    def _refuse_mixture(self) -> None:
        if compiling.limit_reached():
            raise RecompileLimit(
                f"torch gave up compiling a function again after {len(self._compiled)} compilations (its "
                "recompile_limit), so that some calls of the step run eager and its times would be a mixture; take "
                "fewer shapes, or dynamic=null, true or mark"
            )
