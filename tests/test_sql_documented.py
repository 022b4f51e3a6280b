"""Every relation says what it is: its grain first, and a comment on it and on each of its columns."""

from pathlib import Path

import pytest

from analysis.store import MACROS, ON_DEMAND, RELATIONS, SQL, open_store

FILES = sorted(file for file in SQL.glob("*.sql") if file.stem not in MACROS)
PUBLIC = (*RELATIONS, *ON_DEMAND)


def test_one_file_one_relation(tmp_path: Path) -> None:
    """Every file is loaded, and makes the relation of its name and no other."""
    with open_store(tmp_path, whole=True) as connection:
        made = {
            row[0]
            for row in connection.sql("SELECT table_name FROM duckdb_tables() WHERE schema_name = 'main'").fetchall()
        }
        made |= {row[0] for row in connection.sql("SELECT view_name FROM duckdb_views() WHERE NOT internal").fetchall()}
    assert {name for name in made if not name.startswith("files_")} == set(PUBLIC) == {file.stem for file in FILES}


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_grain_comes_first(file: Path) -> None:
    """The first line of a file states what one row is."""
    assert file.read_text(encoding="utf-8").startswith("-- Grain: one row a")


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_raw_columns_occur_in_staging_only(file: Path) -> None:
    """Only staging reads the files."""
    assert file.stem.startswith("stg_") or "files_" not in file.read_text(encoding="utf-8")


def test_no_comment_is_missing(tmp_path: Path) -> None:
    """Every relation has a comment, and every column of a public or staging relation."""
    with open_store(tmp_path, whole=True) as connection:
        relations = connection.sql(
            "SELECT table_name, comment FROM duckdb_tables() UNION ALL "
            "SELECT view_name, comment FROM duckdb_views() WHERE NOT internal"
        ).fetchall()
        columns = connection.sql("SELECT table_name, column_name, comment FROM duckdb_columns()").fetchall()
    gaps = [name for name, comment in relations if name in PUBLIC and not comment]
    public = [name for name in PUBLIC if not name.startswith("_")]
    gaps += [f"{table}.{column}" for table, column, comment in columns if table in public and not comment]
    assert gaps == []
