"""python -m analysis describe: every public relation and column, without a store."""

import csv
import io
import json
from pathlib import Path

import polars as pl
import pytest
from given import write_store

from analysis.__main__ import main
from analysis.describe import documented, meaning, public_relations
from analysis.store import open_store


def rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_every_public_relation_with_its_grain(capsys: pytest.CaptureFixture[str]) -> None:
    """Without an argument: a row a relation, what one row of it is, and what it holds; nothing private, no gap."""
    assert main(["describe", "--store", "nowhere", "--format", "csv"]) == 0
    described = {row["relation"]: row for row in rows(capsys.readouterr().out)}
    assert described.keys() == set(public_relations())
    assert not [name for name in described if name.startswith("_")]
    assert all(row["grain"].startswith("one row ") and row["holds"] for row in described.values())
    assert described["bounds"]["grain"] == "one row a point and environment"
    assert described["bounds"]["holds"] == "What binds it, by how much, why, and what it would gain without overhead."


def test_columns_of_a_relation(capsys: pytest.CaptureFixture[str]) -> None:
    """With a relation: a row a column, its type and meaning; the words on the relation stand above a table alone."""
    assert main(["describe", "crossovers", "--format", "json"]) == 0
    columns = {row["column"]: row for row in json.loads(capsys.readouterr().out)}
    assert columns["value"]["type"] == "DOUBLE"
    assert all(row["meaning"] for row in columns.values())
    assert main(["describe", "crossovers"]) == 0
    assert capsys.readouterr().out.startswith("crossovers: one row a series\nWhere along its axis ")


def test_all_formats(tmp_path: Path) -> None:
    """A description is rows as any other."""
    for words in (["describe"], ["describe", "axes"]):
        assert main([*words, "--format", "parquet", "-o", str(tmp_path / "x.parquet")]) == 0
        assert pl.read_parquet(tmp_path / "x.parquet").height > 2


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("bond", "'bond' is no public relation: nearest are bounds"),
        ("_points", "(names that begin with _ are private): nearest are points"),
        ("zzz", "python -m analysis describe lists them"),
    ],
)
def test_an_unknown_relation_is_told_its_nearest(name: str, told: str, capsys: pytest.CaptureFixture[str]) -> None:
    """One sentence, and 1."""
    assert main(["describe", name]) == 1
    printed = capsys.readouterr()
    assert told in printed.err and printed.err.count("\n") == 1 and not printed.out


def test_the_words_are_those_of_the_database(tmp_path: Path) -> None:
    """What describe reads in the files is what an opened store says in its comments, and types are those it has."""
    with open_store(write_store(tmp_path), whole=True) as connection:
        found = connection.execute("SELECT table_name, column_name, comment FROM duckdb_columns()").fetchall()
    public = set(public_relations())
    comments = {(table, column): " ".join(text.split()) for table, column, text in found if table in public}
    assert len(comments) > 800
    assert comments == {(table, column): meaning(table, column) for table, column in comments}


def test_a_file_of_two_relations_tells_each_its_own() -> None:
    """A comment on another relation of the same file is not taken for its own."""
    assert "params" in documented("stg_runs").columns
    assert documented("gaps").holds.startswith("One row a run, device and interval")
