"""One stretch of measuring in a watched program: timed steps, then profiled ones. Knows neither hooks nor the store."""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
import weakref
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from runner import memory
from runner.clock import Clock, host_clock
from runner.condition import HostCounters
from runner.watching.holding import HeldSteps
from runner.watching.stamps import Stamps, Timed
from runner.watching.window import ProfiledSteps, program_has_profiler, program_profiles

BETWEEN = "between"
"""Range behind a call of a watched module: what the program does there may be anything."""
LONGEST = 10
"""A kind of step that is rare is waited for in so many times the steps that are asked for."""
MOST_KINDS = 16
"""So many kinds of steps are told apart; steps of further kinds are left out."""
OTHER = "\0other"
"""The kind of those."""
ELSEWHERE = "the program ended on another thread than its steps run on, which alone can end the profiler"


@dataclass(frozen=True, slots=True)
class Plan:
    """Which steps are measured: `skip` are left out first, then of each kind `steps` are timed and `profiled` are
    profiled; once, or again whenever `every` steps have gone by since. record_shapes: of operators, in the profile;
    memory: what the steps read and change, where their memory is to be watched as well."""

    skip: int = 20
    steps: int = 20
    profiled: int = 5
    every: int | None = None
    record_shapes: bool = True
    memory: tuple[Any, ...] = ()

    def __post_init__(self) -> None:
        least = {"skip": 0, "steps": 3, "profiled": 0, "every": 1}
        for name, value in ((name, getattr(self, name)) for name in least):
            absent = name == "every" and value is None
            if not absent and (isinstance(value, bool) or not isinstance(value, int) or value < least[name]):
                also = " or None" if name == "every" else ""
                raise ValueError(
                    f"{name}={value!r}: allowed is a whole number from {least[name]} on{also}; "
                    f"for example {name}={max(20, least[name])}."
                )


@dataclass(slots=True)
class Seen:
    """What one stretch has seen. trace: of the profiled steps; profiled_kinds: the kind of each; reason: why there is
    none; synchronizes: how often the host was made to wait for the device; paused_ns: spent between two steps of the
    program in starting and ending this; held: facts of the memory of a step of held_kind."""

    timed: list[Timed] = field(default_factory=list)
    trace: Path | None = None
    profiled_kinds: list[str] = field(default_factory=list)
    reason: str | None = None
    synchronizes: int = 0
    paused_ns: int = 0
    condition: Mapping[str, Any] = field(default_factory=dict)
    allocator: dict[str, Any] = field(default_factory=dict)
    held: dict[str, Any] = field(default_factory=dict)
    held_kind: str | None = None


