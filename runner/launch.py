"""The parent: checks every point, then feeds one worker at a time and writes what it answers. Imports no torch."""

from __future__ import annotations

import gzip
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

import polars as pl
from omegaconf import DictConfig

from runner import tables
from runner.condition import BUSY_FRAC, CardSampler
from runner.config import Job
from runner.point import Point, PointError
from runner.process import WorkerDied, WorkerError, WorkerProcess
from runner.progress import Progress
from runner.store import Store, new_id
from runner.task import Measurement, Opened, Task
from runner.trace import join, read_trace
from runner.window import Window, summarize

FAILED, INTERRUPTED = 2, 130  # exit codes


def checked(configs: Sequence[DictConfig]) -> list[Job]:
    """The jobs of all configurations. Raises PointError for the first value that is not allowed."""
    jobs = [Job.checked(config) for config in configs]
    stores = list(dict.fromkeys(str(job.store) for job in jobs))
    if len(stores) > 1:
        raise PointError(f"store={','.join(stores)}: allowed is one folder a sweep; for example store={stores[0]}.")
    return jobs


def launch(jobs: Sequence[Job]) -> int:
    """Measure all points in the order given, and write each as it comes.

    Returns the exit code: FAILED if a point failed, INTERRUPTED after Ctrl-C.

    Raises StoreError, WorkerDied and WorkerError, before the first point where nothing can be measured.
    """
    store = Store(jobs[0].store)
    store.check()
    progress = Progress([job.point for job in jobs], store.folder)
    with tempfile.TemporaryDirectory(prefix="crossover-") as scratch, Crew(store, progress) as crew:
        crew.refuse_missing(jobs)
        sweep = Sweep(new_id(), store, crew, progress, Path(scratch))
        code = sweep.run_all(jobs)
    progress.summary()
    return code or (FAILED if progress.failed else 0)


@dataclass
class Station:
    """A device that is open in a worker: its environment, and the roofs that predict a step."""

    worker: WorkerProcess
    opened: Opened
    roofs: dict[tuple[str, str | None], float]

    @property
    def environment_id(self) -> str:
        """Identity of the environment."""
        return str(self.opened.columns["environment_id"])


class Crew:
    """One worker at a time: the one whose device the next point needs."""

    def __init__(self, store: Store, progress: Progress) -> None:
        self.store, self.progress = store, progress
        self.station: Station | None = None

    def __enter__(self) -> Crew:
        return self

    def __exit__(self, *_: object) -> None:
        self.dismiss()

    def dismiss(self) -> None:
        """End the worker in service, so that the next point gets a fresh one."""
        if self.station is not None:
            self.station.worker.close()
        self.station = None

    def refuse_missing(self, jobs: Sequence[Job]) -> None:
        """Open the first device and refuse the sweep if it asks for one that this machine lacks. Raises WorkerError."""
        working = [job for job in jobs if not job.point.spec.idle]
        kinds = self.at(working[0]).opened.kinds if working else ()
        for kind in {job.point.device for job in working} - {"auto", *kinds}:
            raise WorkerError(f"device={kind}: torch can use {', '.join(kinds)} here; see `python -m runner doctor`.")

    def at(self, job: Job) -> Station:
        """The station for a point; a worker is started where none is open on that device. Raises WorkerDied."""
        wanted = "none" if job.point.spec.idle else job.point.device
        if self.station is None or not _serves(self.station.opened, wanted):
            self.dismiss()
            self.station = self._open(wanted)
        return self.station

    def fresh(self, kind: str) -> WorkerProcess:
        """A new worker with its device open, and nothing else done in it; the caller closes it."""
        worker = WorkerProcess()
        try:
            worker.ask("open", (kind, False))
        except BaseException:
            worker.close()
            raise
        return worker

    def _open(self, wanted: str) -> Station:
        worker = WorkerProcess()
        try:
            opened = worker.ask("open_nothing") if wanted == "none" else worker.ask("open", (wanted, True))
            self.store.write_environment(tables.environment_frame(opened.columns))
            return Station(worker, opened, {} if wanted == "none" else self._roofs(worker, opened))
        except BaseException:
            worker.close()
            raise

    def _roofs(self, worker: WorkerProcess, opened: Opened) -> dict[tuple[str, str | None], float]:
        """The environment's roofs, measured where the store does not hold them yet."""
        environment_id = str(opened.columns["environment_id"])
        frame = self.store.roofs(environment_id)
        if frame is None:
            rows, pressure = worker.ask("roofs")
            if opened.kind == "cpu" and (pressure or 0) > BUSY_FRAC:
                self.progress.note(f"Something else uses the CPU ({pressure:.0%} of the time): no roofs are kept.")
                return {}
            frame = tables.roofs_frame(environment_id, rows)
            self.store.write_roofs(frame)
        rows = frame.filter(frame["value_per_s"].is_not_null()).to_dicts()
        return {(row["roof"], row["dtype"]): row["value_per_s"] for row in rows}


