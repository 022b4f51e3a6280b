"""A store as one flat table to take away, with a dictionary that says what each column is.

The chain: relation `exported` (sql/export/) -> a column for every further axis -> the rows, and the dictionary.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from itertools import count
from pathlib import Path

import duckdb

from analysis.describe import meaning
from analysis.naming import ORDER, choose_runs
from analysis.output import OutputError, printable, write_rows, write_text
from analysis.store import SQL, add

RELATION = "export/exported"
SUFFIXES = {".parquet": "parquet", ".csv": "csv", ".json": "json"}
KEY = "crossover.dictionary"
"""Where the dictionary stands in the metadata of a Parquet file."""


@dataclass(frozen=True)
class Column:
    """A column of the table: its name, its type in DuckDB's words, what it means."""

    column: str
    type: str
    meaning: str


def format_of(format: str | None, path: Path | None) -> str:
    """The format that was asked for, else that of the file's name, else csv.

    Raises:
        OutputError: the file's name does not say.
    """
    if format is not None or path is None:
        return format or "csv"
    if path.suffix.lower() not in SUFFIXES:
        raise OutputError(f"{path}: the name says no format; end it with {', '.join(SUFFIXES)}, or give --format")
    return SUFFIXES[path.suffix.lower()]


def prepare(connection: duckdb.DuckDBPyConnection, point: Sequence[str]) -> list[Column]:
    """Make table `export_rows`: the rows of the points that `point` names, of all for none. Returns its columns.

    Raises:
        PointError: no point fits.
    """
    chosen = ""
    if point:
        choose_runs(connection, " ".join(point))
        chosen = (
            "SEMI JOIN chosen_runs AS c ON c.point_id IS NOT DISTINCT FROM v.point_id "
            "AND c.environment_id IS NOT DISTINCT FROM v.environment_id"
        )
    add(connection, "findings")
    connection.execute((SQL / f"{RELATION}.sql").read_text(encoding="utf-8"))
    axes = _further_axes(connection)
    unfolded = "".join(f", {expression} AS {_quoted(name)}" for name, (expression, _) in axes.items())
    connection.execute(
        f"CREATE TEMP TABLE export_rows AS SELECT * {unfolded} FROM exported AS v {chosen} ORDER BY {ORDER}, point_id"
    )
    described = connection.execute("DESCRIBE export_rows").fetchall()
    words = {name: text for name, (_, text) in axes.items()}
    return [Column(row[0], row[1], words.get(row[0]) or meaning(RELATION, row[0]) or "") for row in described]


def write(connection: duckdb.DuckDBPyConnection, columns: Sequence[Column], format: str, path: Path | None) -> None:
    """Write the rows; a Parquet file holds its dictionary as well, as JSON in its metadata."""
    told = {KEY: json.dumps([asdict(column) for column in columns], ensure_ascii=False)}
    write_rows(connection, "FROM export_rows", format, path, metadata=told)


def write_dictionary(columns: Iterable[Column], title: str, path: Path) -> None:
    """Write the dictionary as a table in Markdown."""
    rows = [f"| `{_cell(each.column)}` | {each.type} | {_cell(each.meaning)} |" for each in columns]
    intro = (
        "One row a point and environment. Times are microseconds a step; `_low` and `_high` are the ends of their 95 % "
        "intervals. An empty value is unknown, or something that the point does not have; `reason` says why a verdict "
        "is missing."
    )
    write_text(
        "\n".join([f"# {title}", "", intro, "", "| column | type | meaning |", "|---|---|---|", *rows, ""]), path
    )


def _further_axes(connection: duckdb.DuckDBPyConnection) -> dict[str, tuple[str, str]]:
    """Column -> its expression and meaning, for every axis that `params` holds; numbers where all of its values are."""
    rows = connection.execute(
        'SELECT axis, bool_and(TRY_CAST("value" AS DOUBLE) IS NOT NULL) FROM axes JOIN stg_runs USING (run_id) '
        "WHERE list_contains(json_keys(params), axis) GROUP BY axis ORDER BY axis"
    ).fetchall()
    names = _told_apart([f"param_{axis}" for axis, _ in rows])
    return {
        name: (
            f"TRY_CAST(json_extract_string(params, {_pointer(axis)}) AS {'DOUBLE' if numeric else 'VARCHAR'})",
            f"Further axis {axis}; NULL where the point does not have it.",
        )
        for name, (axis, numeric) in zip(names, rows, strict=True)
    }


def _told_apart(names: Sequence[str]) -> list[str]:
    """The names, with a number behind one that differs from an earlier one in case alone: to DuckDB both are one."""
    kept: dict[str, str] = {}
    for name in names:
        kept.setdefault(name.lower(), name)
    taken = {*kept}
    told: list[str] = []
    for name in names:
        numbered = (f"{name}_{number}" for number in count(2))
        own = kept[name.lower()] == name
        told.append(name if own else next(each for each in numbered if each.lower() not in taken))
        taken.add(told[-1].lower())
    return told


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _pointer(axis: str) -> str:
    text = axis.replace("'", "''")
    return f"_pointer('{text}')"


def _cell(text: str) -> str:
    return printable(text).replace("|", "\\|")
