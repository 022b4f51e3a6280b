"""runner.law: verdicts by hand, and the same as the analysis gives on any times."""

from __future__ import annotations

import math
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from given import write_store
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from analysis.store import open_store
from runner.law import (
    Crossing,
    Run,
    Spread,
    Times,
    Verdict,
    combined,
    crossing,
    decide,
    judged,
    ratio,
    spread_of,
    step,
)
from runner.statistics import Estimate

DEVICE_SIDE = ("compute-bound", "memory-bound", "device-bound")


def near(value: float, frac: float = 0.01) -> Estimate:
    """A value with a narrow interval."""
    return Estimate(value, value * (1 - frac), value * (1 + frac))


# -- one point --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("times", "bound"),
    [
        (Times(wall=near(20), issue=near(20), device=near(5)), "overhead-bound"),
        (Times(wall=near(50), issue=near(20), device=near(50)), "device-bound"),
        (Times(wall=near(20), issue=near(20), device=near(20.1)), "balanced"),
        (Times(wall=near(240), issue=near(23), device=near(215), blocks=True), "serialized"),
        (Times(wall=near(1040), issue=near(41), device=near(1017), blocked=near(990), blocks=True), "serialized"),
        (Times(wall=near(1020), issue=near(41), device=near(1017), blocked=near(400), blocks=True), "device-bound"),
        (Times(wall=near(215), issue=near(23), device=near(215), blocks=True), "device-bound"),
        (Times(wall=near(40), issue=near(20), device=near(30)), "unknown"),
        (Times(wall=near(32), issue=near(20), device=near(30)), "device-bound"),
        (Times(wall=near(30), device=near(10)), "overhead-bound"),
        (Times(wall=near(10.5), device=near(10)), "unknown"),
        (Times(wall=near(30), device=near(10), blocks=True), "unknown"),
        (Times(wall=near(30), issue=near(30)), "unknown"),
        (Times(wall=near(30), issue=near(30), device=Estimate(0, 0, 0)), "unknown"),
        (Times(issue=near(30), device=near(3)), "unknown"),
        (Times(wall=near(12), floor=near(3)), "device-bound"),
        (Times(wall=near(12), floor=near(9)), "overhead-bound"),
        (Times(wall=near(3.02), floor=near(3)), "overhead-bound"),
        (Times(wall=near(2.9), floor=near(3)), "overhead-bound"),
        (Times(wall=Estimate(49, 35, 3220), floor=Estimate(12.6, 12, 36)), "balanced"),
        (Times(wall=Estimate(6, 4, 8), floor=Estimate(4.5, 4, 5)), "balanced"),
        (Times(wall=Estimate(6, 4, 7), floor=Estimate(4.5, 4, 5)), "overhead-bound"),
    ],
)
def test_bounds_by_hand(times: Times, bound: str) -> None:
    """Each rule of the step law on round numbers."""
    assert decide(times).bound == bound


def test_work_within_noise_has_no_margin() -> None:
    """On a CPU a work that cannot be told from nothing gives no ratio, but a reason."""
    found = decide(Times(wall=near(3.02), floor=near(3)))
    assert (found.bound, found.margin) == ("overhead-bound", None)
    assert found.reason == "the work is within the noise of the floor"


def test_work_that_may_be_anything_is_balanced() -> None:
    """An interval from nothing to far above the floor decides nothing, and says so."""
    found = decide(Times(wall=Estimate(49, 35, 3220), floor=Estimate(12.6, 12, 36)))
    assert (found.bound, found.margin) == ("balanced", None)
    assert found.reason == "the noise hides whether the work is above or below the floor"


def test_on_a_cpu_whose_pace_changes_the_rounds_decide() -> None:
    """Wall and floor of several runs may overlap although the work was above zero in every round of each."""
    found = decide(Times(wall=near(9, 0.4), floor=near(6, 0.4), margin=near(2, 0.05)))
    assert (found.bound, found.margin) == ("overhead-bound", near(2, 0.05))


