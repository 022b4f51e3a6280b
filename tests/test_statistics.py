"""runner.statistics: medians and intervals of ordered samples."""

from __future__ import annotations

import math
import random
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.statistics import Estimate, estimate, half_width_frac, quantile, rank_interval, spread, widened

positive = st.floats(0.001, 1e9, allow_nan=False)


def test_nothing_has_no_estimate() -> None:
    """No samples, no value."""
    assert estimate([]) is None


@pytest.mark.parametrize("samples", [[3.0], [1.0, 3.0], [5.0, 1.0, 3.0, 2.0, 4.0]])
def test_few_samples_give_their_range(samples: list[float]) -> None:
    """Below six samples no interval reaches 95 %: the range is all that can be said."""
    assert estimate(samples) == Estimate(statistics.median(samples), min(samples), max(samples))


def test_rank_intervals_are_those_of_the_tables() -> None:
    """Ranks of the 95 % interval of the median: 6 and 8 samples their whole range, 10 the second, 20 the sixth."""
    intervals = {count: rank_interval([float(each) for each in range(1, count + 1)]) for count in (5, 6, 8, 10, 20, 50)}
    assert intervals == {5: None, 6: (1, 6), 8: (1, 8), 10: (2, 9), 20: (6, 15), 50: (18, 33)}


@given(st.lists(positive, min_size=1, max_size=40))
def test_an_estimate_holds_its_value(samples: list[float]) -> None:
    """low <= median <= high, none outside of the samples, and the same samples give the same estimate."""
    found = estimate(samples)
    assert found is not None
    assert min(samples) <= found.low <= found.value <= found.high <= max(samples)
    assert found.value == statistics.median(samples)
    assert found == estimate(samples)


@given(st.lists(positive, min_size=6, max_size=40))
def test_an_estimate_is_never_narrower_than_by_ranks(samples: list[float]) -> None:
    """The bootstrap undercuts for few samples; order statistics hold for any distribution."""
    found, ranks = estimate(samples), rank_interval(samples)
    assert found is not None and ranks is not None
    assert found.low <= ranks[0] and ranks[1] <= found.high


@pytest.mark.parametrize("count", [10, 30])
def test_intervals_hold_the_truth_as_often_as_they_say(count: int) -> None:
    """Of 95 % intervals of independent normal samples at least 93 % hold the true median."""
    chance, trials = random.Random(count), 400
    held = 0
    for _ in range(trials):
        found = estimate([chance.gauss(100, 5) for _ in range(count)])
        assert found is not None
        held += found.low <= 100 <= found.high
    assert held / trials >= 0.93


def test_drift_widens_the_interval() -> None:
    """The same values in rising order tell less about their median than in random order."""
    values = [100 + each for each in range(60)]
    shuffled = random.Random(3).sample(values, len(values))
    drifting, mixed = estimate(values), estimate(shuffled)
    assert drifting is not None and mixed is not None
    assert drifting.high - drifting.low > 1.3 * (mixed.high - mixed.low)


def test_a_contended_interval_reaches_from_the_10th_to_the_90th_percentile() -> None:
    """It is widened, never narrowed, and the value stays."""
    samples = [float(each) for each in range(101)]
    assert widened(samples, Estimate(50, 45, 55)) == Estimate(50, 10, 90)
    assert widened(samples, Estimate(50, 5, 95)) == Estimate(50, 5, 95)


def test_half_width_is_infinite_until_there_is_an_interval() -> None:
    """Too few samples, or a median of zero, can reach no target."""
    assert half_width_frac([1.0] * 5) == math.inf
    assert half_width_frac([0.0] * 10) == math.inf
    assert half_width_frac([]) == math.inf
    assert half_width_frac([9.0, 10.0, 10.0, 10.0, 10.0, 11.0]) == pytest.approx(0.1)


def test_quantiles_are_linear_between_neighbours() -> None:
    """As numpy's default method."""
    assert [quantile([1, 2, 4], frac) for frac in (0, 0.25, 0.5, 0.75, 1)] == [1, 1.5, 2, 3, 4]
    assert quantile([7], 0.9) == 7


def test_spread_is_the_90th_percentile_over_the_median() -> None:
    """None for few samples or a median of zero."""
    assert spread([1.0] * 9 + [3.0]) == pytest.approx(1.2)
    assert spread([1.0] * 5) is None
    assert spread([0.0] * 10) is None
