"""runner.store under load: many processes at once, processes killed at any moment, a full disk."""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from multiprocessing.process import BaseProcess
from pathlib import Path

import duckdb
import polars as pl
import pytest
from store_given import events, files_in, live, run, write_environment

from analysis.store import open_store
from runner.store import Store, check, compact, new_id, tidy

ROOT = Path(__file__).parent.parent
LOAD_S, AGE_S, KILLS = 10.0, 2.0, 30

# Fresh processes that have imported everything: starting one costs milliseconds, so that many can be killed.
processes = multiprocessing.get_context("forkserver")
processes.set_forkserver_preload(["analysis.store", "runner.store", "runner.tables"])


def log(path: Path, run_id: str) -> None:
    """Note a committed run, in one write."""
    with path.open("ab", buffering=0) as file:
        file.write(f"{run_id}\n".encode())


def committed(folder: Path) -> set[str]:
    """Runs that any process has noted as committed."""
    return {line for path in folder.glob("*.log") for line in path.read_text().split("\n")[:-1]}


def write_one(store: Store, note: Path) -> None:
    """Commit a run with events, then note it."""
    run_id = new_id()
    assert store.write_run(run(run_id), events(run_id))
    log(note, run_id)


def keep_writing(folder: Path, note: Path, until: float) -> None:
    """Commit runs one by one."""
    while time.time() < until:
        write_one(Store(folder), note)


def keep_compacting(folder: Path, note: Path, until: float) -> None:
    """Compact and tidy, over and over."""
    while time.time() < until:
        compact(Store(folder), "s1")
        log(note, str(len(tidy(Store(folder), AGE_S))))
        time.sleep(0.05)


def keep_reading(folder: Path, note: Path, until: float) -> None:
    """The runner's reader: all runs committed before it looked, each once."""
    while time.time() < until:
        before = committed(folder.parent)
        found = Store(folder).live_runs(["run_id", "size"])
        expect(before, found["run_id"].to_list())
        assert found["size"].to_list() == [64] * found.height
        log(note, str(found.height))


def keep_querying(folder: Path, note: Path, until: float) -> None:
    """The analysis' reader: the same, and events of every run."""
    while time.time() < until:
        before = committed(folder.parent)
        rows = query(folder)
        expect(before, [run_id for run_id, _ in rows])
        assert {count for _, count in rows} == {2}
        log(note, str(len(rows)))


def query(folder: Path) -> list[tuple[str, int]]:
    """Every run and how many events it has. A store is opened again when files went before they were read."""
    while True:
        try:
            with open_store(folder) as connection:
                sql = "SELECT run_id, count(*) FROM files_runs JOIN files_events USING (run_id) GROUP BY ALL"
                twice = "SELECT run_id FROM files_runs GROUP BY run_id HAVING count(*) > 1"
                assert connection.execute(twice).fetchall() == []
                return connection.execute(sql).fetchall()
        except duckdb.IOException as error:
            assert "No such file" in str(error) or "No files found" in str(error), error


def expect(before: set[str], found: list[str]) -> None:
    """Nothing that was committed is missing, and nothing is there twice."""
    assert before <= set(found), f"{len(before - set(found))} of {len(before)} committed runs are missing"
    assert len(found) == len(set(found))


def start(work: Callable[..., None], *arguments: object) -> BaseProcess:
    """A process that does this work."""
    process = processes.Process(target=work, args=arguments)
    process.start()
    return process


def lines(path: Path) -> list[str]:
    """What a process has noted."""
    return path.read_text().split() if path.exists() else []


def test_three_writers_two_compactors_two_readers(tmp_path: Path) -> None:
    """On one store at once: no reader misses a committed run or sees one twice, and at the end every run is there once.

    Superseded files go after 2 s instead of 15 minutes, so readers do meet files that vanish.
    """
    folder, until = tmp_path / "store", time.time() + LOAD_S
    write_environment(Store(folder))
    write_one(Store(folder), tmp_path / "first.log")
    workers = [start(keep_writing, folder, tmp_path / f"{number}.log", until) for number in range(3)]
    for number, work in enumerate((keep_compacting, keep_compacting, keep_reading, keep_querying)):
        workers.append(start(work, folder, tmp_path / f"{number}.told", until))
    for worker in workers:
        worker.join(LOAD_S * 3)
    assert [worker.exitcode for worker in workers] == [0] * 7
    everything = sorted(committed(tmp_path))
    assert all(lines(tmp_path / f"{number}.told") for number in range(4))
    assert sum(map(int, lines(tmp_path / "0.told") + lines(tmp_path / "1.told"))) > 0, "nothing was removed meanwhile"
    assert sorted(run_id for run_id, _ in query(folder)) == everything == live(Store(folder))
    assert [problem for problem in check(folder).problems if problem.damaged] == []
    compact(Store(folder), "s1")
    tidy(Store(folder), age_s=0)
    assert len(files_in(folder)) == 3 and live(Store(folder)) == everything