def test_the_margin_of_the_rounds_wins() -> None:
    """A ratio formed within each round is narrower than one of two intervals, and is taken as it is."""
    wide = Times(wall=near(20, 0.2), issue=near(20, 0.2), device=near(18, 0.2))
    assert decide(wide).bound == "balanced"
    assert (
        decide(Times(wall=wide.wall, issue=wide.issue, device=wide.device, margin=near(1.11))).bound == "overhead-bound"
    )


def test_ratio_takes_the_widest_interval() -> None:
    """Lowest over highest to highest over lowest; without end where the lower term may be nothing."""
    assert ratio(Estimate(20, 18, 22), Estimate(10, 8, 12)) == Estimate(2, 1.5, 2.75)
    assert ratio(near(20), Estimate(10, 0, 12)).high == math.inf


# -- a series ---------------------------------------------------------------------------------------------------------

OVER, UNDER = Verdict("overhead-bound", near(2)), Verdict("device-bound", near(0.5))
LEVEL, LOST = Verdict("balanced", near(1)), Verdict("unknown", None)
BLURRED = Verdict("overhead-bound", None)


@pytest.mark.parametrize(
    ("series", "expected"),
    [
        ([(64, OVER), (96, UNDER)], Crossing("found", math.sqrt(64 * 96), 64, 96)),
        ([(96, UNDER), (64, OVER)], Crossing("found", math.sqrt(64 * 96), 64, 96)),
        ([(64, OVER), (80, LEVEL), (128, UNDER)], Crossing("found", 86.8614, 64, 128)),
        ([(64, OVER), (4096, UNDER)], Crossing("bracketed", None, 64, 4096)),
        ([(64, BLURRED), (96, UNDER)], Crossing("found", math.sqrt(64 * 96), 64, 96)),
        ([(64, BLURRED), (80, LEVEL), (96, UNDER)], Crossing("found", math.sqrt(64 * 96), 64, 96)),
        ([(64, OVER), (96, Verdict("device-bound", near(-0.1)))], Crossing("found", math.sqrt(64 * 96), 64, 96)),
        ([(64, BLURRED), (256, UNDER)], Crossing("bracketed", None, 64, 256)),
        ([(0, OVER), (96, UNDER)], Crossing("bracketed", None, 0, 96)),
        ([(64, OVER), (128, OVER)], Crossing("above")),
        ([(64, UNDER), (128, UNDER)], Crossing("below")),
        ([(64, OVER), (128, UNDER), (256, OVER)], Crossing("several")),
        ([(64, OVER), (128, LOST)], Crossing("unknown")),
        ([(64, OVER), (96, LOST), (128, OVER)], Crossing("above")),
        ([(64, OVER), (96, LOST), (128, UNDER)], Crossing("found", math.sqrt(64 * 128), 64, 128)),
        ([(64, OVER)], Crossing("unknown")),
        ([(64, LEVEL), (128, LEVEL)], Crossing("unknown")),
        ([], Crossing("unknown")),
    ],
)
def test_crossings_by_hand(series: list[tuple[float, Verdict]], expected: Crossing) -> None:
    """Exactly one change of side is a crossing; the margins 2 and 1/2 meet in the geometric middle, a balanced point
    moves it on the straight line through the three. Without a margin the middle of the bracket is all that is known."""
    found = crossing(series)
    assert (found.status, found.low, found.high) == (expected.status, expected.low, expected.high)
    assert found.value == (None if expected.value is None else pytest.approx(expected.value))


def placed(*margins: float | tuple[float, float, float]) -> list[tuple[float, Verdict]]:
    """Decided places 100, 200, 210, 420, ... of these margins."""
    estimates = [near(each) if isinstance(each, float) else Estimate(*each) for each in margins]
    bounds = ["overhead-bound" if each.value > 1 else "device-bound" for each in estimates]
    return list(zip((100, 200, 210, 420, 430), map(Verdict, bounds, estimates), strict=False))


