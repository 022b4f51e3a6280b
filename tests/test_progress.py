"""runner.progress: plain lines for files, a bar on a terminal that never disturbs a CPU, words for people."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
import terminals
from configured import job
from sweeps import PATIENCE_S, ROOT, environment, store_with, swept

from runner.pace import RULE_OF_THUMB_S, Pace
from runner.progress import Progress, SearchProgress, clock, duration, told


@pytest.mark.parametrize(
    ("us", "text"),
    [
        (0.5, "0.5 us"),
        (1.234, "1.23 us"),
        (999.4, "999 us"),
        (999.6, "1 ms"),
        (12_345, "12.3 ms"),
        (2.5e6, "2.5 s"),
        (1_234e6, "1230 s"),
    ],
)
def test_a_duration_has_the_unit_that_suits_it(us: float, text: str) -> None:
    """Three significant digits, never 1e+03."""
    assert duration(us) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.2, "0 s"), (45.4, "45 s"), (99.4, "99 s"), (100, "2 min"), (5_900, "98 min"), (12_000, "3 h 20 min")],
)
def test_a_length_of_time_is_rounded_for_people(seconds: float, text: str) -> None:
    """Seconds, minutes, hours."""
    assert clock(seconds) == text


def test_time_left_follows_what_points_have_taken() -> None:
    """A rule of thumb, then earlier sweeps, then this one's own mean; devices share the points."""
    left = {"eager": 10, "cold": 1}
    assert Pace({}).seconds(left) == 10 * RULE_OF_THUMB_S["eager"] + RULE_OF_THUMB_S["cold"]
    pace = Pace({"eager": 0.5, "cold": 20.0})
    assert pace.seconds(left) == 25.0
    for seconds in (1.0, 3.0):
        pace.learn("eager", seconds)
    assert pace.seconds(left) == 40.0
    assert pace.seconds(left, devices=4) == 10.0


def row(status: str = "ok", **changes: object) -> dict[str, object]:
    """A row as far as progress looks at it."""
    return {"status": status, "device": "cpu", "reason": "because", "facts": "{}", "samples": [], "device_us": None,
            "wall_us": None, "floor_us": None, "margin": None, "warmup": "true", "issue_us": None, "blocked_us": None,
            **changes}  # fmt: skip


def test_counts_are_what_the_exit_code_is_made_of(capsys: pytest.CaptureFixture[str]) -> None:
    """Points that failed count whether now or before; skipped ones do not fail; each measured point has a line."""
    progress = Progress(Counter(eager=5), 30, Path("some store"))
    progress.stands(job(size=8), "crashed")
    progress.stands(job(size=9), "ok")
    for status in ("ok", "skipped", "oom"):
        progress.begin(job(size=10), "cpu")
        progress.end(job(size=10), "cpu", row(status))
    assert (progress.done, progress.failed) == (5, 2)
    progress.summary()
    lines = capsys.readouterr().out.splitlines()
    assert [line[:5] for line in lines[:3]] == ["[3/5]", "[4/5]", "[5/5]"]
    assert lines[1].endswith("skipped: because") and lines[2].endswith("oom: because")
    assert lines[3].startswith("1 ok, 1 failed, 1 skipped in ")
    assert lines[4] == "Measured before: 1 crashed, 1 ok; rerun=true measures again."
    assert lines[5].endswith("python -m analysis report --store 'some store'")


def test_a_stopped_sweep_names_the_command_that_goes_on(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ready to be pasted into a shell."""
    monkeypatch.setattr(sys, "argv", ["runner", "-m", "size=8,16", "env.A=x y"])
    Progress(Counter(eager=2), 30, Path("s")).stopped("Interrupted by SIGINT", 1)
    first, second = capsys.readouterr().out.splitlines()
    assert first == "Interrupted by SIGINT: 1 of 2 points are done; results in s"
    assert second.startswith("The same command goes on: ")
    assert second.endswith("python -m runner -m size=8,16 'env.A=x y'")


def test_a_search_counts_runs_and_series(capsys: pytest.CaptureFixture[str]) -> None:
    """Nobody knows how many points it will take; what was found comes in the order of the series, before the rest."""
    progress = SearchProgress(2, 30, Path("s"))
    progress.stands(job(size=8), "ok")
    progress.end(job(size=9), "cpu", row())
    progress.decide(1, "b: 70 (69 to 71), 7 points, 11 runs")
    progress.stopped("Interrupted by SIGINT", progress.done)
    progress.decide(0, "a: 90 (89 to 91), 7 points, 11 runs")
    progress.summary()
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("[2] matmul_add size=9")
    assert lines[1] == "Interrupted by SIGINT: 2 runs done, 1 of 2 series decided; results in s"
    assert [line[:2] for line in lines[3:5]] == ["a:", "b:"]
    assert lines[5].startswith("1 ok, 0 failed, 0 skipped in ")


def test_what_disturbed_a_point_is_told_behind_its_times() -> None:
    """Others on the device, something else on the host."""
    times = {"wall_us": [10.0, 9.0, 11.0], "floor_us": [2.0, 2.0, 2.0]}
    line = told(row(facts='{"host_contended": true, "condition": {"other_processes": 2}}', **times))
    assert "wall 10 us ±10.0%, floor 2 us ±0.0%" in line
    assert line.endswith("(something else used the host) (2 other processes on the device)")


def test_lines_are_plain_where_nobody_watches(tmp_path: Path) -> None:
    """No escape sequence in a file or a pipe, and a line a point."""
    done = swept(tmp_path / "store", "workload=noop", "seed=1,2")
    assert "\x1b" not in done.stdout and "\r" not in done.stdout
    assert [line[:5] for line in done.stdout.splitlines()[:2]] == ["[1/2]", "[2/2]"]


# -- on a terminal -----------------------------------------------------------------------------------------------------


def watched(store: Path, *arguments: str) -> list[tuple[float, str]]:
    """What a command prints on a terminal: pieces with the seconds at which they came."""
    scratch = store.parent / "scratch"
    scratch.mkdir()
    ours, theirs = pty.openpty()
    sweep = subprocess.Popen(
        [sys.executable, "-m", "runner", "-m", f"store={store}", "device=cpu", "order=given", *arguments],
        stdout=theirs, stderr=theirs, cwd=ROOT, env={**environment(scratch), "TERM": "xterm", "COLUMNS": "150"},
    )  # fmt: skip
    os.close(theirs)
    drawn = [(time.monotonic(), piece.decode(errors="replace")) for piece in terminals.pieces(ours)]
    os.close(ours)
    assert sweep.wait(PATIENCE_S) == 2
    return drawn


def test_a_bar_is_drawn_between_points_only(measured_roofs: Path, tmp_path: Path) -> None:
    """It tells what is at work and what is left; while a point is at work on the CPU nothing is drawn at all."""
    store = store_with(tmp_path, measured_roofs)
    pieces = watched(store, "workload=fault", "workload.how=hang", "size=8,9", "point_timeout=3")
    text = "".join(piece for _, piece in pieces)
    plain = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", text)
    assert "━" in text and "0/2" in plain and "1/2" in plain
    assert re.search(r"\d+ \w+ left · fault how=hang size=8", plain)
    assert re.search(r"1 failed · \d+ \w+ left · fault how=hang size=9", plain)
    for size in (8, 9):
        drawn = next(number for number, (_, piece) in enumerate(pieces) if f"· fault how=hang size={size}" in piece)
        assert pieces[drawn + 1][0] - pieces[drawn][0] > 2.5
    assert "0 ok, 2 failed, 0 skipped in" in plain
