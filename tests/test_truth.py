"""`python -m analysis truth`: every figure to reach, met and missed, and a report that a stranger can read."""

from __future__ import annotations

import csv
import io
import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from given import write_store
from truth_given import ROOFS, Row, around, device_bound, fused, point

from analysis.__main__ import main
from analysis.truth import MET, MISSED, UNMEASURED, Compared, Search, chance_of, gather, targets
from analysis.truth_report import in_words

NAMES = (
    "no disagreement farther than 10 % from a crossing",
    "no more disagreements than the stated confidence allows",
    "points decided: at least 95 %",
    "predicted gains within 10 %: at least 90 %",
    "step law within 5 %: at least 95 %",
    "changed work moves the points that it binds, and no others: all",
    "intervals of two searches overlap: at least 95 %",
    "values of two searches differ by less than 5 % (median)",
)


def checked_points() -> list[Row]:
    """Twenty points on both sides whose slopes, replays and walls are as stated."""
    low = [point(size=64 + each, device_us=10, replay_us=8) for each in range(10)]
    high = [device_bound(size=256 + each) for each in range(10)]
    return [*low, *high]


def searched(sweep_id: str, low: int, high: int) -> list[Row]:
    """The two nearest points of a search for one series, fp16."""
    facts = {"search": {"axis": "size", "low": low, "high": high, "multiple": 1}, "device_method": "held"}
    shared = {"sweep_id": sweep_id, "dtype": "fp16", "facts": facts, "host_slope": None}
    return [point(size=low, **shared), device_bound(size=high, **shared)]


def interventions() -> list[Row]:
    """FLOPs doubled where memory binds and where computing does."""
    return [fused(16, 1, 140), fused(32, 1, 143), fused(512, 1, 700), fused(1024, 1, 1390)]


def good_runs() -> list[Row]:
    """Runs that reach everything."""
    return [*checked_points(), *interventions(), *searched("s1", 1600, 1700), *searched("s2", 1620, 1710)]


def store_of(folder: Path, runs: list[Row]) -> Path:
    """A store of these runs."""
    counter = itertools.count()
    named = [{"run_id": f"r{next(counter):03d}", **run} for run in runs]
    environment = {"device_name": "NVIDIA H200", "host_cpu": "a CPU", "torch": "2.11"}
    return write_store(folder, runs=named, environments=[environment], roofs=ROOFS)


def states(store: Path) -> dict[str, str]:
    """State of every target."""
    return {each.name: each.state for each in targets(gather(store))}


def test_everything_met(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Every target says what was reached; the command ends well and is silent beside its report."""
    store = store_of(tmp_path, good_runs())
    assert states(store) == dict.fromkeys(NAMES, MET)
    assert main(["truth", "--store", str(store)]) == 0
    told = capsys.readouterr()
    assert told.err == ""
    assert all(f"| {name} |" in told.out for name in NAMES)


def _far_wrong(runs: list[Row]) -> list[Row]:
    """Nineteen right and one wrong, far from the crossing."""
    return [*runs[1:], point(size=64, host_slope=around(0.0), device_slope=around(1.0))]


def _near_wrong(runs: list[Row]) -> list[Row]:
    """One wrong near the crossing, where the margin's interval claims to be sure."""
    near = {"wall_us": 20, "device_us": 19, "margin": around(1.05, 0.01)}
    return [*runs, point(size=90, **near, host_slope=around(0.0), device_slope=around(1.0))]


def _balanced(runs: list[Row]) -> list[Row]:
    """Two more points that are balanced."""
    balanced = {"wall_us": 20, "device_us": 20, "replay_us": 18, "margin": around(1.0, 0.05)}
    return [*runs, point(size=100, **balanced), point(size=101, **balanced)]


def _poor_gains(runs: list[Row]) -> list[Row]:
    """Three more points whose replay brings a third less."""
    return [*runs, *(point(size=100 + each, replay_us=12) for each in range(3))]


def _broken_law(runs: list[Row]) -> list[Row]:
    """Two more points 8 % above both of their terms."""
    return [*runs, *(point(size=100 + each, wall_us=21.6) for each in range(2))]


def _unmoved(runs: list[Row]) -> list[Row]:
    """More FLOPs where computing should bind, and no longer step."""
    return [*runs, fused(2048, 1, 1395)]


def _apart(runs: list[Row]) -> list[Row]:
    """The second search finds another crossing."""
    return [*(run for run in runs if run.get("sweep_id") != "s2"), *searched("s2", 1900, 2000)]


@pytest.mark.parametrize(
    ("change", "missed"),
    [
        (_far_wrong, {NAMES[0], NAMES[1]}),
        (_near_wrong, {NAMES[1]}),
        (_balanced, {NAMES[2]}),
        (_poor_gains, {NAMES[3]}),
        (_broken_law, {NAMES[4]}),
        (_unmoved, {NAMES[5]}),
        (_apart, {NAMES[6], NAMES[7]}),
    ],
)
def test_a_missed_target_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], change: Callable[[list[Row]], list[Row]], missed: set[str]
) -> None:
    """Exit code 2, the target's name and what was reached on stderr, and no other target."""
    store = store_of(tmp_path, change(good_runs()))
    assert {name for name, state in states(store).items() if state == MISSED} == missed
    assert main(["truth", "--store", str(store)]) == 2
    told = capsys.readouterr().err
    assert {name for name in NAMES if name in told} == missed


