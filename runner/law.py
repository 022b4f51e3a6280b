"""The step law for one point and one crossing: live verdicts, before any SQL is asked.

Asynchronous device: max(issue, device) <= wall <= issue + device. CPU: wall = floor + work. analysis/sql/bounds.sql and
crossovers.sql are the public verdict; tests/test_sql_agrees_with_runner.py and test_law.py hold both to the same rows.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from runner.statistics import NORMAL, Estimate, t_quantile

SERIALIZED = 1.05
BROKEN = 1.10
FOUND = 2.0
STEP = 3.0
"""So many times more than beside it a margin falls at a step,"""
LEAST_STEP = 0.1
"""and so much more at least, on the logarithm."""
LEAST_DOF = 3
"""From so few degrees of freedom on a spread is known: below, its own interval is wider than anything it could tell."""
WILD = 5.0
"""Robust standard deviations beyond which a run counts as if it lay there."""
LEAST_ALIKE = 3
"""So many points must launch the same for their issue time to be pooled."""
NORMAL_MAD = 0.6745
"""Median absolute deviation of the normal distribution, in standard deviations."""
COMBINED = ("wall", "issue", "device", "floor", "margin")

OVERHEAD, BALANCED, DEVICE, SERIAL, UNKNOWN = "overhead-bound", "balanced", "device-bound", "serialized", "unknown"
INPUT = "input-bound"


@dataclass(frozen=True, slots=True)
class Times:
    """What a verdict needs of a point. All in microseconds a step but margin, the ratio of overhead to work.

    data: host time between two steps in which it waits for its input; synchronous: the device is the host.
    """

    wall: Estimate | None = None
    issue: Estimate | None = None
    device: Estimate | None = None
    floor: Estimate | None = None
    margin: Estimate | None = None
    blocked: Estimate | None = None
    blocks: bool = False
    data: Estimate | None = None
    synchronous: bool = False


@dataclass(frozen=True, slots=True)
class Verdict:
    """A point's bound (device-bound stands for all that the roofs tell apart), its margin, and the reason."""

    bound: str
    margin: Estimate | None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Run:
    """One measurement of a point of a series, in its steady state: where it lies on the axis, and its times.

    sequence: what a step launches; issue time is a property of it. None = unknown. sweep: the command that measured it.
    """

    place: float
    times: Times
    sequence: str | None = None
    sweep: str | None = None


@dataclass(frozen=True, slots=True)
class Spread:
    """How much runs of one point differ: standard deviation of the logarithm, and its degrees of freedom."""

    sd: float
    dof: int


def judged(runs: Sequence[Run]) -> list[tuple[float, Verdict]]:
    """The verdict of every place of a series, over all runs that it has there, in the order of the places.

    The spread between runs is that of the places with several runs, and issue time is pooled over the places that
    launch the same; the analysis does both over all points of the environment.
    """
    places = {place: [run for run in runs if run.place == place] for place in sorted({run.place for run in runs})}
    spreads = {name: spread_of([_values(group, name) for group in places.values()]) for name in COMBINED}
    walls = {side: _wall_spread(places.values(), side) for side in (False, True)}
    issues = _pooled_issues(runs, places, spreads["issue"])
    return [
        (place, _verdict(group, {**spreads, "wall": walls[_host_binds(group)]}, issues))
        for place, group in places.items()
    ]


def spread_of(groups: Iterable[Sequence[float]]) -> Spread | None:
    """Spread of values about the mean of their group, on logarithms, over all groups of several; None for too few.

    A value farther from its mean than WILD robust standard deviations counts as if it lay there: a few wild runs must
    not widen every interval, but what happens to one run in twenty must.
    """
    logs = [[math.log(value) for value in group] for group in groups if len(group) > 1]
    dof = sum(len(group) - 1 for group in logs)
    if dof < LEAST_DOF:
        return None
    deviations = [(abs(each - statistics.fmean(group)), 1 - 1 / len(group)) for group in logs for each in group]
    cap = WILD * statistics.median(far / math.sqrt(share) for far, share in deviations) / NORMAL_MAD
    return Spread(math.sqrt(sum(min(far, cap * math.sqrt(share)) ** 2 for far, share in deviations) / dof), dof)


