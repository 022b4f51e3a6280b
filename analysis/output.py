"""Print the rows of a query: as a table to read, or as csv, json or parquet for other programs."""

import csv
import json
import math
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import IO, Any

import duckdb
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

BATCH_ROWS = 10_000
FOLDED = 28
"""Characters from which on a column of a drawn table may be folded."""

MISSING = "-"
"""What a table shows for NULL."""

Rows = Iterator[tuple[Any, ...]]


class OutputError(Exception):
    """A result that cannot be written where it was asked for; the message is one sentence with the cure."""


def write_rows(
    connection: duckdb.DuckDBPyConnection,
    query: str,
    format: str,
    path: Path | None,
    metadata: Mapping[str, str] | None = None,
) -> None:
    """Write the result of `query` in `format` (a key of FORMATS, or parquet) to the file `path`, or to stdout for None.

    metadata: what a Parquet file says of itself, by key. A file appears whole or not at all.

    Raises:
        duckdb.Error: the query is wrong.
        OutputError: Parquet was asked for on a terminal, or the file cannot be written.
    """
    if format == "parquet":
        _write_parquet(connection, query, path, metadata or {})
        return
    result = connection.execute(query)
    columns = [column[0] for column in result.description or ()]
    with _text_target(path) as stream:
        FORMATS[format](columns, _rows(result), stream)


def without_empty_columns(connection: duckdb.DuckDBPyConnection, query: str) -> str:
    """A query for the same rows without the columns that are NULL in every row: they only widen a table."""
    connection.execute(f"CREATE OR REPLACE TEMP TABLE shown AS {query}")
    columns = [f'"{row[0]}"' for row in connection.execute("DESCRIBE shown").fetchall()]
    counts = ", ".join(f"count({column})" for column in columns)
    [filled] = connection.execute(f"SELECT {counts} FROM shown").fetchall()
    kept = [column for column, count in zip(columns, filled, strict=True) if count] or columns
    return f"SELECT {', '.join(kept)} FROM shown"


def write_text(text: str, path: Path | None) -> None:
    """Write a text to the file `path`, which appears whole or not at all, or to stdout for None."""
    with _text_target(path) as stream:
        stream.write(text)


