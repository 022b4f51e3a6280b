"""The operator table of torch.profiler, from the store (sql/table/): what `key_averages()` says, counted once.

Host times hold the profiler's own cost, as torch's do. Four things are counted otherwise than torch counts them. An
event inside another of its row (a recursion) counts once. The device time of a kernel belongs to the operators around
its launch alone: torch gives it once more to the profiler's own work in these operators (Activity Buffer Request, Lazy
Function Loading). Memory belongs to the thread that moved it: torch gives it to whatever lasts meanwhile, on any
thread. Python functions (with_stack) are no rows.
"""

import io
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any

import duckdb

from analysis.naming import PointError, Run, named_run
from analysis.output import OutputError, printable, write_rows, write_table, write_text
from analysis.store import SQL
from analysis.trace import why_no_events

RELATIONS = ("_table_events", "_table_inner", "operator_table", "table_totals")
"""Relations of sql/table/, each after those it reads."""

LIMIT = 100
"""Rows that the table shows where nobody says how many, as torch's does."""
NAME_LETTERS = 55

_KEYS = {
    "cpu_time": "host_average_us",
    "cpu_time_total": "host_us",
    "self_cpu_time_total": "self_host_us",
    "device_time": "device_average_us",
    "device_time_total": "device_us",
    "self_device_time_total": "self_device_us",
    "cpu_memory_usage": "host_bytes",
    "self_cpu_memory_usage": "self_host_bytes",
    "device_memory_usage": "device_bytes",
    "self_device_memory_usage": "self_device_bytes",
    "count": "calls",
}
SORT_KEYS = _KEYS | {
    key.replace("device", maker): column
    for key, column in _KEYS.items()
    if "device" in key
    for maker in ("cuda", "xpu")
}
"""torch's keys to sort by, the old ones included, and the columns that they mean."""

_NAME = f"CASE WHEN length(name) > {NAME_LETTERS} THEN name[:{NAME_LETTERS - 20}] || ' .. ' || name[-16:] ELSE name END"


SHOWN = {
    "name": _NAME,
    "kind": "kind",
    "self host": "CASE WHEN self_host_us > 0 THEN _time(self_host_us) END",
    "self host %": "CASE WHEN self_host_us > 0 THEN 100 * self_host_frac END",
    "host": "CASE WHEN host_us > 0 THEN _time(host_us) END",
    "host %": "CASE WHEN host_us > 0 THEN 100 * host_frac END",
    "host a call": "CASE WHEN host_us > 0 THEN _time(host_average_us) END",
    "self device": "CASE WHEN self_device_us > 0 THEN _time(self_device_us) END",
    "self device %": "CASE WHEN self_device_us > 0 THEN 100 * self_device_frac END",
    "device": "CASE WHEN device_us > 0 THEN _time(device_us) END",
    "device a call": "CASE WHEN device_us > 0 THEN _time(device_average_us) END",
    **{
        name: f"CASE WHEN {column} <> 0 THEN _bytes({column}) END"
        for name, column in {
            "host memory": "host_bytes",
            "self host memory": "self_host_bytes",
            "device memory": "device_bytes",
            "self device memory": "self_device_bytes",
        }.items()
    },
    "calls": "calls",
    "shapes": "shapes",
    "note": "note",
}
"""Columns of the table that is read by eye, and what stands in them; those without any value are left out."""


def sort_column(key: str | None) -> str | None:
    """The column that a key of torch's means; None for None, the order in which the rows began.

    Raises:
        OutputError: torch has no such key.
    """
    if key is not None and key not in SORT_KEYS:
        raise OutputError(
            f"--sort {printable(key)}: allowed are {', '.join(_KEYS)}, and these with cuda or xpu for device"
        )
    return None if key is None else SORT_KEYS[key]


def prepare(connection: duckdb.DuckDBPyConnection, point: str, shapes: bool) -> Run:
    """Make the relations of sql/table/ speak of the run that `point` names (analysis/naming.py).

    shapes: rows of one name are told apart by their input shapes.

    Raises:
        PointError: it names no point or several, or its run has no events.
    """
    run = named_run(connection, point)
    if not connection.execute("SELECT 1 FROM events WHERE run_id = ? LIMIT 1", [run.run_id]).fetchall():
        raise PointError(why_no_events(connection, run))
    for name, value in (("run", run.run_id), ("shapes", shapes)):
        connection.execute(f"SET VARIABLE table_{name} = ?", [value])
    for name in RELATIONS:
        connection.execute((SQL / "table" / f"{name}.sql").read_text(encoding="utf-8"))
    return run


