"""A search as users give it: what is refused, a real one on the CPU, stopped, gone on with and given once more."""

from __future__ import annotations

import json
import re
import shutil
import signal
import sys
from pathlib import Path

import pytest
from sweeps import Done, all_runs, finish, start, store_with, swept, wait_for_runs

from runner.composition import compose
from runner.plan import Searches, plan_of

SEARCH = ("hydra/sweeper=crossover", "search.axis=size", "search.low=2", "search.high=512")
COMMAND = (*SEARCH, "measure=quick", "measure.limit_s=0.1")
LINE = r"matmul_add fp32 eager: .+, (\d+) points?, (\d+) runs?"


def given(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> Searches:
    """The plan of a command line."""
    monkeypatch.setattr(sys, "argv", ["runner", *arguments])
    found = plan_of(compose().points)
    assert isinstance(found, Searches)
    return found


def test_a_series_for_each_combination_of_the_other_values(monkeypatch: pytest.MonkeyPatch) -> None:
    """dtype times compile; the range as it was given."""
    found = given(monkeypatch, "-m", *SEARCH, "dtype=bf16,fp32", "compile=false,true")
    assert [found.name(job) for job in found] == [
        f"matmul_add {dtype} {mode}" for dtype in ("bf16", "fp32") for mode in ("eager", "compile=true")
    ]
    assert (found.search.axis, found.search.low, found.search.high) == ("size", 2, 512)


@pytest.mark.parametrize("axis", [(), ("search.axis=null",), ("search.axis=size",)])
def test_size_and_its_range_are_the_defaults(monkeypatch: pytest.MonkeyPatch, axis: tuple[str, ...]) -> None:
    """Nothing but the sweeper is needed."""
    search = given(monkeypatch, "-m", "hydra/sweeper=crossover", *axis).search
    assert (search.axis, search.low, search.high, search.multiple) == ("size", 8, 16384, 1)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("-m", *SEARCH, "size=64,128"), "size=64,128: it is the axis of the search, which chooses its values; "),
        (("-m", *SEARCH, "size=64"), "size=64: it is the axis of the search"),
        (("-m", *SEARCH[:1], "workload=elementwise", "workload.ops=1,2", "search.axis=ops"), "workload.ops=1,2: it is"),
        (("-m", *SEARCH, "search.tolerance_frac=0.1,0.2"), "search.tolerance_frac=0.1,0.2: allowed is one value"),
        (("-m", *SEARCH, "search.axis=size,batch"), "search.axis=size,batch: allowed is one value"),
        (("-m", *SEARCH, "hydra/launcher=basic"), "hydra/launcher: a search runs where its command is given"),
        (("-m", "search.axis=size"), "search.axis=size: this sweeper does not search; write hydra/sweeper=crossover"),
        (("search.axis=size",), "hydra/sweeper=crossover: only a sweep searches; write `python -m runner -m hydra/"),
        (("hydra/sweeper=crossover",), "hydra/sweeper=crossover: only a sweep searches"),
    ],
)
def test_a_command_that_cannot_search_is_refused(
    monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], sentence: str
) -> None:
    """One sentence, with the cure."""
    monkeypatch.setattr(sys, "argv", ["runner", *arguments])
    with pytest.raises(Exception, match=re.escape(sentence)):
        compose()


# -- on the CPU --------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory, measured_roofs: Path) -> Done:
    """A search stopped by Ctrl-C behind its third run or so."""
    store = store_with(tmp_path_factory.mktemp("search"), measured_roofs)
    sweep = start(store, store.parent / "scratch", *COMMAND)
    wait_for_runs(store, sweep, 3)
    sweep.send_signal(signal.SIGINT)
    return finish(sweep, store, store.parent / "scratch")


@pytest.fixture(scope="module")
def resumed(stopped: Done) -> Done:
    """The same command once more, to its end; what the stopped one left stays as it was."""
    folder = stopped.store.parent / "resumed"
    shutil.copytree(stopped.store, folder / "store")
    return swept(folder / "store", *COMMAND)


def line_of(done: Done) -> re.Match[str]:
    """The one line of the one series."""
    (line,) = [found for each in done.stdout.splitlines() if (found := re.fullmatch(LINE, each))]
    return line


def test_a_stopped_search_tells_how_far_it_is(stopped: Done) -> None:
    """Runs and series, and the command that goes on."""
    assert stopped.code == 130, stopped.stderr
    assert re.search(r"Interrupted by SIGINT: \d runs done, 0 of 1 series decided; results in ", stopped.stdout)
    assert "The same command goes on: " in stopped.stdout


def test_a_resumed_search_ends_within_its_budget(stopped: Done, resumed: Done) -> None:
    """Both commands together have taken no more than one may; what was there was not measured again."""
    assert (resumed.code, resumed.stderr) == (0, "")
    points, runs = (int(each) for each in line_of(resumed).groups())
    rows = all_runs(resumed.store)
    assert len(rows) == runs <= 14 and len({row["point_id"] for row in rows}) == points <= 10
    assert f"Measured before: {len(stopped.rows)} ok" in resumed.stdout


def test_its_points_are_ordinary_points_that_know_the_search(resumed: Done) -> None:
    """Ends first; every row tells what was looked for."""
    rows = all_runs(resumed.store)
    assert [row["size"] for row in rows[:2]] == [2, 512]
    facts = [json.loads(row["facts"]) for row in rows]
    assert all(each["search"] == {"axis": "size", "low": 2, "high": 512, "multiple": 1} for each in facts)
    assert {each["measure"]["name"] for each in facts} <= {"quick", "confirming"}


def test_the_same_search_again_measures_nothing(resumed: Done) -> None:
    """The same line; dry_run tells it as well; another series is still to search."""
    again = swept(resumed.store, *COMMAND)
    assert again.code == 0 and line_of(again).group() == line_of(resumed).group()
    assert "Nothing is left to measure" in again.stdout
    told = swept(resumed.store, *COMMAND, "dtype=fp32,bf16", "dry_run=true").stdout.splitlines()
    assert told == [
        line_of(resumed).group(),
        "matmul_add bf16 eager: to search from 2 to 512",
        "1 series to search; at most 10 points in 14 runs each, 14 in all.",
    ]


def test_a_place_that_fails_ends_no_search_but_tells(tmp_path: Path) -> None:
    """Exit code 2, and why there is no crossing."""
    done = swept(tmp_path / "store", *COMMAND, "search.low=8", "workload=fault", "workload.how=raise")
    assert done.code == 2
    assert (
        "fault how=raise fp32 eager: unknown: nothing measured at 8, 64 and 512 "
        "(failed: RuntimeError: this workload always fails), 3 points, 3 runs"
    ) in done.stdout.splitlines()
