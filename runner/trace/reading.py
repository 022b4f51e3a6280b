"""A trace file -> its linked events, in two passes that hold little in memory at any size of the file.

First every chunk becomes rows, in the order of their start, in memory or in a file of its own. Then windows of time go
over all chunks, and each window's rows are linked (`link`) with what the windows before have left open.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, Protocol

import polars as pl

from runner.trace import single
from runner.trace.cutting import Chunk, Cutter
from runner.trace.decode import End
from runner.trace.events import TraceError
from runner.trace.kinds import seems
from runner.trace.pieces import SAMPLE_ROWS, Piece, in_memory
from runner.trace.salvage import Lost
from runner.trace.source import Source

WINDOW_ROWS = 2**16
NARROW = ("event_id", "category", "ts_ns", "dur_ns", "pid", "tid", "correlation", "device", "stream", "external")
"""Columns that links are made from."""
SHOWN_LOSSES = 20
MOST_HELD = 16
"""Chunks whose rows are held until they are finished; those beyond are read twice."""
MOST_LOSSES = 100_000
"""A file with more damaged pieces is given up: finding where each ends takes its time."""
LARGEST_BASE_NS = single.LONGEST_US * 1000

Progress = Callable[[int], None]
"""Told how many bytes of the file have been read."""


class Decoder(Protocol):
    """Turns chunks into rows, at once or by and by. ahead: how many chunks it can take before the first is done."""

    ahead: int

    def submit(self, chunk: Chunk) -> Future[Piece]:
        """The rows of a chunk, to come."""


class Inline:
    """Decodes in this process and keeps the rows in memory."""

    ahead = 1

    def submit(self, chunk: Chunk) -> Future[Piece]:
        """The rows of a chunk, done when this returns."""
        future: Future[Piece] = Future()
        future.set_result(in_memory(chunk.text, chunk.final))
        return future


@dataclass(frozen=True, slots=True)
class Window:
    """Rows that start within some time, of the columns that links are made from, and `part`, the chunk of each.

    finished: chunks whose last row lies in this window.
    """

    rows: pl.DataFrame
    finished: list[int]


@dataclass(slots=True)
class Trace:
    """A trace after the first pass: its rows, what stands around its events, and what became of them.

    lost: places in the JSON text of the file, the first of lost_events. cut_off: the last event is not whole. damage:
    why the text ended early, or None.
    """

    parts: list[tuple[Piece, int]] = field(default_factory=list)
    document: dict[str, Any] = field(default_factory=dict)
    events: int = 0
    complete: int = 0
    rows_read: int = 0
    begun: int = 0
    set_aside: Counter[str] = field(default_factory=Counter)
    repaired: Counter[str] = field(default_factory=Counter)
    lost: list[Lost] = field(default_factory=list)
    lost_events: int = 0
    lost_bytes: int = 0
    begins: dict[int, tuple[int, str | None]] = field(default_factory=dict)
    cut_off: bool = False
    damage: str | None = None
    digest: str = ""
    json_bytes: int = 0
    _held: dict[int, pl.DataFrame] = field(default_factory=dict)
    """Rows that were read for a window and are needed again when their chunk is finished."""

    @property
    def base_ns(self) -> int:
        """What is added to every time of the file; 0 where it says none that can be read."""
        base = single.integer(self.document.get("baseTimeNanoseconds"))
        return base if base is not None and abs(base) <= LARGEST_BASE_NS else 0

    def rows(self) -> Iterator[pl.DataFrame]:
        """All complete rows, chunk by chunk."""
        yield from (self.part(number) for number, (piece, _) in enumerate(self.parts) if piece.height)

    def part(self, number: int) -> pl.DataFrame:
        """The complete rows of one chunk."""
        piece, first_id = self.parts[number]
        rows = self._held.pop(number) if number in self._held else piece.rows()
        return self._ended(self._of_file(rows, first_id))

    def begun_rows(self) -> Iterator[pl.DataFrame]:
        """event_id, ts_ns, pid, tid of the rows that only begin, chunk by chunk."""
        for piece, first_id in self.parts:
            if piece.decoded.begun:
                rows = self._of_file(piece.rows(), first_id).filter(pl.col("dur_ns").is_null())
                yield rows.select("event_id", "ts_ns", "pid", "tid")

    def launches(self) -> pl.DataFrame:
        """The first call with each correlation, in the order of the file: correlation, launch_id, launch_ns."""
        calls = [
            piece.index.launches.with_columns(pl.col("launch_id") + first_id, pl.col("launch_ns") + self.base_ns)
            for piece, first_id in self.parts
        ]
        return pl.concat(calls).sort("launch_id").unique("correlation", keep="first", maintain_order=True)

    def marks(self) -> pl.DataFrame:
        """The host's annotations and profiler steps: name, ts_ns, dur_ns, pid, tid, external."""
        return pl.concat(piece.index.marks for piece, _ in self.parts).with_columns(pl.col("ts_ns") + self.base_ns)

    def work(self) -> pl.DataFrame:
        """The device's work by start: code of the name, ts_ns, dur_ns, device, correlation."""
        work = pl.concat(piece.index.work for piece, _ in self.parts).with_columns(pl.col("ts_ns") + self.base_ns)
        return work.sort("ts_ns", "dur_ns")

    def windows(self, rows: int = WINDOW_ROWS) -> Iterator[Window]:
        """All complete rows in windows of time, each about so many and behind the one before."""
        starts = sorted(ns for piece, _ in self.parts for ns in piece.samples_ns)
        edges = sorted(set(starts[rows // SAMPLE_ROWS :: rows // SAMPLE_ROWS]))
        unfinished = {number for number, (piece, _) in enumerate(self.parts) if piece.height}
        for low, high in zip([None, *edges], [*edges, None], strict=True):
            chosen = {number for number in unfinished if high is None or self.parts[number][0].start_ns < high}
            window = [self._of_window(number, low, high) for number in sorted(chosen)]
            finished = {number for number in chosen if high is None or self.parts[number][0].end_ns < high}
            unfinished -= finished
            if window:
                yield Window(self._ended(pl.concat(window)), sorted(finished))

    def _of_window(self, number: int, low: int | None, high: int | None) -> pl.DataFrame:
        piece, first_id = self.parts[number]
        if number not in self._held and len(self._held) < MOST_HELD:
            self._held[number] = piece.rows()
        held = self._held.get(number)
        narrow = piece.rows(NARROW) if held is None else held.select(NARROW)
        return self._of_file(piece.between(low, high, narrow), first_id).with_columns(
            part=pl.lit(number, dtype=pl.Int32)
        )

    def _of_file(self, rows: pl.DataFrame, first_id: int) -> pl.DataFrame:
        """Rows of a chunk as rows of the file."""
        return rows.with_columns(pl.col("event_id") + first_id, pl.col("ts_ns") + self.base_ns)

    def _ended(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Give the rows that only begin their duration, and the arguments of their end; leave out those without one."""
        if not rows.get_column("dur_ns").null_count():
            return rows
        pairs = [(begin, dur_ns, args) for begin, (dur_ns, args) in self.begins.items()]
        ends = pl.DataFrame(pairs, schema={"event_id": pl.Int64, "ended_ns": pl.Int64, "more": pl.String}, orient="row")
        joined = rows.join(ends, on="event_id", how="left").with_columns(pl.coalesce("dur_ns", "ended_ns"))
        if "args" in rows.columns:
            both = pl.col("args").str.head(-1) + ", " + pl.col("more").str.slice(1)
            joined = joined.with_columns(args=pl.coalesce(both, "args", "more"))
        return joined.drop_nulls("dur_ns").drop("ended_ns", "more")


def read(source: Source, decoder: Decoder, progress: Progress = lambda _: None) -> Trace:
    """The first pass: all rows of a trace, and its audit. Raises TraceError: the file is no trace."""
    cutter = Cutter(source)
    trace = Trace(document=cutter.header)
    ends: list[tuple[int, End]] = []
    for chunk, piece in _pieces(cutter, decoder):
        _add(trace, ends, chunk, piece)
        progress(source.packed_bytes)
        if trace.lost_events > MOST_LOSSES:
            cutter.give_up(f"more than {MOST_LOSSES:,} pieces are damaged, and what follows is not read")
            break
    trace.document = {**trace.document, **cutter.trailer()}
    trace.repaired += cutter.repaired
    trace.damage, trace.digest, trace.json_bytes = source.damage or cutter.damage, source.digest, source.json_bytes
    if not trace.events and trace.damage:
        raise TraceError(f"it holds no whole event: {trace.damage}")
    _pair(trace, ends)
    return trace


# -- pieces ------------------------------------------------------------------------------------------------------------


def _pieces(cutter: Cutter, decoder: Decoder) -> Iterator[tuple[Chunk, Piece]]:
    """Each chunk with its rows, in order. What one leaves undecided is read again in front of the next."""
    waiting: deque[tuple[Chunk, Future[Piece]]] = deque()
    while True:
        if len(waiting) < decoder.ahead and (chunk := cutter.next()):
            waiting.append((chunk, decoder.submit(chunk)))
            if len(waiting) < decoder.ahead and not waiting[0][1].done():
                continue
        if not waiting:
            return
        chunk, future = waiting.popleft()
        piece = future.result()
        if piece.decoded.closed_at is not None:
            behind = [chunk.text[piece.decoded.closed_at + 1 :]]
            behind += [part for other, _ in waiting for part in (other.lead, other.text)]
            cutter.close(b"".join(behind))
            waiting.clear()
        elif piece.decoded.rest and not chunk.final:
            following = waiting.popleft()[0] if waiting else cutter.next()
            if following:
                joined = following.behind(piece.decoded.rest)
                waiting.appendleft((joined, decoder.submit(joined)))
        yield chunk, piece


def _add(trace: Trace, ends: list[tuple[int, End]], chunk: Chunk, piece: Piece) -> None:
    decoded = piece.decoded
    if not trace.events and decoded.events and decoded.set_aside["no object"] == decoded.events:
        raise TraceError(f"it holds no events: it seems to be {seems(b'[' + chunk.text[: 2**16])}")
    trace.parts.append((piece, trace.rows_read))
    ends += [(trace.rows_read, end) for end in decoded.ends]
    trace.events += decoded.events
    trace.complete += decoded.complete
    trace.rows_read += piece.height
    trace.begun += decoded.begun
    trace.set_aside += decoded.set_aside
    trace.repaired += decoded.repaired
    trace.lost_events += len(decoded.lost)
    trace.lost_bytes += sum(lost.length for lost in decoded.lost)
    shown = decoded.lost[: max(0, SHOWN_LOSSES - len(trace.lost))]
    trace.lost += [Lost(lost.offset + chunk.offset, lost.length, lost.why) for lost in shown]
    trace.cut_off |= any(lost.why == "cut off" for lost in decoded.lost)
    decoded.lost.clear()


def _pair(trace: Trace, ends: list[tuple[int, End]]) -> None:
    """Match ends with begins: each ends what began last on its thread and is still open, as the format says."""
    if not trace.begun:
        trace.set_aside += Counter({"end without begin": len(ends)})
        return
    begun = [row for rows in trace.begun_rows() for row in rows.iter_rows()]
    marks: list[tuple[int, int, int | None, tuple[str, str], str | None]]
    marks = [(ts_ns, 2 * event_id, event_id, (pid, tid), None) for event_id, ts_ns, pid, tid in begun]
    marks += [
        (end.ts_ns + trace.base_ns, 2 * (first_id + end.place) - 1, None, (end.pid, end.tid), end.args)
        for first_id, end in ends
    ]
    still_open: dict[tuple[str, str], list[tuple[int, int]]] = {}
    for ts_ns, _, event_id, lane, args in sorted(marks, key=lambda mark: mark[:2]):
        stack = still_open.setdefault(lane, [])
        if event_id is not None:
            stack.append((event_id, ts_ns))
        elif stack:
            begin, start_ns = stack.pop()
            trace.begins[begin] = (ts_ns - start_ns, args)
        else:
            trace.set_aside["end without begin"] += 1
    trace.set_aside["begin without end"] += len(begun) - len(trace.begins)
    trace.set_aside = +trace.set_aside
