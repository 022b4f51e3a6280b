"""runner.rounds: the order of interleaved rounds, and why they end."""

from __future__ import annotations

import random
import statistics

import pytest

from runner import rounds
from runner.rounds import (
    LEAST_QUIET,
    LEAST_ROUNDS,
    MORE_TIME,
    MOST_ROUNDS,
    Disturbed,
    Quantity,
    Rounds,
    Sample,
    Target,
    completed,
    lacking,
    paired,
    paired_ratios,
    take_rounds,
)

FOREVER = Target("test", 0.001, 1e9)


class Ticking:
    """A clock that moves on by the cost of each sample alone."""

    def __init__(self) -> None:
        self.now_ns = 0

    def __call__(self) -> int:
        return self.now_ns

    def costing(self, value: float | None, seconds: float = 0.01) -> Quantity:
        """A quantity of one value that takes some seconds to sample."""

        def sample() -> float | None:
            self.now_ns += round(seconds * 1e9)
            return value

        return sample


def noisy(clock: Ticking, frac: float) -> Quantity:
    """A quantity that never settles within a small target."""
    chance = random.Random(1)

    def sample() -> float:
        clock.now_ns += 10_000_000
        return 10 * chance.uniform(1 - frac, 1 + frac)

    return sample


def test_the_order_is_reversed_every_round() -> None:
    """a b c, c b a, a b c, ...: whatever drifts touches all alike."""
    clock = Ticking()
    taken = take_rounds({name: clock.costing(1.0) for name in "abc"}, ("a",), Target("t", 0.5, 1e9), clock)
    orders = ["".join(s.quantity for s in taken.samples if s.round == number) for number in range(taken.count)]
    assert orders[:4] == ["abc", "cba", "abc", "cba"]


def test_positions_count_all_samples_in_the_order_taken() -> None:
    """position is the place among all samples, so that the order can be told from the stored rows."""
    clock = Ticking()
    taken = take_rounds({"a": clock.costing(1.0), "b": clock.costing(2.0)}, ("a",), Target("t", 0.5, 1e9), clock)
    assert [sample.position for sample in taken.samples] == list(range(2 * taken.count))


def test_steady_samples_end_with_target() -> None:
    """Samples without any spread end as soon as an interval has lasted: eight of them."""
    clock = Ticking()
    taken = take_rounds({"a": clock.costing(5.0)}, ("a",), FOREVER, clock)
    assert (taken.stopped, taken.count) == ("target", 8)
    assert taken.seconds == pytest.approx(0.08)


def test_all_decisive_quantities_must_reach_the_target() -> None:
    """One noisy decisive quantity keeps the rounds going; a noisy one that decides nothing does not."""
    clock = Ticking()
    quantities = {"steady": clock.costing(5.0), "noisy": noisy(clock, 0.5)}
    both = take_rounds(quantities, ("steady", "noisy"), Target("t", 0.01, 1.0), clock)
    one = take_rounds(quantities, ("steady",), Target("t", 0.01, 1.0), clock)
    assert (both.stopped, one.stopped) == ("limit", "target")


def test_the_limit_ends_noisy_samples() -> None:
    """Time is up after limit_s, at the end of a round."""
    clock = Ticking()
    taken = take_rounds({"a": noisy(clock, 0.3)}, ("a",), Target("t", 0.001, 0.5), clock)
    assert taken.stopped == "limit"
    assert 0.5 <= taken.seconds < 0.52


def test_a_slow_point_is_sampled_a_few_times_all_the_same() -> None:
    """Even when one sample uses up the whole limit there are LEAST_ROUNDS rounds."""
    clock = Ticking()
    taken = take_rounds({"a": clock.costing(5.0, seconds=100)}, ("a",), Target("t", 0.01, 1.0), clock)
    assert (taken.stopped, taken.count) == ("limit", LEAST_ROUNDS)


