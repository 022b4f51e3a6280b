"""A trace file of any program, or an export of Nsight Systems -> a run of the store, with source `import`."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from operator import itemgetter
from pathlib import Path
from typing import IO, Any

import polars as pl
from polars.io.plugins import register_io_source

from runner import tables
from runner.store import Store, new_id
from runner.trace import audit as auditing
from runner.trace import single
from runner.trace import steps as stepping
from runner.trace.audit import DeviceAudit
from runner.trace.events import EVENTS, MEMORY, STEP_NAME, on_device_timeline
from runner.trace.link import Links, linked
from runner.trace.nsys import Export, is_export
from runner.trace.pool import Pool
from runner.trace.reading import Progress, Trace, read
from runner.trace.source import Source
from runner.trace.steps import Steps
from runner.words import counted

_ENDINGS = (".gz", ".json", ".trace", ".pt", ".sqlite")
_FOUND = {"profiler": "marked by the profiler", "annotation": "by --step", "sequence": "kernels that repeat"}
_KINDS_SHOWN, _LONGEST_KIND = 6, 60
_RANK = re.compile(r"rank[-_]?(\d{1,9})(?!\d)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Imported:
    """A file that has become a run, or had before. audit, steps: what was read and found, in words; kept and
    device_events: numbers of events; json_bytes: of its text. earlier: the run has the same content, and
    nothing was written now."""

    path: Path
    run_id: str
    audit: str
    steps: str
    rank: int | None
    kept: int
    device_events: int
    json_bytes: int
    earlier: bool = False


def import_trace(
    path: Path, store: Store, sweep_id: str, step: str | None, pool: Pool, progress: Progress = lambda _: None
) -> Imported:
    """Read a trace file, link its events, and write both as a run.

    step: a regular expression that finds the names of the ranges which are the steps; None for those that the trace
    has, else those found in it. Memory is bounded at any size of the file; rows wait in the pool's temporary folder.

    Raises:
        TraceError: the file is no trace.
        OSError: it cannot be read.
        StoreError: the run cannot be written.
    """
    trace, file_bytes = _read_export(path, pool, progress) if is_export(path) else _read(path, pool, progress)
    pool.stop()
    if earlier := _earlier(store, trace, step):
        return _imported(path, trace, *earlier, earlier=True)
    run_id, started_at = new_id(), datetime.now(UTC)
    with _uncommitted(store, sweep_id, run_id):
        told, steps = _write_events(store, sweep_id, run_id, trace, step)
        environment = _environment(trace.document, told)
        store.write_environment(tables.environment_frame(environment))
        facts = {
            **_ranks(trace.document, path), "import": _file_facts(path, file_bytes, trace, step), "audit": told,
            "steps": steps,
        }  # fmt: skip
        row = _row(path, run_id, sweep_id, trace, str(environment["environment_id"]), started_at, facts)
        with _alone(store):
            if earlier := _earlier(store, trace, step):
                return _imported(path, trace, *earlier, earlier=True)
            store.write_run(tables.runs_frame([row]), None)
    return _imported(path, trace, run_id, facts)


def stem(path: Path) -> str:
    """Name of a file without the endings of traces."""
    name = path.name
    while (shorter := _without_ending(name)) != name:
        name = shorter
    return _encodable(name)


def steps_line(steps: dict[str, Any]) -> str:
    """The steps of a run (`facts.steps`) in words: how many there are, of which kinds, and how they were found."""
    how = _FOUND.get(steps["method"])
    if how is None:
        return f"no steps: {steps['reason']}" if steps["reason"] else "no steps"
    kinds = ", ".join(map(_kind, steps["kinds"][:_KINDS_SHOWN]))
    more = len(steps["kinds"]) - _KINDS_SHOWN
    told = kinds + (f" and {counted(more, 'more kind')}" if more > 0 else "") + f" ({how})"
    return f"{told}; {steps['reason']}" if steps["reason"] else told


# -- pieces ------------------------------------------------------------------------------------------------------------


def _read(path: Path, pool: Pool, progress: Progress) -> tuple[Trace, int]:
    """A Chrome trace, and the bytes of its file."""
    with path.open("rb") as file:
        source = Source(file)
        pool.text_file = path if path.is_file() and not source.is_packed else None
        return read(source, pool, progress), os.fstat(file.fileno()).st_size


def _read_export(path: Path, pool: Pool, progress: Progress) -> tuple[Trace, int]:
    """An export of Nsight Systems: the trace that it tells, with all its events counted; and the bytes of its file."""
    file_bytes = path.stat().st_size
    pool.text_file = None
    with Export(path) as export:
        trace = read(Source(export.text()), pool, lambda _: progress(round(export.told_frac * file_bytes)))
        trace.events += export.set_aside.total()
        trace.set_aside += export.set_aside
        trace.digest = export.digest
    return trace, file_bytes


def _kind(found: dict[str, Any]) -> str:
    number = sum(last - first + 1 for first, last in found["steps"])
    kind = found["kind"]
    name = kind if len(kind) <= _LONGEST_KIND else kind[: _LONGEST_KIND - 3] + "..."
    return f"{auditing.counted_in(number, 'step')} of kind {name}"


@dataclass(slots=True)
class _Counts:
    rows: int = 0


def _without_ending(name: str) -> str:
    for ending in _ENDINGS:
        if name.lower().endswith(ending) and len(name) > len(ending):
            return name[: -len(ending)]
    return name


def _encodable(text: str) -> str:
    """A name of bytes that are no UTF-8, or half of a surrogate pair, as a store can hold it."""
    return text.encode("utf-8", "replace").decode()


def _point_id(trace: Trace) -> str:
    return trace.digest[:16]


def _earlier(store: Store, trace: Trace, step: str | None) -> tuple[str, dict[str, Any]] | None:
    """Id and facts of the run in the store that has the same content and was parted into steps in the same way."""
    runs = store.live_runs(["run_id", "point_id", "source", "facts"])
    same = runs.filter(pl.col("point_id") == _point_id(trace), pl.col("source") == "import")
    found = [(run_id, json.loads(facts)) for run_id, _, _, facts in same.iter_rows()]
    return max((each for each in found if each[1]["import"]["step"] == step), default=None, key=itemgetter(0))


@contextmanager
def _alone(store: Store) -> Iterator[None]:
    """One process at a time: the same content in two files, or given to two commands, becomes one run.

    Where the file system has no locks for folders, two are possible, and no harm is done.
    """
    handle = os.open(store.folder, os.O_RDONLY)
    try:
        with suppress(OSError):
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


@contextmanager
def _uncommitted(store: Store, sweep_id: str, run_id: str) -> Iterator[None]:
    """Events whose run has not come do not count; here they do not take up room either."""
    try:
        yield
    finally:
        if not (store.folder / "runs" / sweep_id / f"{run_id}.parquet").exists():
            with suppress(OSError):
                (store.folder / "events" / sweep_id / f"{run_id}.parquet").unlink()


def _imported(path: Path, trace: Trace, run_id: str, facts: dict[str, Any], earlier: bool = False) -> Imported:
    audit, steps = facts["audit"], steps_line(facts["steps"])
    numbers = audit["kept"], audit["device_events"], trace.json_bytes
    return Imported(path, run_id, audit["line"], steps, facts.get("rank"), *numbers, earlier=earlier)


def _write_events(
    store: Store, sweep_id: str, run_id: str, trace: Trace, step: str | None
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Link the events and write them; the audit and the steps as facts."""
    steps, device, counts = _steps(trace, step), DeviceAudit(), _Counts()
    links = Links(trace.launches(), stepping.annotation_steps(trace.marks(), steps), steps)
    store.write_events(sweep_id, run_id, lambda target: _write(target, run_id, trace, links, device, counts))
    return _audit(trace, device, counts.rows), steps.facts()


