"""The step law for one point and one crossing: live verdicts, before any SQL is asked.

Asynchronous device: max(issue, device) <= wall <= issue + device. CPU: wall = floor + work. analysis/sql/bounds.sql and
crossovers.sql are the public verdict; tests/test_sql_agrees_with_runner.py and test_law.py hold both to the same rows.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from runner.statistics import Estimate

SERIALIZED = 1.05
BROKEN = 1.10
FOUND = 2.0

OVERHEAD, BALANCED, DEVICE, SERIAL, UNKNOWN = "overhead-bound", "balanced", "device-bound", "serialized", "unknown"


@dataclass(frozen=True, slots=True)
class Times:
    """What a verdict needs of a point. All in microseconds a step but margin, the ratio of overhead to work."""

    wall: Estimate | None = None
    issue: Estimate | None = None
    device: Estimate | None = None
    floor: Estimate | None = None
    margin: Estimate | None = None
    blocks: bool = False


@dataclass(frozen=True, slots=True)
class Verdict:
    """A point's bound (device-bound stands for all that the roofs tell apart), its margin, and the reason."""

    bound: str
    margin: Estimate | None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Run:
    """One measurement of a point of a series, in its steady state: where it lies on the axis, and its times.

    sequence: what a step launches; issue time is a property of it. None = unknown.
    """

    place: float
    times: Times
    sequence: str | None = None


def judged(runs: Sequence[Run]) -> list[tuple[float, Verdict]]:
    """The verdict of every place of a series, over all runs that it has there, in the order of the places."""
    places = sorted({run.place for run in runs})
    return [(place, decide(_combined([run.times for run in runs if run.place == place]))) for place in places]


def _combined(runs: Sequence[Times]) -> Times:
    """Times over several runs: the median of their values, their least low and their greatest high."""
    names = ("wall", "issue", "device", "floor", "margin")
    return Times(
        **{name: _hull([getattr(each, name) for each in runs]) for name in names}, blocks=any(r.blocks for r in runs)
    )


def _hull(estimates: Sequence[Estimate | None]) -> Estimate | None:
    known = [each for each in estimates if each is not None]
    if not known:
        return None
    middle = statistics.median(each.value for each in known)
    return Estimate(middle, min(each.low for each in known), max(each.high for each in known))


def decide(times: Times) -> Verdict:
    """The bound of a point measured in its steady state."""
    if times.wall is None:
        return Verdict(UNKNOWN, None, "no times")
    if times.floor is not None:
        return _synchronous(times.wall, times.floor, times.margin)
    return _asynchronous(times, times.wall)


def _synchronous(wall: Estimate, floor: Estimate, margin: Estimate | None) -> Verdict:
    work = Estimate(wall.value - floor.value, wall.low - floor.high, wall.high - floor.low)
    if work.low <= 0:
        return Verdict(OVERHEAD, None, "the work is within the noise of the floor")
    return _by_margin(margin or ratio(floor, work))


def _asynchronous(times: Times, wall: Estimate) -> Verdict:
    if times.device is None or times.device.value <= 0:
        return Verdict(UNKNOWN, None, "device time was not measured")
    larger = max(times.issue.value if times.issue else 0.0, times.device.value)
    margin = times.margin or (ratio(times.issue, times.device) if times.issue else None)
    if times.issue is None:
        return _without_issue(wall, times.device, times.blocks)
    if times.blocks and wall.low > SERIALIZED * larger:
        return Verdict(SERIAL, margin, "the host waits for the device in every step")
    if not times.blocks and wall.low > BROKEN * larger:
        return Verdict(UNKNOWN, margin, "the wall time is above both of its terms, and nothing was seen to wait")
    assert margin is not None
    return _by_margin(margin)


def _without_issue(wall: Estimate, device: Estimate, blocks: bool) -> Verdict:
    if wall.low > BROKEN * device.high and not blocks:
        return Verdict(OVERHEAD, ratio(wall, device), "by the law: the wall time is above the device's")
    return Verdict(UNKNOWN, None, "issue time was not measured")


def _by_margin(margin: Estimate) -> Verdict:
    if margin.low > 1:
        return Verdict(OVERHEAD, margin)
    return Verdict(DEVICE if margin.high < 1 else BALANCED, margin)


def ratio(above: Estimate, below: Estimate) -> Estimate:
    """A ratio with the widest interval that its terms allow."""
    high = above.high / below.low if below.low > 0 else math.inf
    return Estimate(above.value / below.value, above.low / below.high, high)


@dataclass(frozen=True, slots=True)
class Crossing:
    """Where a series changes its side. value, low, high: on the axis; None where the status allows none."""

    status: str
    value: float | None = None
    low: float | None = None
    high: float | None = None


def crossing(series: Sequence[tuple[float, Verdict]]) -> Crossing:
    """The crossing of a series of (axis value, verdict): exactly one change of side, balanced points between allowed.

    `found` in a bracket at most 2x wide (interpolated on the logarithms of axis and margin), else `bracketed`; the
    bracket reaches over balanced points right beside it, since the crossing may as well lie there;
    `above` or `below` the range; `several`; `unknown` where no point has a side, or where all that have one lie on the
    same and a point beyond them is undecided. Points that failed or were skipped are not part of the series.
    """
    points = sorted(series, key=lambda each: each[0])
    sided = [(place, verdict) for place, verdict in points if verdict.bound in (OVERHEAD, DEVICE)]
    changes = [(left, right) for left, right in pairwise(sided) if left[1].bound != right[1].bound]
    if changes:
        return _between(points, sided, *changes[0]) if len(changes) == 1 else Crossing("several")
    if len(points) < 2 or not sided or _undecided_beyond(points, sided[0][0], sided[-1][0]):
        return Crossing("unknown")
    return Crossing("above" if sided[0][1].bound == OVERHEAD else "below")


def _undecided_beyond(points: Sequence[tuple[float, Verdict]], first: float, last: float) -> bool:
    """Whether a point outside of first..last is serialized or unknown."""
    return any(verdict.bound in (SERIAL, UNKNOWN) and not first <= place <= last for place, verdict in points)


Placed = tuple[float, Verdict]


def _between(points: Sequence[Placed], sided: Sequence[Placed], left: Placed, right: Placed) -> Crossing:
    low, high = _reach(points[::-1], sided[::-1], left), _reach(points, sided, right)
    margins = [each[1].margin.value if each[1].margin else 0.0 for each in (left, right)]
    if low <= 0 or high > FOUND * low or min(margins) <= 0:
        return Crossing("bracketed", None, low, high)
    first, last = (math.log(margin) for margin in margins)
    share = first / (first - last)
    return Crossing("found", math.exp(math.log(left[0]) + share * math.log(right[0] / left[0])), low, high)


def _reach(points: Sequence[Placed], sided: Sequence[Placed], edge: Placed) -> float:
    """Place of the decided point behind the balanced ones that follow the edge of a bracket, else of the edge."""
    beyond = points[points.index(edge) + 1 :]
    decided = sided[sided.index(edge) + 1 :]
    return decided[0][0] if beyond and beyond[0][1].bound == BALANCED and decided else edge[0]