def write(
    connection: duckdb.DuckDBPyConnection, sort: str | None, limit: int | None, format: str, path: Path | None
) -> None:
    """Write the rows by a key of torch's (None: in the order in which they began), the largest first.

    limit: how many; None for LIMIT of them in a table, else for all. A table ends with the totals, in words.

    Raises:
        OutputError: torch has no such key, or the file cannot be written.
    """
    column = sort_column(sort)
    order = "place" if column is None else f"{column} DESC NULLS LAST, place"
    if format == "table":
        _write_table(connection, order, LIMIT if limit is None else limit, path)
        return
    chosen = "" if limit is None else f"LIMIT {limit:d}"
    write_rows(connection, f"SELECT * EXCLUDE (place) FROM operator_table ORDER BY {order} {chosen}", format, path)


def in_words(connection: duckdb.DuckDBPyConnection) -> list[str]:
    """The two totals, what one would read off them, the verdict of the store, and why the two differ."""
    result = connection.execute(
        "SELECT *, _time(host_us) AS host, _time(device_us) AS device, _number(ratio) AS times FROM table_totals"
    )
    [row] = result.fetchall()
    told = dict(zip([column[0] for column in result.description or ()], row, strict=True))
    lines = [
        f"Self CPU time total: {told['host'] or 'none'}",
        f"Self device time total: {told['device'] or 'none: the trace holds no work of a device'}",
        _reading(told),
        f"The verdict: {told['sentence'] or told['bound'] or 'none (a first call, or nothing was timed)'}",
    ]
    return [*filter(None, lines), *_difference(told)]


# --- pieces


def _reading(told: dict[str, Any]) -> str | None:
    """What one would read off the totals, as the usual guides teach it."""
    if told["ratio"] is None:
        return None
    compared = f"host / device = {told['times']}"
    if told["reading"] is None:
        return f"One would read off these totals: nothing, they are alike and small ({compared})"
    why = "the host's far above the device's" if told["reading"] == "overhead-bound" else "the device's not far below"
    return f"One would read off these totals: {told['reading']} ({compared}: {why})"


def _difference(told: dict[str, Any]) -> list[str]:
    reasons = [f"  - {reason}" for reason in told["reasons"]]
    if told["agrees"] is None:
        return ["Before one trusts that reading:", *reasons] if reasons else []
    if told["agrees"]:
        return ["The two agree" + ("; but" if reasons else "."), *reasons]
    return ["The two differ" + (":" if reasons else ", and the trace does not show why."), *reasons]


def _write_table(connection: duckdb.DuckDBPyConnection, order: str, limit: int, path: Path | None) -> None:
    if path is None:
        _write_rows(connection, order, limit, sys.stdout)
        return
    text = io.StringIO()
    _write_rows(connection, order, limit, text)
    write_text(text.getvalue(), path)


def _write_rows(connection: duckdb.DuckDBPyConnection, order: str, limit: int, stream: IO[str]) -> None:
    columns = ", ".join(f'{shown} AS "{name}"' for name, shown in SHOWN.items())
    result = connection.execute(f"SELECT {columns} FROM operator_table ORDER BY {order}")
    rows = result.fetchall()
    if rows[:limit]:
        write_table(*_filled(list(SHOWN), rows[:limit]), stream)
    if len(rows) > limit:
        stream.write(f"and {len(rows) - limit} more: --limit {len(rows)} shows all\n")
    stream.write("".join(f"{line}\n" for line in ("", *in_words(connection))))


def _filled(names: Sequence[str], rows: Sequence[tuple[Any, ...]]) -> tuple[list[str], Iterator[tuple[Any, ...]]]:
    """What is NULL in every row only widens a table."""
    kept = [place for place in range(len(names)) if any(row[place] is not None for row in rows)]
    return [names[place] for place in kept], (tuple(row[place] for place in kept) for row in rows)
