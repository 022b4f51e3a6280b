"""A comparison as tables, Markdown, JUnit XML, or rows for other programs."""

import io
import xml.etree.ElementTree as ElementTree
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb

from analysis.comparison.compared import WORST_FIRST, Row, rows_of
from analysis.comparison.words import value
from analysis.output import printable, short, write_rows, write_table, write_text

SHOWN = 15
"""Rows of each table, where all are shown."""
MARKDOWN_ROWS = 20
"""Rows of each table of a comment on a pull request."""
FORMATS = ("table", "csv", "json", "parquet", "markdown", "junit")


@dataclass(frozen=True)
class Table:
    """One kind of change. relation and order: its rows; columns: what a table shows of them; skipped: a condition on
    rows that a table of several leaves out."""

    title: str
    relation: str
    order: str
    columns: tuple[str, ...]
    skipped: str = "false"


TABLES = {
    "point": Table(
        "values (b / a; low to high: the 95 % interval of that pair alone)",
        "changes",
        WORST_FIRST,
        ("verdict", "point", "quantity", "a_value", "b_value", "ratio", "low", "high", "note"),
        "verdict = 'SAME'",
    ),
    "bound": Table(
        "bounds that are not the same (margin: overhead / work)",
        "moved_bounds",
        "is_clear DESC, abs(ln(b_margin / a_margin)) DESC NULLS LAST, point",
        ("point", "a_bound", "b_bound", "a_margin", "b_margin", "is_clear"),
    ),
    "crossover": Table(
        "crossovers",
        "moved_crossovers",
        "list_position(['HIGHER', 'LOWER', 'UNCLEAR', 'SAME'], verdict), abs(ln(ratio)) DESC NULLS LAST, name, axis",
        ("verdict", "name", "axis", "a_text", "b_text"),
        "verdict = 'SAME'",
    ),
    "kernel": Table(
        "kernels that one side alone runs",
        "changed_kernels",
        "coalesce(a_share, b_share) DESC, point, name",
        ("point", "name", "state", "a_share", "b_share", "a_us", "b_us"),
    ),
    "environment": Table(
        "what differs around the measurements", "differing_facts", "place, fact", ("fact", "a_value", "b_value")
    ),
}
"""Kinds of change, by their name on the command line."""


def write(
    connection: duckdb.DuckDBPyConnection, words: Sequence[str], by: str | None, format: str, path: Path | None
) -> None:
    """Write a comparison in one of FORMATS. by: a key of TABLES, whose table is written whole; None for all that a
    table or a comment shows, and for the values in other formats."""
    if format == "table":
        write_text(tables(connection, by), path) if path else _print_tables(connection, by)
    elif format == "markdown":
        write_text(markdown(connection, words, by), path)
    elif format == "junit":
        write_text(junit(connection), path)
    else:
        chosen = TABLES[by or "point"]
        write_rows(connection, f"FROM {chosen.relation} ORDER BY {chosen.order}", format, path)


# --- tables


def tables(connection: duckdb.DuckDBPyConnection, by: str | None) -> str:
    """The tables as plain text."""
    stream = io.StringIO()
    for name in [by] if by else list(TABLES)[:-1]:
        _table(connection, name, None if by else SHOWN, stream)
    return stream.getvalue()


def _print_tables(connection: duckdb.DuckDBPyConnection, by: str | None) -> None:
    import sys

    for name in [by] if by else list(TABLES)[:-1]:
        _table(connection, name, None if by else SHOWN, sys.stdout)


def _table(connection: duckdb.DuckDBPyConnection, name: str, limit: int | None, stream: Any) -> None:
    table, rows = TABLES[name], _rows(connection, name, whole=limit is None)
    if not rows and limit is not None:
        return
    stream.write(f"\n{table.title}{'' if rows else ': none'}\n")
    if rows:
        kept = [column for column in table.columns if any(row[column] is not None for row in rows)]
        write_table(kept, iter([tuple(_cell(row, column) for column in kept) for row in rows[:limit]]), stream)
    if limit is not None and len(rows) > limit:
        stream.write(f"and {len(rows) - limit} more: --by {name} shows all\n")