def _wall_spread(groups: Iterable[Sequence[Run]], host_binds: bool) -> Spread | None:
    """Spread of the wall times of one side: they differ between runs as the larger of their two terms does."""
    return spread_of([_values(group, "wall") for group in groups if _host_binds(group) == host_binds])


def _host_binds(runs: Sequence[Run]) -> bool:
    """Whether the issue time of a place is above its device time, by their medians."""
    issues, devices = ([t.value for run in runs if (t := getattr(run.times, name))] for name in ("issue", "device"))
    return bool(issues and devices) and statistics.median(issues) > statistics.median(devices)


def combined(estimates: Sequence[Estimate | None], spread: Spread | None) -> Estimate | None:
    """A time of a point over its runs: their median, its interval by the spread between runs.

    No narrower than the runs' own intervals make it, nor than the own one of a single run. Where the spread is unknown,
    or a value is not above zero, from the least low to the greatest high.
    """
    known = [each for each in estimates if each is not None]
    if not known:
        return None
    value, low, high = (
        statistics.median(e.value for e in known), min(e.low for e in known), max(e.high for e in known),
    )  # fmt: skip
    if spread is None or min(each.value for each in known) <= 0:
        return Estimate(value, low, high)
    reach = t_quantile(spread.dof) * spread.sd
    if len(known) == 1:
        return Estimate(value, min(low, value * math.exp(-reach)), max(high, value * math.exp(reach)))
    within = math.sqrt(statistics.fmean(_own_reach(each) ** 2 for each in known))
    reach = max(reach, within) * math.sqrt(_share(len(known)))
    return Estimate(value, value * math.exp(-reach), value * math.exp(reach))


def _own_reach(own: Estimate) -> float:
    """Half the width of a run's interval, on logarithms."""
    up = math.log(own.high / own.value)
    return (up + math.log(own.value / own.low)) / 2 if own.low > 0 else up


def _share(count: int) -> float:
    """Variance of the median of so many normal values, as a share of the variance of one (exact for one)."""
    return math.pi / (2 * count + math.pi - 2)


def _values(runs: Sequence[Run], name: str) -> list[float]:
    """Values above zero of a time, one a run."""
    known = (getattr(run.times, name) for run in runs)
    return [each.value for each in known if each is not None and each.value > 0]


def _verdict(runs: Sequence[Run], spreads: Mapping[str, Spread | None], issues: Mapping[str, Estimate]) -> Verdict:
    times = Times(
        **{name: combined([getattr(run.times, name) for run in runs], spreads[name]) for name in COMBINED},
        blocked=combined([run.times.blocked for run in runs], None),
        blocks=any(run.times.blocks for run in runs),
        data=combined([run.times.data for run in runs], None),
        synchronous=any(run.times.synchronous for run in runs),
    )
    if times.floor is not None and any(run.times.wall and run.times.margin is None for run in runs):
        times = replace(times, margin=None)  # such a run had no work above zero: the others must not speak for it
    sequence = _sequence(runs)
    pooled = _with_issue(times, issues.get(sequence)) if sequence else times
    return decide(pooled, _least_excess([run.times for run in runs]) if times.issue else None)


def _least_excess(runs: Sequence[Times]) -> float | None:
    """Median of the excess of the runs, of those that have both terms."""
    found = [excess for run in runs if run.issue and (excess := _excess(run)) is not None]
    return statistics.median(found) if found else None


# -- issue time is a property of what a step launches ------------------------------------------------------------------


def _pooled_issues(
    runs: Sequence[Run], places: Mapping[float, Sequence[Run]], of_runs: Spread | None
) -> dict[str, Estimate]:
    """Launch sequence -> the issue time that its places share; only where at least three do."""
    alike = {each: [group for group in places.values() if _sequence(group) == each] for each in _sequences(runs)}
    centres = {each: [_issue(group) for group in groups if _values(group, "issue")] for each, groups in alike.items()}
    sweeps = {each: _sweep_centres([run for group in groups for run in group]) for each, groups in alike.items()}
    of_sweeps = spread_of(sweeps.values())
    return {
        each: _pooled(
            centres[each],
            _between_sweeps(centres[each], sweeps[each], of_sweeps)
            if len(sweeps[each]) > 1
            else _within_sweep(max(map(len, alike[each])), of_runs),
        )
        for each in alike
        if len(centres[each]) >= LEAST_ALIKE
    }


