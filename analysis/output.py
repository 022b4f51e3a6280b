"""Print the rows of a query: as a table to read, or as csv, json or parquet for other programs."""

import csv
import json
import math
import os
import re
import shutil
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import IO, Any, TypeVar

import duckdb
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

BATCH_ROWS = 10_000
GLANCE_S = 0.1
"""Seconds after which one who waits for DuckDB looks up."""
FOLDED = 28
"""Characters from which on a column of a drawn table may be folded."""

SETTING = re.compile(r"(?:'[^']*'|\\.|[^\s'\\])+")
"""A word of the column `settings`, which may be quoted as a shell's."""

MISSING = "-"
"""What a table shows for NULL."""

CSV_END = "\r\n"

Rows = Iterator[tuple[Any, ...]]
Cells = Sequence[tuple[str, Sequence[str]]]
"""Columns by name, of which two may have one, and the texts of their rows."""
Answer = TypeVar("Answer")


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
    result = interruptible(connection, lambda: connection.execute(query))
    columns = [column[0] for column in result.description or ()]
    with _text_target(path) as stream:
        FORMATS[format](columns, _rows(result), stream)


def interruptible(connection: duckdb.DuckDBPyConnection, ask: Callable[[], Answer]) -> Answer:
    """The answer of `ask`, which has the connection run a query, in a thread of its own.

    A thread that works for DuckDB sees Ctrl-C late or never. This one only looks every GLANCE_S whether there was one,
    and then has the query ended. Raises KeyboardInterrupt, and what `ask` raises.
    """
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(ask)
        try:
            while wait([answer], GLANCE_S).not_done:
                pass
        except KeyboardInterrupt:
            while wait([answer], GLANCE_S).not_done:
                connection.interrupt()  # again and again: the query may not have begun
            raise
        return answer.result()


def without_empty_columns(connection: duckdb.DuckDBPyConnection, query: str) -> str:
    """A query for the same rows without the columns that are NULL in every row: they only widen a table."""
    interruptible(connection, lambda: connection.execute(f"CREATE OR REPLACE TEMP TABLE shown AS {query}"))
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
    writer = csv.writer(_Lines(stream), lineterminator=CSV_END)
    writer.writerow(columns)
    for row in rows:
        writer.writerow([_field(plain(value)) for value in row])


@dataclass(frozen=True)
class _Lines:
    """Ends lines of csv with a newline alone, though its writer was told CSV_END: it quotes what holds a letter of the
    end of a line, and a reader takes a bare carriage return for one."""

    stream: IO[str]

    def write(self, line: str) -> int:
        return self.stream.write(line.removesuffix(CSV_END) + "\n")


def write_json(columns: Sequence[str], rows: Rows, stream: IO[str]) -> None:
    """Write one array with an object for every row; NULL, NaN and infinity are null.

    Raises:
        OutputError: two columns have one name, of which an object could keep one.
    """
    twice = sorted({column for column in columns if columns.count(column) > 1})
    if twice:
        raise OutputError(f"json cannot hold two columns named {printable(twice[0])}: name them apart with AS")
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
    shared, cells = _settings_apart([(column, [row[place] for row in texts]) for place, column in enumerate(columns)])
    for workload, words in shared.items():
        stream.write(f"in every row of {workload}: {'  '.join(words)}\n")
    alike = [(column, rows[0]) for column, rows in cells if len(rows) > 1 and len(set(rows)) == 1]
    drawn = [(column, rows) for column, rows in cells if len(rows) < 2 or len(set(rows)) > 1] or cells
    if drawn is not cells and alike:
        stream.write("in every row: " + "  ".join(f"{column}={text}" for column, text in alike) + "\n")
    console = Console(file=stream)
    if _least_width(drawn) <= console.width:
        console.print(_table(drawn))
    else:
        _draw_records(drawn, console)


def _settings_apart(cells: Cells) -> tuple[Mapping[str, Sequence[str]], Cells]:
    """The settings that all rows of a workload share, where it has several rows, and the cells without them.

    A workload with a dozen settings would fill the table with what tells no row from another. The column goes where
    nothing is left of it.
    """
    place, owners, given = _words(dict(cells))
    if place is None:
        return {}, cells
    rows: dict[str, list[list[str]]] = defaultdict(list)
    for owner, words in zip(owners, given, strict=True):
        rows[owner].append(words)
    shared = {
        owner: [word for word in each[0] if _is_setting(word, place) and all(word in other for other in each)]
        for owner, each in rows.items()
        if len(each) > 1
    }
    left = [
        " ".join(word for word in words if word not in shared.get(owner, ())) or MISSING
        for owner, words in zip(owners, given, strict=True)
    ]
    kept = [(column, left if column == place else texts) for column, texts in cells]
    told = {owner: words for owner, words in shared.items() if words}
    return told, kept if set(left) != {MISSING} else [each for each in kept if each[0] != place]