def test_rounds_end_at_their_greatest_number(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where neither target nor limit is reached, the number of rounds ends them and is told."""
    monkeypatch.setattr(rounds, "MOST_ROUNDS", 20)
    clock = Ticking()
    taken = take_rounds({"a": noisy(clock, 0.3)}, ("a",), FOREVER, clock)
    assert (taken.stopped, taken.count) == ("rounds", 20)
    assert MOST_ROUNDS > 100


def test_a_sample_that_could_not_be_taken_is_missing() -> None:
    """None is no sample, takes no position, and never lets the target be reached."""
    clock = Ticking()
    quantities = {"a": clock.costing(5.0), "never": clock.costing(None)}
    taken = take_rounds(quantities, ("a", "never"), Target("t", 0.5, 0.3), clock)
    assert taken.stopped == "limit"
    assert taken.values("never") == []
    assert [sample.position for sample in taken.samples] == list(range(taken.count))


def test_ratios_are_formed_within_a_round() -> None:
    """Where both were sampled; drift of both leaves no trace in the ratio; a zero below gives none."""
    samples = []
    for number in range(5):
        heat = 1 + number
        samples += [
            Sample("issue", number, 2 * number, 6.0 * heat),
            Sample("device", number, 2 * number + 1, 2.0 * heat),
        ]
    samples += [Sample("issue", 5, 10, 7.0), Sample("issue", 6, 11, 7.0), Sample("device", 6, 12, 0.0)]
    assert paired_ratios(samples, "issue", "device") == [3.0] * 5


def test_interleaving_takes_drift_out_of_ratios() -> None:
    """A device that gets slower and slower while measured changes both values, and their ratio by less than 2 %."""
    clock = Ticking()

    def drifting(value: float) -> Quantity:
        def sample() -> float:
            clock.now_ns += 10_000_000
            return value * (1 + clock.now_ns / 1e9)

        return sample

    taken = take_rounds({"a": drifting(20), "b": drifting(10)}, ("a", "b"), Target("t", 1e-6, 1.0), clock)
    values = taken.values("a")
    assert max(values) > 1.5 * min(values)
    assert statistics.median(paired_ratios(taken.samples, "a", "b")) == pytest.approx(2, rel=0.02)


def mostly_disturbed(clock: Ticking, every: int, seconds: float) -> Quantity:
    """A quantity of which one sample in `every` is taken on a quiet host."""
    calls = iter(range(10**6))

    def sample() -> float | Disturbed:
        clock.now_ns += round(seconds * 1e9)
        return 10.0 if next(calls) % every == every - 1 else Disturbed(16.0)

    return sample


def test_a_disturbed_sample_has_a_name_of_its_own() -> None:
    """Nothing is dropped: what was taken beside other work is kept apart from what counts."""
    clock = Ticking()
    taken = take_rounds({"a": mostly_disturbed(clock, 2, 0.01)}, ("a",), Target("t", 0.5, 1e9), clock)
    assert set(taken.values("a")) == {10.0} and set(taken.values("a_disturbed")) == {16.0}
    assert [sample.position for sample in taken.samples] == list(range(len(taken.samples)))


def test_a_disturbed_host_gets_more_time_until_there_are_enough_good_samples() -> None:
    """The limit holds once a decisive time has six good samples, else three times as long."""
    clock = Ticking()
    target = Target("t", 1e-9, 0.2)
    some = take_rounds({"a": mostly_disturbed(clock, 5, 0.01)}, ("a",), target, clock)
    assert (len(some.values("a")), some.stopped) == (LEAST_QUIET, "limit") and some.seconds > target.limit_s
    few = take_rounds({"a": mostly_disturbed(clock, 20, 0.01)}, ("a",), target, clock)
    assert few.stopped == "limit" and few.seconds == pytest.approx(MORE_TIME * target.limit_s, rel=0.1)


def test_where_good_samples_are_lacking_the_disturbed_ones_have_to_do() -> None:
    """Under six good samples all count; a time with enough of its own keeps the others out."""
    good = [Sample("a", number, number, 10.0) for number in range(LEAST_QUIET)]
    bad = [Sample("a_disturbed", 7, 7, 16.0), Sample("b", 7, 8, 1.0), Sample("b_disturbed", 8, 9, 2.0)]
    rounds = Rounds((*good, *bad), "limit", 9, 1.0)
    assert lacking(rounds.samples, ("a", "b", "c")) == ["b"]
    done = completed(rounds, ("a", "b", "c"))
    assert done.values("a") == [10.0] * LEAST_QUIET and done.values("a_disturbed") == [16.0]
    assert done.values("b") == [1.0, 2.0]


def test_pairs_are_of_rounds_in_which_both_were_sampled() -> None:
    """A round without one of the two has no pair."""
    samples = [Sample("a", 0, 0, 4.0), Sample("b", 0, 1, 2.0), Sample("a", 1, 2, 5.0), Sample("b", 2, 3, 3.0)]
    assert paired(samples, "a", "b") == [(4.0, 2.0)]
