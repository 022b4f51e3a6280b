"""What can be queried: every public relation and its columns, as the files of `sql/` document them. Needs no store."""

import re
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from pathlib import Path

import duckdb

from analysis.output import OutputError, printable, write_rows
from analysis.rules import judge
from analysis.store import ON_DEMAND, RELATIONS, SQL, add, open_store

JUDGED = ("rules", "findings", "rule_outcomes")

_TEXT = r"'((?:[^']|'')*)'"
_OF_RELATION = re.compile(rf"COMMENT ON (?:TABLE|VIEW) (\w+) IS\s+{_TEXT}")
_OF_COLUMN = re.compile(rf'COMMENT ON COLUMN (\w+)\."?(\w+)"? IS\s+{_TEXT}')
_GRAIN = re.compile(r"-- Grain: (.*?)\.(?:\s|$)", re.DOTALL)
_ROW_OF = re.compile(r"^One row [^:]*: ")


@dataclass(frozen=True)
class Relation:
    """A relation in words. grain: what one row is; holds: what stands in it, in a sentence; columns: the comments of
    its own columns (others are those of the first relation with a column of their name)."""

    name: str
    grain: str
    holds: str
    columns: dict[str, str]


def public_relations() -> list[str]:
    """Names of the relations that anyone may rely on, what is read from the files as it is (stg_) at the end."""
    public = [name for name in (*RELATIONS, *ON_DEMAND) if not name.startswith("_")]
    return sorted(public, key=lambda name: (name.startswith("stg_"), name))


@cache
def documented(name: str) -> Relation:
    """A relation as its file in sql/ documents it; `name` may begin with a folder there."""
    text = (SQL / f"{name}.sql").read_text(encoding="utf-8")
    name = name.rpartition("/")[2]
    grain = _GRAIN.search(text)
    holds = {relation: _plain(comment) for relation, comment in _OF_RELATION.findall(text)}
    columns = {column: _plain(comment) for relation, column, comment in _OF_COLUMN.findall(text) if relation == name}
    return Relation(
        name=name,
        grain=" ".join(grain[1].replace("\n--", " ").split()) if grain else "",
        holds=_capital(_ROW_OF.sub("", holds.get(name, ""))),
        columns=columns,
    )


def meaning(relation: str, column: str) -> str | None:
    """What a column means: its own comment, else that of the first relation with a column of its name."""
    return documented(relation).columns.get(column) or _meanings().get(column)


def write_relations(format: str, path: Path | None) -> None:
    """Write every public relation, its grain and what it holds."""
    rows = [(each.name, each.grain, each.holds) for each in map(documented, public_relations())]
    _write(("relation", "grain", "holds"), rows, format, path)


def write_columns(relation: str, format: str, path: Path | None) -> None:
    """Write the columns of a relation, their types and what they mean.

    Raises:
        OutputError: there is no such relation, or it is private.
    """
    check(relation)
    rows = [(column, kind, meaning(relation, column)) for column, kind in columns_of(relation)]
    _write(("column", "type", "meaning"), rows, format, path)


def check(relation: str) -> None:
    """Raises OutputError: this is no public relation; the message has the nearest."""
    public = public_relations()
    if relation not in public:
        near = get_close_matches(relation.lower().removeprefix("_"), public, 3, 0.5)
        told = f"nearest are {', '.join(near)}" if near else "python -m analysis describe lists them"
        private = " (names that begin with _ are private)" if relation.startswith("_") else ""
        raise OutputError(f"{printable(relation)!r} is no public relation{private}: {told}")


def columns_of(relation: str) -> list[tuple[str, str]]:
    """Columns of a public relation and their types. They are those of an empty store, which opens sooner than any."""
    with tempfile.TemporaryDirectory(prefix="crossover-") as folder, open_store(folder) as connection:
        if relation in JUDGED:
            judge(connection, runs=[], rules=())
        elif relation in ON_DEMAND:
            add(connection, relation)
        return [(row[0], row[1]) for row in connection.execute(f"DESCRIBE {relation}").fetchall()]


def _write(columns: Sequence[str], rows: Iterable[Sequence[object]], format: str, path: Path | None) -> None:
    with duckdb.connect() as connection:
        named = ", ".join(f'"{column}" VARCHAR' for column in columns)
        connection.execute(f"CREATE TABLE described ({named})")
        connection.executemany(f"INSERT INTO described VALUES ({', '.join('?' for _ in columns)})", [*rows])
        write_rows(connection, "FROM described", format, path)


@cache
def _meanings() -> dict[str, str]:
    """Column -> its first comment, in the order of the relations."""
    known: dict[str, str] = {}
    for name in (*RELATIONS, *ON_DEMAND):
        for column, comment in documented(name).columns.items():
            known.setdefault(column, comment)
    return known


def _plain(text: str) -> str:
    return " ".join(text.replace("''", "'").split())


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
