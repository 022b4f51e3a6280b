"""Whole commands: what is there already, a changed machine, stopping and going on, two sweeps and one device."""

from __future__ import annotations

import json
import shlex
import signal
import subprocess
import sys
import venv
from collections import Counter
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from sweeps import ROOT, Done, all_runs, children, finish, gone, start, store_with, swept, until, wait_for_runs

from runner.locks import VARIABLE

NOOPS = ("workload=noop", "seed=range(400)")


def files_of(folder: Path) -> dict[Path, int]:
    """Every file below a folder, and when it was last changed."""
    return {path: path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()}


def seeds(rows: list[dict[str, Any]]) -> list[int]:
    """Seeds of some runs, in their order."""
    return [json.loads(row["params"])["seed"] for row in rows]


# -- what is there already ---------------------------------------------------------------------------------------------


def test_the_same_command_measures_what_is_missing(tmp_path: Path) -> None:
    """Two of three points are there: one is measured, and the summary says so."""
    store = tmp_path / "store"
    assert seeds(swept(store, "workload=noop", "seed=1,2").rows) == [1, 2]
    more = swept(store, "workload=noop", "seed=1,2,3")
    assert (more.code, seeds(more.rows)) == (0, [3])
    assert "1 ok, 0 failed, 0 skipped in" in more.stdout
    assert "Measured before: 2 ok; rerun=true measures again." in more.stdout.splitlines()


def test_rerun_measures_again_and_keeps_both(tmp_path: Path) -> None:
    """Every point has two runs then."""
    store = tmp_path / "store"
    swept(store, "workload=noop", "seed=1,2")
    assert seeds(swept(store, "workload=noop", "seed=1,2", "rerun=true").rows) == [1, 2]
    assert Counter(Counter(row["point_id"] for row in all_runs(store)).values()) == {2: 2}


def test_dry_run_tells_and_stores_nothing(tmp_path: Path) -> None:
    """Not even the folder; of a store that is there nothing changes."""
    store = tmp_path / "store"
    told = swept(store, "workload=noop", "seed=1,2", "dry_run=true")
    assert (told.code, told.stderr) == (0, "")
    assert [line.split("  ")[-1] for line in told.stdout.splitlines()[:-1]] == ["to measure"] * 2
    assert told.stdout.splitlines()[-1].startswith("2 to measure; about ")
    assert not store.exists()
    swept(store, "workload=noop", "seed=1,2")
    before = files_of(store)
    told = swept(store, "workload=noop", "seed=1,2,3", "dry_run=true")
    assert Counter(line.split("  ")[-1] for line in told.stdout.splitlines()[:-1]) == {
        "measured before: ok": 2, "to measure": 1,
    }  # fmt: skip
    assert files_of(store) == before
    assert "3 to measure" in swept(store, "workload=noop", "seed=1,2,3", "dry_run=true", "rerun=true").stdout


def test_dry_run_predicts_what_will_be_skipped(measured_roofs: Path, tmp_path: Path) -> None:
    """By the roofs of this environment, with the prediction."""
    store = store_with(tmp_path, measured_roofs)
    told = swept(store, "size=8,4096", "max_step_s=0.0001", "dry_run=true").stdout.splitlines()
    assert told[0].endswith("to measure")
    assert "to skip: a step is predicted to take" in told[1] and "above max_step_s=0.0001" in told[1]
    assert told[2].startswith("1 to measure, 1 to skip; about")
    assert {path.name for path in store.iterdir()} == {"roofs"}


# -- interpreters and environments -------------------------------------------------------------------------------------


def test_interpreters_and_variables_are_axes(tmp_path: Path) -> None:
    """A B, B A: each in an environment of its own, and each resumed there."""
    venv.create(tmp_path / "other", symlinks=True)
    pythons = f"python=null,{tmp_path / 'other' / 'bin' / 'python'}"
    axes = ("workload=noop", pythons, "env.OMP_NUM_THREADS=1,2", "seed=1,2")
    done = swept(tmp_path / "store", *axes)
    assert done.code == 0, done.stdout + done.stderr
    assert seeds(done.rows) == [1, 1, 1, 1, 2, 2, 2, 2]
    environments = [row["environment_id"] for row in done.rows]
    assert environments[4:] == environments[3::-1] and len(set(environments)) == 4
    stored = pl.concat([pl.read_parquet(path) for path in (tmp_path / "store" / "environments").iterdir()])
    assert stored["torch"].null_count() == 2
    assert Counter(json.loads(each)["OMP_NUM_THREADS"] for each in stored["variables"]) == {"1": 2, "2": 2}
    assert "Measured before: 8 ok" in swept(tmp_path / "store", *axes).stdout


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory, measured_roofs: Path) -> Done:
    """A small sweep on the CPU."""
    return swept(store_with(tmp_path_factory.mktemp("measured"), measured_roofs), "size=8", "measure=quick")


