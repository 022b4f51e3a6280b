"""A quiet CPU for what the host is timed at: the host is half of every verdict.

On a shared machine a CPU has two paces: alone on its core, or beside somebody else's thread, 1.5 to 2 times slower, for
milliseconds to seconds. A little work of fixed size, timed before and after a sample, tells which pace it was taken at
without a look at the sample itself. A disturbed sample is taken again, on a CPU that is quiet.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from functools import cache, partial

from runner.clock import Clock
from runner.host import affinity, sharing_last_cache
from runner.rounds import Disturbed, Quantity, Take

SLOW = 1.25
"""A pace above this multiple of the best one is disturbed; between the two paces lie 1.5 and more."""
ATTEMPTS = 4
PROBES = 5
MOST_CPUS = 16
PATIENCE = 4
"""Samples after which a host that was quiet nowhere is searched again: looking takes time as well."""
LUCK = 1.05
"""By how much a single time of the fixed work may lie below what it usually takes."""
ADDITIONS = 1000  # some 30 microseconds: long against the clock, short against a sample

Move = Callable[[int], None]


def fixed_work() -> int:
    """Work of the interpreter alone: no memory, no system call."""
    total = 0
    for number in range(ADDITIONS):
        total += number
    return total


def move_to(cpu: int, allowed: Sequence[int]) -> None:
    """Bring this thread to a CPU and leave it free again: it stays, and the threads it starts may run anywhere."""
    os.sched_setaffinity(0, {cpu})
    os.sched_setaffinity(0, allowed)


class QuietHost:
    """The pace of the CPU that this thread runs on, and the way to a better one.

    best_us: time of the fixed work on a CPU of its own; the counts are of all samples taken through `undisturbed` since
    `begin`.
    """

    def __init__(self, clock: Clock, cpus: Sequence[int], move: Move, work: Callable[[], object] = fixed_work) -> None:
        self._clock, self._cpus, self._move, self._work = clock, list(cpus), move, work
        self.best_us = math.inf
        for cpu in [None, *self._cpus]:
            if cpu is not None:
                self._move(cpu)
            for _ in range(PROBES):
                self.is_quiet()
        self.begin()

    def begin(self) -> None:
        """Count from nothing, on a CPU that is quiet if there is one."""
        self._samples = self._disturbed = self._retaken = self._moves = self._resting = 0
        self.settle()

    def pace_us(self) -> float:
        """Time of the fixed work now, microseconds."""
        start = self._clock()
        self._work()
        return (self._clock() - start) / 1000

    def is_quiet(self) -> bool:
        """Whether nothing else uses this CPU's core right now."""
        pace_us = self.pace_us()
        self.best_us = min(self.best_us, LUCK * pace_us)
        return pace_us <= SLOW * self.best_us

    def settle(self) -> bool:
        """Stay on a quiet CPU or go to one; whether one was found."""
        if self.is_quiet():
            return True
        if self._resting:
            self._resting -= 1
            return False
        if any(self._is_quiet_on(cpu) for cpu in self._cpus):
            return True
        self._resting = PATIENCE
        return False

    def _is_quiet_on(self, cpu: int) -> bool:
        self._move(cpu)
        self._moves += 1
        self._work()  # the first time on a CPU is for its caches
        return self.is_quiet()

    def undisturbed(self, sample: Take) -> Quantity:
        """The sample taken at the quiet pace, or as a disturbed one where the host finds no rest."""

        def taken() -> float | Disturbed | None:
            self._samples += 1
            for attempt in range(ATTEMPTS):
                self._retaken += attempt > 0
                found_rest = self.settle()
                value = sample()
                if found_rest and self.is_quiet():
                    return value
                if not found_rest:
                    break
            self._disturbed += 1
            return None if value is None else Disturbed(value)

        return taken

    def told(self) -> dict[str, float]:
        """For the facts of a run: the best pace, and the share of samples that were taken at another all the same."""
        return {
            "best_us": self.best_us,
            "disturbed_frac": self._disturbed / self._samples if self._samples else 0.0,
            "retaken": self._retaken,
            "moves": self._moves,
        }


@cache
def quiet_host(clock: Clock) -> QuietHost:
    """The host as this process finds it; where a thread cannot be moved there is only waiting."""
    allowed = sorted(affinity() or ()) if hasattr(os, "sched_setaffinity") else []
    return QuietHost(clock, near(allowed), partial(move_to, allowed=allowed))


def near(allowed: Sequence[int]) -> list[int]:
    """At most MOST_CPUS of the allowed CPUs that share the last cache with the first of them: none is far from a card
    that another is near."""
    group = sharing_last_cache(allowed[0]) if allowed else None
    cpus = [cpu for cpu in allowed if group is None or cpu in group]
    return cpus[:: max(1, len(cpus) // MOST_CPUS)][:MOST_CPUS]
