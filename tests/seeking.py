"""Series with a known truth: margins as curves of a place, runs as noise makes them, and searches that run on them."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from runner.config import Search
from runner.law import Run, Times
from runner.search import Outcome, SeriesSearch
from runner.statistics import Estimate

Curve = Callable[[float], float]
"""Value on the axis -> margin."""
RANGE_256 = Search("size", 64, 16384)


def product(crossing: float, flat: float = 8.0, power: float = 2.5) -> Curve:
    """As a matrix product's: flat while launches dominate both times, then falling with a power of the size."""
    return lambda size: flat / (1 + (flat - 1) * (size / crossing) ** power)


def elementwise(crossing: float) -> Curve:
    """As a chain of passes over a tensor: inverse to its rows."""
    return product(crossing, flat=6.0, power=1.0)


def power_law(crossing: float, power: float = 2.5) -> Curve:
    """As on a CPU: floor over work, never flat."""
    return lambda size: (size / crossing) ** -power


CROSSINGS = (90, 150, 300, 700, 1750, 2212, 4000, 9000, 13000)
CURVES = {
    "flat, then -2.5": product,
    "flat, then -3": lambda at: product(at, 5.0, 3.0),
    "flat, then -1": elementwise,
    "-2.5": power_law,
    "rising": lambda at: power_law(at, -1.0),
}


@dataclass
class Series:
    """A series and its noise, as standard deviations of logarithms: within: of a run's own interval; between: of runs.

    lost: reason by the lowest value from which on nothing can be measured; blocks: whether every step waits.
    """

    curve: Curve
    within: float = 0.0
    between: float = 0.0
    seed: int = 0
    lost: Mapping[float, str] = field(default_factory=dict)
    blocks: bool = False

    def __post_init__(self) -> None:
        self._chance = random.Random(self.seed)

    def reason(self, value: float) -> str | None:
        """Why a value cannot be measured."""
        return next((why for start, why in self.lost.items() if value >= start), None)

    def run(self, value: float, place: float, repeat: int = 0) -> Run:
        """One run of a place; one that confirms has half the noise within."""
        width = self.within / (2 if repeat else 1)
        margin = self.curve(value) * math.exp(self._chance.gauss(0, self.between) + self._chance.gauss(0, width / 2))
        issue, device = near(20 * margin, 0.7 * width), near(20, 0.7 * width)
        wall = near(1.5 * max(20 * margin, 20) if self.blocks else max(20 * margin, 20), width)
        return Run(place, Times(wall, issue, device, margin=near(margin, width), blocks=self.blocks))


@dataclass
class Searched:
    """What a search asked for, in its order, and what came of it."""

    asked: list[tuple[int, int]]
    outcome: Outcome

    @property
    def measured(self) -> list[int]:
        """Places in the order in which they were first asked for."""
        return [place for place, repeat in self.asked if not repeat]


def near(value: float, frac: float) -> Estimate:
    """A value with an interval of a fraction to both sides."""
    return Estimate(value, value * (1 - frac), value * (1 + frac))


def searched(series: Series, search: Search = RANGE_256, known: Mapping[int, list[Run]] | None = None) -> Searched:
    """Search to the end. known: runs of places that need not be measured."""
    seeker, asked = SeriesSearch(search), []
    while (ask := seeker.ask()) is not None:
        seeker.take()
        for place in ask.places:
            value = search.value(place)
            if not ask.repeat and known and known.get(place):
                seeker.learn(place, known[place])
                continue
            asked.append((place, ask.repeat))
            if (why := series.reason(value)) is not None:
                seeker.fail(place, why)
            else:
                seeker.learn(place, [series.run(value, place, ask.repeat)])
    assert seeker.outcome is not None
    return Searched(asked, seeker.outcome)