def test_a_step_falls_more_than_three_times_as_much_as_beside_it() -> None:
    """Beside it a fall of ln(1.4 / 1.2) over ln 2, so 0.0108 over ln 1.05; three times that is less than 0.1 more."""
    series = placed(1.4, 1.2, 0.8, 0.7)
    found = step(series)
    assert found is not None and [place for place, _ in found] == [200, 210]
    assert step(placed(1.4, 1.06, 0.95, 0.9)) is None, "0.09 from interval to interval"
    assert step(placed(1.4, (1.2, 1.02, 1.4), (0.8, 0.7, 0.95), 0.7)) is None, "the intervals nearly meet"
    assert step(placed(40.0, 1.2, 0.8, 0.7)) is None, "as steep before"
    assert step(placed(1.4, 1.2, 0.8, 0.02)) is None, "as steep behind"
    assert step(series[:3]) is step(series[1:]) is None, "nothing beside to compare with"
    assert step([*series, (430, OVER)]) is None, "two changes"
    assert step(sorted([*series, (205, LEVEL)], key=lambda each: each[0])) is None, "a balanced point between"


# -- several runs -----------------------------------------------------------------------------------------------------


def test_too_few_repeated_runs_tell_no_spread() -> None:
    """Two degrees of freedom: their own intervals would be wider than anything they could tell."""
    assert spread_of([[20, 21], [30, 31], [40]]) is None
    assert spread_of([]) is None


def test_the_spread_is_that_about_each_points_mean() -> None:
    """Three pairs, each 1.1 apart: logarithms of +-ln(1.1)/2 about their means, so a variance of ln(1.1)^2 / 2."""
    found = spread_of([[20, 22], [11, 10], [300, 330], [7]])
    assert found is not None
    assert (found.sd, found.dof) == (pytest.approx(math.log(1.1) / math.sqrt(2)), 3)


def test_a_wild_run_counts_as_five_robust_deviations() -> None:
    """One pair of forty 3 times apart adds no more than one 5 / 0.6745 times as far apart as the others."""
    calm = [[20, 20.2]] * 39
    one_wild, without = spread_of([*calm, [20, 60]]), spread_of(calm)
    assert one_wild is not None and without is not None
    assert one_wild.sd == pytest.approx(without.sd * math.sqrt((39 + (5 / 0.6745) ** 2) / 40))


def test_runs_combine_to_their_median_and_the_spread_of_the_environment() -> None:
    """t(10) x 5 % of one run, by the variance of a median where there are three; never narrower than a run's own."""
    spread = Spread(0.05, 10)
    one, three = combined([near(20)], spread), combined([near(19), near(20), near(25), None], spread)
    assert one is not None and three is not None
    assert one.as_list() == pytest.approx([20, 20 * math.exp(-0.1114), 20 * math.exp(0.1114)], rel=1e-4)
    reach = 0.1114 * math.sqrt(math.pi / (4 + math.pi))
    assert three.as_list() == pytest.approx([20, 20 * math.exp(-reach), 20 * math.exp(reach)], rel=1e-4)
    assert combined([near(20, 0.2)], spread) == near(20, 0.2)


def test_without_a_spread_runs_combine_to_their_hull() -> None:
    """As do values that are not above zero, which have no logarithm."""
    assert combined([near(19), near(20), near(25)], None) == Estimate(20, 19 * 0.99, 25 * 1.01)
    assert combined([Estimate(0, -1, 1), Estimate(0.1, 0, 0.2)], Spread(0.1, 10)) == Estimate(0.05, -1, 1)
    assert combined([None], None) is None


def launched(place: float, issue: float, device: float, **more: Any) -> Run:
    """A run that launches what the others do."""
    times = Times(wall=near(max(issue, device)), issue=near(issue), device=near(device), margin=near(issue / device))
    return Run(place, times, **{"sequence": "mm add", **more})


