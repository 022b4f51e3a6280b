"""runner.store: which files count, and what `live_runs` makes of odd ones."""

from __future__ import annotations

import tempfile
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis import store as reading
from runner.store import Store, files
from runner.tables import RUNS

NAMES = st.sampled_from(["r1", "r2", "r3", "r4", "r5"])
FOLDER = st.tuples(st.sets(NAMES), st.dictionaries(st.sampled_from("abcd"), st.sets(NAMES, min_size=1)))


def write(path: Path, run_ids: list[str], **columns: object) -> Path:
    """A file of these runs."""
    path.parent.mkdir(parents=True, exist_ok=True)
    pl.DataFrame({"run_id": run_ids, **columns}).write_parquet(path)
    return path


@settings(max_examples=60, deadline=None)
@given(sweeps=st.lists(FOLDER, max_size=2))
def test_writer_and_readers_choose_the_same_files(sweeps: list[tuple[set[str], dict[str, set[str]]]]) -> None:
    """Parts and compacted files in any mixture: analysis and runner, which share no code, list the same live files."""
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder)
        for number, (parts, compacted) in enumerate(sweeps):
            for name in parts:
                write(store / f"runs/s{number}/{name}.parquet", [name])
            for name, run_ids in compacted.items():
                write(store / f"runs/s{number}/all-{name}.parquet", sorted(run_ids))
        theirs = reading.live_files(store, lambda file: set(pl.read_parquet(file)["run_id"]))["runs"]
        assert files.live_files(store / "runs") == theirs


def test_the_columns_asked_for_are_typed_and_complete(tmp_path: Path) -> None:
    """Files of an older store lack columns: these are null and of the documented type."""
    write(tmp_path / "runs/s1/r1.parquet", ["r1"], size=[64])
    write(tmp_path / "runs/s2/r2.parquet", ["r2"], size=[None], status=["ok"], unknown=[1])
    found = Store(tmp_path).live_runs(["run_id", "size", "status", "started_at"])
    assert found.schema == pl.Schema({name: RUNS[name] for name in ("run_id", "size", "status", "started_at")})
    assert found.rows() == [("r1", 64, None, None), ("r2", None, "ok", None)]


def test_a_column_of_another_type_is_cast(tmp_path: Path) -> None:
    """A size written as a 32-bit integer, and one written as a word that is none: null."""
    write(tmp_path / "runs/s1/r1.parquet", ["r1"], size=pl.Series([64], dtype=pl.Int32))
    write(tmp_path / "runs/s1/r2.parquet", ["r2"], size=["large"])
    assert Store(tmp_path).live_runs(["run_id", "size"]).rows() == [("r1", 64), ("r2", None)]


def test_an_empty_store_has_no_runs(tmp_path: Path) -> None:
    """A folder without anything, and none at all: a typed empty table."""
    for folder in (tmp_path, tmp_path / "nowhere"):
        found = Store(folder).live_runs(["point_id"])
        assert found.schema == pl.Schema({"point_id": pl.String}) and found.is_empty()


def test_no_run_has_such_a_column(tmp_path: Path) -> None:
    """A misspelt column is a fault of the caller, not a column of nulls."""
    with pytest.raises(KeyError, match="pointid"):
        Store(tmp_path).live_runs(["pointid"])


@pytest.mark.parametrize("content", [b"", b"PAR1", b"PAR1 torn in the middle", bytes(100)])
def test_files_that_cannot_be_read_have_no_rows(tmp_path: Path, content: bytes) -> None:
    """Parts, and compacted files over parts: the other runs count, and parts count again."""
    for name in ("r1", "r2", "r3"):
        write(tmp_path / f"runs/s1/{name}.parquet", [name])
    (tmp_path / "runs/s1/r2.parquet").write_bytes(content)
    (tmp_path / "runs/s1/all-x.parquet").write_bytes(content)
    (tmp_path / "runs/s1/r4.parquet.0123abcd.tmp").write_bytes(content)
    assert sorted(Store(tmp_path).live_runs(["run_id"])["run_id"]) == ["r1", "r3"]


def test_a_run_id_counts_once(tmp_path: Path) -> None:
    """In a compacted file and a part of its sweep, twice in a file, in two sweeps."""
    write(tmp_path / "runs/s1/all-x.parquet", ["r1", "r2", "r2"])
    write(tmp_path / "runs/s1/r1.parquet", ["r1"])
    write(tmp_path / "runs/s2/r1.parquet", ["r1"])
    assert sorted(Store(tmp_path).live_runs(["run_id"])["run_id"]) == ["r1", "r2"]


def test_files_that_vanish_are_listed_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between list and read another process compacts and tidies: its file is read instead."""
    part, listed = write(tmp_path / "runs/s1/r1.parquet", ["r1"]), files.live_files

    def list_then_lose(folder: Path) -> list[Path]:
        found = listed(folder)
        if part.exists():
            write(tmp_path / "runs/s1/all-x.parquet", ["r1"])
            part.unlink()
        return found

    monkeypatch.setattr(files, "live_files", list_then_lose)
    assert Store(tmp_path).live_runs(["run_id"])["run_id"].to_list() == ["r1"]


def test_a_name_that_is_no_text_is_passed_over(tmp_path: Path) -> None:
    """Bytes that are not UTF-8 in a file's name: no writer has given it, and nobody stumbles over it."""
    write(tmp_path / "runs" / "s1" / "r1.parquet", ["r1"])
    (tmp_path / "runs" / "s1" / b"bad\xff.parquet".decode(errors="surrogateescape")).write_bytes(b"x")
    assert [file.name for file in files.live_files(tmp_path / "runs")] == ["r1.parquet"]
    assert Store(tmp_path).live_runs(["run_id"])["run_id"].to_list() == ["r1"]
    assert [file.name for file in reading.live_files(tmp_path, lambda _: set())["runs"]] == ["r1.parquet"]