def _rows(connection: duckdb.DuckDBPyConnection, name: str, whole: bool) -> list[Row]:
    table = TABLES[name]
    chosen = "" if whole else f"WHERE NOT ({table.skipped})"
    return rows_of(connection, f"FROM {table.relation} {chosen} ORDER BY {table.order}")


def _cell(row: Row, column: str) -> Any:
    if column in ("a_value", "b_value") and "unit" in row:
        return None if row[column] is None else value(row[column], row["unit"])
    if column in ("ratio", "low", "high", "a_share", "b_share") and row[column] is not None:
        return f"{row[column]:.3f}"
    return row[column]


# --- Markdown


def markdown(connection: duckdb.DuckDBPyConnection, words: Sequence[str], by: str | None = None) -> str:
    """Words and tables as a comment on a pull request takes them: at most MARKDOWN_ROWS rows a table."""
    environment, counts, *others = words
    lines = [f"**{_escaped(counts)}**", "", _escaped(environment), ""]
    lines += [*(f"- {_escaped(line)}" for line in others), ""]
    for name in [by] if by else list(TABLES)[:-1]:
        lines += _markdown_table(connection, name)
    return "\n".join(lines).rstrip() + "\n"


def _markdown_table(connection: duckdb.DuckDBPyConnection, name: str) -> list[str]:
    table, rows = TABLES[name], _rows(connection, name, whole=False)
    if not rows:
        return []
    kept = [column for column in table.columns if any(row[column] is not None for row in rows)]
    lines = [f"<details{' open' if name == 'point' else ''}><summary>{_escaped(table.title)}</summary>", ""]
    lines += [f"| {' | '.join(kept)} |", f"|{'---|' * len(kept)}"]
    for row in rows[:MARKDOWN_ROWS]:
        lines.append(f"| {' | '.join(_escaped(_text(_cell(row, column))) for column in kept)} |")
    more = len(rows) - MARKDOWN_ROWS
    return [*lines, "", *([f"and {more} more", ""] if more > 0 else []), "</details>", ""]


def _text(cell: Any) -> str:
    if cell is None:
        return ""
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    return short(cell) if isinstance(cell, float) else str(cell)


MARKUP = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "|": "\\|", "`": "\\`", "*": "\\*", "_": "\\_", "[": "\\[", "@": "@​"}
"""What would be read as markup, or would call somebody, in a name that a trace or a user chose."""


def _escaped(text: str) -> str:
    return "".join(MARKUP.get(letter, letter) for letter in printable(" ".join(text.split())))


# --- JUnit


FAILED, SKIPPED = ("SLOWER", "NEWLY FAILED"), ("UNCLEAR", "SKIPPED", "FAILED ON BOTH", "ONLY IN A", "ONLY IN B")


def junit(connection: duckdb.DuckDBPyConnection) -> str:
    """A test case a point and quantity: it fails where b is SLOWER or has newly failed, and is skipped where nothing
    can be said."""
    rows = rows_of(connection, f"FROM changes ORDER BY {WORST_FIRST}")
    failed, skipped = (sum(row["verdict"] in kinds for row in rows) for kinds in (FAILED, SKIPPED))
    counts = {"tests": str(len(rows)), "failures": str(failed), "skipped": str(skipped)}
    root = ElementTree.Element("testsuites", counts)
    suite = ElementTree.SubElement(root, "testsuite", {"name": "crossover compare", **counts})
    for row in rows:
        name = {"classname": row["quantity"] or "point", "name": printable(row["point"])}
        case = ElementTree.SubElement(suite, "testcase", name)
        kind = "failure" if row["verdict"] in FAILED else "skipped" if row["verdict"] in SKIPPED else None
        if kind is not None:
            ElementTree.SubElement(case, kind, {"message": _message(row)})
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _message(row: Row) -> str:
    told = [row["verdict"]]
    if row["ratio"] is not None:
        interval = f" ({short(row['low'])} to {short(row['high'])})" if row["low"] is not None else ""
        told.append(f"{short(row['ratio'])} times{interval}")
        told.append(f"{value(row['a_value'], row['unit'])} to {value(row['b_value'], row['unit'])}")
    return printable(", ".join(told) + (f"; {row['note']}" if row["note"] else ""))