def _issue(runs: Sequence[Run]) -> float:
    return statistics.median(_values(runs, "issue"))


def _sequences(runs: Sequence[Run]) -> list[str]:
    return sorted({run.sequence for run in runs if run.sequence is not None})


def _sequence(runs: Sequence[Run]) -> str | None:
    """What all runs of a place launch that tell it; None where they differ."""
    known = _sequences(runs)
    return known[0] if len(known) == 1 else None


def _sweep_centres(runs: Sequence[Run]) -> list[float]:
    """Median issue time in each command that measured at least three of the places."""
    known = [run for run in runs if run.times.issue and run.times.issue.value > 0]
    sweeps = [[run for run in known if run.sweep == sweep] for sweep in {run.sweep for run in known}]
    return [_issue(group) for group in sweeps if len({run.place for run in group}) >= LEAST_ALIKE]


def _pooled(centres: Sequence[float], apart: float) -> Estimate:
    """Median of the places' issue times; its interval by their robust spread, and by how far commands lie apart."""
    middle = statistics.median(centres)
    sd = statistics.median(abs(math.log(each / middle)) for each in centres) / NORMAL_MAD
    among = NORMAL * sd * math.sqrt(math.pi / 2 / len(centres))
    reach = math.hypot(among, apart)
    return Estimate(middle, middle * math.exp(-reach), middle * math.exp(reach))


def _between_sweeps(centres: Sequence[float], sweeps: Sequence[float], spread: Spread | None) -> float:
    """How far commands lie apart, on logarithms."""
    if spread is None:
        middle = statistics.median(centres)
        return max(abs(math.log(each / middle)) for each in sweeps)
    return t_quantile(spread.dof) * spread.sd * math.sqrt(_share(len(sweeps)))


def _within_sweep(runs: int, spread: Spread | None) -> float:
    """How far one command may be off: it is worth as many runs as its most repeated place has, each from a worker of
    its own; what a worker does to one place it does to all."""
    return t_quantile(spread.dof) * spread.sd * math.sqrt(_share(runs)) if spread else 0.0


def _with_issue(times: Times, issue: Estimate | None) -> Times:
    """The times with the issue time that the launch sequence has: the margin of the rounds moves with it."""
    if issue is None or times.device is None or times.device.low <= 0:
        return times
    own = times.margin and times.issue and times.margin.value / times.issue.value
    value = issue.value * (own or 1 / times.device.value)
    reach = math.hypot(_own_reach(issue), math.log(times.device.high / times.device.low) / 2)
    margin = Estimate(value, value * math.exp(-reach), value * math.exp(reach))
    return replace(times, issue=issue, margin=margin)


# -- one point ---------------------------------------------------------------------------------------------------------


def decide(times: Times, excess: float | None = None) -> Verdict:
    """The bound of a point measured in its steady state.

    excess: the low end of its wall time over the larger of its two terms, where it was formed in each run.
    """
    if times.wall is None:
        return Verdict(UNKNOWN, None, "no times")
    if times.data is not None and _waits_for_input(times, times.wall, times.data):
        margin = times.margin or (ratio(times.issue, times.device) if times.issue and times.device else None)
        return Verdict(INPUT, margin, "the host waits for its input between two steps")
    if times.floor is not None:
        return _synchronous(times.wall, times.floor, times.margin)
    if times.synchronous:
        return Verdict(UNKNOWN, None, "no floor was measured")
    return _asynchronous(times, times.wall, excess)


