"""python -m analysis open: a DuckDB file that any DuckDB reads, from anywhere."""

import json
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest
from given import write_store

from analysis import store as reading
from analysis.__main__ import main
from analysis.describe import public_relations
from analysis.store import open_store

RUNS = [
    {"size": 64, "wall_us": 18, "issue_us": 18, "device_us": 5},
    {"size": 128, "wall_us": 36.72, "issue_us": 18, "device_us": 36},
]

ASKED = """
import duckdb, json, sys
with duckdb.connect(sys.argv[1], read_only=True) as connection:
    def ask(name):
        columns = [row[0] for row in connection.execute(f"DESCRIBE {name}").fetchall()]
        return [columns, len(connection.execute(f"FROM {name}").fetchall())]
    print(json.dumps({name: ask(name) for name in json.loads(sys.argv[2])}))
"""
"""Asks in a process that knows nothing but DuckDB."""


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two points."""
    return write_store(tmp_path_factory.mktemp("store"), runs=RUNS)


@pytest.fixture(scope="module")
def file(store: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of that store."""
    path = tmp_path_factory.mktemp("out") / "it's.duckdb"
    assert main(["open", "--store", str(store), "-o", str(path)]) == 0
    return path


def test_every_relation_answers_as_in_the_store(tmp_path: Path) -> None:
    """Reopened by DuckDB alone, in a fresh process and another folder, every public relation has the same rows."""
    findings = Path(__file__).parents[1] / "docs" / "results" / "h200_findings"
    path = tmp_path / "h200.duckdb"
    assert main(["open", "--store", str(findings), "-o", str(path)]) == 0
    command = [sys.executable, "-I", "-c", ASKED, str(path), json.dumps(public_relations())]
    asked = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert asked.returncode == 0, asked.stderr
    told = json.loads(asked.stdout)
    with open_store(findings, whole=True) as connection:
        for name in public_relations():
            result = connection.execute(f"FROM {name}")
            assert told[name] == [[column[0] for column in result.description], len(result.fetchall())], name
    assert told["events"][1] > 1000 and told["findings"][1] > 50
    assert path.stat().st_size < 20e6


def test_comments_and_macros_come_along(store: Path, file: Path) -> None:
    """The file documents itself, and its private macros work."""
    query = (
        "SELECT table_name, column_name, comment FROM duckdb_columns() "
        "WHERE database_name = current_database() AND schema_name = 'main' AND NOT internal ORDER BY ALL"
    )
    with open_store(store, whole=True) as opened, duckdb.connect(str(file), read_only=True) as reopened:
        assert reopened.execute(query).fetchall() == opened.execute(query).fetchall()
        assert reopened.execute("SELECT _time(1500.0)").fetchall() == opened.execute("SELECT _time(1500.0)").fetchall()


def test_it_says_how_to_use_it(store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """stdout has the file, stderr the ways to use it: client, UI, Python, JDBC."""
    path = tmp_path / "new" / "x.duckdb"
    assert main(["open", "--store", str(store), "-o", str(path)]) == 0
    printed = capsys.readouterr()
    assert printed.out == f"{path}\n"
    for told in (
        f"duckdb -readonly {path}",
        f"duckdb {path} -ui",
        "read_only=True",
        f"jdbc:duckdb:{path}",
        "open_store",
    ):
        assert told in printed.err


def test_it_is_written_again_whole(store: Path, tmp_path: Path) -> None:
    """A second time replaces the file, also under a reader, and leaves no draft."""
    path = tmp_path / "x.duckdb"
    assert main(["open", "--store", str(store), "-o", str(path)]) == 0
    with duckdb.connect(str(path), read_only=True) as reader:
        assert main(["open", "--store", str(store), "-o", str(path)]) == 0
        assert reader.execute("SELECT count(*) FROM bounds").fetchall() == [(2,)]
    assert [each.name for each in tmp_path.iterdir()] == ["x.duckdb"]


def test_never_inside_the_store(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A file in the store is refused, by whatever path."""
    before = sorted(store.rglob("*"))
    for path in (store / "x.duckdb", store / "runs" / "x.duckdb", store / "runs" / ".." / "x.duckdb"):
        assert main(["open", "--store", str(store), "-o", str(path)]) == 1
        assert "lies inside the store" in capsys.readouterr().err
    assert sorted(store.rglob("*")) == before


def test_small_files_stay_where_they_lie(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Views over many small files read the store's own, not the copies that opening makes; the cure is told."""
    runs = [{"size": size, "sweep_id": "s"} for size in range(reading.FEW_PARTS + 10)]
    store = write_store(tmp_path / "store", runs=runs)
    path = tmp_path / "x.duckdb"
    assert main(["open", "--store", str(store), "-o", str(path)]) == 0
    with duckdb.connect(str(path), read_only=True) as connection:
        [[sql]] = connection.execute("SELECT sql FROM duckdb_views() WHERE view_name = 'files_runs'").fetchall()
        assert connection.execute("SELECT count(*) FROM runs").fetchall() == [(len(runs),)]
    assert str(store.resolve()) in sql
    assert "python -m runner.store compact" in capsys.readouterr().err


def test_a_store_that_is_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One sentence, 1, and no file."""
    assert main(["open", "--store", str(tmp_path / "none"), "-o", str(tmp_path / "x.duckdb")]) == 1
    assert "there is no store at" in capsys.readouterr().err
    assert not (tmp_path / "x.duckdb").exists()