def test_a_changed_environment_is_said_in_one_line(measured: Done) -> None:
    """What changed, from what to what; the point is measured again, in its own environment."""
    assert "environment" not in measured.stdout
    changed = swept(measured.store, "size=8", "measure=quick", CUBLAS_WORKSPACE_CONFIG=":4:8")
    assert changed.code == 0
    assert [line for line in changed.stdout.splitlines() if "environment" in line] == [
        "A new environment: CUBLAS_WORKSPACE_CONFIG unset -> :4:8. What was measured in another stays apart from it."
    ]
    ids = [row["environment_id"] for row in all_runs(measured.store)]
    assert len(ids) == 2 and len(set(ids)) == 2
    roofs = [path.stem for path in (measured.store / "roofs").iterdir()]
    assert set(roofs) == set(ids) or "no roofs are kept" in changed.stdout


# -- stopping ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_stopped_sweep_is_gone_on_with(number: signal.Signals, code: int, tmp_path: Path) -> None:
    """What is done and the command that goes on; no worker, no temporary file; then only the rest is measured."""
    store, scratch = tmp_path / "store", tmp_path / "scratch"
    sweep = start(store, scratch, *NOOPS)
    wait_for_runs(store, sweep, 5)
    workers = children(sweep.pid)
    sweep.send_signal(number)
    done = finish(sweep, store, scratch)
    assert (done.code, done.stderr) == (code, "")
    assert workers and all(gone(pid) for pid in workers)
    assert not list(store.rglob("*.tmp")) and not list(scratch.iterdir())
    first, second = done.stdout.splitlines()[-2:]
    assert first == f"Interrupted by {number.name}: {len(done.rows)} of 400 points are done; results in {store}"
    assert second.startswith("The same command goes on: ") and str(store) in second
    assert 5 <= len(done.rows) < 400
    rest = swept(store, *NOOPS)
    assert rest.code == 0 and len(rest.rows) == 400 - len(done.rows)
    assert sorted(seeds(all_runs(store))) == list(range(400))


def test_two_sweeps_do_not_share_a_device(measured_roofs: Path, tmp_path: Path) -> None:
    """The second waits and says for whom, or fails with wait=false.

    When the first is stopped in the middle of a point, it measures what the first has not.
    """
    locks = {VARIABLE: str(tmp_path / "locks")}
    store, scratch = store_with(tmp_path, measured_roofs), tmp_path / "scratch"
    first = start(store, scratch, "hydra.sweeper.grids=[{size:32},{workload:fault,workload.how:hang,size:8}]", **locks)
    assert until(lambda: first.poll() is not None or "process" in text_of(tmp_path / "locks" / "cpu.lock"))
    second = start(store, scratch, "size=32,40", "measure=quick", **locks)
    assert second.stdout is not None
    assert second.stdout.readline().startswith(f"Waiting for cpu, in use by process {first.pid} since ")
    refused = swept(store, "size=48", "wait=false", **locks)
    assert refused.code == 1
    assert refused.stderr.startswith(f"error: cpu is in use by process {first.pid} since ")
    assert refused.stderr.endswith("leave out wait=false.\n") and len(refused.stderr.splitlines()) == 1
    wait_for_runs(store, first)
    assert second.poll() is None
    workers = children(first.pid)
    first.send_signal(signal.SIGTERM)
    told, _ = first.communicate(timeout=60)
    assert first.returncode == 143 and "Interrupted by SIGTERM: 1 of 2 points are done" in told
    assert workers and all(gone(pid) for pid in workers)
    after = finish(second, store, scratch)
    assert (after.code, [row["size"] for row in all_runs(store)]) == (0, [32, 40])


def text_of(path: Path) -> str:
    """What is in a file, nothing where there is none."""
    return path.read_text() if path.exists() else ""


def test_nobody_need_read_what_a_sweep_says(tmp_path: Path) -> None:
    """`| head -1` ends the reading, not the measuring."""
    store, scratch = tmp_path / "store", tmp_path / "scratch"
    sweep = start(store, scratch, "workload=noop", "seed=range(30)")
    assert sweep.stdout is not None
    sweep.stdout.close()
    assert sweep.wait(60) == 0
    assert sweep.stderr is not None and sweep.stderr.read() == ""
    assert sorted(seeds(all_runs(store))) == list(range(30))


@pytest.mark.parametrize("variables", [{"PYTHONIOENCODING": "ascii"}, {"LC_ALL": "C", "PYTHONUTF8": "0"}])
def test_an_output_that_knows_no_signs_ends_no_sweep(tmp_path: Path, variables: dict[str, str], roofed: Path) -> None:
    """What cannot be printed is printed otherwise."""
    done = swept(roofed, "size=8", "measure=quick", PYTHONCOERCECLOCALE="0", **variables)
    assert done.code == 0, done.stderr
    assert "[1/1] matmul_add size=8" in done.stdout


@pytest.fixture
def roofed(tmp_path: Path, measured_roofs: Path) -> Path:
    """A store with the roofs of this machine."""
    return store_with(tmp_path, measured_roofs)


def test_a_closed_output_ends_no_sweep(tmp_path: Path) -> None:
    """Nothing can be said, and everything is measured."""
    command = f"{shlex.quote(sys.executable)} -m runner -m workload=noop seed=1,2 store={tmp_path / 'store'} >&-"
    assert subprocess.run(["sh", "-c", command], cwd=ROOT, timeout=120).returncode == 0
    assert sorted(seeds(all_runs(tmp_path / "store"))) == [1, 2]