def write_table(columns: Sequence[str], rows: Rows, stream: IO[str]) -> None:
    """Write an aligned table, numbers with 4 significant digits: drawn by rich on a terminal, plain text elsewhere."""
    texts = [[_cell(value) for value in row] for row in rows]
    if stream.isatty():
        _draw(columns, texts, stream)
        return
    widths = [max(map(len, cells)) for cells in zip(columns, *texts, strict=True)]
    for line in ([*columns], *texts):
        padded = (cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        stream.write("  ".join(padded).rstrip() + "\n")


def write_csv(columns: Sequence[str], rows: Rows, stream: IO[str]) -> None:
    """Write csv with a header; NULL is an empty field, lists and objects are JSON text."""
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(columns)
    for row in rows:
        writer.writerow([_field(plain(value)) for value in row])


def write_json(columns: Sequence[str], rows: Rows, stream: IO[str]) -> None:
    """Write one array with an object for every row; NULL, NaN and infinity are null."""
    separator = "["
    for row in rows:
        item = {column: plain(value) for column, value in zip(columns, row, strict=True)}
        stream.write(separator + json.dumps(item, ensure_ascii=False, allow_nan=False))
        separator = ",\n "
    stream.write("[]\n" if separator == "[" else "]\n")


FORMATS: dict[str, Callable[[Sequence[str], Rows, IO[str]], None]] = {
    "table": write_table,
    "csv": write_csv,
    "json": write_json,
}


def plain(value: Any) -> Any:
    """A value of the database as JSON can hold it; what is no finite number is None."""
    if isinstance(value, (float, Decimal)):
        number = float(value)
        return number if math.isfinite(number) else None
    if isinstance(value, dict):
        return {str(key): plain(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(part) for part in value]
    if isinstance(value, (datetime, date, time)):
        return value.isoformat()
    return value if value is None or isinstance(value, (bool, int, str)) else str(value)


def short(number: float) -> str:
    """A number with 4 significant digits, never in powers of ten where it is a whole number of five digits or more."""
    if abs(number) >= 1e4 and math.isfinite(number):
        return f"{number:.0f}" if abs(number) < 1e9 else f"{number:.3e}"
    return f"{number:.4g}"


def _cell(value: Any) -> str:
    if value is None:
        return MISSING
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (float, Decimal)):
        return short(float(value))
    if isinstance(value, (list, tuple)):
        return ",".join(map(_cell, value))
    return printable(" ".join(str(value).split()))


def printable(text: str) -> str:
    """Text without what would steer a terminal: escape sequences in a name are shown, not obeyed."""
    return "".join(letter if letter.isprintable() else f"\\x{ord(letter):02x}" for letter in text)


def _field(value: Any) -> Any:
    if isinstance(value, bool):
        return "true" if value else "false"
    return json.dumps(value, ensure_ascii=False) if isinstance(value, (dict, list)) else value


def _draw(columns: Sequence[str], texts: Sequence[Sequence[str]], stream: IO[str]) -> None:
    """Draw the columns that differ as a table; what is alike in every row is said once, above it."""
    cells = {column: [row[place] for row in texts] for place, column in enumerate(columns)}
    alike = {column: rows[0] for column, rows in cells.items() if len(rows) > 1 and len(set(rows)) == 1}
    drawn = {column: rows for column, rows in cells.items() if column not in alike} or cells
    if drawn is not cells and alike:
        stream.write("in every row: " + "  ".join(f"{column}={text}" for column, text in alike.items()) + "\n")
    console = Console(file=stream)
    if _least_width(drawn) <= console.width:
        console.print(_table(drawn))
    else:
        _draw_records(drawn, console)


def _draw_records(cells: Mapping[str, Sequence[str]], console: Console) -> None:
    """Draw each row as lines `column  value`: the terminal is narrower than any table that cuts no number."""
    for number, row in enumerate(zip(*cells.values(), strict=True), 1):
        console.rule(Text(f"row {number}"), align="left", style="none")
        record = Table.grid(padding=(0, 2))
        record.add_column(no_wrap=True)
        record.add_column(overflow="fold")
        for column, text in zip(cells, row, strict=True):
            if text != MISSING:
                record.add_row(Text(column), Text(text))
        console.print(record)


def _table(cells: Mapping[str, Sequence[str]]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column, rows in cells.items():
        table.add_column(Text(column), min_width=min(_width(column, rows), FOLDED), overflow="fold")
    for row in zip(*cells.values(), strict=True):
        table.add_row(*map(Text, row))
    return table


def _least_width(cells: Mapping[str, Sequence[str]]) -> int:
    """Width at which no number is cut."""
    return sum(min(_width(column, rows), FOLDED) + 3 for column, rows in cells.items())


def _width(column: str, rows: Sequence[str]) -> int:
    return max(map(len, [column, *rows]))


def _rows(result: duckdb.DuckDBPyConnection) -> Rows:
    while batch := result.fetchmany(BATCH_ROWS):
        yield from batch


@contextmanager
def _text_target(path: Path | None) -> Iterator[IO[str]]:
    if path is None:
        yield sys.stdout
        return
    with whole(path) as draft, draft.open("w", encoding="utf-8", newline="") as stream:
        yield stream


@contextmanager
def whole(path: Path) -> Iterator[Path]:
    """A draft beside `path` that takes its place once it is complete."""
    if path.exists() and not path.is_file():
        raise OutputError(f"{path} is not a file; name one with -o FILE")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        folder = tempfile.mkdtemp(dir=path.parent, prefix=".draft-")
    except OSError as error:
        raise OutputError(f"{path} cannot be written: {error.strerror}; name another file with -o FILE") from error
    try:
        draft = Path(folder) / path.name
        yield draft
        draft.replace(path.resolve())
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _write_parquet(
    connection: duckdb.DuckDBPyConnection, query: str, path: Path | None, metadata: Mapping[str, str]
) -> None:
    if path is not None:
        with whole(path) as draft:
            _copy(connection, query, draft, metadata)
        return
    if sys.stdout.isatty():
        raise OutputError("parquet is not for a terminal: name a file with -o FILE, or send stdout to one")
    with tempfile.TemporaryDirectory() as folder:
        draft = Path(folder) / "rows.parquet"
        _copy(connection, query, draft, metadata)
        sys.stdout.buffer.write(draft.read_bytes())


def _copy(connection: duckdb.DuckDBPyConnection, query: str, file: Path, metadata: Mapping[str, str]) -> None:
    """Write a Parquet file by DuckDB's own statement: only there can it say something of itself."""
    if not metadata:
        connection.sql(query).write_parquet(str(file))
        return
    pairs = ", ".join(f"{_literal(key)}: {_literal(value)}" for key, value in metadata.items())
    connection.execute(f"COPY ({query}) TO {_literal(str(file))} (FORMAT parquet, KV_METADATA {{{pairs}}})")


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
