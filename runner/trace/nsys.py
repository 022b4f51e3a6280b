"""SQLite export of Nsight Systems -> the text of the Chrome trace that says the same (docs/nsys.md).

What follows is the chain of every trace: exact times, bounded memory, links, steps and an audit come with it. Nothing
in the file is trusted: it is opened for reading alone, as it lies there, no view or trigger of it is used, and a
column counts only by the type of its values.
"""

from __future__ import annotations

import hashlib
import io
import re
import sqlite3
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO

import msgspec

from runner.trace.events import Event, TraceError
from runner.trace.nsys_rows import TABLES, Context, Row, Table, process_of
from runner.trace.reading import Inline, read
from runner.trace.source import Source
from runner.trace.windows import events_of

MAGIC = b"SQLite format 3\0"
BATCH_ROWS = 2**12
LONGEST_TEXT_BYTES = 2**24
"""A longer text in one cell is refused: no name is that long."""
KNOWN_NAMES = 2**16
"""Names that are kept at hand."""
OTHERS = {
    "COMPOSITE_EVENTS": "sample", "SCHED_EVENTS": "thread switch", "GPU_METRICS": "counter",
    "CUDA_GRAPH_EVENTS": "graph construction", "CUDA_GRAPH_NODE_EVENTS": "graph construction",
    "CUDA_GPU_MEMORY_USAGE_EVENTS": "memory usage", "DIAGNOSTIC_EVENT": "message of the profiler",
    "CUPTI_ACTIVITY_KIND_CUDA_EVENT": "CUDA event",
}  # fmt: skip
"""Tables with events that are not kept: what the audit calls them; others are called by their own name."""
_TIMES = ("start", "timestamp", "rawTimestamp")
_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,60}")
_ENCODER = msgspec.json.Encoder()
_AGAIN = "make it again: nsys export --type sqlite --force-overwrite true -o OUT.sqlite REPORT.nsys-rep"


def is_export(path: Path) -> bool:
    """Whether a file begins as an SQLite database does. Raises OSError."""
    with path.open("rb") as file:
        return file.read(len(MAGIC)) == MAGIC