def _waits_for_input(times: Times, wall: Estimate, data: Estimate) -> bool:
    """Whether the wait for the input between two steps binds.

    On the CPU: it is more than half of wall. Else: wall is above what the step would take without the wait, the wait
    explains by how much, and issuing is not the longest of the three.
    """
    if times.synchronous:
        return data.low > wall.high / 2
    if times.issue is None or times.device is None or times.device.value <= 0:
        return False
    issue_us, device_us = times.issue.value, times.device.value
    without_us = issue_us + device_us if times.blocks else max(issue_us, device_us)
    explained = wall.low - data.high - without_us <= (SERIALIZED - 1) * wall.low
    return wall.low > BROKEN * without_us and explained and issue_us <= max(data.value, device_us)


def _excess(times: Times) -> float | None:
    """Low end of the wall time over the larger of the two terms; over the device's high end without an issue time."""
    if times.wall is None or times.device is None or times.device.value <= 0:
        return None
    return times.wall.low / (max(times.issue.value, times.device.value) if times.issue else times.device.high)


def _synchronous(wall: Estimate, floor: Estimate, margin: Estimate | None) -> Verdict:
    if margin is not None and wall.value > floor.value:
        return _by_margin(margin)
    work = Estimate(wall.value - floor.value, wall.low - floor.high, wall.high - floor.low)
    if work.low > 0:
        return _by_margin(ratio(floor, work))
    if work.high < floor.low:
        return Verdict(OVERHEAD, None, "the work is within the noise of the floor")
    return Verdict(BALANCED, None, "the noise hides whether the work is above or below the floor")


def _asynchronous(times: Times, wall: Estimate, given: float | None) -> Verdict:
    excess = _excess(times) if given is None else given
    if times.device is None or excess is None:
        return Verdict(UNKNOWN, None, "device time was not measured")
    if times.issue is None:
        return _without_issue(wall, times.device, excess, times.blocks)
    margin = times.margin or ratio(times.issue, times.device)
    if times.blocks and (excess > SERIALIZED or _mostly_blocked(wall, times.blocked)):
        return Verdict(SERIAL, margin, "the host waits for the device in every step")
    if not times.blocks and excess > BROKEN:
        return Verdict(UNKNOWN, margin, "the wall time is above both of its terms, and nothing was seen to wait")
    return _by_margin(margin)


def _mostly_blocked(wall: Estimate, blocked: Estimate | None) -> bool:
    """Whether the host waits for more than half of the step: it then issues nothing while the device works, however
    little of the step that costs."""
    return blocked is not None and blocked.low > wall.value / 2


def _without_issue(wall: Estimate, device: Estimate, excess: float, blocks: bool) -> Verdict:
    if excess > BROKEN and not blocks:
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


Placed = tuple[float, Verdict]


@dataclass(frozen=True, slots=True)
class Crossing:
    """Where a series changes its side. value, low, high: on the axis; None where the status allows none."""

    status: str
    value: float | None = None
    low: float | None = None
    high: float | None = None


def crossing(series: Sequence[tuple[float, Verdict]]) -> Crossing:
    """The crossing of a series of (axis value, verdict): exactly one change of side, balanced points between allowed.

    `found` in a bracket at most 2x wide (a straight line through the two decided points and the balanced ones between
    them, on the logarithms of axis and margin; the middle of the bracket where one of the two margins has none), else
    `bracketed`; the bracket reaches over balanced points right beside it, since the crossing may as well lie there;
    `above` or `below` the range; `several`; `unknown` where no point has a side, or where all that have one lie on the
    same and a point beyond them is undecided. Points that failed or were skipped are not part of the series.
    """
    points = sorted(series, key=lambda each: each[0])
    sided, changes = _changes(points)
    if changes:
        return _between(points, sided, *changes[0]) if len(changes) == 1 else Crossing("several")
    if len(points) < 2 or not sided or _undecided_beyond(points, sided[0][0], sided[-1][0]):
        return Crossing("unknown")
    return Crossing("above" if sided[0][1].bound == OVERHEAD else "below")


