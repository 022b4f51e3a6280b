"""Back again: the events of a run as a Chrome trace that Perfetto opens, and that imports as the same events.

The chain is `export`: one run -> a header -> rows of the timeline, events, arrows, each line made by DuckDB
(sql/trace/) -> a file. Lines are streamed, so that memory does not grow with the run.

Left out, since the store does not hold it: the file's own metadata, flows, counters and all instants but those of
allocators.
"""

import gzip
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import duckdb

from analysis.naming import PointError, Run, all_runs
from analysis.output import whole
from analysis.store import SQL

FOLDER = Path("outputs/traces")
LINES_AT_A_TIME = 20_000
SORTED_AT_A_TIME = 100_000
"""Events put in order at a time: sorting a whole run would hold all of it."""
GZIP_LEVEL = 3
"""Twice as fast as the default level, for a tenth more bytes."""
DEVICES_FROM = 5_000_000
"""Kineto's place of the first device, below every process of the host."""

PROPERTIES = {
    "name": "device_name",
    "totalGlobalMem": "memory_bytes",
    "numSms": "multiprocessors",
    "maxThreadsPerMultiprocessor": "threads_per_multiprocessor",
    "regsPerMultiprocessor": "registers_per_multiprocessor",
    "sharedMemPerMultiprocessor": "shared_memory_per_multiprocessor_bytes",
}
"""Kineto's properties of a device, and the columns of `environments` that hold them."""


def default_path(run: Run) -> Path:
    """Where a trace goes that nobody has named a file for."""
    return FOLDER / f"{_plain_name(run.workload)}_{_plain_name(run.run_id)}.json.gz"


def export(connection: duckdb.DuckDBPyConnection, run: Run, path: Path) -> int:
    """Write the events of `run` to `path` (gzip where its name ends with .gz); the file appears whole or not at all.

    Returns the number of events.

    Raises:
        PointError: the run has no events; the message says why.
        OutputError: the file cannot be written.
    """
    events, base_ns = _prepare(connection, run)
    with _text_file(path) as stream:
        stream.write(_header(connection, run, base_ns))
        for number, line in enumerate(_lines(connection)):
            stream.write(("\n" if number == 0 else ",\n") + line)
        stream.write("\n]}\n")
    return events


def span_of(connection: duckdb.DuckDBPyConnection, run: Run, event_id: int) -> tuple[int, int]:
    """The part of the run's exported trace to look at for one event: the event, and three times its length before and
    behind it; nanoseconds from the first event of the run.

    Raises:
        PointError: the run has no such event.
    """
    rows = connection.execute(
        "SELECT ts_ns - (SELECT min(ts_ns) FROM events WHERE run_id = ?), greatest(dur_ns, 1000) FROM events "
        "WHERE run_id = ? AND event_id = ?",
        [run.run_id, run.run_id, event_id],
    ).fetchall()
    if not rows:
        raise PointError(f"run {run.run_id} ({run.label}) has no event {event_id}")
    start_ns, dur_ns = rows[0]
    return max(0, start_ns - 3 * dur_ns), start_ns + 4 * dur_ns


def _prepare(connection: duckdb.DuckDBPyConnection, run: Run) -> tuple[int, int]:
    """Make the relations of sql/trace/ speak of `run`; number of its events and their first nanosecond."""
    counted = "SELECT count(*), min(ts_ns) FROM events WHERE run_id = ?"
    events, base_ns = connection.execute(counted, [run.run_id]).fetchall()[0]
    if not events:
        raise PointError(why_no_events(connection, run))
    connection.execute("SET VARIABLE trace_run = ?", [run.run_id])
    connection.execute("SET VARIABLE trace_base_ns = ?::BIGINT", [base_ns])
    for name in ("_trace_macros", "trace_rows", "trace_lines", "trace_arrows"):
        connection.execute((SQL / "trace" / f"{name}.sql").read_text(encoding="utf-8"))
    return events, base_ns


def why_no_events(connection: duckdb.DuckDBPyConnection, run: Run) -> str:
    """One sentence: why the store has no events of `run`, and which earlier run of the point has some."""
    why = run.reason or "it was measured without a profile"
    state = "" if run.status in (None, "ok") else f" {run.status}:"
    earlier = [each.run_id for each in all_runs(connection) if each.point_id == run.point_id]
    found = connection.execute(
        "SELECT max(run_id) FROM events WHERE list_contains(?::VARCHAR[], run_id)", [earlier]
    ).fetchall()[0][0]
    cure = f"; its run {found} has some" if found else ""
    return f"run {run.run_id} ({run.label}) has no events:{state} {why}{cure}"