def test_what_was_not_measured_is_not_missed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An empty store, and one of the CPU alone, say why nothing is known, and end well."""
    cpu = point(device="cpu", issue_us=None, device_us=None, replay_us=None, floor_us=4, wall_us=40,
                margin=around(0.11, 0.01), facts={"work_share": [0.1, 0.05, 0.2]})  # fmt: skip
    for name, runs in (("empty", []), ("cpu", [cpu])):
        store = store_of(tmp_path / name, runs)
        assert set(states(store).values()) == {UNMEASURED}
        assert main(["truth", "--store", str(store)]) == 0
        told = capsys.readouterr().out
        assert "no series was searched twice" in told
        assert ("Nothing was checked" in told) is (name == "empty")
        assert "No decided check disagrees" not in told


def test_the_cpu_is_told_but_has_no_target(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A wrong verdict of the CPU stands in the report."""
    wrong = point(device="cpu", issue_us=None, device_us=None, replay_us=None, floor_us=4, wall_us=5,
                  margin=around(4.0), facts={"work_share": [0.7, 0.6, 0.8]})  # fmt: skip
    main(["truth", "--store", str(store_of(tmp_path, [wrong]))])
    assert "| matmul_add size=64 fp32 eager | overhead-bound | device | 4 |" in capsys.readouterr().out


def test_searches_are_judged_by_their_own_runs(tmp_path: Path) -> None:
    """Neither search sees the other's points: two each, and its own bracket."""
    (pair,) = gather(store_of(tmp_path, good_runs())).searches
    assert [(each.low, each.high) for each in (pair.first, pair.second)] == [(1600, 1700), (1620, 1710)]
    assert [(each.points, each.runs) for each in (pair.first, pair.second)] == [(2, 2), (2, 2)]
    assert pair.first.series == "matmul_add fp16 eager"
    assert pair.difference is not None and 0 < pair.difference < 0.02


def test_what_goes_on_where_a_search_stopped_is_no_second_search(tmp_path: Path) -> None:
    """A command that did not measure both ends itself has only confirmed what an earlier one found."""
    facts = {"search": {"axis": "size", "low": 1600, "high": 1700, "multiple": 1}, "device_method": "held"}
    runs = [run for run in good_runs() if run.get("sweep_id") != "s2"]
    resumed = [run for run in searched("s2", 1600, 1700) if run["size"] == 1700]
    assert resumed and resumed[0]["facts"]["search"] == facts["search"]
    assert gather(store_of(tmp_path, [*runs, *resumed])).searches == []


def search(status: str, value: float | None, low: float | None, high: float | None) -> Search:
    """A search's answer."""
    return Search("s", "a series", "size", status, value, low, high, 7, 9)


@pytest.mark.parametrize(
    ("first", "second", "overlap", "difference"),
    [
        (("found", 100, 95, 105), ("found", 104, 101, 108), True, 0.04),
        (("found", 100, 95, 105), ("found", 110, 106, 114), False, 0.1),
        (("found", 100, 95, 105), ("bracketed", None, 90, 100), True, None),
        (("found", 100, 95, 105), ("above", None, 104, None), False, None),
        (("below", None, None, 8), ("below", None, None, 16), True, None),
        (("above", None, 64, None), ("below", None, None, 128), False, None),
        (("found", 100, 95, 105), ("several", None, 64, 128), False, None),
        (("several", None, 64, 128), ("several", None, 64, 128), False, None),
        (("found", 100, 95, 105), ("unknown", None, None, None), False, None),
    ],
)
def test_overlap(first: tuple[Any, ...], second: tuple[Any, ...], overlap: bool, difference: float | None) -> None:
    """Two intervals, or both beyond the same end of the range; a search without an interval overlaps none."""
    pair = Compared(search(*first), search(*second))
    assert pair.overlap is overlap
    assert pair.difference == (None if difference is None else pytest.approx(difference))