def step(series: Sequence[Placed]) -> tuple[Placed, Placed] | None:
    """The two neighbours between which a margin falls as it does not beside them: kernels change with size.

    By more than STEP times the steeper of the two slopes beside, from interval to interval, at the only change of side;
    None where a balanced point lies between, or none that is decided beyond either.
    """
    points = sorted(series, key=lambda each: each[0])
    sided, changes = _changes(points)
    if len(changes) != 1:
        return None
    left, right = changes[0]
    first = sided.index(left) - 1
    around = sided[max(0, first) : first + 4]
    if len(around) < 4 or any(left[0] < place < right[0] and each.bound == BALANCED for place, each in points):
        return None
    return (left, right) if _falls(*around) else None


def _falls(before: Placed, left: Placed, right: Placed, after: Placed) -> bool:
    slopes = [slope for pair in ((before, left), (right, after)) if (slope := _slope(*pair)) is not None]
    width, ends = _log_ratio(right[0], left[0]), (_nearest(left[1]), _nearest(right[1]))
    if not slopes or width is None or (fall := _log_ratio(*ends)) is None:
        return False
    expected = width * max(slopes)
    return abs(fall) > max(STEP * expected, expected + LEAST_STEP)


def _slope(one: Placed, two: Placed) -> float | None:
    """By how much the margin changes along the axis, both on logarithms."""
    change, width = _log_ratio(_margin(one[1]), _margin(two[1])), _log_ratio(two[0], one[0])
    return None if change is None or width is None else abs(change / width)


def _margin(verdict: Verdict) -> float:
    """Its value; 0, which has no logarithm, where there is none."""
    return verdict.margin.value if verdict.margin else 0.0


def _nearest(verdict: Verdict) -> float:
    """The end of a decided margin's interval that lies towards 1."""
    if verdict.margin is None:
        return 0.0
    return verdict.margin.low if verdict.bound == OVERHEAD else verdict.margin.high


def _log_ratio(one: float, two: float) -> float | None:
    return math.log(one / two) if min(one, two) > 0 else None


def _changes(points: Sequence[Placed]) -> tuple[list[Placed], list[tuple[Placed, Placed]]]:
    """The points that have a side, and the neighbours of them that have different ones."""
    sided = [each for each in points if each[1].bound in (OVERHEAD, DEVICE)]
    return sided, [(left, right) for left, right in pairwise(sided) if left[1].bound != right[1].bound]


def _undecided_beyond(points: Sequence[tuple[float, Verdict]], first: float, last: float) -> bool:
    """Whether a point outside of first..last is serialized or unknown."""
    return any(verdict.bound in (SERIAL, UNKNOWN) and not first <= place <= last for place, verdict in points)


def _between(points: Sequence[Placed], sided: Sequence[Placed], left: Placed, right: Placed) -> Crossing:
    low, high = _reach(points[::-1], sided[::-1], left), _reach(points, sided, right)
    between = [
        (place, _margin(verdict))
        for place, verdict in points
        if left[0] <= place <= right[0] and verdict.bound in (OVERHEAD, BALANCED, DEVICE)
    ]
    if low <= 0 or high > FOUND * low:
        return Crossing("bracketed", None, low, high)
    if min(between[0][1], between[-1][1]) <= 0:
        return Crossing("found", math.sqrt(low * high), low, high)
    return Crossing("found", _meeting([each for each in between if each[1] > 0]), low, high)


def _meeting(margins: Sequence[tuple[float, float]]) -> float:
    """Where the margin is 1: on the straight line through all, on logarithms; should that be beyond them, through the
    first and the last."""
    logs = [(math.log(place), math.log(margin)) for place, margin in margins]
    root = _root(logs)
    return math.exp(root if logs[0][0] <= root <= logs[-1][0] else _root([logs[0], logs[-1]]))


def _root(points: Sequence[tuple[float, float]]) -> float:
    line = statistics.linear_regression(*zip(*points, strict=True))
    return -line.intercept / line.slope if line.slope else math.inf


def _reach(points: Sequence[Placed], sided: Sequence[Placed], edge: Placed) -> float:
    """Place of the decided point behind the balanced ones that follow the edge of a bracket, else of the edge."""
    beyond = points[points.index(edge) + 1 :]
    decided = sided[sided.index(edge) + 1 :]
    return decided[0][0] if beyond and beyond[0][1].bound == BALANCED and decided else edge[0]