def test_points_that_launch_the_same_share_an_issue_time() -> None:
    """The host was slow at 1024: its own 36 us against a device of 30 is overhead, the 20 us of its kind are not."""
    runs = [launched(64, 20, 5), launched(128, 20.2, 6), launched(256, 19.8, 8), launched(1024, 36, 30)]
    verdicts = dict(judged(runs))
    assert [each.bound for each in verdicts.values()] == ["overhead-bound"] * 3 + ["device-bound"]
    assert verdicts[1024].margin is not None
    assert verdicts[1024].margin.value == pytest.approx(20.1 / 30)
    alone = dict(judged([replace(run, sequence=None) for run in runs]))
    assert alone[1024].bound == "overhead-bound"


def test_two_points_share_no_issue_time() -> None:
    """Nor do three that launch something else."""
    two = [launched(64, 20, 5), launched(1024, 36, 30)]
    assert dict(judged(two))[1024].bound == "overhead-bound"
    assert dict(judged([*two, launched(128, 20, 6, sequence="bmm")]))[1024].bound == "overhead-bound"


def test_a_point_without_an_issue_time_gets_that_of_its_kind() -> None:
    """A full queue hid it: the other points that launch the same tell it."""
    runs = [launched(place, 20, 5) for place in (64, 128, 256)]
    full = Run(2048, Times(wall=near(40), device=near(40)), "mm add")
    found = dict(judged([*runs, full]))[2048]
    assert (found.bound, found.margin and found.margin.value) == ("device-bound", pytest.approx(0.5))


def test_commands_that_differ_widen_the_shared_issue_time() -> None:
    """Another command found the host 30 % slower: what lies between the two is not decided."""
    first = [launched(place, 20, 5, sweep="a") for place in (64, 128, 256, 1024)]
    second = [launched(place, 26, 21, sweep="b") for place in (2048, 2056, 2064)]
    alike = dict(judged([*first, *second]))
    assert alike[64].bound == "overhead-bound"
    assert alike[2048].bound == "balanced"
    one_command = dict(judged([replace(run, sweep="a") for run in [*first, *second]]))
    assert one_command[2048].bound != "overhead-bound"


def test_one_command_is_worth_no_more_than_one_run() -> None:
    """Its runs differ by 8 %: a device 5 % slower than the shared issue time is not told from it. Where nothing was
    measured twice, it is."""
    alike = [launched(place, issue, 5, sweep="a") for place in (64, 128, 256) for issue in (19.2, 20.8)]
    single = [launched(place, 20, 5, sweep="a") for place in (64, 128, 256)]
    near_one = launched(1024, 20, 21, sweep="a")
    assert dict(judged([*alike, near_one]))[1024].bound == "balanced"
    assert dict(judged([*single, near_one]))[1024].bound == "device-bound"


def test_wall_times_differ_as_their_larger_term_does() -> None:
    """A host whose runs differ by 30 % leaves the wall times of a device that is the slower one narrow."""
    host = [Run(place, Times(near(wall), near(wall), near(5))) for place in (8, 16, 32) for wall in (17, 23)]
    device = [Run(place, Times(near(wall), near(20), near(wall))) for place in (64, 128, 256) for wall in (99, 101)]
    late = [Run(512, Times(wall=near(150, 0.001), device=near(100, 0.001)))]
    margin = dict(judged([*host, *device, *late]))[512].margin
    assert margin is not None
    assert margin.high < 1.65


def test_the_law_is_kept_in_each_run_not_by_their_medians() -> None:
    """Two paces of the host: wall follows issue in every run, so that nothing waits unseen."""
    runs = [launched(64, issue, 5) for issue in (20, 35, 34)]
    assert dict(judged(runs))[64].bound == "overhead-bound"


# -- the same as the analysis -----------------------------------------------------------------------------------------