class Export:
    """An export that is open for reading; a context manager. Raises TraceError: it is none, or it is damaged.

    said: what it says of the program that made it, for the run's row; rows: how many events its known tables hold;
    rows_told: of them already told; set_aside: events that are not kept, by what they are.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self.set_aside: Counter[str] = Counter()
        self.rows_told = 0
        with _reading():
            self._connection = _opened(path)
        try:
            with _reading():
                self._columns = _columns(self._connection)
                self._refuse_foreign()
                self._set_aside_others()
                self.said = self._maker()
                self.rows = sum(self._count(table.name) for table in self._tables())
        except BaseException:
            self._connection.close()
            raise

    def __enter__(self) -> Export:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._connection.close()

    @property
    def digest(self) -> str:
        """SHA-256 of the file, hexadecimal."""
        with self._path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()

    @property
    def told_frac(self) -> float:
        """Which share of its events has been told."""
        return self.rows_told / self.rows if self.rows else 1.0

    def text(self) -> BinaryIO:
        """The Chrome trace, from its first byte to its last; read it once."""
        return io.BufferedReader(_Text(self._pieces()), buffer_size=2**18)

    # -- what it holds -------------------------------------------------------------------------------------------------

    def _refuse_foreign(self) -> None:
        if not any(table.name in self._columns for table in TABLES):
            names = ", ".join(sorted(filter(_PLAIN_NAME.fullmatch, self._columns))[:6]) or "none"
            raise TraceError(
                f"it is an SQLite database without a table of events of Nsight Systems (its tables: {names}); "
                "nsys export --type sqlite makes one from a report"
            )
        if not {"id", "value"} <= self._columns.get("StringIds", set()):
            raise TraceError(f"it lacks the table StringIds, where an export keeps all names; {_AGAIN}")
        for table in self._tables():
            if missing := sorted(set(table.needed) - self._columns[table.name]):
                raise TraceError(f"its table {table.name} lacks {', '.join(missing)}, without which no event is known")

    def _tables(self) -> list[Table]:
        return [table for table in TABLES if table.name in self._columns]

    def _set_aside_others(self) -> None:
        """Count the events of tables that are not read. Names come from the file: odd ones are told as `other`."""
        known = {table.name for table in TABLES}
        for name, columns in self._columns.items():
            if name not in known and columns.intersection(_TIMES) and (rows := self._count(name)):
                self.set_aside[OTHERS.get(name) or (name if _PLAIN_NAME.fullmatch(name) else "other")] += rows

    def _count(self, table: str) -> int:
        (rows,) = self._connection.execute(f"SELECT count(*) FROM {_quoted(table)}").fetchone()
        return int(rows)

    def _maker(self) -> dict[str, str]:
        """Release of Nsight Systems and of its schema, as far as the export says."""
        said: dict[str, str] = {}
        for table in ("EXPORT_META_DATA", "META_DATA_EXPORT"):
            for name, value in self._rows(table, ("name", "value")):
                if name in ("EXPORT_PRODUCT_VERSION", "EXPORT_SCHEMA_VERSION") and isinstance(value, str):
                    said["release" if "PRODUCT" in name else "schema"] = value[:60]
        return said

    # -- the text ------------------------------------------------------------------------------------------------------

    def _pieces(self) -> Iterator[bytes]:
        with _reading():
            yield _ENCODER.encode(self._document())[:-1] + b', "traceEvents": [\n'
            separator = b""
            context = self._context()
            for table in self._tables():
                for batch in self._batches(table):
                    yield separator + b",\n".join(_ENCODER.encode(table.told(row, context)) for row in batch)
                    separator = b",\n"
                    self.rows_told += len(batch)
            yield b"\n]}\n"

    def _document(self) -> dict[str, Any]:
        """What stands round the events: when time began, and the cards."""
        told: dict[str, Any] = {"schemaVersion": 1, "nsys": self.said}
        for (epoch_ns,) in self._rows("TARGET_INFO_SESSION_START_TIME", ("utcEpochNs",)):
            told.setdefault("baseTimeNanoseconds", epoch_ns)
        for name, value in self._rows("TARGET_INFO_SYSTEM_ENV", ("name", "value")):
            if name == "NvDriverVersion" and isinstance(value, str) and value not in ("", "0"):
                told["cuda_driver_version"] = value
        if cards := [_card(row) for row in self._rows("TARGET_INFO_GPU", tuple(_OF_A_CARD))]:
            told["deviceProperties"] = cards
        return {key: value for key, value in told.items() if value is not None}

    def _context(self) -> Context:
        """What rows refer to: names, domains of NVTX, and which card a process means by a number."""
        columns = ("globalTid", "domainId", "text", "textId")
        domains: dict[tuple[object, object], object] = {}
        if "eventType" in self._columns.get("NVTX_EVENTS", set()):
            for thread, domain, text, text_id in self._rows("NVTX_EVENTS", columns, "eventType = 75"):
                domains[process_of(thread), domain] = text if text is not None else self._name(text_id)
        listed = self._rows("TARGET_INFO_CUDA_DEVICE", ("gpuId", "cudaId", "pid"))
        cards: dict[tuple[object, object], object] = {(pid, cuda): gpu for gpu, cuda, pid in listed}
        memory = self._enum("ENUM_CUDA_MEM_KIND")
        return Context(lru_cache(KNOWN_NAMES)(self._name), domains, cards, memory)

    def _name(self, number: object) -> str | None:
        """A text of StringIds, None where there is none."""
        if type(number) is not int:
            return None
        row = self._connection.execute("SELECT value FROM StringIds WHERE id = ? LIMIT 1", (number,)).fetchone()
        return row[0] if row and isinstance(row[0], str) else None

    def _enum(self, table: str) -> dict[object, object]:
        return dict(self._rows(table, ("id", "label")))

    def _batches(self, table: Table) -> Iterator[list[Row]]:
        columns = (*table.needed, *table.optional)
        query = f"SELECT {self._selected(table.name, columns)} FROM {_quoted(table.name)}"
        cursor = self._connection.execute(query)
        while rows := cursor.fetchmany(BATCH_ROWS):
            yield [dict(zip(columns, row, strict=True)) for row in rows]

    def _rows(self, table: str, columns: Sequence[str], where: str = "true") -> Iterator[tuple[Any, ...]]:
        """Rows of a small table; columns that it lacks are None. Nothing where there is no such table."""
        if table in self._columns:
            yield from self._connection.execute(
                f"SELECT {self._selected(table, columns)} FROM {_quoted(table)} WHERE {where} LIMIT 100000"
            )

    def _selected(self, table: str, columns: Sequence[str]) -> str:
        there = self._columns[table]
        return ", ".join(_quoted(name) if name in there else "NULL" for name in columns)


def read_export(path: Path) -> list[Event]:
    """The events of the profiled window that our own worker has recorded, linked, in the order of the export.

    Raises:
        TraceError: the file is no export, or it holds no event.
    """
    with Export(path) as export:
        trace = read(Source(export.text()), Inline())
    return events_of(trace)


# -- pieces ------------------------------------------------------------------------------------------------------------

_OF_A_CARD = {
    "id": "id", "name": "name", "totalMemory": "totalGlobalMem", "computeMajor": "computeMajor",
    "computeMinor": "computeMinor", "smCount": "numSms", "maxRegistersPerSm": "regsPerMultiprocessor",
    "maxShmemPerSm": "sharedMemPerMultiprocessor", "maxWarpsPerSm": "", "threadsPerWarp": "",
}  # fmt: skip
"""Columns of TARGET_INFO_GPU, and what Kineto calls them in a trace's list of devices."""