@contextmanager
def _text_file(path: Path) -> Iterator[IO[str]]:
    with whole(path) as draft:
        if path.suffix == ".gz":
            with gzip.open(draft, "wt", encoding="utf-8", compresslevel=GZIP_LEVEL, newline="") as stream:
                yield stream
        else:
            with draft.open("w", encoding="utf-8", newline="") as stream:
                yield stream


# --- run -> lines


def _header(connection: duckdb.DuckDBPyConnection, run: Run, base_ns: int) -> str:
    """The file up to its events: all that readers of today's layout look for."""
    fields: dict[str, Any] = {"schemaVersion": 1, "deviceProperties": _devices(connection, run)}
    if "rank" in run.keys:
        fields["distributedInfo"] = {"rank": int(run.keys["rank"])}
        if "world_size" in run.keys:
            fields["distributedInfo"]["world_size"] = int(run.keys["world_size"])
    fields |= {"displayTimeUnit": "ms", "baseTimeNanoseconds": base_ns}
    return json.dumps(fields, ensure_ascii=False)[:-1] + ', "traceEvents": ['


def _devices(connection: duckdb.DuckDBPyConnection, run: Run) -> list[dict[str, Any]]:
    """Kineto's properties of every device that worked, as far as the environment knows them."""
    columns = ", ".join(PROPERTIES.values())
    rows = connection.execute(
        f"SELECT {columns}, compute_capability FROM environments WHERE environment_id = ?", [run.environment_id]
    ).fetchall()
    *values, capability = rows[0] if rows else [None] * (len(PROPERTIES) + 1)
    known = {key: value for key, value in zip(PROPERTIES, values, strict=True) if value is not None}
    major, dot, minor = (capability or "").partition(".")
    if dot and major.isdecimal() and minor.isdecimal():
        known |= {"computeMajor": int(major), "computeMinor": int(minor)}
    numbers = connection.execute(
        "SELECT DISTINCT device FROM events WHERE run_id = ? AND is_device AND device IS NOT NULL ORDER BY 1",
        [run.run_id],
    ).fetchall()
    return [{"id": number, **known} for (number,) in numbers]


def _lines(connection: duckdb.DuckDBPyConnection) -> Iterator[str]:
    """JSON objects: what the timeline's rows are called, every event, every arrow (its ends need their events)."""
    yield from _row_lines(connection)
    parts = connection.execute(f"SELECT DISTINCT event_id // {SORTED_AT_A_TIME} FROM trace_lines ORDER BY 1").fetchall()
    for (part,) in parts:
        first = part * SORTED_AT_A_TIME
        chosen = f"WHERE event_id >= {first} AND event_id < {first + SORTED_AT_A_TIME}"
        yield from _batches(connection, f"SELECT line FROM trace_lines {chosen} ORDER BY event_id")
    yield from _batches(connection, "SELECT line FROM trace_arrows")


def _batches(connection: duckdb.DuckDBPyConnection, query: str) -> Iterator[str]:
    result = connection.execute(query)
    while batch := result.fetchmany(LINES_AT_A_TIME):
        yield ",\n".join(row[0] for row in batch)


def _row_lines(connection: duckdb.DuckDBPyConnection) -> Iterator[str]:
    rows = connection.execute(
        "SELECT pid, pid_json, tid, tid_json, is_device, device, stream, process_place, row_place FROM trace_rows "
        "ORDER BY process_place, row_place"
    ).fetchall()
    for pid, pid_json, tid, tid_json, is_device, device, stream, process_place, row_place in rows:
        if row_place == 1:
            name, label = (f"device {device}", f"GPU {device}") if is_device else (f"host {pid}", "CPU")
            place = process_place + (DEVICES_FROM if is_device else 0)
            yield _named("process_name", pid_json, "0", {"name": name})
            yield _named("process_labels", pid_json, "0", {"labels": label})
            yield _named("process_sort_index", pid_json, "0", {"sort_index": place})
        name = f"thread {tid}" if stream is None else f"stream {stream}"
        yield _named("thread_name", pid_json, tid_json, {"name": name})
        yield _named("thread_sort_index", pid_json, tid_json, {"sort_index": row_place})


def _named(what: str, pid_json: str, tid_json: str, args: dict[str, Any]) -> str:
    told = json.dumps(args, ensure_ascii=False)
    return f'{{"ph": "M", "name": "{what}", "pid": {pid_json}, "tid": {tid_json}, "ts": 0.000, "args": {told}}}'


def _plain_name(text: str) -> str:
    """A text as part of a file's name, whatever a store holds."""
    return re.sub(r"[^A-Za-z0-9._-]+", "_", text).strip("._")[:80] or "trace"