# Opening a store costs far more than a point in it: few stores of many points, and no time spent on smaller failures.
FEW = settings(max_examples=4, deadline=None, phases=(Phase.explicit, Phase.reuse, Phase.generate))
microseconds = st.floats(0.5, 400).map(lambda value: round(value, 3))
widths = st.sampled_from([0.0, 0.005, 0.03, 0.2, 1.0])
Interval = tuple[float, float, float]


@st.composite
def interval(draw: st.DrawFn, values: st.SearchStrategy[float] = microseconds) -> Interval:
    """value, low, high."""
    value = draw(values)
    return value, value * (1 - draw(widths)), value * (1 + draw(widths))


@st.composite
def asynchronous(draw: st.DrawFn) -> dict[str, Any]:
    """A run on a GPU that keeps the law, breaks it, waits, or lacks a time."""
    issue, device = draw(interval()), draw(interval())
    factor = draw(st.sampled_from([0.97, 1.0, 1.04, 1.08, 1.12, 1.6]))
    wall = tuple(factor * max(issue[0], device[0]) * each for each in (1, 0.99, 1.01))
    run: dict[str, Any] = {"device": "cuda", "wall_us": wall, "issue_us": issue, "device_us": device}
    for missing in draw(st.sets(st.sampled_from(["wall_us", "issue_us", "device_us"]), max_size=1)):
        run[missing] = None
    if draw(st.booleans()):
        run["margin"] = draw(interval(st.floats(0.05, 20)))
    if draw(st.integers(0, 2)) == 0:
        run["facts"] = {"blocking_calls": {"Tensor.item": 1.0}}
        run["blocked_us"] = tuple(draw(st.sampled_from([0.1, 0.6, 0.9])) * each for each in wall)
    return run


@st.composite
def synchronous(draw: st.DrawFn) -> dict[str, Any]:
    """A run on a CPU, its work above or within the noise of its floor, or without a floor."""
    run: dict[str, Any] = {"device": "cpu", "wall_us": draw(interval()), "floor_us": draw(interval())}
    if draw(st.booleans()):
        run["margin"] = draw(interval(st.floats(0.05, 20)))
    if draw(st.integers(0, 9)) == 0:
        run["floor_us"] = None
    return run


def live(run: dict[str, Any]) -> Verdict:
    """The runner's verdict of a given run."""
    names = ("wall", "issue", "device", "floor", "blocked")
    times = {name: None if run.get(f"{name}_us") is None else Estimate(*run[f"{name}_us"]) for name in names}
    margin = None if run.get("margin") is None else Estimate(*run["margin"])
    return decide(Times(**times, margin=margin, blocks=bool(run.get("facts", {}).get("blocking_calls"))))


def public(runs: list[dict[str, Any]], query: str) -> list[tuple[Any, ...]]:
    """Rows of the analysis on a store of these runs."""
    with tempfile.TemporaryDirectory() as folder, open_store(write_store(Path(folder) / "store", runs=runs)) as opened:
        return opened.sql(query).fetchall()


@FEW
@given(st.lists(st.one_of(asynchronous(), synchronous()), min_size=40, max_size=60))
def test_bounds_and_margins_are_the_analysis(runs: list[dict[str, Any]]) -> None:
    """Any times give the same bound and margin in both; which roof explains a device-bound point is the analysis's."""
    rows = public(
        [{**run, "point_id": f"p{number:02d}"} for number, run in enumerate(runs)],
        "SELECT bound, margin, margin_low, margin_high FROM bounds ORDER BY point_id",
    )
    for run, (bound, *margin) in zip(runs, rows, strict=True):
        mine = live(run)
        assert mine.bound == ("device-bound" if bound in DEVICE_SIDE else bound), run
        expected = [None] * 3 if mine.margin is None else [pytest.approx(each) for each in mine.margin.as_list()]
        assert run["wall_us"] is None or margin == expected, run