class _Text(io.RawIOBase):
    """Bytes that are made while they are read."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._rest = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if not self._rest:
            self._rest = memoryview(next(self._pieces, b""))
        length = min(len(buffer), len(self._rest))
        buffer[:length] = self._rest[:length]
        self._rest = self._rest[length:]
        return length


@contextmanager
def _reading() -> Iterator[None]:
    """What SQLite cannot read is said in one sentence."""
    try:
        yield
    except (sqlite3.Error, OverflowError, UnicodeError) as error:  # what SQLite says may quote the damage
        raise TraceError(f"the SQLite database is damaged ({error}); {_AGAIN}") from error


def _opened(path: Path) -> sqlite3.Connection:
    """The database as it lies there: no lock, no journal, no write; none of its expressions may do anything."""
    connection = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro&immutable=1", uri=True, check_same_thread=False)
    connection.text_factory = lambda content: content.decode("utf-8", "replace")
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LONGEST_TEXT_BYTES)
    for pragma in ("trusted_schema = OFF", "cell_size_check = ON", "query_only = ON", "cache_size = -8192"):
        connection.execute(f"PRAGMA {pragma}")
    return connection


def _columns(connection: sqlite3.Connection) -> dict[str, set[str]]:
    """Columns of each ordinary table: views, and tables that a module computes, are none."""
    listed = connection.execute(
        "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%' "
        "AND sql NOT LIKE 'CREATE VIRTUAL%'"
    ).fetchall()
    return {name: {row[1] for row in connection.execute(f"PRAGMA table_info({_quoted(name)})")} for (name,) in listed}


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _card(row: Sequence[Any]) -> dict[str, Any]:
    """A card as Kineto lists it."""
    told = dict(zip(_OF_A_CARD, row, strict=True))
    warps, lanes = told["maxWarpsPerSm"], told["threadsPerWarp"]
    threads = warps * lanes if type(warps) is int and type(lanes) is int and warps * lanes > 0 else None
    named = {kineto: told[column] for column, kineto in _OF_A_CARD.items() if kineto}
    named |= {"maxThreadsPerMultiprocessor": threads}
    return {key: value for key, value in named.items() if value is not None}