def _steps(trace: Trace, pattern: str | None) -> Steps:
    """The user's steps, else the profiler's, else repeated sequences of kernels, else the whole trace."""
    marks = trace.marks()
    missed = None
    if pattern is not None:
        compiled = re.compile(pattern)
        chosen = stepping.annotated(marks, compiled) or stepping.annotated(_named(trace, compiled), compiled)
        if chosen is not None:
            return chosen
        missed = f"no range has a name in which {pattern!r} is found"
    steps = stepping.marked(marks)
    if steps.method is None:
        steps = stepping.sequenced(trace.work(), trace.launches()) or stepping.window(
            "the trace marks no steps, and its kernels repeat in no clear sequence"
        )
    return steps.because(missed)


def _named(trace: Trace, pattern: re.Pattern[str]) -> pl.DataFrame:
    """Host events of any kind whose name the pattern finds."""
    columns = ("name", "ts_ns", "dur_ns", "pid", "tid")
    frames = []
    for rows in trace.rows():
        host = rows.filter(~on_device_timeline(), pl.col("category") != MEMORY).select(columns)
        names = [name for name in host.get_column("name").unique() if pattern.search(name)]
        frames.append(host.filter(pl.col("name").is_in(names)))
    return pl.concat(frames) if frames else trace.marks().select(columns)


def _write(target: IO[bytes], run_id: str, trace: Trace, links: Links, device: DeviceAudit, counts: _Counts) -> None:
    """Link the events window by window while they are written: no more than some windows are in memory."""

    def windows(
        columns: list[str] | None, predicate: pl.Expr | None, rows: int | None, batch: int | None
    ) -> Iterator[pl.DataFrame]:
        for window in linked(trace, links, device):
            counts.rows += window.height
            yield window.select(pl.lit(run_id).alias("run_id"), *EVENTS.names()).select(columns or pl.all())

    schema = pl.Schema([("run_id", pl.String), *EVENTS.items()])
    register_io_source(windows, schema=schema).sink_parquet(target, compression="zstd", compression_level=1)


