"""runner.law: verdicts by hand, and the same as the analysis gives on any times."""

from __future__ import annotations

import math
import tempfile
from pathlib import Path
from typing import Any

import pytest
from given import write_store
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from analysis.store import open_store
from runner.law import Crossing, Times, Verdict, crossing, decide, ratio
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
    ],
)
def test_bounds_by_hand(times: Times, bound: str) -> None:
    """Each rule of the step law on round numbers."""
    assert decide(times).bound == bound


def test_work_within_noise_has_no_margin() -> None:
    """On a CPU a work that cannot be told from nothing gives no ratio, but a reason."""
    found = decide(Times(wall=near(3.02), floor=near(3), margin=near(150)))
    assert (found.bound, found.margin) == ("overhead-bound", None)
    assert found.reason == "the work is within the noise of the floor"


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


@pytest.mark.parametrize(
    ("series", "expected"),
    [
        ([(64, OVER), (96, UNDER)], Crossing("found", math.sqrt(64 * 96), 64, 96)),
        ([(96, UNDER), (64, OVER)], Crossing("found", math.sqrt(64 * 96), 64, 96)),
        ([(64, OVER), (80, LEVEL), (128, UNDER)], Crossing("found", math.sqrt(64 * 128), 64, 128)),
        ([(64, OVER), (4096, UNDER)], Crossing("bracketed", None, 64, 4096)),
        ([(64, Verdict("overhead-bound", None)), (96, UNDER)], Crossing("bracketed", None, 64, 96)),
        ([(64, OVER), (96, Verdict("device-bound", near(-0.1)))], Crossing("bracketed", None, 64, 96)),
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
    """Exactly one change of side is a crossing; the margins 2 and 1/2 meet in the geometric middle."""
    found = crossing(series)
    assert (found.status, found.low, found.high) == (expected.status, expected.low, expected.high)
    assert found.value == (None if expected.value is None else pytest.approx(expected.value))


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
    names = ("wall", "issue", "device", "floor")
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
    """Any series gives the same status, and the same value where there is one; one value of size is no series."""
    runs = [{**run, "workload": f"w{number}"} for number, each in enumerate(given_series) for run in each]
    rows = public(runs, "SELECT workload, status, \"value\" FROM crossovers WHERE axis = 'size'")
    found = {workload: (status, value) for workload, status, value in rows}
    for number, each in enumerate(given_series):
        mine = crossing([(run["size"], live(run)) for run in each])
        status, value = found.pop(f"w{number}", ("unknown", None))
        assert (status, value) == (mine.status, None if mine.value is None else pytest.approx(mine.value)), each
    assert found == {}
