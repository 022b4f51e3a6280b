"""Sweeps whose parent or worker is killed at moments spread from their start to their end, and what is left.

After the same command has run again, every point has exactly one ok run, what had finished has not run again, and no
file is torn. `python tests/killing.py 30` kills 30 parents and 30 workers; tests/test_killing.py a few.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from sweeps import PATIENCE_S, ROOT, all_runs, children, finish, gone, measure_roofs, start, store_with

from runner.locks import VARIABLE

PARENT, WORKER = "parent", "worker"
PRODUCTS, NOTHINGS = 8, 4
POINTS = PRODUCTS + NOTHINGS
GRIDS = [f"{{size:{8 + number}}}" for number in range(PRODUCTS)]
GRIDS += [f"{{workload:noop,seed:{number}}}" for number in range(NOTHINGS)]
SWEEP = ("measure=quick", "measure.limit_s=0.05", f"hydra.sweeper.grids=[{','.join(GRIDS)}]")
START_S, PRODUCT_S, NOTHING_S = 8.0, 0.4, 0.02
"""What the start and each point take at most, more or less: the moment of a kill lies somewhere in it."""
TRIES = 10


@dataclass(frozen=True)
class Killed:
    """One kill that met a sweep at work. finished: ok runs when it came; wrong: what must not be, in words."""

    victim: str
    moment: int
    finished: int
    again: int
    wrong: tuple[str, ...]


def kill_at(victim: str, moment: float, roofs: Path, folder: Path) -> Killed:
    """Kill once, resume once, look at what is there. moment: a fraction of the sweep's points."""
    for attempt in range(TRIES):
        place = folder / str(attempt)
        store = store_with(place, roofs)
        if (finished := _interrupted(victim, moment, store)) is not None:
            return _resumed(victim, round(moment * POINTS), finished, store)
    raise AssertionError(f"{victim} at {moment:.2f}: the sweep ended before it could be killed, {TRIES} times")


def _interrupted(victim: str, moment: float, store: Path) -> set[str] | None:
    """Ids of the ok runs at the moment of the kill; None when the sweep was over already.

    A worker that is killed while it opens or has nothing to do costs no point: then the sweep itself ends well.
    """
    scratch, locks = store.parent / "scratch", str(store.parent / "locks")
    sweep = start(store, scratch, *SWEEP, **{VARIABLE: locks})
    _wait(moment, store, sweep)
    workers = children(sweep.pid)
    pid = sweep.pid if victim == PARENT else random.choice(workers or [0])
    late = sweep.poll() is not None or not pid
    if not late:
        os.kill(pid, signal.SIGKILL)
    finished = {row["run_id"] for row in all_runs(store) if row["status"] == "ok"}
    done = finish(sweep, store, scratch)
    assert all(gone(pid) for pid in workers), "a worker outlived its parent"
    return None if late or (victim == PARENT and done.code == 0) else finished


def _wait(moment: float, store: Path, sweep: subprocess.Popen[str]) -> None:
    """Until so many of the points are there, and then for a part of what comes next."""
    count = int(moment * POINTS)
    deadline = time.monotonic() + PATIENCE_S
    while len(list(store.glob("runs/*/*.parquet"))) < count and sweep.poll() is None and time.monotonic() < deadline:
        time.sleep(0.002)
    next_s = START_S if count == 0 else PRODUCT_S if count < PRODUCTS else NOTHING_S
    time.sleep(random.uniform(0, next_s))


def _resumed(victim: str, moment: int, finished: set[str], store: Path) -> Killed:
    scratch = store.parent / "scratch"
    before = {row["run_id"] for row in all_runs(store) if row["status"] == "ok"}
    done = finish(start(store, scratch, *SWEEP, **{VARIABLE: str(store.parent / "locks")}), store, scratch)
    runs = [row for row in all_runs(store) if row["status"] == "ok"]
    again = {row["run_id"] for row in runs} - before
    times = Counter(row["point_id"] for row in runs)
    checked = subprocess.run(
        [sys.executable, "-m", "runner.store", "check", "--store", str(store)], capture_output=True, text=True, cwd=ROOT
    )
    wrong = {
        f"the same command ended with {done.code}: {done.stdout} {done.stderr}": done.code != 0,
        f"{len(times)} points": len(times) != POINTS,
        f"{sum(times.values())} ok runs": sum(times.values()) != POINTS,
        "a finished run is gone": not finished <= before <= {row["run_id"] for row in runs},
        f"{len(again)} points ran again, of which {POINTS - len(before)} were missing": len(again)
        != POINTS - len(before),
        checked.stdout + checked.stderr: checked.returncode != 0,
    }
    return Killed(victim, moment, len(finished), len(again), tuple(text for text, holds in wrong.items() if holds))


def kills(moments: int, roofs: Path, folder: Path, at_once: int = 2) -> list[Killed]:
    """So many kills of a parent, spread evenly over the sweep, and of a worker, over the part in which it works long.

    A sweep has a worker for products and one for nothing, both from its start on; chance says which one is killed.
    """
    asked = [
        (victim, (number + 0.5) / moments * (PRODUCTS / POINTS if victim == WORKER else 1))
        for number in range(moments)
        for victim in (PARENT, WORKER)
    ]
    with ThreadPoolExecutor(at_once) as pool:
        tasks = [
            pool.submit(kill_at, victim, moment, roofs, folder / f"{victim}-{moment:.3f}") for victim, moment in asked
        ]
        return [task.result() for task in tasks]


def main(moments: int) -> int:
    """A line a kill; 2 if anything is wrong."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        done = kills(moments, measure_roofs(folder / "roofs"), folder)
    for each in done:
        print(f"{each.victim} killed behind {each.finished} of {POINTS}, {each.again} ran later: {each.wrong or 'ok'}")
    bad = sum(bool(each.wrong) for each in done)
    met = Counter(each.victim for each in done)
    print(f"{met[PARENT]} parents and {met[WORKER]} workers killed, {bad} times something was wrong")
    return 2 if bad else 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 30))
