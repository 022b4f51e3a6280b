"""A measurement -> its rows and files in the store."""

from __future__ import annotations

import gzip
import shutil
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import polars as pl

from runner import tables
from runner.config import Job, Search
from runner.point import Point
from runner.store import Store
from runner.task import Found, Measurement
from runner.trace import Event, is_export, join, read_export, read_trace
from runner.window import Window, summarize


@dataclass(frozen=True, slots=True)
class Handed:
    """A point as it was handed out: its job with the device resolved, its run, when, in which place, and where.

    position: its place in the order of the sweep, from 0; folder: of its trace files.
    """

    job: Job
    run_id: str
    started_at: datetime
    position: int
    found: Found
    folder: Path


@dataclass(frozen=True, slots=True)
class Recording:
    """One sweep's way into the store. order: in which the points were handed out; search: which has asked for them."""

    store: Store
    sweep_id: str
    order: str
    search: Search | None = None

    def write(self, handed: Handed, done: Measurement) -> dict[str, Any]:
        """Trace files -> events; measurement -> row; both into the store. The row. Raises StoreError."""
        job, found = handed.job, handed.found
        identity = tables.Identity(
            handed.run_id, self.sweep_id, found.environment_id, handed.started_at, handed.position, self.order
        )
        profiled = _profiled(job.point, identity.run_id, done, found)
        if job.artifacts:
            done.facts["artifacts"] = self._keep(job.point, identity.run_id, done)
        if job.interpreter.python or job.interpreter.env:
            done.facts["interpreter"] = {"python": job.interpreter.python, "env": dict(job.interpreter.env)}
        if self.search is not None:
            done.facts["search"] = {name: getattr(self.search, name) for name in ("axis", "low", "high", "multiple")}
        self._keep_code(done.facts.get("compile") or {})
        self._write_environment(found)
        row = tables.run_row(job.point, identity, done, profiled.window, profiled.streams, found.attributes)
        self.store.write_run(tables.runs_frame([row]), profiled.frame)
        shutil.rmtree(handed.folder, ignore_errors=True)
        return row

    def _write_environment(self, found: Found) -> None:
        """Where it is not there, also if somebody has emptied the store meanwhile."""
        if not self.store.environment_path(found.environment_id).exists():
            self.store.write_environment(tables.environment_frame(found.columns))

    def _keep_code(self, compiled: dict[str, Any]) -> None:
        """Generated files of a compiled point -> the store; what stays in the facts are their ids."""
        if compiled.get("code"):
            frames = [tables.code_frame(each) for each in compiled["code"]]
            compiled["code"] = [self.store.write_code(frame) for frame in frames]

    def _keep(self, point: Point, run_id: str, done: Measurement) -> dict[str, str]:
        name = f"{point.file_name}_{run_id}"
        kept = {}
        for number, trace in enumerate(done.traces):
            suffix, ending = "" if number == 0 else f"_{number}", Path(trace).suffix
            try:
                content = gzip.compress(Path(trace).read_bytes())
            except OSError as error:  # the disk of temporary files was full, say; the times stand
                kept[f"missing{suffix}"] = str(error)
                continue
            kept[f"trace{suffix}"] = self.store.write_artifact(self.sweep_id, f"{name}{suffix}{ending}.gz", content)
        if done.table is not None:
            kept["table"] = self.store.write_artifact(self.sweep_id, f"{name}.txt", done.table.encode())
        return kept


@dataclass(frozen=True, slots=True)
class _Profiled:
    """The profiled windows of a point: rows of `events`, figures of the steps, streams that the steps work on."""

    frame: pl.DataFrame | None = None
    window: Window | None = None
    streams: int = 0


def _events(path: Path) -> list[Event]:
    """Events of a window that torch.profiler has exported, or Nsight Systems."""
    return read_export(path) if is_export(path) else read_trace(path.read_bytes())


def _profiled(point: Point, run_id: str, done: Measurement, found: Found) -> _Profiled:
    """Trace files -> events. A trace that cannot be read or stored is told in the facts, and the times stand."""
    try:
        events = join([_events(Path(path)) for path in done.traces])
        if not events:
            return _Profiled()
        window = summarize(events, point.workload, found.columns["multiprocessors"])
        streams = {event.stream for event in events if event.is_device and event.step is not None}
        return _Profiled(tables.events_frame(run_id, events), window, len(streams))
    except Exception as error:  # whatever a trace holds, it must not cost the point its times
        reason = f"the trace cannot be read: {type(error).__name__}: {error}"
        done.facts["profile"] = {**done.facts.get("profile", {}), "reason": reason}
        return _Profiled()
