"""What a search has found, in a sentence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from runner.config import Search
from runner.law import Crossing, crossing, step
from runner.margins import Placed, changes_of_side
from runner.words import counted


@dataclass(frozen=True, slots=True)
class Outcome:
    """The end of a search. series: every place that has a verdict; lost: why each of the others has none; points, runs:
    what it took; spent: whether it has taken all that it may."""

    search: Search
    series: tuple[Placed, ...]
    lost: Mapping[int, str]
    points: int
    runs: int
    spent: bool

    @property
    def crossing(self) -> Crossing:
        """By the law, on the axis."""
        found = crossing(self.series)
        places = (found.value, found.low, found.high)
        return Crossing(found.status, *(None if each is None else each * self.search.multiple for each in places))

    @property
    def told(self) -> str:
        """`1756 (1744 to 1769), 7 points, 11 runs`, or why there is no such value."""
        found = self.crossing
        what = _what_was_seen(self, found) if found.low is None else _told_step(self) or _told_bracket(self, found)
        return f"{what}, {counted(self.points, 'point')}, {counted(self.runs, 'run')}"

    def named(self, place: int) -> str:
        """A place as its value on the axis."""
        return _number(self.search.value(place))


def _told_bracket(outcome: Outcome, found: Crossing) -> str:
    assert found.low is not None and found.high is not None
    limit = f", no closer: {_limit(outcome)}"
    low, high = _number(found.low), _number(found.high)
    if found.value is None:
        return f"between {low} and {high}{limit}"
    places = (each / outcome.search.multiple for each in (found.low, found.value, found.high))
    return f"{_number(found.value)} ({low} to {high}){'' if outcome.search.is_within(*places) else limit}"


def _limit(outcome: Outcome) -> str:
    """What kept the bracket from getting narrower."""
    ((low, _), (high, _)), *_ = changes_of_side(outcome.series)
    for place, reason in outcome.lost.items():
        if low < place < high:
            return f"{outcome.named(place)} could not be measured ({reason})"
    return "its points and runs are spent" if outcome.spent else "the margins are too noisy there"


def _told_step(outcome: Outcome) -> str | None:
    """The two places, where the law sees a step between them."""
    if (found := step(outcome.series)) is None:
        return None
    (low, left), (high, right) = found
    assert left.margin is not None and right.margin is not None
    margins = f"{left.margin.value:.2f} to {right.margin.value:.2f}"
    return f"a step from {outcome.named(round(low))} to {outcome.named(round(high))}: the margin goes from {margins}"


def _what_was_seen(outcome: Outcome, found: Crossing) -> str:
    """Several changes of side, none, or nothing that has a side: the verdicts along the axis, and their reasons."""
    low, high = _number(outcome.search.low), _number(outcome.search.high)
    none = f"no crossing from {low} to {high} ({found.status})"
    begin = {"several": "several changes of side", "unknown": "unknown"}.get(found.status, none)
    bounds = {place: verdict.bound for place, verdict in outcome.series} | dict.fromkeys(
        outcome.lost, "nothing measured"
    )
    seen = [
        f"{bound} at {_listed([outcome.named(place) for place, _ in group])}"
        for bound, group in groupby(sorted(bounds.items()), key=lambda each: each[1])
    ]
    reasons = dict.fromkeys([*outcome.lost.values(), *(each.reason for _, each in outcome.series if each.reason)])
    return f"{begin}: {', '.join(seen)}" + (f" ({'; '.join(reasons)})" if reasons else "")


def _number(value: float) -> str:
    return f"{value:.0f}" if value >= 100 or float(value).is_integer() else f"{value:.3g}"


def _listed(words: Sequence[str]) -> str:
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)