def _words(named: Mapping[str, Sequence[str]]) -> tuple[str | None, Sequence[str], Sequence[list[str]]]:
    """The column that tells settings, and of each row the workload and the column's words: `settings` beside
    `workload`, or `point`, which begins with it. None where there is neither."""
    place = "settings" if {"workload", "settings"} <= named.keys() else "point" if "point" in named else None
    if place is None:
        return None, (), ()
    words = [SETTING.findall(text) if text != MISSING else [] for text in named[place]]
    return place, named["workload"] if place == "settings" else [each[0] if each else "" for each in words], words


def _is_setting(word: str, place: str) -> bool:
    """Whether a word of the column sets something: in `point`, `size=8` and `fp32` name it."""
    return place == "settings" or word.lstrip("'").startswith("workload.")


def _draw_records(cells: Cells, console: Console) -> None:
    """Draw each row as lines `column  value`: the terminal is narrower than any table that cuts no number."""
    for number, row in enumerate(zip(*(rows for _, rows in cells), strict=True), 1):
        console.rule(Text(f"row {number}"), align="left", style="none")
        record = Table.grid(padding=(0, 2))
        record.add_column(no_wrap=True)
        record.add_column(overflow="fold")
        for (column, _), text in zip(cells, row, strict=True):
            if text != MISSING:
                record.add_row(Text(column), Text(text))
        console.print(record)


def _table(cells: Cells) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column, rows in cells:
        table.add_column(Text(column), min_width=min(_width(column, rows), FOLDED), overflow="fold")
    for row in zip(*(rows for _, rows in cells), strict=True):
        table.add_row(*map(Text, row))
    return table


def _least_width(cells: Cells) -> int:
    """Width at which no number is cut."""
    return sum(min(_width(column, rows), FOLDED) + 3 for column, rows in cells)


def _width(column: str, rows: Sequence[str]) -> int:
    return max(map(len, [column, *rows]))


def _rows(result: duckdb.DuckDBPyConnection) -> Rows:
    """The rows, fetched in batches: DuckDB may still be at work on the next one."""
    while batch := interruptible(result, lambda: result.fetchmany(BATCH_ROWS)):
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
    """A draft that takes the place of the file `path`, or goes down the pipe or device `path`, once it is complete.

    Raises:
        OutputError: `path` is a folder, or cannot be written.
    """
    if path.is_dir():
        raise OutputError(f"{path} is not a file; name one with -o FILE")
    is_stream = _descriptor(path) is not None or (path.exists() and not path.is_file())
    try:
        target = path if is_stream else path.resolve()  # beside a link would be on another disk, perhaps
        target.parent.mkdir(parents=True, exist_ok=True)
        folder = tempfile.mkdtemp(dir=None if is_stream else target.parent, prefix=".draft-")
    except (OSError, RuntimeError) as error:  # RuntimeError: links in a circle
        told = getattr(error, "strerror", None) or error
        raise OutputError(f"{path} cannot be written: {told}; name another file with -o FILE") from error
    try:
        draft = Path(folder) / target.name
        yield draft
        if is_stream:
            _pour(draft, target)
        else:
            draft.replace(target)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _pour(draft: Path, stream: Path) -> None:
    """Copy the draft behind what went down the stream before."""
    sys.stdout.flush()
    descriptor = _descriptor(stream)
    with (
        draft.open("rb") as source,
        stream.open("wb") if descriptor is None else os.fdopen(os.dup(descriptor), "wb") as sink,
    ):
        shutil.copyfileobj(source, sink)


def _descriptor(path: Path) -> int | None:
    """The stream of this process that the path names. It may be a file, but one that others write to as well."""
    named = re.fullmatch(r"/dev/(stdout|stderr)|/(?:dev|proc/self)/fd/(\d+)", path.as_posix())
    if named is None:
        return None
    return int(named[2] or {"stdout": 1, "stderr": 2}[named[1]])


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
    pairs = ", ".join(f"{_literal(key)}: {_literal(value)}" for key, value in metadata.items())
    told = f", KV_METADATA {{{pairs}}}" if pairs else ""
    statement = f"COPY ({query}) TO {_literal(str(file))} (FORMAT parquet{told})"
    interruptible(connection, lambda: connection.execute(statement))


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