@pytest.mark.parametrize(
    ("least", "chances", "expected"),
    [
        (0, [0.5], 1.0),
        (1, [], 0.0),
        (1, [0.1, 0.2], 1 - 0.9 * 0.8),
        (2, [0.1, 0.2], 0.02),
        (2, [0.5] * 4, 11 / 16),
        (3, [1.0, 1.0, 0.25], 0.25),
    ],
)
def test_chance_of_so_many(least: int, chances: list[float], expected: float) -> None:
    """By hand: products of the single chances."""
    assert chance_of(least, chances) == pytest.approx(expected)


def test_formats(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """markdown is the report, also into a file; csv has a row a checked point."""
    store = store_of(tmp_path / "store", good_runs())
    main(["truth", "--store", str(store)])
    report = capsys.readouterr().out
    main(["truth", "--store", str(store), "--format", "markdown", "-o", str(tmp_path / "truth.md")])
    assert (tmp_path / "truth.md").read_text() == report
    capsys.readouterr()
    main(["truth", "--store", str(store), "--format", "csv"])
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert len(rows) == len(checked_points())
    assert {row["agrees"] for row in rows} == {"true"}


def test_the_report_names_what_is_wrong(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Disagreements, deviations and where they were measured, point by point."""
    runs = _broken_law(_near_wrong(good_runs()))
    main(["truth", "--store", str(store_of(tmp_path, runs))])
    report = capsys.readouterr().out
    assert "NVIDIA H200, a CPU, torch 2.11" in report
    assert "| matmul_add size=90 fp32 eager | overhead-bound | device | 1.05 |" in report
    assert "| matmul_add size=101 fp32 eager | 21.6 | 20 | 10 | none known | 8 % |" in report


def report_of(folder: Path, runs: list[Row]) -> str:
    """The report of these runs, its lines as one."""
    return in_words(gather(store_of(folder, runs))).replace("\n", " ")


def test_the_report_says_what_was_decided(tmp_path: Path) -> None:
    """Rows add up to the points; undecided checks far from a crossing are told, and the replay has its own band."""
    open_slopes = {"host_slope": around(0.6, 0.5), "device_slope": around(0.4, 0.5)}
    near = {"wall_us": 20, "device_us": 20, "replay_us": 19, "margin": around(1.0, 0.05)}
    waiting = device_bound(size=92, wall_us=45, host_slope=around(1.1), device_slope=around(0.8), replay_us=None,
                           facts={"blocking_calls": {"cudaStreamSynchronize": 1}})  # fmt: skip
    runs = [*checked_points(), point(size=90, **open_slopes), point(size=91, **near), waiting]
    report = report_of(tmp_path, runs)
    assert "Of 23 points 21 have a bound and a check that are both decided" in report
    assert "1 checks are undecided, 1 of them farther than 10 % from the crossing" in report
    assert "| all | 23 | 1 | 1 | 21 | 0 | 11 | 11 |" in report  # check, bound undecided, agree, disagree, naive
    assert "| all | 22 | 1 | 0 | 21 | 0 |" in report  # replay
    assert "wrong on 11 of 22. It can never say serialized; without those points it is wrong on 10 of 21" in report


def test_gains_of_overhead_bound_points_are_told_apart(tmp_path: Path) -> None:
    """Two thirds are within 10 % where overhead binds, though most points of all are."""
    report = report_of(tmp_path, [*checked_points(), *(point(size=100 + each, replay_us=12) for each in range(5))])
    assert "Of 25 predictions 20 (80 %) are within 10 %" in report
    assert "Of the 15 overhead-bound ones 10 (66.67 %) are within 10 %" in report


def test_points_above_their_roof_are_named(tmp_path: Path) -> None:
    """1024 FLOPs an element in less than the roof allows; the slower ones are not named."""
    report = report_of(tmp_path, [fused(512, 1, 700), fused(1024, 1, 1200)])
    assert "1 of these points lie above 105 % of the roof" in report
    named = "intensity size=65536 fp32 compile=true workload.ops=1024 workload.reads=1"
    assert f"| {named} | compute-bound | fp32 FLOP/s | 114.5 % |" in report
    assert "lie above" not in report_of(tmp_path / "slower", [fused(512, 1, 700), fused(1024, 1, 1390)])


def test_a_search_without_an_interval_is_told(tmp_path: Path) -> None:
    """A second search that sees the order change twice counts against the target, and the report says so."""
    facts = {"search": {"axis": "size", "low": 1500, "high": 1710, "multiple": 1}, "device_method": "held"}
    shared = {"sweep_id": "s2", "dtype": "fp16", "facts": facts, "host_slope": None}
    again = [device_bound(size=1500, **shared), *searched("s2", 1620, 1710)]
    runs = [*checked_points(), *searched("s1", 1600, 1700), *again]
    assert "In 1 of 1 series a search gave no interval; that counts as no overlap" in report_of(tmp_path, runs)
    assert states(tmp_path)[NAMES[6]] == MISSED
