"""Medians and their intervals, for samples whose order matters."""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

CONFIDENCE = 0.95
RESAMPLES = 500


@dataclass(frozen=True, slots=True)
class Estimate:
    """A value between low and high (its 95 % interval), in the unit of the samples."""

    value: float
    low: float
    high: float

    def as_list(self) -> list[float]:
        """The store's form: value, low, high."""
        return [self.value, self.low, self.high]


def estimate(samples: Sequence[float], seed: int = 0) -> Estimate | None:
    """Median and interval of samples in the order taken; None without samples.

    Circular block bootstrap of the median (Politis and Romano, 1992): whole runs of neighbours are drawn, of length
    n^(1/3), so that drift and bursts widen the interval. It is never narrower than the interval by order statistics
    (`rank_interval`), which the bootstrap undercuts for few samples; fewer than 6 samples give their range.
    """
    if not samples:
        return None
    middle = statistics.median(samples)
    ranks = rank_interval(samples)
    if ranks is None:
        return Estimate(middle, min(samples), max(samples))
    medians = _block_medians(samples, random.Random(seed))
    tail = (1 - CONFIDENCE) / 2
    low, high = quantile(medians, tail), quantile(medians, 1 - tail)
    return Estimate(middle, min(low, ranks[0]), max(high, ranks[1]))


def widened(samples: Sequence[float], narrow: Estimate) -> Estimate:
    """The interval of samples from a contended host: at least from the 10th to the 90th percentile."""
    ordered = sorted(samples)
    return Estimate(narrow.value, min(narrow.low, quantile(ordered, 0.1)), max(narrow.high, quantile(ordered, 0.9)))


def rank_interval(samples: Sequence[float]) -> tuple[float, float] | None:
    """Interval of the median by order statistics, free of any distribution (David and Nagaraja, section 7.1).

    None for fewer than 6 samples, with which no such interval reaches 95 %.
    """
    rank = _rank(len(samples))
    if rank is None:
        return None
    ordered = sorted(samples)
    return ordered[rank], ordered[-1 - rank]


def half_width_frac(samples: Sequence[float]) -> float:
    """Half the width of `rank_interval` over the median; infinite while there are too few samples."""
    interval = rank_interval(samples)
    middle = statistics.median(samples) if samples else 0
    if interval is None or middle <= 0:
        return math.inf
    return (interval[1] - interval[0]) / 2 / middle


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


@cache
def _rank(count: int) -> int | None:
    """Greatest rank r so that (r, count - 1 - r) holds the median with CONFIDENCE; None if there is none."""
    outside, rank = 0.0, None
    for below in range(count // 2):
        outside += 2 * math.comb(count, below) * 0.5**count
        if outside > 1 - CONFIDENCE:
            break
        rank = below
    return rank


def _block_medians(samples: Sequence[float], chance: random.Random) -> list[float]:
    count = len(samples)
    length = max(1, round(count ** (1 / 3)))
    around = list(samples) + list(samples[: length - 1])
    blocks = [around[start : start + length] for start in range(count)]
    drawn = math.ceil(count / length)
    return sorted(
        statistics.median([value for block in chance.choices(blocks, k=drawn) for value in block][:count])
        for _ in range(RESAMPLES)
    )
