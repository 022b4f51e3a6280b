"""runner.statistics: medians and intervals of ordered samples."""

from __future__ import annotations

import math
import random
import runpy
import statistics
from itertools import zip_longest
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.statistics import Estimate, estimate, half_width_frac, quantile, rank_interval, spread, t_quantile, widened

COVERAGE = runpy.run_path(str(Path(__file__).parent.parent / "scripts/coverage.py"))
SCENARIOS = ("quiet", "skewed", "outliers", "ticking", "bursts", "drifting", "wandering", "two_paces")
positive = st.floats(0.001, 1e9, allow_nan=False)


def test_nothing_has_no_estimate() -> None:
    """No samples, no value."""
    assert estimate([]) is None


@pytest.mark.parametrize("samples", [[3.0], [1.0, 3.0]])
def test_one_or_two_samples_give_their_range(samples: list[float]) -> None:
    """Nothing can be said of how much they would differ."""
    assert estimate(samples) == Estimate(statistics.median(samples), min(samples), max(samples))


def test_three_samples_have_a_t_interval_on_logarithms() -> None:
    """1, 2 and 4: their logarithms lie ln 2 apart, so 2 times or over 2 ** (4.303 / sqrt 3)."""
    found = estimate([4.0, 1.0, 2.0])
    assert found is not None
    assert found.as_list() == pytest.approx([2, 2 / 2 ** (4.30265 / math.sqrt(3)), 2 * 2 ** (4.30265 / math.sqrt(3))])


def test_values_below_zero_have_a_t_interval_as_they_are() -> None:
    """Slopes about zero: -1, 0 and 1."""
    found = estimate([0.0, -1.0, 1.0])
    assert found is not None
    assert found.as_list() == pytest.approx([0, -4.30265 / math.sqrt(3), 4.30265 / math.sqrt(3)])


def test_ranks_are_those_of_the_tables() -> None:
    """Alternating sides, so that nothing is known of the order: 0.98 sqrt(n) ranks about the middle."""
    for count in (16, 25, 36, 64):
        low, high = rank_interval(_alternating(count))
        reach = 0.98 * count**0.5
        assert (low, high) == pytest.approx(((count + 1) / 2 - reach, (count + 1) / 2 + reach), abs=1e-3)


def _alternating(count: int) -> list[float]:
    """1 to count, every second one from below and from above the middle."""
    values = [float(each) for each in range(1, count + 1)]
    below, above = values[: (count + 1) // 2], values[(count + 1) // 2 :]
    return [value for pair in zip_longest(below, above) for value in pair if value is not None]


@given(st.lists(positive, min_size=1, max_size=40))
def test_an_estimate_holds_its_value(samples: list[float]) -> None:
    """low <= median <= high, and the same samples give the same estimate."""
    found = estimate(samples)
    assert found is not None
    assert found.low <= found.value <= found.high
    assert found.value == statistics.median(samples)
    assert found == estimate(samples)


def test_quantiles_of_t_are_those_of_the_tables() -> None:
    """97.5 %, within 0.2 %."""
    tables = {1: 12.706, 2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571, 10: 2.228, 30: 2.042, 1000: 1.962}
    assert {dof: t_quantile(dof) for dof in tables} == {dof: pytest.approx(t, rel=0.002) for dof, t in tables.items()}


@pytest.mark.parametrize("name", SCENARIOS)
def test_intervals_hold_the_truth_as_often_as_they_say(name: str) -> None:
    """93 to 97 of 100 simulated runs of 6 to 40 rounds (scripts/coverage.py)."""
    shares = [COVERAGE["coverage"](COVERAGE[name], count, 300) for count in (6, 8, 10, 15, 20, 30, 40)]
    assert 0.93 <= statistics.fmean(shares) <= 0.97


@pytest.mark.parametrize("name", SCENARIOS)
def test_few_samples_hold_the_truth_at_least_as_often(name: str) -> None:
    """3 to 5 rounds: at least 93 of 100."""
    assert statistics.fmean(COVERAGE["coverage"](COVERAGE[name], count, 600) for count in (3, 4, 5)) >= 0.93


def test_throttling_is_covered() -> None:
    """At least 93 of 100, and where there are 15 rounds or more, not many more than 97."""
    shares = [COVERAGE["coverage"](COVERAGE["throttled"], count, 500) for count in (6, 10, 15, 20, 30, 40)]
    assert min(shares) >= 0.93
    assert statistics.fmean(shares[2:]) <= 0.98


def test_who_stops_at_a_target_is_wrong_a_little_more_often() -> None:
    """Measuring until the interval is narrow enough favours narrow ones: still 90 of 100."""
    assert COVERAGE["coverage"](COVERAGE["stopped"], 40, 1000) >= 0.90


def test_drift_narrows_the_interval() -> None:
    """Values in rising order sample each part of the time once: they tell more of its median than in random order."""
    values = [100 + each for each in range(60)]
    drifting, mixed = estimate(values), estimate(random.Random(3).sample(values, len(values)))
    assert drifting is not None and mixed is not None
    assert drifting.high - drifting.low < 0.5 * (mixed.high - mixed.low)


def test_equal_values_are_spread_over_the_tick_of_their_clock() -> None:
    """Of 20 values of 10.0 and 10 of 10.1 the middle lies within the tick of 10.0; steps beyond 5 % are no ticks."""
    low, high = rank_interval([10.0, 10.1, 10.0] * 10)
    assert 9.95 < low < 10.0 < high < 10.1
    assert rank_interval([10.0] * 25 + [20.0] * 5) == (10.0, 10.0)


def test_a_contended_interval_reaches_from_the_10th_to_the_90th_percentile() -> None:
    """It is widened, never narrowed, and the value stays."""
    samples = [float(each) for each in range(101)]
    assert widened(samples, Estimate(50, 45, 55)) == Estimate(50, 10, 90)
    assert widened(samples, Estimate(50, 5, 95)) == Estimate(50, 5, 95)


def test_half_width_is_infinite_until_there_is_an_interval() -> None:
    """Too few samples, or a median of zero, can reach no target."""
    assert half_width_frac([1.0] * 7) == math.inf
    assert half_width_frac([0.0] * 10) == math.inf
    assert half_width_frac([]) == math.inf
    assert half_width_frac([1.0] * 8) == 0


def test_half_width_is_the_wider_of_now_and_two_samples_earlier() -> None:
    """Two samples in the middle narrow the interval at once, the target only when two more have come."""
    samples = _alternating(16)
    low, high = rank_interval(samples)
    assert half_width_frac([*samples, 8.5, 8.5]) == pytest.approx((high - low) / 2 / 8.5)


def test_quantiles_are_linear_between_neighbours() -> None:
    """As numpy's default method."""
    assert [quantile([1, 2, 4], frac) for frac in (0, 0.25, 0.5, 0.75, 1)] == [1, 1.5, 2, 3, 4]
    assert quantile([7], 0.9) == 7


def test_spread_is_the_90th_percentile_over_the_median() -> None:
    """None for few samples or a median of zero."""
    assert spread([1.0] * 9 + [3.0]) == pytest.approx(1.2)
    assert spread([1.0] * 5) is None
    assert spread([0.0] * 10) is None