class Meter:
    """Is told when a step begins and ends, and measures. `done`: all is measured, and `finish` gives it."""

    def __init__(self, plan: Plan, stamps: Stamps, name: str, between: str, clock: Clock = host_clock) -> None:
        self.stamps, self.done = stamps, False
        self._plan, self._clock = plan, clock
        self._thread = threading.get_ident()
        self._folder = Path(tempfile.mkdtemp(prefix="crossover"))
        self._remove = weakref.finalize(self, _removed, self._folder, os.getpid())
        self._seen = Seen()
        self._open: Timed | None = None
        self._first_not_begun = 0
        self._counts: Counter[str] = Counter()
        self._counters = HostCounters()
        self._memory: memory.Stats | None = None
        self._window = ProfiledSteps(stamps, name, between, self._folder, plan.record_shapes)
        self._profiling = self._is_timed = False
        self._held = HeldSteps(plan.memory, stamps)

    @property
    def is_profiling(self) -> bool:
        """Whether a profiler runs."""
        return self._profiling or self._held.is_open

    @property
    def is_out_of_reach(self) -> bool:
        """Whether a profiler runs that this thread cannot end: torch's belong to the thread that has begun them, and
        ending one on another thread ends the process."""
        return threading.get_ident() != self._thread and self.is_profiling

    def begin(self, kind: str) -> None:
        """The program comes to a step of this kind."""
        asked_ns = self._clock()
        if not self._is_timed and self._timed_enough(kind):
            self._end_timing(asked_ns)
        if self._profiling and self._profiled_enough():
            self._end_profile()
        if self._profiling:
            self._window.begin(kind)
        elif not self._is_timed:
            self._begin_timed(kind, asked_ns)
        elif not self._held.done:
            self._held.begin(kind)
        self.done = self._is_timed and not self._profiling and self._held.done

    def end(self, broken: bool = False) -> None:
        """The program goes on behind the step, or an exception has ended it."""
        if self._profiling:
            self._window.end()
        elif self._is_timed:
            start_ns = self._clock()
            self._held.end()
            self._seen.paused_ns += self._clock() - start_ns
        elif (step := self._open) is not None and step.end_ns is None:
            step.end_ns = self._clock()
            step.end = self.stamps.mark()
            step.broken = broken
            self._counts[step.kind] -= broken
            self._look_at_the_queue(step)
            step.left_ns = self._clock()

    def finish(self) -> Seen:
        """What was seen; ends whatever is going on. The folder of the trace lasts until `clean`."""
        if self.is_out_of_reach:
            self._seen.reason = ELSEWHERE if self._profiling else self._seen.reason
            self._held.give_up(ELSEWHERE)
        elif self._profiling:
            self._end_profile()
        elif not self._is_timed:
            self._fence()
            self._seen.condition = self._counters.finish() if self._seen.timed else {}
            self._seen.reason = "the program ended before its steps were profiled"
        if not self._held.done:
            self._held.abandon()
        self._seen.held, self._seen.held_kind = self._held.facts, self._held.kind
        self.done = True
        return self._seen

    def abandon(self) -> None:
        """End the profiler and forget everything."""
        if not self.is_out_of_reach:
            self._window.abandon()
            self._held.abandon()
        self.done = True
        self.clean()

    def clean(self) -> None:
        """Remove the trace."""
        self._remove()

    # -- timed steps --------------------------------------------------------------------------------------------------

    def _begin_timed(self, kind: str, asked_ns: int) -> None:
        if not self._seen.timed:
            self._memory = memory.read(self.stamps.kind)
            self._counters.start()
            self._fence()
            asked_ns = self._clock()
        if kind not in self._counts and len(self._counts) == MOST_KINDS:
            kind = OTHER
        else:
            self._counts[kind] += 1
        mark = self.stamps.mark()
        self._open = Timed(kind, asked_ns, self._clock(), mark)
        self._seen.timed.append(self._open)

    def _look_at_the_queue(self, step: Timed) -> None:
        """How far the host is ahead of the device: steps whose begin the device has not reached."""
        timed = self._seen.timed
        while self._first_not_begun < len(timed) and self.stamps.begun(timed[self._first_not_begun]):
            self._first_not_begun += 1
        step.behind = len(timed) - self._first_not_begun
        step.queued = step.behind > 0

    def _timed_enough(self, kind: str) -> bool:
        """Every kind has been seen often enough, or was waited for; profiling then starts where the rarest begins."""
        total = len(self._seen.timed)
        if self._counts[kind] == 0 and total < LONGEST * self._plan.steps:
            return False
        if total > 2 * LONGEST * self._plan.steps:
            return True
        rarest = min(self._counts, key=self._counts.__getitem__, default=kind)
        enough = all(count > self._plan.steps for count in self._counts.values())
        return total > 0 and (enough or total > LONGEST * self._plan.steps) and kind == rarest

    def _end_timing(self, asked_ns: int) -> None:
        self._fence()
        self._seen.condition = self._counters.finish()
        now = memory.read(self.stamps.kind)
        self._seen.allocator = {
            **memory.sizes(now), **memory.calls(self._memory, now, len(self._seen.timed)),
            **memory.troubles(self._memory, now),
        }  # fmt: skip
        self._seen.reason = self._refusal()
        if self._seen.reason is None:
            self._window.start()
            self._profiling = True
        self._is_timed = True
        self._seen.paused_ns += self._clock() - asked_ns

    def _refusal(self) -> str | None:
        """Why the steps cannot be profiled."""
        if self._plan.profiled == 0:
            return "profiled=0: no steps were to be profiled"
        if program_profiles():
            return "the program profiles itself: only one profiler can run at a time"
        if program_has_profiler():
            return "the program has a profiler of its own, which may start at any step"
        return None

    # -- profiled steps -----------------------------------------------------------------------------------------------

    def _profiled_enough(self) -> bool:
        seen = Counter(self._window.kinds)
        wanted = self._plan.profiled
        return len(self._window.kinds) >= wanted * len(self._counts) or (
            len(seen) == len(self._counts) and min(seen.values()) >= wanted
        )

    def _end_profile(self) -> None:
        start_ns = self._clock()
        self._seen.trace = self._window.stop()
        self._seen.synchronizes += self.stamps.kind != "cpu"
        self._seen.profiled_kinds = self._window.kinds
        self._seen.reason = "Nsight Systems records this process" if self._window.under_nsys else None
        self._profiling = False
        self._seen.paused_ns += self._clock() - start_ns

    def _fence(self) -> None:
        start_ns = self._clock()
        self.stamps.synchronize()
        self._seen.synchronizes += self.stamps.kind != "cpu"
        self._seen.paused_ns += self._clock() - start_ns


def _removed(folder: Path, process: int) -> None:
    """Remove the folder of a trace; a fork of the process leaves it to the process that writes there."""
    if os.getpid() == process:
        shutil.rmtree(folder, ignore_errors=True)
