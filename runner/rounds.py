"""Interleaved rounds: every quantity is sampled once a round, the order reversed every round.

Whatever drifts (heat, clocks, other tenants) then touches all quantities alike, and ratios are formed within a round.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from runner.clock import Clock
from runner.statistics import half_width_frac

LEAST_ROUNDS = 3
MOST_ROUNDS = 200
LEAST_QUIET = 6
"""Fewer samples have no interval of their own (`runner.statistics.rank_interval`)."""
MORE_TIME = 3
"""A point on a disturbed host may take so many times the limit until it has LEAST_QUIET samples."""
LEADING = 2  # steps that go before a burst
AGREEMENT = 1.05  # issue(2k) above this multiple of issue(k): the launch queue is full

DISTURBED = "_disturbed"


@dataclass(frozen=True, slots=True)
class Disturbed:
    """A sample that was taken beside somebody else's work; microseconds a step."""

    value: float


Take = Callable[[], float | None]
"""Takes one sample, microseconds a step; None where this time it could not be taken."""
Quantity = Callable[[], float | Disturbed | None]
"""The same, where the host is watched meanwhile."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One raw sample. position counts all samples of the point in the order taken; value in microseconds a step.

    A disturbed sample is kept under a name of its own, the quantity's with DISTURBED behind it.
    """

    quantity: str
    round: int
    position: int
    value: float


@dataclass(frozen=True, slots=True)
class Target:
    """When measuring may end: every interval within target_frac of its median, or limit_s seconds."""

    name: str
    target_frac: float
    limit_s: float


@dataclass(frozen=True, slots=True)
class Rounds:
    """Samples of all rounds, why they ended (`target`, `limit`, `rounds`), and the seconds they took."""

    samples: tuple[Sample, ...]
    stopped: str
    count: int
    seconds: float

    def values(self, quantity: str) -> list[float]:
        """The samples of one quantity in the order taken."""
        return [sample.value for sample in self.samples if sample.quantity == quantity]


def take_rounds(quantities: Mapping[str, Quantity], decisive: Sequence[str], target: Target, clock: Clock) -> Rounds:
    """Sample all quantities round by round until every decisive one has reached the target, or the time is up."""
    samples: list[Sample] = []
    start = clock()
    for number in range(MOST_ROUNDS):
        order = list(quantities) if number % 2 == 0 else list(quantities)[::-1]
        for name in order:
            if (value := quantities[name]()) is not None:
                samples.append(_sample(name, number, len(samples), value))
        stopped = _stop(samples, decisive, target, number + 1, (clock() - start) / 1e9)
        if stopped:
            break
    return Rounds(tuple(samples), stopped or "rounds", number + 1, (clock() - start) / 1e9)


def _sample(quantity: str, number: int, position: int, value: float | Disturbed) -> Sample:
    if isinstance(value, Disturbed):
        return Sample(quantity + DISTURBED, number, position, value.value)
    return Sample(quantity, number, position, value)


def _stop(samples: list[Sample], decisive: Sequence[str], target: Target, rounds: int, seconds: float) -> str | None:
    if rounds < LEAST_ROUNDS:
        return None
    if seconds >= target.limit_s * (MORE_TIME if lacking(samples, decisive) else 1):
        return "limit"
    reached = all(
        half_width_frac([sample.value for sample in samples if sample.quantity == name]) <= target.target_frac
        for name in decisive
    )
    return "target" if reached else None


def lacking(samples: Sequence[Sample], quantities: Sequence[str]) -> list[str]:
    """The quantities that have disturbed samples and fewer than LEAST_QUIET others."""
    counts = Counter(sample.quantity for sample in samples)
    return [name for name in quantities if counts[name] < LEAST_QUIET and counts[name + DISTURBED]]


def completed(rounds: Rounds, quantities: Sequence[str]) -> Rounds:
    """The rounds, with the disturbed samples of what is `lacking` taken for good ones: there are no better."""
    names = {name + DISTURBED: name for name in lacking(rounds.samples, quantities)}
    samples = (replace(each, quantity=names.get(each.quantity, each.quantity)) for each in rounds.samples)
    return replace(rounds, samples=tuple(samples))


def paired(samples: Sequence[Sample], above: str, below: str) -> list[tuple[float, float]]:
    """Values of two quantities in the rounds in which both were sampled, in the order of the rounds."""
    tops = {sample.round: sample.value for sample in samples if sample.quantity == above}
    bottoms = {sample.round: sample.value for sample in samples if sample.quantity == below}
    return [(tops[number], bottoms[number]) for number in sorted(tops) if number in bottoms]


def paired_ratios(samples: Sequence[Sample], above: str, below: str) -> list[float]:
    """Ratios of two quantities formed within each round, in the order of the rounds."""
    return [top / bottom for top, bottom in paired(samples, above, below) if bottom > 0]