@dataclass
class Sweep:
    """One command's points on their way into the store.

    On a device that works beside the host a point is written while the next one is measured; on the CPU nothing else
    may work while a point is measured, so it is written before. scratch: the folder of trace files until then.
    """

    sweep_id: str
    store: Store
    crew: Crew
    progress: Progress
    scratch: Path
    pending: list[Callable[[], None]] = field(default_factory=list)

    def run_all(self, jobs: Sequence[Job]) -> int:
        """Run all; what has been measured is written whatever happens. INTERRUPTED after Ctrl-C, else 0."""
        try:
            for position, job in enumerate(jobs):
                self.run(position, job)
        except KeyboardInterrupt:
            return INTERRUPTED
        finally:
            self.finish()
        return 0

    def run(self, position: int, job: Job) -> None:
        """Measure one point; whatever happens to it becomes a row."""
        self.progress.begin(position, job.point)
        station = self.crew.at(job)
        identity = tables.Identity(new_id(), self.sweep_id, station.environment_id, datetime.now(UTC), position)
        job = _resolved(job, station.opened.kind)
        folder = Path(tempfile.mkdtemp(dir=self.scratch))
        task = Task(
            job.point, job.target, job.max_step_s, _takes_slopes(job, position), job.recorder, job.artifacts,
            station.roofs, folder,
        )  # fmt: skip
        done = self._measured(task, station)
        self.pending.append(lambda: self._write(job, identity, station.opened, done, folder))
        if station.opened.kind in ("cpu", "none"):
            self.finish()

    def finish(self) -> None:
        """Write what has been measured and not yet written."""
        while self.pending:
            self.pending.pop(0)()

    def _measured(self, task: Task, station: Station) -> Measurement:
        try:
            if task.point.spec.idle:
                station.worker.ask("call", task.point)
                return Measurement("ok", facts={"reasons": {"wall_us": "the workload does nothing"}})
            if task.point.cold:
                return self._cold(task, station)
            return self._warm(task, station)
        except WorkerDied as death:
            self.crew.dismiss()
            return Measurement("crashed", str(death))
        except WorkerError as error:
            return Measurement("failed", str(error))

    def _in_fresh_worker(self, way: str, task: Task, station: Station) -> Measurement:
        with _closing(self.crew.fresh(station.opened.kind)) as worker:
            worker.send("measure", (way, task))
            return _watched(worker, station)

    def _warm(self, task: Task, station: Station) -> Measurement:
        station.worker.send("measure", ("warm", task))
        self.finish()
        done = _watched(station.worker, station)
        if done.lost:
            self.crew.dismiss()
        return done

    def _cold(self, task: Task, station: Station) -> Measurement:
        """Two fresh processes: the first steps unprofiled, and the same profiled."""
        self.finish()
        times = self._in_fresh_worker("first_steps", task, station)
        if times.status != "ok":
            return times
        profiled = self._in_fresh_worker("cold_profile", task, station)
        if profiled.status != "ok":
            times.facts["profile"] = {"reason": profiled.reason}
        facts = {**times.facts, "profiled_elapsed_s": profiled.facts.get("elapsed_s")}
        return Measurement("ok", None, times.samples, {}, facts, profiled.traces, profiled.table)

    def _write(self, job: Job, identity: tables.Identity, opened: Opened, done: Measurement, folder: Path) -> None:
        """Trace files -> events; measurement -> row; both into the store."""
        profiled = _profiled(job.point, identity.run_id, done, opened)
        if job.artifacts:
            done.facts["artifacts"] = self._keep(job, identity, done)
        row = tables.run_row(job.point, identity, done, profiled.window, profiled.streams, opened.attributes)
        self.store.write_run(tables.runs_frame([row]), profiled.frame)
        _remove(folder)
        self.progress.end(job.point, row, tables.verdict(row))

    def _keep(self, job: Job, identity: tables.Identity, done: Measurement) -> dict[str, str]:
        name = f"{job.point.file_name}_{identity.run_id}"
        kept = {}
        for number, trace in enumerate(done.traces):
            suffix = "" if number == 0 else f"_{number}"
            content = gzip.compress(trace.read_bytes())
            kept[f"trace{suffix}"] = self.store.write_artifact(self.sweep_id, f"{name}{suffix}.json.gz", content)
        if done.table is not None:
            kept["table"] = self.store.write_artifact(self.sweep_id, f"{name}.txt", done.table.encode())
        return kept


