"""runner.quiet: a host of two paces, simulated: each CPU is for a while alone on its core, for a while not."""

from __future__ import annotations

import math
import random
import statistics
from pathlib import Path

import pytest

from runner import quiet
from runner.host import sharing_last_cache
from runner.quiet import QuietHost, move_to, near
from runner.rounds import Disturbed

WORK_NS = 30_000
BESIDE = 1.6


class Shared:
    """CPUs whose pace changes by itself: quiet for `quiet_ms` on average, then disturbed for `disturbed_ms`."""

    def __init__(self, cpus: int, quiet_ms: float, disturbed_ms: float, seed: int = 0) -> None:
        self.now_ns, self.cpu, self.cpus = 0, 0, cpus
        self.lasts_ms = {True: quiet_ms, False: disturbed_ms}
        self.chance = random.Random(seed)
        self.alone = [self.chance.random() < quiet_ms / (quiet_ms + disturbed_ms) for _ in range(cpus)]
        self.until_ns = [self._turn(each) for each in self.alone]

    def _turn(self, alone: bool) -> int:
        return self.now_ns + round(1e6 * self.chance.expovariate(1 / self.lasts_ms[alone]))

    def clock(self) -> int:
        """Host's clock, nanoseconds."""
        return self.now_ns

    def run(self, ns: float) -> None:
        """Work on the CPU where the thread is, at its pace."""
        for cpu in range(self.cpus):
            while self.until_ns[cpu] <= self.now_ns:
                self.alone[cpu] = not self.alone[cpu]
                self.until_ns[cpu] += round(1e6 * self.chance.expovariate(1 / self.lasts_ms[self.alone[cpu]]))
        self.now_ns += round(ns * (1 if self.alone[self.cpu] else BESIDE))

    def move(self, cpu: int) -> None:
        """Bring the thread to a CPU."""
        self.cpu = cpu

    def sample(self) -> float:
        """A burst of 0.4 ms, in microseconds a step of 25."""
        start = self.now_ns
        for _ in range(16):
            self.run(25_000)
        return (self.now_ns - start) / 1000 / 16

    def quiet_host(self) -> QuietHost:
        """The host as runner.quiet sees it."""
        return QuietHost(self.clock, range(self.cpus), self.move, lambda: self.run(WORK_NS))


def good(values: list[float | Disturbed | None]) -> list[float]:
    """What was taken on a quiet host."""
    return [each for each in values if isinstance(each, float)]


@pytest.mark.parametrize("seed", range(5))
def test_a_host_that_is_disturbed_half_of_the_time_is_measured_at_its_own_pace(seed: int) -> None:
    """Without the watch the median of the samples is any value between the two paces; with it, the quiet one."""
    shared = Shared(cpus=8, quiet_ms=20, disturbed_ms=20, seed=seed)
    host = shared.quiet_host()
    sample = host.undisturbed(shared.sample)
    values = good([sample() for _ in range(40)])
    assert statistics.median(values) == pytest.approx(25, rel=0.01)
    assert host.told()["disturbed_frac"] < 0.1


def test_one_cpu_waits_for_its_moment() -> None:
    """With nowhere to go, a disturbed sample is taken again, and what stays disturbed is told."""
    shared = Shared(cpus=1, quiet_ms=5, disturbed_ms=1)
    host = shared.quiet_host()
    sample = host.undisturbed(shared.sample)
    values = good([sample() for _ in range(60)])
    assert statistics.median(values) == pytest.approx(25, rel=0.02)
    assert host.told()["retaken"] > 0


def test_a_host_without_rest_is_not_searched_for_ever() -> None:
    """Where no CPU is quiet samples are taken as they come, once each, and all of them are called disturbed."""
    shared = Shared(cpus=8, quiet_ms=1e9, disturbed_ms=1e9)
    shared.alone, shared.until_ns = [True] * 8, [10**18] * 8
    host = shared.quiet_host()
    shared.alone = [False] * 8
    taken = []
    sample = host.undisturbed(lambda: taken.append(shared.sample()) or taken[-1])
    for _ in range(2 * quiet.PATIENCE):
        assert sample() == Disturbed(pytest.approx(BESIDE * 25))
    assert len(taken) == 2 * quiet.PATIENCE
    told = host.told()
    assert (told["disturbed_frac"], told["retaken"]) == (1.0, 0)
    assert told["moves"] == 8 * math.ceil(2 * quiet.PATIENCE / (quiet.PATIENCE + 1))


def test_what_a_sample_costs_does_not_decide_whether_it_counts() -> None:
    """The pace is judged by the fixed work alone: samples that differ by themselves are all kept."""
    shared = Shared(cpus=2, quiet_ms=1e9, disturbed_ms=1)
    shared.alone, shared.until_ns = [True, True], [10**18] * 2
    host = shared.quiet_host()
    values = iter([10.0, 30.0, 20.0, None])
    sample = host.undisturbed(lambda: next(values))
    assert [sample() for _ in range(4)] == [10.0, 30.0, 20.0, None]


def test_counts_are_of_one_point() -> None:
    """begin() counts from nothing; the best pace stays."""
    shared = Shared(cpus=4, quiet_ms=3, disturbed_ms=3)
    host = shared.quiet_host()
    sample = host.undisturbed(shared.sample)
    for _ in range(30):
        sample()
    best_us = host.told()["best_us"]
    host.begin()
    told = host.told()
    assert (told["best_us"], told["disturbed_frac"], told["retaken"]) == (best_us, 0.0, 0)


def test_only_cpus_of_one_cache_are_tried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A CPU of another socket may be far from the card; of many, 16 are enough."""
    for level, shared in ((1, "0-1"), (3, "0-63")):
        index = tmp_path / f"sys/devices/system/cpu/cpu0/cache/index{level}"
        index.mkdir(parents=True)
        (index / "level").write_text(f"{level}\n")
        (index / "shared_cpu_list").write_text(f"{shared}\n")
    assert sharing_last_cache(0, tmp_path) == frozenset(range(64))
    assert sharing_last_cache(5, tmp_path) is None
    monkeypatch.setattr(quiet, "sharing_last_cache", lambda cpu: sharing_last_cache(cpu, tmp_path))
    cpus = near(range(128))
    assert len(cpus) == quiet.MOST_CPUS and set(cpus) <= set(range(64))
    assert near([]) == []


def test_a_move_leaves_the_thread_free() -> None:
    """The thread runs on the CPU it was brought to, and may run on all that it was allowed before."""
    import os

    allowed = sorted(os.sched_getaffinity(0))
    move_to(allowed[-1], allowed)
    assert os.sched_getaffinity(0) == set(allowed)