def _audit(trace: Trace, device: DeviceAudit, kept: int) -> dict[str, Any]:
    lost = [{"offset": each.offset, "bytes": each.length, "why": each.why} for each in trace.lost]
    names = trace.marks().get_column("name").unique()
    told = {
        "events": trace.events, "complete": trace.complete, "kept": kept,
        "set_aside": dict(trace.set_aside), "repaired": dict(trace.repaired),
        "lost_events": trace.lost_events, "lost_bytes": trace.lost_bytes, "lost": lost,
        "damage": trace.damage, "truncated": trace.damage is not None or trace.cut_off,
        **device.facts(),
        "kernel_names": trace.work().filter("is_kernel").get_column("code").n_unique(),
        "profiler_steps": sum(STEP_NAME.fullmatch(name) is not None for name in names),
    }  # fmt: skip
    return {"line": auditing.line(told), **told}


def _file_facts(path: Path, file_bytes: int, trace: Trace, step: str | None) -> dict[str, Any]:
    return {
        "file": _encodable(path.name),
        "path": _encodable(str(path)),
        "file_bytes": file_bytes,
        "json_bytes": trace.json_bytes,
        "content": trace.digest,
        "step": step,
        **({"nsys": trace.document["nsys"]} if "nsys" in trace.document else {}),
    }


def _ranks(document: dict[str, Any], path: Path) -> dict[str, int]:
    """Rank and world size as the trace says, else the rank in the file's name."""
    told = document.get("distributedInfo")
    told = told if isinstance(told, dict) else {}
    named = _RANK.search(path.name)
    rank = single.integer(told.get("rank"))
    ranks = {
        "rank": int(named[1]) if rank is None and named else rank,
        "world_size": single.integer(told.get("world_size")),
    }
    return {name: number for name, number in ranks.items() if number is not None}


def _environment(document: dict[str, Any], told: dict[str, Any]) -> dict[str, Any]:
    """What a trace says of where it was taken; what it does not say is unknown."""
    device = _device(document, told)
    major, minor = (single.integer(device.get(name)) for name in ("computeMajor", "computeMinor"))
    name = device.get("name")
    columns: dict[str, Any] = dict.fromkeys(tables.ENVIRONMENTS)
    columns |= {
        "device": "cuda" if device or told["device_events"] else "cpu",
        "device_name": _encodable(name) if isinstance(name, str) and name else None,
        "compute_capability": None if major is None or minor is None else f"{major}.{minor}",
        "driver": _version(document, "cuda_driver_version", "hip_driver_version"),
        "cuda_runtime": _version(document, "cuda_runtime_version", "hip_runtime_version"),
        "multiprocessors": single.integer(device.get("numSms")),
        "threads_per_multiprocessor": single.integer(device.get("maxThreadsPerMultiprocessor")),
        "registers_per_multiprocessor": single.integer(device.get("regsPerMultiprocessor")),
        "shared_memory_per_multiprocessor_bytes": single.integer(device.get("sharedMemPerMultiprocessor")),
        "memory_bytes": single.integer(device.get("totalGlobalMem")),
    }
    text = json.dumps(columns, sort_keys=True)
    return {**columns, "environment_id": hashlib.sha256(f"import {text}".encode()).hexdigest()[:12]}


def _device(document: dict[str, Any], told: dict[str, Any]) -> dict[str, Any]:
    """Properties of the device that was busy most, as the trace lists them; of 2021 under another name."""
    listed = document.get("deviceProperties") or document.get("computeProperties")
    known = [each for each in listed if isinstance(each, dict)] if isinstance(listed, list) else []
    busiest = max(told["busy_ns"], key=told["busy_ns"].get, default=None)
    return next((each for each in known if str(each.get("id")) == busiest), known[0] if known else {})


def _version(document: dict[str, Any], *names: str) -> str | None:
    values = (document.get(name) for name in names)
    return next((_encodable(str(each)) for each in values if type(each) in (int, str)), None)


def _row(
    path: Path, run_id: str, sweep_id: str, trace: Trace, environment_id: str, started_at: datetime,
    facts: dict[str, Any],
) -> dict[str, Any]:  # fmt: skip
    return {
        "run_id": run_id, "point_id": _point_id(trace), "sweep_id": sweep_id, "environment_id": environment_id,
        "source": "import", "workload": stem(path), "params": "{}", "status": "ok", "started_at": started_at,
        "facts": json.dumps(facts, sort_keys=True),
    }  # fmt: skip
