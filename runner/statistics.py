"""Medians and their intervals, for samples whose order matters."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

NORMAL = 1.959964
"""The 97.5 % quantile of the normal distribution: intervals are those of 95 %."""
RANKED = 6
"""So many samples have an interval by ranks; the range of fewer does not reach 95 %."""
COARSEST_TICK_FRAC = 0.05
"""No clock ticks more coarsely than this fraction of what it measures: larger steps between samples are real."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A value between low and high (its 95 % interval), in the unit of the samples."""

    value: float
    low: float
    high: float

    def as_list(self) -> list[float]:
        """The store's form: value, low, high."""
        return [self.value, self.low, self.high]


def estimate(samples: Sequence[float]) -> Estimate | None:
    """Median and interval of samples in the order taken; None without samples.

    The interval holds the median of the time in which the samples were taken: by ranks (`rank_interval`), by Student's
    t where there are 3 to 5 samples; one or two give their range. What another time would give is told by the spread
    between runs (`runner.law.spread_of`). scripts/coverage.py shows how often it holds the truth.
    """
    if not samples:
        return None
    middle = statistics.median(samples)
    low, high = _interval(samples)
    return Estimate(middle, min(low, middle), max(high, middle))


def widened(samples: Sequence[float], narrow: Estimate) -> Estimate:
    """The interval of samples from a contended host: at least from the 10th to the 90th percentile."""
    ordered = sorted(samples)
    return Estimate(narrow.value, min(narrow.low, quantile(ordered, 0.1)), max(narrow.high, quantile(ordered, 0.9)))


def rank_interval(samples: Sequence[float]) -> tuple[float, float]:
    """Interval of the median by order statistics: the values 1.96 standard deviations of the count below it away.

    The count below the median has a variance of n/4 for independent samples (David and Nagaraja, section 7.1), less
    where they drift, throttle or come in bursts: each part of the time is then sampled evenly. How much less is told by
    how often neighbours lie on different sides of their median, which is every other time for independent samples.
    Ranks between two samples are interpolated. Holds for any distribution.
    """
    return _by_ranks(samples, _changes_of_side(samples))


def student_interval(samples: Sequence[float]) -> tuple[float, float]:
    """Interval by Student's t, on logarithms where all samples are above zero."""
    if min(samples) <= 0:
        return _student(samples)
    low, high = _student([math.log(sample) for sample in samples])
    return math.exp(low), math.exp(high)


def t_quantile(dof: float) -> float:
    """The 97.5 % quantile of Student's t by its expansion about the normal one (Abramowitz and Stegun, 26.7.5)."""
    if dof < 3:
        return 12.7062 if dof < 2 else 4.30265
    terms = (NORMAL, 2.372271, 2.822499, 2.555849, 1.589534)
    return sum(term / dof**power for power, term in enumerate(terms))


def half_width_frac(samples: Sequence[float]) -> float:
    """Half the width over the median of the interval that independent samples would have, now or two samples earlier,
    whichever is wider; infinite for fewer than 8 samples.

    Who stops as soon as an interval happens to be narrow, stops by luck: at a width that lasts it happens less.
    """
    widths = []
    for taken in (samples, samples[:-2]):
        middle = statistics.median(taken) if len(taken) >= RANKED else 0
        if middle <= 0:
            return math.inf
        low, high = _by_ranks(taken, (len(taken) - 1) / 2)
        widths.append((high - low) / 2 / middle)
    return max(widths)


def quantile(ordered: Sequence[float], frac: float) -> float:
    """Quantile of sorted values, linear between neighbours."""
    place = frac * (len(ordered) - 1)
    below = int(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)


def spread(samples: Sequence[float]) -> float | None:
    """90th percentile over the median; None for fewer than 6 samples or a median of zero."""
    middle = statistics.median(samples) if len(samples) >= 6 else 0
    return quantile(sorted(samples), 0.9) / middle if middle > 0 else None


def _interval(samples: Sequence[float]) -> tuple[float, float]:
    if len(samples) >= RANKED:
        return rank_interval(samples)
    return student_interval(samples) if len(samples) > 2 else (min(samples), max(samples))


def _by_ranks(samples: Sequence[float], changes: float) -> tuple[float, float]:
    count = len(samples)
    ranks = NORMAL * math.sqrt(changes / (count - 1) * count / 2)
    reach_frac = min(0.5, ranks / (count - 1))
    ordered = _between_ticks(sorted(samples))
    return quantile(ordered, 0.5 - reach_frac), quantile(ordered, 0.5 + reach_frac)


def _changes_of_side(samples: Sequence[float]) -> float:
    """How often neighbours lie on different sides of the median; at most half of all, as if they were independent.

    A sample that is the median itself may lie on either side.
    """
    middle = statistics.median(samples)
    sides = [(sample > middle) - (sample < middle) for sample in samples]
    changes = sum(0.5 if one * next_one == 0 else one != next_one for one, next_one in pairwise(sides))
    return min(changes, (len(samples) - 1) / 2)


def _between_ticks(ordered: list[float]) -> list[float]:
    """Sorted values of a clock that ticks: equal ones are spread evenly over their tick (grouped data)."""
    steps = [above - below for below, above in pairwise(ordered) if above > below]
    tick = min(steps, default=0.0)
    if len(steps) == len(ordered) - 1 or tick > COARSEST_TICK_FRAC * abs(ordered[len(ordered) // 2]):
        return ordered
    counts = Counter(ordered)
    return [value + tick * ((place + 0.5) / of - 0.5) for value, of in counts.items() for place in range(of)]


def _student(samples: Sequence[float]) -> tuple[float, float]:
    reach = t_quantile(len(samples) - 1) * statistics.stdev(samples) / math.sqrt(len(samples))
    middle = statistics.fmean(samples)
    return middle - reach, middle + reach
