"""A simulated host and asynchronous device on a fake clock, in whole nanoseconds: the truth is known and takes no time.

The host issues launches one after the other; the device works them off in order; a launch queue of limited depth makes
the host wait while it is full. Reading the clock costs a little, as it does in life, so that a spin ends.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

import pytest
import torch

CLOCK_NS = 100
SYNC_NS = 3_000
SLEEP_ISSUE_NS = 4_000
MARK_ISSUE_NS = 500
REPLAY_ISSUE_NS = 12_000


@dataclass(frozen=True)
class Mark:
    """A time stamp that the device writes when it gets there."""

    at_ns: int


class Simulated:
    """One host with one device: what runner.timing, slopes and measure ask of a device, and steps for it.

    queue: launches that may wait; noise: standard deviation of the logarithm of every duration; drift_per_s: how much
    longer device work takes, as a fraction, for each second that has gone by.
    """

    asynchronous = True
    kind = "simulated"

    def __init__(self, queue: int = 1024, noise: float = 0.0, drift_per_s: float = 0.0, seed: int = 0) -> None:
        self.now_ns = 0
        self.queue, self.noise, self.drift_per_s = queue, noise, drift_per_s
        self.chance = random.Random(seed)
        self.pending: deque[int] = deque()
        self.free_ns = 0
        self.captured_ns: list[int] | None = None
        self.waits = 0

    def installed(self, monkeypatch: pytest.MonkeyPatch) -> Simulated:
        """Let torch.cuda.synchronize wait for this device, so that watching that call works as it does in life."""
        monkeypatch.setattr(torch.cuda, "synchronize", self._wait)
        return self

    def clock(self) -> int:
        """The host's clock, nanoseconds."""
        self.now_ns += CLOCK_NS
        return self.now_ns

    # -- steps

    def step(self, issue_us: float, device_us: float, launches: int = 1) -> Callable[[], None]:
        """A step of `launches` equal launches, all times microseconds a step."""

        def step() -> None:
            for _ in range(launches):
                self._launch(self._ns(issue_us / launches), self._ns(device_us / launches))

        return step

    def waiting_step(self, issue_us: float, device_us: float) -> Callable[[], None]:
        """A step that ends with a synchronizing call which can be watched."""
        work = self.step(issue_us, device_us)

        def step() -> None:
            work()
            torch.cuda.synchronize()

        return step

    def hidden_waiting_step(self, issue_us: float, device_us: float) -> Callable[[], None]:
        """A step that waits where no Python call shows it."""
        work = self.step(issue_us, device_us)

        def step() -> None:
            work()
            self._wait()

        return step

    def host_work(self, us: float) -> Callable[[], None]:
        """A step that is all the host's, as every step on a CPU."""

        def step() -> None:
            self.now_ns += self._ns(us)

        return step

    # -- the device

    def synchronize(self) -> None:
        """As runner.device.Cuda does it."""
        torch.cuda.synchronize()

    def sleep(self, us: float) -> None:
        """Idle device time."""
        self._launch(SLEEP_ISSUE_NS, round(us * 1000))

    def mark(self) -> Mark:
        """Queue a time stamp."""
        return Mark(self._launch(MARK_ISSUE_NS, 0))

    def reached(self, mark: Mark) -> bool:
        """Whether the device has passed the mark."""
        return mark.at_ns <= self.now_ns

    def between_us(self, first: Mark, last: Mark) -> float:
        """Device time between two marks, both of which must have been reached."""
        assert self.reached(first) and self.reached(last), "a mark was read before the device got there"
        return (last.at_ns - first.at_ns) / 1000

    def captured(self, step: Callable[[], None], steps: int) -> Callable[[], None]:
        """A graph of `steps` steps, replayed with one launch. A wait inside cannot be captured."""
        self.captured_ns = []
        try:
            for _ in range(steps):
                step()
            total_ns = sum(self.captured_ns)
        finally:
            self.captured_ns = None
        return lambda: self._replay(total_ns)

    def _replay(self, total_ns: int) -> None:
        self._launch(REPLAY_ISSUE_NS, total_ns)

    def synchronizes(self, step: Callable[[], None]) -> bool:
        """Whether the step waits, as torch's sync debug mode sees it."""
        before = self.waits
        step()
        return self.waits > before

    # -- the law of the simulation

    def _launch(self, issue_ns: int, device_ns: int) -> int:
        """One launch; the moment at which the device will have finished it."""
        self.now_ns += issue_ns
        if self.captured_ns is not None:
            self.captured_ns.append(device_ns)
            return self.now_ns
        self._forget_finished()
        if len(self.pending) >= self.queue:
            self.now_ns = self.pending.popleft()
        self.free_ns = max(self.now_ns, self.free_ns) + round(device_ns * (1 + self.drift_per_s * self.now_ns / 1e9))
        self.pending.append(self.free_ns)
        return self.free_ns

    def _wait(self) -> None:
        if self.captured_ns is not None:
            raise RuntimeError("operation not permitted when stream is capturing")
        self.waits += 1
        self.now_ns = max(self.now_ns, self.free_ns) + SYNC_NS
        self._forget_finished()

    def _forget_finished(self) -> None:
        while self.pending and self.pending[0] <= self.now_ns:
            self.pending.popleft()

    def _ns(self, us: float) -> int:
        factor = self.chance.lognormvariate(0, self.noise) if self.noise else 1.0
        return round(us * 1000 * factor)
