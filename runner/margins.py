"""A series as places and verdicts: sides, brackets, and margins on logarithms."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

from runner.law import DEVICE, OVERHEAD, Verdict

Placed = tuple[int, Verdict]
"""Where a point lies on the axis, in multiples, and its verdict."""


def changes_of_side(series: Sequence[Placed]) -> list[tuple[Placed, Placed]]:
    """Neighbours, of all that have a side, which have different ones."""
    sided = [each for each in series if each[1].bound in (OVERHEAD, DEVICE)]
    return [(left, right) for left, right in pairwise(sided) if left[1].bound != right[1].bound]


def is_known(point: Placed) -> bool:
    """Whether a point has a margin with a logarithm."""
    margin = point[1].margin
    return margin is not None and margin.value > 0


def log_margin(point: Placed) -> float:
    """Logarithm of a margin; without end where the work is within its noise."""
    margin = point[1].margin
    if margin is None or margin.value <= 0:
        return math.inf if point[1].bound == OVERHEAD else -math.inf
    return math.log(margin.value)


def half_width(point: Placed) -> float:
    """Half the width of a margin's interval, on the logarithm; 0 where it has no end."""
    margin = point[1].margin
    if margin is None or margin.low <= 0 or math.isinf(margin.high):
        return 0.0
    return math.log(margin.high / margin.low) / 2


def slope(one: Placed, two: Placed) -> float:
    """Change of the margin along the axis, both on logarithms."""
    return (log_margin(two) - log_margin(one)) / math.log(two[0] / one[0])


def estimate(points: Sequence[Placed]) -> float | None:
    """Where the margin passes 1, by the neighbours between which it first does; None where they have no logarithms."""
    for one, two in pairwise(points):
        if is_known(one) and is_known(two):
            first, last = log_margin(one), log_margin(two)
            if first == 0 or first * last < 0:
                return _root(one[0], two[0], first, last)
    return None


def weighted(left: Placed, right: Placed, stale: int) -> float:
    """The estimate of a bracket of which one edge stays: its margin counts half for each time but the first.

    stale: how often the upper edge has stayed, below 0 the lower one (the Illinois method).
    """
    first, last, weight = log_margin(left), log_margin(right), 0.5 ** (abs(stale) - 1)
    return _root(left[0], right[0], *((first, last * weight) if stale > 0 else (first * weight, last)))


def _root(low: float, high: float, first: float, last: float) -> float:
    return math.exp(math.log(low) + math.log(high / low) * first / (first - last))
