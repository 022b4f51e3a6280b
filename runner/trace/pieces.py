"""A chunk's rows, in memory or in a file of their own, and the index of them that links are made from."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import polars as pl

from runner.trace.decode import Decoded, decode
from runner.trace.events import ROWS, TraceError, is_annotation, is_device_work, is_runtime, on_device_timeline

SAMPLE_ROWS = 2**12


@dataclass(frozen=True, slots=True)
class Index:
    """The few rows that others refer to, times without the base.

    launches: correlation, launch_id, launch_ns of calls that may have launched work. marks: name, ts_ns, dur_ns, pid,
    tid, external of the host's annotations and profiler steps. work: code (hash of the name), is_kernel, ts_ns, dur_ns,
    device, correlation of device work.
    """

    launches: pl.DataFrame
    marks: pl.DataFrame
    work: pl.DataFrame


@dataclass(frozen=True, slots=True)
class Piece:
    """A decoded chunk.

    height, start_ns, end_ns (the last start), samples_ns (every 4096th start): of its rows; path: the file that holds
    them, None where `decoded` does; columns: those of the file, the others are null.
    """

    decoded: Decoded
    index: Index
    height: int
    start_ns: int
    end_ns: int
    samples_ns: tuple[int, ...]
    path: Path | None = None
    columns: tuple[str, ...] = ()

    def rows(self, columns: Sequence[str] = tuple(ROWS)) -> pl.DataFrame:
        """All rows, or some of their columns."""
        if self.path is None:
            return self.decoded.rows.select(columns)
        there = pl.read_ipc(self.path, columns=[name for name in columns if name in self.columns])
        return pl.concat([ROWS.to_frame().select(columns), there], how="diagonal")

    def between(self, low: int | None, high: int | None, rows: pl.DataFrame) -> pl.DataFrame:
        """Those of its rows that start in [low, high); None is without limit."""
        starts = pl.col("ts_ns")
        if low is not None and self.start_ns < low:
            rows = rows.filter(starts >= low)
        return rows if high is None or self.end_ns < high else rows.filter(starts < high)


def in_memory(text: bytes, final: bool) -> Piece:
    """Decode a chunk and keep its rows."""
    decoded = decode(text, final)
    rows = decoded.rows
    starts = rows.get_column("ts_ns").sort()
    samples = tuple(starts.gather_every(SAMPLE_ROWS).to_list())
    first, last = (samples[0], starts[-1]) if samples else (0, 0)
    return Piece(decoded, _index(rows), len(starts), first, last, samples)


def in_file(text: bytes, final: bool, path: Path) -> Piece:
    """Decode a chunk and write its rows; the piece that returns is small."""
    piece = in_memory(text, final)
    rows = piece.decoded.rows
    columns = [name for name in rows.columns if rows.get_column(name).null_count() < rows.height]
    try:
        rows.select(columns).write_ipc(path)
    except (OSError, pl.exceptions.PolarsError) as error:
        why = str(error).partition("\n")[0]
        raise TraceError(
            f"its rows find no room in the temporary folder {path.parent.parent} ({why}); TMPDIR names another"
        ) from error
    piece.decoded.rows = ROWS.to_frame()
    return replace(piece, path=path, columns=tuple(columns))


def of_file(text_file: Path, offset: int, length: int, checksum: int, final: bool, path: Path) -> Piece:
    """Decode a chunk that lies in a file, and write its rows. checksum: CRC-32 of the text that was cut there."""
    with text_file.open("rb") as file:
        file.seek(offset)
        text = file.read(length)
    if zlib.crc32(text) != checksum:
        raise TraceError("it changed while it was read")
    return in_file(text, final, path)


def _index(rows: pl.DataFrame) -> Index:
    calls = rows.filter(is_runtime() & pl.col("correlation").is_not_null())
    marked = (is_annotation() | pl.col("name").str.starts_with("ProfilerStep#")) & ~on_device_timeline()
    work = rows.filter(is_device_work()).with_columns(
        code=pl.col("name").hash(), is_kernel=pl.col("category") == "kernel"
    )
    return Index(
        calls.select("correlation", launch_id="event_id", launch_ns="ts_ns"),
        rows.filter(marked).select("name", "ts_ns", "dur_ns", "pid", "tid", "external"),
        work.select("code", "is_kernel", "ts_ns", "dur_ns", "device", "correlation"),
    )
