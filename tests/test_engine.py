"""runner.engine: points on their way from a source that reacts, whatever happens to them; real workers, no device."""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from configured import job, values
from sweeps import Done, all_runs, gone, store_with, swept

from runner.config import Job, Settings
from runner.engine import DeviceLost, Engine, Source
from runner.process import WorkerDied, WorkerProcess
from runner.progress import Progress
from runner.recording import Recording
from runner.resume import Measured
from runner.station import Seat, Shop, Station
from runner.store import Store, StoreError
from runner.task import Interpreter, Measurement

pytestmark = pytest.mark.alone

NOTHING = {"workload": {"name": "noop"}}


def noop(seed: int, **changes: Any) -> Job:
    """A point that does nothing; its seed tells it apart."""
    return job(**NOTHING, seed=seed, **changes)


class Halving:
    """A source that looks for the greatest seed below a threshold, and knows its next point only by the last result."""

    def __init__(self, threshold: int, top: int) -> None:
        self.threshold, self.low, self.high = threshold, 0, top
        self.out = False
        self.learned: list[tuple[int, Mapping[str, Any]]] = []

    def take(self) -> Sequence[Job] | None:
        """The middle of what is left; None while a result is out, and at the end."""
        if self.out or self.high - self.low <= 1:
            return None
        self.out = True
        return [noop((self.low + self.high) // 2)]

    def learn(self, job: Job, rows: Sequence[Mapping[str, Any]]) -> None:
        """Half of it is ruled out."""
        self.out = False
        self.learned.append((job.point.seed, rows[0]))
        if job.point.seed < self.threshold:
            self.low = job.point.seed
        else:
            self.high = job.point.seed


class Batches:
    """A source of batches that is told what became of them."""

    def __init__(self, *batches: Sequence[Job]) -> None:
        self.batches, self.learned = list(batches), list[tuple[int, str]]()

    def take(self) -> Sequence[Job] | None:
        """The next batch."""
        return self.batches.pop(0) if self.batches else None

    def learn(self, job: Job, rows: Sequence[Mapping[str, Any]]) -> None:
        """Seed and status, once for every run."""
        self.learned += [(job.point.seed, row["status"]) for row in rows]


class Watched(Station):
    """A station that remembers which workers it has started."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.pids: list[int] = []

    def _start(self, interpreter: Interpreter) -> WorkerProcess:
        worker = super()._start(interpreter)
        self.pids.append(worker.process.pid)
        return worker


@dataclass(frozen=True)
class Ran:
    """What a sweep leaves: all runs of its store, and the workers of each station."""

    rows: list[dict[str, Any]]
    pids: list[list[int]]

    def facts(self, name: str) -> list[Any]:
        """One fact of every run."""
        return [json.loads(row["facts"])[name] for row in self.rows]


def run(
    source: Source, folder: Path, word: str = "none", stations: int = 1, kinds: Sequence[type[Watched]] = (),
    **changes: Any,
) -> Ran:  # fmt: skip
    """Measure all that a source has, on so many stations, or on one of each of these kinds."""
    store = Store(folder / "store")
    settings = Settings.checked(values(store=str(store.folder), **changes))
    progress = Progress(Counter(idle=1), 10, store.folder)
    shop = Shop(store, settings, print)
    places = [each(shop, word) for each in kinds or [Watched] * stations]

    async def whole() -> None:
        with tempfile.TemporaryDirectory(dir=folder) as scratch:
            recording = Recording(store, "s1", "given")
            engine = Engine(settings, recording, Measured.load(store), progress, Path(scratch))
            try:
                await asyncio.wait_for(engine.run(source, places), 60)
            finally:
                for place in places:
                    await place.close()

    asyncio.run(whole())
    assert all(gone(pid) for place in places for pid in place.pids)
    return Ran(all_runs(store.folder), [place.pids for place in places])


# -- sources -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stations", [1, 3])
def test_a_source_may_wait_for_results(stations: int, tmp_path: Path) -> None:
    """It gives nothing while a result is out, and goes on with what the result says; more stations change nothing."""
    source = Halving(threshold=23, top=64)
    ran = run(source, tmp_path, stations=stations)
    assert source.low == 22
    assert [seed for seed, _ in source.learned] == [32, 16, 24, 20, 22, 23]
    assert [json.loads(row["params"])["seed"] for row in ran.rows] == [32, 16, 24, 20, 22, 23]
    assert [result["run_id"] for _, result in source.learned] == [row["run_id"] for row in ran.rows]


def test_a_source_with_nothing_ends_at_once(tmp_path: Path) -> None:
    """No worker is started for it."""
    assert run(Batches(), tmp_path, stations=2) == Ran([], [[], []])


def test_every_point_of_a_batch_is_measured_in_its_order(tmp_path: Path) -> None:
    """Positions count over all batches, and one worker an interpreter serves them all."""
    one, two = {"A": 1}, {"A": 2}
    source = Batches([noop(1, env=one), noop(1, env=two)], [noop(2, env=two), noop(2, env=one)], [noop(3, env=one)])
    ran = run(source, tmp_path)
    assert ran.facts("position") == [0, 1, 2, 3, 4]
    assert [each["env"]["A"] for each in ran.facts("interpreter")] == ["1", "2", "2", "1", "1"]
    assert len({row["environment_id"] for row in ran.rows}) == 2
    assert [len(pids) for pids in ran.pids] == [2]
    assert source.learned == [(1, "ok"), (1, "ok"), (2, "ok"), (2, "ok"), (3, "ok")]


def test_several_stations_share_the_points(tmp_path: Path) -> None:
    """Each point once, wherever; each station has a worker of its own."""
    ran = run(Batches(*[[noop(seed)] for seed in range(40)]), tmp_path, stations=3)
    assert sorted(json.loads(row["params"])["seed"] for row in ran.rows) == list(range(40))
    assert ran.facts("position") == list(range(40))
    assert [len(pids) for pids in ran.pids] == [1, 1, 1]


def test_what_stands_is_learned_and_not_measured(tmp_path: Path) -> None:
    """The source is told of the run in the store; rerun=true measures again and keeps both."""
    first = run(Batches([noop(1)], [noop(2)]), tmp_path)
    source = Batches([noop(1)], [noop(3)])
    second = run(source, tmp_path)
    assert source.learned == [(1, "ok"), (3, "ok")]
    assert len(second.rows) == 3 and {row["run_id"] for row in first.rows} < {row["run_id"] for row in second.rows}
    again = run(Batches([noop(1)]), tmp_path, rerun=True)
    assert Counter(json.loads(row["params"])["seed"] for row in again.rows) == {1: 2, 2: 1, 3: 1}


def test_a_station_whose_worker_does_not_start_is_given_up(tmp_path: Path) -> None:
    """A Python that cannot even look ends the sweep; what was measured before is in the store."""
    script = tmp_path / "python"
    script.write_text("#!/bin/sh\necho no python >&2\nexit 3\n")
    script.chmod(0o755)
    source = Batches([noop(1)], [noop(2, python=str(script))], [noop(3)])
    with pytest.raises(DeviceLost, match="exit code 3: no python"):
        run(source, tmp_path)
    assert source.learned == [(1, "ok")]
    assert len(all_runs(tmp_path / "store")) == 1


class Spoiling(Batches):
    """A source that puts a file in the place of the sweep's folder once its first point is in the store."""

    def __init__(self, folder: Path, *batches: Sequence[Job]) -> None:
        super().__init__(*batches)
        self.folder = folder

    def learn(self, job: Job, rows: Sequence[Mapping[str, Any]]) -> None:
        """From now on nothing can be written."""
        super().learn(job, rows)
        self.folder.rename(self.folder.with_name("kept"))
        self.folder.write_text("in the way")


def test_a_store_that_fails_ends_the_sweep_and_keeps_what_is_there(tmp_path: Path) -> None:
    """One error, at the next write; the finished point can be read."""
    runs = tmp_path / "store" / "runs"
    with pytest.raises(StoreError, match="cannot be written"):
        run(Spoiling(runs / "s1", *[[noop(seed)] for seed in range(5)]), tmp_path)
    (runs / "s1").unlink()
    assert [json.loads(row["params"])["seed"] for row in all_runs(tmp_path / "store")] == [0]


# -- workers -----------------------------------------------------------------------------------------------------------


def test_a_worker_is_replaced_when_it_has_run_its_points(measured_roofs: Path, tmp_path: Path) -> None:
    """recycle_after=2: five points are three workers; the reacting source of above would not notice."""
    store_with(tmp_path, measured_roofs)
    quick = {"name": "quick", "target_frac": 0.1, "limit_s": 0.05, "slopes_every": 0}
    points = [[job(size=size, measure=quick)] for size in (8, 9, 10, 11, 12)]
    ran = run(Batches(*points), tmp_path, "cpu", recycle_after=2)
    assert [row["status"] for row in ran.rows] == ["ok"] * 5
    assert [len(set(pids)) for pids in ran.pids] == [3]


def test_a_further_run_comes_from_another_worker(tmp_path: Path) -> None:
    """Whatever the store holds of it; one new worker serves all points that have not been measured in it."""
    first = [noop(seed) for seed in (1, 2, 3)]
    seconds, thirds = ([[job.repeated(repeat)] for job in first] for repeat in (1, 2))
    run(Batches(first), tmp_path)
    source = Batches(first, [noop(4)], *seconds, *thirds)
    ran = run(source, tmp_path)
    assert [seed for seed, _ in source.learned] == [1, 2, 3, 4, 1, 2, 3, 1, 2, 3]
    assert Counter(json.loads(row["params"])["seed"] for row in ran.rows) == {1: 3, 2: 3, 3: 3, 4: 1}
    assert [len(set(pids)) for pids in ran.pids] == [2]  # the first one had only looked at 1, 2, 3: they were there


# -- faults ------------------------------------------------------------------------------------------------------------

FAULTS = ["raise", "segfault", "abort", "hang", "assert", "allocate"]


@pytest.fixture(scope="module")
def faulty(tmp_path_factory: pytest.TempPathFactory, measured_roofs: Path) -> Done:
    """Every fault, with a sound point behind each; behind the last a larger one of its kind."""
    store = store_with(tmp_path_factory.mktemp("faults"), measured_roofs)
    grids = [
        each
        for number, how in enumerate(FAULTS)
        for each in (f"{{workload:fault,workload.how:{how},size:8}}", f"{{size:{16 + number}}}")
    ]
    grids.append("{workload:fault,workload.how:allocate,size:16}")
    limits = ["measure=quick", "measure.limit_s=0.05", "point_timeout=4", "memory_limit_gb=2"]
    return swept(store, *limits, f"hydra.sweeper.grids=[{','.join(grids)}]")


def test_every_fault_is_a_row_and_the_points_after_it_are_measured(faulty: Done) -> None:
    """No fault reaches the point behind it, and the command ends with 2."""
    found = [row["status"] for row in faulty.rows]
    assert found[1:12:2] == ["ok"] * 6, faulty.stdout + faulty.stderr
    assert dict(zip(FAULTS, found[0:12:2], strict=True)) == {
        "raise": "failed", "segfault": "crashed", "abort": "crashed", "hang": "timeout", "assert": "failed",
        "allocate": "oom",
    }  # fmt: skip
    assert faulty.code == 2 and faulty.stderr == ""


@pytest.mark.parametrize(
    ("how", "reason", "signal"),
    [
        ("raise", "RuntimeError: this workload always fails", None),
        ("segfault", "the worker ended with signal SIGSEGV", "SIGSEGV"),
        ("abort", "the worker ended with signal SIGABRT: about to abort", "SIGABRT"),
        ("hang", "no answer within point_timeout=4 s", None),
        ("assert", "IndexError: index 8 is out of bounds", None),
        ("allocate", "can't allocate memory", None),
    ],
)
def test_a_fault_tells_what_became_of_it(how: str, reason: str, signal: str | None, faulty: Done) -> None:
    """The reason in words, the signal, and the limits that held."""
    place = 2 * FAULTS.index(how)
    assert reason in faulty.rows[place]["reason"]
    facts = faulty.facts(place)
    assert facts.get("signal") == signal
    assert facts["limits"] == {"point_timeout_s": 4.0, "memory_limit_bytes": 2_000_000_000}
    assert facts["taken_s"] > 0 and faulty.rows[place]["wall_us"] is None


def test_a_larger_point_behind_a_lack_of_memory_is_skipped(faulty: Done) -> None:
    """The reason names the smaller one."""
    last = faulty.rows[12]
    assert last["status"] == "skipped"
    assert last["reason"] == "fault how=allocate size=8 fp32 eager ran out of memory already"
    assert faulty.facts(12)["after_oom"] is True


def test_faults_leave_nothing_behind(faulty: Done) -> None:
    """No temporary file, no folder of trace files."""
    assert not list(faulty.scratch.glob("crossover-*"))
    assert not list(faulty.store.rglob("*.tmp"))


def test_faults_that_will_not_pass_are_not_met_again(faulty: Done) -> None:
    """The same command measures nothing, and still ends with 2; on_error=stop ends behind the first failure."""
    again = swept(faulty.store, "workload=fault", "workload.how=raise", "size=8,9", "on_error=stop", "measure=quick",
                  "point_timeout=4", "memory_limit_gb=2")  # fmt: skip
    assert again.code == 2
    assert [(row["size"], row["status"]) for row in again.rows] == [(9, "failed")]
    assert "Measured before: 1 failed" in again.stdout


def test_on_error_stop_ends_behind_the_first_failure(measured_roofs: Path, tmp_path: Path) -> None:
    """The points after it are not measured, and the command ends with 2."""
    done = swept(store_with(tmp_path, measured_roofs), "dtype=tf32,fp32", "size=8,16", "on_error=stop", "measure=quick")
    assert [(row["dtype"], row["size"], row["status"]) for row in done.rows] == [("tf32", 8, "failed")]
    assert done.code == 2
    assert "Stopped after a point that failed: 1 of 4 points are done" in done.stdout
    assert "The same command goes on: " in done.stdout


# -- devices that get lost ---------------------------------------------------------------------------------------------


class Falling(Watched):
    """A station at which no worker opens any more once it has measured three points."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.measured = 0

    async def measure(self, worker: WorkerProcess, request: Any, timeout_s: float) -> Measurement:
        """As ever; counted."""
        self.measured += 1
        return await super().measure(worker, request, timeout_s)

    async def ready(self, interpreter: Interpreter) -> Seat:
        """Nothing opens behind the third."""
        if self.measured >= 3:
            raise WorkerDied("the card has fallen off the bus")
        return await super().ready(interpreter)


class Slow(Watched):
    """A station that takes its time, so that the other one has some too."""

    async def measure(self, worker: WorkerProcess, request: Any, timeout_s: float) -> Measurement:
        """As ever, later."""
        await asyncio.sleep(0.05)
        return await super().measure(worker, request, timeout_s)


def test_a_lost_device_leaves_its_points_to_the_others(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Every point is measured once, the one at which the device was lost included, and the sweep ends."""
    source = Batches(*([noop(seed)] for seed in range(20)))
    ran = run(source, tmp_path, kinds=(Falling, Slow))
    assert sorted(source.learned) == [(seed, "ok") for seed in range(20)]
    assert len(ran.rows) == 20
    assert "is given up: the card has fallen off the bus" in capsys.readouterr().out


def test_the_last_device_is_given_up_after_three_points(tmp_path: Path) -> None:
    """Two points become rows that a resume measures again; at the third the sweep ends with the reason."""
    source = Batches(*([noop(seed)] for seed in range(20)))
    with pytest.raises(DeviceLost, match="fallen off the bus"):
        run(source, tmp_path, kinds=(Falling,))
    rows = all_runs(tmp_path / "store")
    assert [row["status"] for row in rows] == ["ok", "ok", "ok", "crashed", "crashed"]
    assert rows[-1]["reason"] == "no worker could be opened: the card has fallen off the bus"
    assert json.loads(rows[-1]["facts"])["unopened"] is True


class Breaking(Watched):
    """A station at which the third point fails, and whose worker is killed behind every point."""

    async def measure(self, worker: WorkerProcess, request: Any, timeout_s: float) -> Measurement:
        """A failure, or as ever."""
        if request[1].point.seed == 2:
            return Measurement("failed", "it is the third")
        done = await super().measure(worker, request, timeout_s)
        worker.process.kill()
        worker.process.wait()
        return done


def test_on_error_stop_hands_out_nothing_more(tmp_path: Path) -> None:
    """Also where a point is written while the next could be measured."""
    source = Batches(*([noop(seed)] for seed in range(6)))
    run(source, tmp_path, kinds=(Breaking,), on_error="stop")
    assert source.learned == [(0, "ok"), (1, "ok"), (2, "failed")]


def test_a_worker_killed_between_points_costs_none(tmp_path: Path) -> None:
    """It had nothing to do: the next point gets a new one, and none is told to have crashed."""
    source = Batches(*([noop(seed)] for seed in (0, 1, 3)))
    ran = run(source, tmp_path, kinds=(Breaking,))
    assert source.learned == [(0, "ok"), (1, "ok"), (3, "ok")]
    assert len(set(ran.pids[0])) == 3