def _watched(worker: WorkerProcess, station: Station) -> Measurement:
    """The worker's answer, with the card's condition meanwhile; a CPU is left alone while it is measured."""
    card = station.opened.attributes.get("device_uuid")
    sampler = CardSampler(card, (os.getpid(), worker.process.pid, station.worker.process.pid))
    done: Measurement = worker.wait(sampler.sample if card else None)
    done.facts.setdefault("condition", {}).update(sampler.finish())
    return done


def _serves(opened: Opened, wanted: str) -> bool:
    """Whether the device that is open is the one wanted; `auto` is the best there is."""
    return opened.kind == (opened.kinds[-1] if wanted == "auto" and opened.kinds else wanted)


def _resolved(job: Job, kind: str) -> Job:
    return job if job.point.spec.idle else replace(job, point=job.point.resolved(kind))


def _takes_slopes(job: Job, position: int) -> bool:
    return job.slopes_every > 0 and position % job.slopes_every == 0


@dataclass(frozen=True, slots=True)
class Profiled:
    """The profiled windows of a point: rows of `events`, figures of the steps, streams that the steps work on."""

    frame: pl.DataFrame | None = None
    window: Window | None = None
    streams: int = 0


def _profiled(point: Point, run_id: str, done: Measurement, opened: Opened) -> Profiled:
    """Trace files -> events. A trace that cannot be read or stored is told in the facts, and the times stand."""
    try:
        events = join([read_trace(path.read_bytes()) for path in done.traces])
        if not events:
            return Profiled()
        window = summarize(events, point.workload, opened.columns["multiprocessors"])
        streams = {event.stream for event in events if event.is_device and event.step is not None}
        return Profiled(tables.events_frame(run_id, events), window, len(streams))
    except Exception as error:  # whatever a trace holds, it must not cost the point its times
        done.facts["profile"] = {"reason": f"the trace cannot be read: {type(error).__name__}: {error}"}
        return Profiled()


def _remove(folder: Path) -> None:
    for path in folder.iterdir():
        path.unlink()
    folder.rmdir()


@contextmanager
def _closing(worker: WorkerProcess) -> Iterator[WorkerProcess]:
    try:
        yield worker
    finally:
        worker.close()