@st.composite
def series(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Runs over size on one kind of device, most of them of a side."""
    sizes = draw(st.sets(st.sampled_from([8, 12, 16, 24, 32, 64, 100, 128, 512]), min_size=1, max_size=6))
    one = asynchronous() if draw(st.booleans()) else synchronous()
    return [{**draw(one), "size": size} for size in sorted(sizes)]


@FEW
@given(st.lists(series(), min_size=12, max_size=20))
def test_crossings_are_the_analysis(given_series: list[list[dict[str, Any]]]) -> None:
    """Any series gives the same status, value where there is one, and step; one value of size is no series."""
    runs = [{**run, "workload": f"w{number}"} for number, each in enumerate(given_series) for run in each]
    query = "SELECT workload, status, \"value\", contains(reason, 'a step: ') FROM crossovers WHERE axis = 'size'"
    found = {workload: told for workload, *told in public(runs, query)}
    for number, each in enumerate(given_series):
        verdicts = [(run["size"], live(run)) for run in each]
        mine = crossing(verdicts)
        status, value, is_step = found.pop(f"w{number}", ("unknown", None, False))
        assert is_step == (step(verdicts) is not None), each
        assert (status, value) == (mine.status, None if mine.value is None else pytest.approx(mine.value)), each
    assert found == {}


@st.composite
def repeated_series(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Several sizes, some of them measured several times by one of three commands, which launch one of two things."""
    runs = []
    for size in draw(st.sets(st.sampled_from([8, 16, 32, 64, 100, 128, 512]), min_size=3, max_size=6)):
        blocks = {"blocking_calls": {"Tensor.item": 1.0}} if draw(st.integers(0, 3)) == 0 else {}
        facts = {**blocks, "profile": {"launch_sequence": draw(st.sampled_from(["one", "one", "two", None]))}}
        for _ in range(draw(st.integers(1, 4))):
            run = draw(asynchronous().filter(lambda run: run["wall_us"] is not None))
            runs.append({**run, "facts": facts, "size": size, "sweep_id": draw(st.sampled_from("abc"))})
    return runs


@FEW
@given(st.lists(repeated_series(), min_size=6, max_size=8))
def test_repeated_runs_are_combined_as_by_the_analysis(given_series: list[list[dict[str, Any]]]) -> None:
    """Spread between runs and shared issue times: each series an environment, since the spread is that of one."""
    runs = [{**run, "environment_id": f"e{number}"} for number, each in enumerate(given_series) for run in each]
    rows = public(runs, "SELECT environment_id, size, bound, margin, margin_low, margin_high FROM bounds")
    found = {(environment, size): each for environment, size, *each in rows}
    for number, each in enumerate(given_series):
        for place, verdict in judged([as_run(run) for run in each]):
            bound, *margin = found[f"e{number}", place]
            assert verdict.bound == ("device-bound" if bound in DEVICE_SIDE else bound), (place, each)
            expected = [None] * 3 if verdict.margin is None else verdict.margin.as_list()
            assert margin == [None if value is None else pytest.approx(value) for value in expected], (place, each)


def as_run(run: dict[str, Any]) -> Run:
    """A given run as the runner has it."""
    names = ("wall", "issue", "device", "blocked")
    times = {name: None if run.get(f"{name}_us") is None else Estimate(*run[f"{name}_us"]) for name in names}
    margin = None if run.get("margin") is None else Estimate(*run["margin"])
    facts = run.get("facts", {})
    blocks = bool(facts.get("blocking_calls"))
    sequence = facts["profile"]["launch_sequence"]
    return Run(run["size"], Times(**times, margin=margin, blocks=blocks), sequence, run["sweep_id"])


def test_runs_without_work_have_a_say() -> None:
    """On a CPU a run whose work is not above zero has no margin; the one run that has one does not decide alone."""
    without = Run(16, Times(wall=near(5), floor=near(4)))
    ((_, verdict),) = judged([without, without, Run(16, Times(wall=near(9), floor=near(4), margin=near(0.8)))])
    assert verdict.bound != "device-bound"
