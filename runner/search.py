"""Which place of a series to measure next, until the crossing is found. Pure: no clock, no engine, no store.

Ends, then the middle, then interpolation on the logarithms of place and margin (weighted as in the Illinois method
where one end of the bracket stays: Dowell and Jarratt, BIT 11, 1971), aimed a little beside the estimate, so that what
is measured becomes an edge of the bracket, decided in spite of its noise. Then the two edges are measured again, and
what they say now counts; so are balanced places and their neighbours where there is no bracket.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby, pairwise

from runner.config import Search
from runner.law import BALANCED, SERIAL, UNKNOWN, Run, crossing, judged
from runner.margins import Placed, changes_of_side, estimate, half_width, is_known, slope, weighted
from runner.outcome import Outcome

RUNS = 3
"""Of each place that the answer rests on: one that found it, and two further ones in other processes."""
BASE = 1.1
"""How far from the estimate, as a ratio, the slope of the margin is taken: noise would turn that of near places."""
AIM = 0.65
"""How far beside the estimate a place is aimed, as a fraction of the tolerance: both edges stay within it."""
LEEWAY = 0.3
"""How far from where it is aimed a place may lie, as a fraction of the way to what it must not pass, to be a rounder
number: kernels are made for round sizes, and a size of odd length can be four times slower than its neighbour."""
NEAR = 1.35
"""An edge within this multiple of that distance is near enough."""
CLEAR = 1.6
"""How many times the half width of its interval a margin must be away from 1 to be decided with some certainty."""
PATIENCE = 4
"""After how many places in a row on one side interpolation is given up for the middle."""
WIDE = 2.0
"""How near to a place that cannot be measured a crossing is still looked for."""


@dataclass(frozen=True, slots=True)
class Ask:
    """Places to measure, in multiples, one after another on one device. repeat: 0 = for the first time, else which
    further run of theirs."""

    places: tuple[int, ...]
    repeat: int = 0


@dataclass(frozen=True, slots=True)
class Side:
    """What lies between the estimate and one edge of its bracket. width: logarithm of their ratio; is_near: whether
    noise lets no nearer edge be decided; aim: the place that would be one, None where none is left."""

    width: float
    is_near: bool
    aim: int | None


class SeriesSearch:
    """One series: `ask` what to measure, `learn` what it was, until `outcome` is there."""

    def __init__(self, search: Search) -> None:
        self._search = search
        self._runs: dict[int, list[Run]] = {}
        self._kept: dict[int, list[Run]] = {}
        self._lost: dict[int, str] = {}
        self._tries: dict[int, int] = {}
        self._out: set[int] = set()
        self._next: Ask | None = None
        self._decide()

    def ask(self) -> Ask | None:
        """What to measure next; None while something is out, and once there is an outcome."""
        return None if self._out else self._next

    def take(self) -> None:
        """What was asked for is being measured."""
        assert self._next is not None
        self._out.update(self._next.places)

    def learn(self, place: int, runs: Sequence[Run]) -> None:
        """A place that was asked for has these runs, the first one first. Those behind it are looked at only when the
        place is to be confirmed, so that a search that is repeated takes the same way."""
        self._kept[place] = list(runs[1:])
        self._runs.setdefault(place, []).append(runs[0])
        self._answered(place)

    def fail(self, place: int, reason: str) -> None:
        """A place that was asked for could not be measured."""
        if place not in self._runs:
            self._lost[place] = reason
        self._answered(place)

    @property
    def outcome(self) -> Outcome | None:
        """What was found, None while the search goes on."""
        if self._out or self._next is not None:
            return None
        spent = len(self._tries) >= self._search.most_points or self._spent > self._search.most_runs - RUNS
        series = tuple(_hedged(each) for each in self._series())
        return Outcome(self._search, series, self._lost, len(self._tries), self._spent, spent)

    @property
    def _spent(self) -> int:
        return sum(self._tries.values())

    def _answered(self, place: int) -> None:
        self._tries[place] = self._tries.get(place, 0) + 1
        self._out.discard(place)
        if not self._out:
            self._decide()

    # -- what next -----------------------------------------------------------------------------------------------------

    def _decide(self) -> None:
        self._next = self._ends() or self._more() or self._place() or self._confirmation()

    def _ends(self) -> Ask | None:
        places = self._search.places
        untried = tuple(place for place in (places[0], places[-1]) if place not in self._tries)
        return Ask(untried) if untried else None

    def _more(self) -> Ask | None:
        """The rest of a confirmation that has begun: nothing is concluded from a half of it."""
        begun = {place: tries for place, tries in self._tries.items() if 1 < tries < RUNS}
        return self._repeated(begun)

    def _place(self) -> Ask | None:
        """One more place."""
        if len(self._tries) >= self._search.most_points or self._spent >= self._search.most_runs:
            return None
        place = self._wanted(self._series())
        return None if place is None else Ask((place,))

    def _confirmation(self) -> Ask | None:
        """What the answer rests on once more; what the store holds of it is looked at instead."""
        while True:
            once = {place: 1 for place in self._to_confirm() if self._tries[place] == 1}
            kept = [place for place in once if self._kept.get(place)]
            if not kept:
                return self._repeated(once)
            for place in kept:
                self._look_at(place)
            if more := self._more() or self._place():
                return more

    def _look_at(self, place: int) -> None:
        runs = self._kept.pop(place)
        self._runs[place] += runs
        self._tries[place] += min(len(runs), RUNS - 1)

    def _repeated(self, tries: dict[int, int]) -> Ask | None:
        """A further run of those places that have the fewest."""
        least = min(tries.values(), default=0)
        places = tuple(place for place in sorted(tries) if tries[place] == least)
        places = places[: max(0, self._search.most_runs - self._spent)]
        return Ask(places if least % 2 else places[::-1], least) if places else None

    def _to_confirm(self) -> list[int]:
        """Both sides of every change; without one, of all that may be one: balanced places and their neighbours."""
        series = self._series()
        possible = [pair for pair in pairwise(series) if any(verdict.bound == BALANCED for _, verdict in pair)]
        return sorted({place for change in changes_of_side(series) or possible for place, _ in change})

    def _series(self) -> tuple[Placed, ...]:
        runs = [run for runs in self._runs.values() for run in runs]
        return tuple((round(place), verdict) for place, verdict in judged(runs))

    # -- one more place ------------------------------------------------------------------------------------------------

    def _wanted(self, series: Sequence[Placed]) -> int | None:
        changes = changes_of_side(series)
        walls = [*self._lost, *(place for place, verdict in series if verdict.bound in (SERIAL, UNKNOWN))]
        if len(changes) > 1:
            return None
        if not changes:
            return self._without_change([place for place, _ in series if place not in walls], walls)
        found = crossing(series)  # its bracket reaches over balanced places beside the edges
        assert found.low is not None and found.high is not None
        low, high = round(found.low), round(found.high)
        if any(low < place < high for place in walls):
            return self._between(low, high)
        return self._inside([each for each in series if low <= each[0] <= high], series)

    def _without_change(self, measured: Sequence[int], walls: Sequence[int]) -> int | None:
        """The middle of the range; then towards a wall, behind which the other side may begin."""
        places = self._search.places
        if len(self._tries) == 2:
            return self._between(places[0], places[-1])
        if not measured:
            return None
        above = min((place for place in walls if place > max(measured)), default=0)
        below = max((place for place in walls if place < min(measured)), default=0)
        if above > WIDE * max(measured):
            return self._between(max(measured), above)
        return self._between(below, min(measured)) if below and min(measured) > WIDE * below else None

    def _between(self, low: int, high: int) -> int | None:
        """The geometric middle of the widest gap between places that were tried."""
        tried = sorted({low, high, *(place for place in self._tries if low < place < high)})
        below, above = max(pairwise(tried), key=lambda gap: gap[1] / gap[0])
        middle = round(math.sqrt(below * above))
        return middle if below < middle < above else None

    def _free(self, place: int, low: int, high: int, outward: int) -> int | None:
        """The place itself, else the nearest one outward that was not tried, within low and high."""
        place = min(max(place, low + 1), high - 1)
        while place in self._tries and low < place < high:
            place += outward
        return place if low < place < high else None

    def _inside(self, points: Sequence[Placed], series: Sequence[Placed]) -> int | None:
        """A place between the edges of a bracket; None where it is as narrow as it is to be, or as noise allows."""
        (low, _), (high, _) = points[0], points[-1]
        guess = estimate(points)
        if high - low <= 1 or (guess is not None and self._search.is_within(low, guess, high)):
            return None
        if guess is None or len(self._tries) == 2:
            return self._between(low, high)
        gap = self._gap(points, guess, series)
        sides = [self._side(points, guess, gap, outward) for outward in (-1, 1)]
        if all(side.is_near for side in sides):
            return None
        stale = self._in_a_row(low, high)
        if abs(stale) >= PATIENCE:
            return self._between(low, high)
        if len(points) == 2 and abs(stale) > 1 and not any(side.is_near for side in sides):
            return self._free(roundest(weighted(points[0], points[1], stale), low, high), low, high, -1)
        open_sides = [side for side in sides if not side.is_near and side.aim is not None]
        return max(open_sides, key=lambda side: side.width).aim if open_sides else None

    def _side(self, points: Sequence[Placed], guess: float, gap: float, outward: int) -> Side:
        """The side of a bracket below (outward = -1) or above (1) the estimate. Its aim lies outside of all that noise
        has left undecided there."""
        low, high = points[0][0], points[-1][0]
        edge = low if outward < 0 else high
        level = [outward * math.log(place / guess) for place, verdict in points[1:-1] if verdict.bound == BALANCED]
        far, width = max([gap, *(each + gap / 2 for each in level if each > 0)]), outward * math.log(edge / guess)
        place = roundest(guess * math.exp(outward * far), *sorted((guess, edge)))
        return Side(width, width <= NEAR * gap, self._free(place, low, high, outward) if far < width else None)

    def _gap(self, points: Sequence[Placed], guess: float, series: Sequence[Placed]) -> float:
        """How far beside the estimate a margin can be told from 1, on the logarithm of the axis."""
        tolerance = math.log1p(max(self._search.tolerance_frac, 1 / guess))
        known = [each for each in series if is_known(each)]
        left = [points[0], *(each for each in known if each[0] * BASE <= guess)]
        right = [*(each for each in known if each[0] >= guess * BASE), points[-1]]
        steepness = abs(slope(left[-1], right[0]))
        nearest = sorted(points, key=lambda each: abs(math.log(each[0] / guess)))[:3]
        noise = statistics.median(half_width(each) for each in nearest)
        return max(AIM * tolerance, CLEAR * noise / steepness if steepness else 0.0)

    def _in_a_row(self, low: int, high: int) -> int:
        """How many of the latest places fell on one side of the bracket: above 0 on the lower, below 0 on the upper."""
        sides = [1 if place <= low else -1 if place >= high else 0 for place in reversed(self._tries)]
        side, same = next(groupby(sides))
        return side * len(list(same))


def roundest(place: float, low: float, high: float) -> int:
    """The number with the most factors of two that lies between low and high, not far from a place between them."""
    leeway = LEEWAY * min(place - low, high - place)
    factor = 1
    while 2 * factor * round(place / (2 * factor)) and abs(2 * factor * round(place / (2 * factor)) - place) <= leeway:
        factor *= 2
    return factor * round(place / factor)


def _hedged(point: Placed) -> Placed:
    """With the reason why a balanced place leaves the answer open: it is told where no change of side is found."""
    place, verdict = point
    if verdict.bound != BALANCED:
        return point
    reasons = [verdict.reason] if verdict.reason else []
    return place, replace(verdict, reason="; ".join([*reasons, "a crossing may lie where it is balanced"]))
