"""Two profiled runs side by side: by kind of step, by operator, by kernel (sql/compare/).

All times are the trace's, so the host's hold the profiler's own cost; it is alike on both sides where both run the same
operations, and is not taken off.
"""

import io
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any

import duckdb

from analysis.comparison import words
from analysis.naming import PointError, Run, named_run
from analysis.output import printable, short, write_rows, write_table, write_text
from analysis.store import SQL
from analysis.trace import why_no_events

Row = tuple[Any, ...]

SHOWN = 15
"""Rows of each table, where all three are shown."""
NAME_LETTERS = 60
ALIKE = "no clear difference"

RELATIONS = (
    "compared_runs",
    "_compared_events",
    "compared_steps",
    "compared_operators",
    "compared_kernels",
    "comparison",
)
"""Relations of sql/compare/, each after those it reads."""

_NAME = f"CASE WHEN length(name) > {NAME_LETTERS} THEN name[:{NAME_LETTERS - 20}] || ' .. ' || name[-16:] ELSE name END"
TABLES = {
    "step": (
        "steps by kind (medians; low to high: half of the steps)",
        "name AS kind, quantity, a_calls AS a_steps, b_calls AS b_steps, a_us, b_us, ratio, change_us, "
        "a_low_us, a_high_us, b_low_us, b_high_us",
    ),
    "operator": (
        "operators (a step: calls; host: self time, device: what they launched)",
        f"{_NAME} AS operator, shapes, quantity, a_calls, b_calls, a_us, b_us, ratio, change_us",
    ),
    "kernel": (
        "kernels (a step: calls, time; call: its median)",
        f"{_NAME} AS kernel, a_calls, b_calls, a_call_us, b_call_us, a_us, b_us, ratio, change_us",
    ),
}
"""What a table of each kind is called, and its columns."""
ORDER = "abs(change_us) DESC NULLS LAST, name, shapes NULLS FIRST, quantity"


def prepare(connection: duckdb.DuckDBPyConnection, a: str, b: str, shapes: bool) -> tuple[Run, Run]:
    """Make the relations of sql/compare/ speak of the runs that `a` and `b` name (analysis/naming.py).

    shapes: operators of one name are told apart by their input shapes.

    Raises:
        PointError: a side names no point or several, or its run has no events.
    """
    runs = named_run(connection, a), named_run(connection, b)
    for run in runs:
        if not _value(connection, "SELECT count(*) FROM events WHERE run_id = ?", [run.run_id]):
            raise PointError(why_no_events(connection, run))
    for name, value in (("a", runs[0].run_id), ("b", runs[1].run_id), ("shapes", shapes)):
        connection.execute(f"SET VARIABLE compared_{name} = ?", [value])
    for name in RELATIONS:
        connection.execute((SQL / "compare" / f"{name}.sql").read_text(encoding="utf-8"))
    return runs


def write(connection: duckdb.DuckDBPyConnection, by: str | None, format: str, path: Path | None) -> None:
    """Write the comparison by `by` (a key of TABLES), or by all: as tables of SHOWN rows, else whole, with a column
    `by`."""
    if format == "table":
        _write_tables(connection, by, path)
        return
    chosen = f"WHERE \"by\" = '{by}'" if by else ""
    order = "list_position(['step', 'operator', 'kernel'], \"by\")"
    write_rows(connection, f"FROM comparison {chosen} ORDER BY {order}, {ORDER}", format, path)


def _write_tables(connection: duckdb.DuckDBPyConnection, by: str | None, path: Path | None) -> None:
    limit = None if by else SHOWN
    kinds = [by] if by else list(TABLES)
    if path is None:
        for each in kinds:
            _write_table(connection, each, limit, sys.stdout)
        return
    text = io.StringIO()
    for each in kinds:
        _write_table(connection, each, limit, text)
    write_text(text.getvalue(), path)


def _write_table(connection: duckdb.DuckDBPyConnection, by: str, limit: int | None, stream: IO[str]) -> None:
    title, columns = TABLES[by]
    result = connection.execute(f"SELECT {columns} FROM comparison WHERE \"by\" = '{by}' ORDER BY {ORDER}")
    names, rows = [column[0] for column in result.description or ()], result.fetchall()
    stream.write(f"\n{title}{'' if rows else ': none'}\n")
    if rows:
        write_table(*_without_empty_columns(names, rows[:limit]), stream)
    if limit is not None and len(rows) > limit:
        stream.write(f"and {len(rows) - limit} more: --by {by} shows all\n")