def kill_at_random(work: Callable[..., None], folder: Path, notes: Path) -> None:
    """Start a process over and over, and kill it at a random moment after its first run."""
    chance = random.Random(0)
    for _ in range(KILLS):
        before = len(lines(notes))
        process = start(work, folder, notes, time.time() + 60)
        while len(lines(notes)) == before:
            assert process.is_alive()
            time.sleep(0.001)
        time.sleep(chance.uniform(0, 0.03))
        assert process.pid is not None
        os.kill(process.pid, signal.SIGKILL)
        process.join()


def keep_writing_and_compacting(folder: Path, note: Path, until: float) -> None:
    """A run, a compaction, a tidying, over and over."""
    while time.time() < until:
        write_one(Store(folder), note)
        compact(Store(folder), "s1")
        tidy(Store(folder), age_s=0)


@pytest.mark.parametrize("work", [keep_writing, keep_writing_and_compacting])
def test_killed_processes_leave_nothing_damaged(tmp_path: Path, work: Callable[..., None]) -> None:
    """Thirty times SIGKILL: every committed run is there once, no file is torn, and leftovers can be removed."""
    folder = tmp_path / "store"
    write_environment(Store(folder))
    kill_at_random(work, folder, tmp_path / "notes.log")
    assert [problem for problem in check(folder).problems if problem.damaged] == []
    found = live(Store(folder))
    assert committed(tmp_path) <= set(found)
    assert len(found) <= len(committed(tmp_path)) + KILLS  # a killed process may have committed a run and not noted it
    compact(Store(folder), "s1")
    tidy(Store(folder), age_s=0)
    assert live(Store(folder)) == found
    assert check(folder).problems == []
    assert len(files_in(folder)) == 3


FILL = """
import sys
from pathlib import Path
from store_given import events, run
from runner.store import Store, StoreError, compact, merge

def told(work):
    try:
        work()
        print("done")
    except StoreError as error:
        print(error)

store = Store(Path(sys.argv[1]))
if len(sys.argv) > 3:
    import resource
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[3]),) * 2)
told(lambda: store.write_run(run("r9"), events("r9", 100_000)))
told(lambda: compact(store, "s1"))
told(lambda: merge(Path(sys.argv[2]), store))
"""


def fill(folder: Path, origin: Path, *limit: str) -> list[str]:
    """A run, a compaction and a merge that are too large: what each said, in a process of its own."""
    command = [sys.executable, "-c", FILL, str(folder), str(origin), *limit]
    path = os.pathsep.join([str(ROOT), str(ROOT / "tests")])
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": path})
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def large_store(folder: Path, *run_ids: str) -> Store:
    """Runs whose events do not compress: 20 kB each."""
    store = Store(folder)
    write_environment(store)
    for run_id in run_ids:
        names = pl.Series("name", [random.randbytes(64).hex() for _ in range(300)])
        store.write_run(run(run_id), events(run_id, 300).with_columns(names))
    return store


def expect_unharmed(store: Store, told: list[str], why: str) -> None:
    """Three sentences, no new file, and every earlier run with its events."""
    assert [line.partition("cannot be written: ")[2].startswith(why) for line in told] == [True] * 3, told
    assert live(store) == ["r1", "r2", "r3"]
    assert not [name for name in files_in(store.folder) if name.endswith(".tmp") or "all-" in name]
    assert [(each.runs, each.events) for each in check(store.folder).sweeps] == [(3, 900)]
    assert check(store.folder).problems == []


def test_files_that_cannot_grow_are_told_and_harm_nothing(tmp_path: Path) -> None:
    """A limit on the size of files, as a full disk gives: one sentence each for a run, a compaction and a merge."""
    store = large_store(tmp_path / "store", "r1", "r2", "r3")
    large_store(tmp_path / "from", "r4", "r5", "r6")
    expect_unharmed(store, fill(store.folder, tmp_path / "from", "40000"), "File too large")


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 256 kB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", folder], capture_output=True)
    if mounted.returncode:
        pytest.skip("mounting is not permitted here")
    yield folder
    subprocess.run(["umount", folder], check=True)


def test_a_full_disk_is_told_and_harms_nothing(tmp_path: Path, small_disk: Path) -> None:
    """A run, a compaction and a merge on a disk without room: one sentence each; with room again it works."""
    store = large_store(small_disk / "store", "r1", "r2", "r3")
    origin = large_store(tmp_path / "from", "r4", "r5", "r6")
    ballast = small_disk / "ballast"
    ballast.write_bytes(bytes(os.statvfs(small_disk).f_bavail * os.statvfs(small_disk).f_bsize - 16_384))
    expect_unharmed(store, fill(store.folder, origin.folder), "No space left on device")
    ballast.unlink()
    compact(store, "s1")
    tidy(store, age_s=0)
    assert live(store) == ["r1", "r2", "r3"]
