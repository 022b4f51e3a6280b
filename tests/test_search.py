"""runner.search: curves with a known truth are found in few points, and what cannot be found is told as such."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from seeking import CROSSINGS, CURVES, RANGE_256, Curve, Searched, Series, near, power_law, product, searched

from runner.config import Search
from runner.law import Run, Verdict
from runner.outcome import Outcome
from runner.search import Ask, SeriesSearch


def found_at(done: Searched) -> float:
    """Value of a crossing that was found."""
    assert done.outcome.crossing.status == "found", done.outcome.told
    assert done.outcome.crossing.value is not None
    return done.outcome.crossing.value


def reach(done: Searched) -> float:
    """How far the farther end of the bracket is from the value."""
    crossing = done.outcome.crossing
    assert crossing.low is not None and crossing.high is not None
    return max(crossing.high - found_at(done), found_at(done) - crossing.low)


# -- found -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("at", CROSSINGS)
@pytest.mark.parametrize("curve", CURVES.values(), ids=CURVES)
def test_a_crossing_is_found_within_the_tolerance(curve: Callable[[float], Curve], at: float) -> None:
    """Anywhere in a range of 256x, by any slope: 10 points and 14 runs at most, its bracket holds the truth."""
    done = searched(Series(curve(at), within=0.002))
    assert abs(found_at(done) / at - 1) < 0.01
    assert reach(done) <= max(0.02 * found_at(done), 1) * 1.01 and "no closer" not in done.outcome.told
    assert done.outcome.crossing.low <= at <= done.outcome.crossing.high
    assert done.outcome.points <= 10 and done.outcome.runs <= 14
    assert done.outcome.told.startswith(f"{found_at(done):.0f} (")


def test_a_search_takes_eight_points_on_average() -> None:
    """Interpolation pays: halving a range of 256x down to 2 % alone would take more than ten."""
    points = [searched(Series(curve(at))).outcome.points for curve in CURVES.values() for at in CROSSINGS]
    assert sum(points) / len(points) < 8


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("at", [300, 1750, 9000])
@pytest.mark.parametrize("curve", CURVES.values(), ids=CURVES)
def test_noise_widens_the_bracket_and_not_the_budget(curve: Callable[[float], Curve], at: float, seed: int) -> None:
    """2 % within a run and 1 % between runs: the truth stays inside, and both edges were measured three times."""
    done = searched(Series(curve(at), within=0.02, between=0.01, seed=seed))
    assert abs(found_at(done) / at - 1) < 0.03
    assert done.outcome.crossing.low <= at <= done.outcome.crossing.high
    assert done.outcome.points <= 10 and done.outcome.runs <= 14
    assert {repeat for _, repeat in done.asked} == {0, 1, 2}


def test_the_two_nearest_places_confirm() -> None:
    """Two more runs each, both first ones before both second ones, and in turn."""
    done = searched(Series(product(1750), within=0.004))
    low, high = int(done.outcome.crossing.low), int(done.outcome.crossing.high)
    assert done.asked[-4:] == [(low, 1), (high, 1), (high, 2), (low, 2)]
    assert all(repeat == 0 for _, repeat in done.asked[:-4])


def test_round_places_are_preferred() -> None:
    """Kernels are made for round sizes: of places that serve as well, the one with the most factors of two is taken."""
    done = searched(Series(product(1750), within=0.002))
    assert all(place % 8 == 0 for place, _ in done.asked)


class Fickle(Series):
    """A series whose first run of each place is wrong by a factor, as one worker may be."""

    def run(self, value: float, place: float, repeat: int = 0) -> Run:
        """The first run sees another margin than the others."""
        series = Series(lambda size: self.curve(size) * (1.0 if repeat else 1.03), within=0.004)
        return series.run(value, place, repeat)


def test_an_edge_that_does_not_confirm_is_searched_again() -> None:
    """What one worker has seen is not trusted: the bracket moves to where the others see it, within the budget."""
    at = 1750
    done = searched(Fickle(power_law(at)))
    assert done.outcome.crossing.low <= at <= done.outcome.crossing.high
    assert done.outcome.points <= 10 and done.outcome.runs <= 14
    first_confirmation = next(number for number, (_, repeat) in enumerate(done.asked) if repeat)
    assert any(repeat == 0 for _, repeat in done.asked[first_confirmation:])


@pytest.mark.parametrize(
    ("search", "at"),
    [
        (Search("size", 64, 16384, 8), 1750),
        (Search("size", 2, 512), 50.5),
        (Search("size", 64, 4096, 64), 1000),
        (Search("batch", 1, 64), 9.4),
        (Search("ops", 1, 1024), 36),
        (Search("scale", 0.1, 25.6, 0.1), 7.33),
        (Search("scale", 0.001, 0.256, 0.001), 0.0503),
    ],
    ids=str,
)
def test_any_axis_and_multiple(search: Search, at: float) -> None:
    """Every place is a multiple within the range; the bracket is as narrow as tolerance and multiples allow."""
    done = searched(Series(power_law(at), within=0.002), search)
    assert reach(done) <= max(0.02 * found_at(done), search.multiple) * 1.01
    assert done.outcome.crossing.low <= at <= done.outcome.crossing.high
    assert all(search.low <= search.value(place) <= search.high for place, _ in done.asked)
    assert done.outcome.points <= 10


def test_other_limits() -> None:
    """A wider tolerance takes fewer points; few points end the search where it is, and say so."""
    series = Series(product(1750), within=0.002)
    wide = searched(series, Search("size", 64, 16384, tolerance_frac=0.2))
    assert wide.outcome.points < searched(series).outcome.points and reach(wide) <= 0.2 * found_at(wide)
    few = searched(series, Search("size", 64, 16384, most_points=4, most_runs=4))
    assert (few.outcome.points, few.outcome.runs) == (4, 4)
    assert few.outcome.told.endswith("no closer: its points and runs are spent, 4 points, 4 runs")


# -- told as such ------------------------------------------------------------------------------------------------------


def test_no_crossing_in_the_range() -> None:
    """Both ends on one side: the middle is asked as well, then where it was looked for is told."""
    above, below = searched(Series(power_law(30000))), searched(Series(power_law(20)))
    assert above.measured == below.measured == [64, 16384, 1024]
    assert above.outcome.told == (
        "no crossing from 64 to 16384 (above): overhead-bound at 64, 1024 and 16384, 3 points, 3 runs"
    )
    assert below.outcome.told == (
        "no crossing from 64 to 16384 (below): device-bound at 64, 1024 and 16384, 3 points, 3 runs"
    )


FIRST_THREE = [(64, 0), (16384, 0), (1024, 0)]
LAST_TWO_AGAIN = [(1024, 1), (16384, 1), (16384, 2), (1024, 2)]


class Hesitant(Series):
    """A series of which the first run of the upper end has an interval of 20 %."""

    def run(self, value: float, place: float, repeat: int = 0) -> Run:
        """All others have their own noise."""
        run = super().run(value, place, repeat)
        if place < 16384 or repeat:
            return run
        return replace(run, times=replace(run.times, margin=near(self.curve(value), 0.2)))


def test_a_balanced_end_is_measured_again_before_there_is_no_crossing() -> None:
    """Two more runs of it and of its neighbour; it is as overhead-bound as the others."""
    done = searched(Hesitant(lambda size: 1.15, within=0.004))
    assert done.asked == [*FIRST_THREE, *LAST_TWO_AGAIN]
    assert done.outcome.told == (
        "no crossing from 64 to 16384 (above): overhead-bound at 64, 1024 and 16384, 3 points, 7 runs"
    )


def test_a_crossing_right_before_a_balanced_end_is_found() -> None:
    """The further runs see the other side, and the search goes on between the two."""
    done = searched(Hesitant(power_law(15500), within=0.004))
    assert done.asked[:7] == [*FIRST_THREE, *LAST_TWO_AGAIN]
    assert abs(found_at(done) / 15500 - 1) < 0.02
    assert done.outcome.crossing.low <= 15500 <= done.outcome.crossing.high
    assert done.outcome.points <= 10 and done.outcome.runs <= 14


def test_an_end_that_stays_balanced_leaves_the_answer_open() -> None:
    """Three runs of it, and the sentence says where a crossing may lie."""
    done = searched(Series(power_law(16384, 0.5), within=0.02))
    assert done.asked == [*FIRST_THREE, *LAST_TWO_AGAIN]
    assert "overhead-bound at 64 and 1024, balanced at 16384" in done.outcome.told
    assert "(a crossing may lie where it is balanced), 3 points, 7 runs" in done.outcome.told


def test_several_crossings() -> None:
    """A middle on the other side of both ends is no crossing that a number could stand for."""
    done = searched(Series(lambda size: 0.5 if 500 < size < 5000 else 2.0))
    assert done.outcome.crossing.status == "several"
    assert done.outcome.told.startswith(
        "several changes of side: overhead-bound at 64, device-bound at 1024, overhead-bound at 16384, 3 points"
    )
    assert [done.asked.count((place, 1)) for place in (64, 1024, 16384)] == [1, 1, 1]


def test_a_step_is_told_with_its_two_sides() -> None:
    """Another kernel from a size on: the margin jumps over 1, and no slope leads there."""
    search = Search("size", 64, 1024)
    done = searched(Series(lambda size: 1.4 if size < 333 else 0.6, within=0.004), search)
    assert done.outcome.crossing.status == "found"
    assert done.outcome.crossing.low < 333 <= done.outcome.crossing.high
    assert done.outcome.told.startswith("a step from ")
    assert ": the margin goes from 1.40 to 0.60, " in done.outcome.told
    smooth = searched(Series(power_law(333), within=0.004), search)
    assert "step" not in smooth.outcome.told


def test_a_bracket_of_one_multiple_is_as_close_as_can_be() -> None:
    """Also where the work is within its noise at one end: the middle, and nothing about a limit."""
    edges = ((4, Verdict("overhead-bound", None)), (5, Verdict("device-bound", near(0.5, 0.01))))
    told = Outcome(Search("size", 64, 16384, 8), edges, {}, points=2, runs=2, spent=True).told
    assert told == "35.8 (32 to 40), 2 points, 2 runs"


def test_what_is_too_large_is_no_end_of_the_search() -> None:
    """From where on nothing can be measured the crossing is searched below."""
    done = searched(Series(power_law(90), within=0.004, lost={2000: "skipped: too long"}))
    assert abs(found_at(done) / 90 - 1) < 0.01 and done.outcome.points <= 10
    assert done.measured[:3] == [64, 16384, 1024]


def test_a_crossing_beyond_what_can_be_measured() -> None:
    """Overhead-bound as far as it goes; how far was looked, and why no farther."""
    done = searched(Series(power_law(30000), lost={3000: "oom: out of memory"}))
    assert done.outcome.crossing.status == "above"
    highest = max(place for place in done.measured if place < 3000)
    assert highest >= 1500 and done.outcome.points <= 10
    assert "nothing measured at 4096 and 16384" in done.outcome.told
    assert "(oom: out of memory)" in done.outcome.told


def test_nothing_can_be_measured() -> None:
    """Both ends and the middle fail: the reason once."""
    done = searched(Series(power_law(300), lost={1: "failed: no such thing"}))
    assert done.outcome.told == (
        "unknown: nothing measured at 64, 1024 and 16384 (failed: no such thing), 3 points, 3 runs"
    )


def test_a_step_that_always_waits_has_no_crossing() -> None:
    """Serialized everywhere: told, with the reason."""
    done = searched(Series(power_law(300), blocks=True))
    assert done.outcome.crossing.status == "unknown"
    assert done.outcome.told == (
        "unknown: serialized at 64, 1024 and 16384 (the host waits for the device in every step), 3 points, 3 runs"
    )


def test_a_hole_inside_the_bracket_is_gone_around() -> None:
    """One place that crashes, at the very middle, does not end the search."""

    class Holed(Series):
        def reason(self, value: float) -> str | None:
            return "crashed" if value == 1024 else None

    done = searched(Holed(power_law(1750), within=0.004))
    assert abs(found_at(done) / 1750 - 1) < 0.05 and done.outcome.points <= 10


# -- one after the other -----------------------------------------------------------------------------------------------


def test_it_waits_for_what_is_out() -> None:
    """Both ends at once; nothing more until both are there; no outcome before the end."""
    seeker, series = SeriesSearch(RANGE_256), Series(product(1750))
    assert seeker.ask() == seeker.ask() == Ask((64, 16384))
    seeker.take()
    assert seeker.ask() is None and seeker.outcome is None
    seeker.learn(16384, [series.run(16384, 16384)])
    assert seeker.ask() is None
    seeker.learn(64, [series.run(64, 64)])
    assert seeker.ask() == Ask((1024,)) and seeker.outcome is None


@pytest.mark.parametrize("seed", range(8))
def test_a_search_that_is_repeated_asks_for_nothing(seed: int) -> None:
    """All its runs are in the store: the same way, the same outcome; with a part of them only the rest is asked for."""
    runs: dict[int, list[Run]] = {}

    class Noted(Series):
        def run(self, value: float, place: float, repeat: int = 0) -> Run:
            made = super().run(value, place, repeat)
            runs.setdefault(round(place), []).append(made)
            return made

    series = Noted(product(1750), within=0.02, between=0.01, seed=seed)
    first = searched(series)
    known = {place: list(found) for place, found in runs.items()}
    again = searched(series, known=known)
    assert (again.asked, again.outcome) == ([], first.outcome)
    place, _ = first.asked[-1]
    known[place].pop()
    assert searched(series, known=known).asked[0] == first.asked[-1]