def _without_empty_columns(names: Sequence[str], rows: Sequence[Row]) -> tuple[list[str], Iterator[Row]]:
    """What is NULL in every row only widens a table."""
    kept = [place for place in range(len(names)) if any(row[place] is not None for row in rows)]
    return [names[place] for place in kept], (tuple(row[place] for place in kept) for row in rows)


# --- in words


def in_words(connection: duckdb.DuckDBPyConnection, runs: tuple[Run, Run]) -> list[str]:
    """Which side is faster a step, on the device and on the host, by how much, and what that is made of; then who is
    who."""
    told = [
        _told(connection, "Device", "busy", "kernel", "device"),
        _told(connection, "Host under the profiler", "host", "operator", "host"),
        *_unprofiled(connection, runs),
    ]
    return [" ".join(told), *(f"{side} = run {run.run_id}: {run.label}" for side, run in zip("ab", runs, strict=True))]


def _told(connection: duckdb.DuckDBPyConnection, subject: str, quantity: str, by: str, of: str) -> str:
    row = _largest_kind(connection, quantity)
    if row is None:
        return f"{subject}: no kind of step has a {quantity} time on both sides."
    kind, kinds, fewest, *times = row
    where = f"in steps of kind {printable(kind)}, " if kinds > 1 else ""
    compared = _faster(*times)
    part = "" if compared == ALIKE else _contributor(connection, by, of, times)
    alone = ", with a single step to judge by" if fewest == 1 else ""
    return f"{subject}: {compared} ({where}{quantity} {_beside(times)} a step{alone}){part}."


def _largest_kind(connection: duckdb.DuckDBPyConnection, quantity: str) -> tuple[Any, ...] | None:
    """Of the kinds that both sides have, the one that takes most time: its name, how many kinds there are, the steps of
    the side with fewer, and median and quartiles of a and b."""
    return connection.execute(
        "SELECT kind, (SELECT count(DISTINCT kind) FROM compared_steps), least(a_steps, b_steps), "
        "a_us, a_low_us, a_high_us, b_us, b_low_us, b_high_us FROM compared_steps "
        "WHERE quantity = ? AND a_us > 0 AND b_us > 0 ORDER BY a_us * a_steps DESC, kind LIMIT 1",
        [quantity],
    ).fetchone()


def _faster(a: float, a_low: float, a_high: float, b: float, b_low: float, b_high: float) -> str:
    """Which side is faster; where the ranges overlap, neither can be said to be."""
    if a_low <= b_high and b_low <= a_high:
        return ALIKE
    faster, times = ("b", a / b) if b < a else ("a", b / a)
    return f"{faster} is {short(times)}x as fast"


def _beside(times: Sequence[float]) -> str:
    return f"{words.value(times[0], 'us')} in a, {words.value(times[3], 'us')} in b"


def _contributor(connection: duckdb.DuckDBPyConnection, by: str, quantity: str, times: Sequence[float]) -> str:
    """The kernel or operator whose time changed most in the direction of the whole."""
    sign = "DESC" if times[3] > times[0] else "ASC"
    row = connection.execute(
        f'SELECT {_NAME}, change_us FROM comparison WHERE "by" = ? AND quantity = ? AND change_us <> 0 '
        f"ORDER BY change_us {sign}, name LIMIT 1",
        [by, quantity],
    ).fetchone()
    if row is None or (row[1] > 0) != (times[3] > times[0]):
        return ""
    return (
        f"; the largest part is {by} {printable(row[0])} ({'+' if row[1] > 0 else '-'}{words.value(abs(row[1]), 'us')})"
    )


def _unprofiled(connection: duckdb.DuckDBPyConnection, runs: tuple[Run, Run]) -> list[str]:
    """What swept runs know better: their times without a profiler."""
    found: list[float | None] = []
    for run in runs:
        query = "SELECT wall_us, wall_us_low, wall_us_high FROM stg_runs WHERE run_id = ?"
        found += connection.execute(query, [run.run_id]).fetchall()[0]
    times = [time for time in found if time is not None]
    if len(times) < len(found):
        return []
    return [f"Measured without a profiler: {_faster(*times)} (wall {_beside(times)})."]


def _value(connection: duckdb.DuckDBPyConnection, query: str, values: Sequence[object]) -> Any:
    return connection.execute(query, values).fetchall()[0][0]
