"""Which files of a store count, and how odd but normal stores are read."""

import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest
from given import EVENTS, RUNS, write_store

from analysis import store as reading
from analysis.store import StoreError, choose_live, live_files, open_store


@pytest.mark.parametrize(
    ("files", "live"),
    [
        ({}, []),
        ({"r1": None, "r2": None}, ["r1", "r2"]),
        ({"all-a": {"r1", "r2"}}, ["all-a"]),
        ({"all-a": {"r1", "r2"}, "r1": None, "r3": None}, ["all-a", "r3"]),
        ({"all-z": {"r1"}, "all-a": {"r1", "r2"}}, ["all-a"]),
        ({"all-a": {"r1"}, "all-b": {"r2"}, "r1": None, "r2": None}, ["all-b", "r1"]),
    ],
    ids=["nothing", "parts", "compacted", "parts beside it", "most run ids", "ties: the greater name"],
)
def test_live_files_of_a_sweep(files: dict[str, set[str] | None], live: list[str]) -> None:
    """Of a sweep the compacted file with most run ids counts, and the parts that it lacks."""
    held = {Path(f"{name}.parquet"): run_ids or set() for name, run_ids in files.items()}
    assert [file.stem for file in choose_live(held, held.__getitem__)] == live


def test_unfinished_files_are_no_files(tmp_path: Path) -> None:
    """A temporary name, an empty file and a folder are never listed, and every sweep is judged alone."""
    for name in ("runs/s1/r1.parquet", "runs/s1/r2.parquet.x7.tmp", "runs/s2/r1.parquet", "events/s1/r1.parquet"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"something")
    (tmp_path / "runs/s1/claimed.parquet").touch()
    (tmp_path / "runs/s1/folder.parquet").mkdir()
    live = live_files(tmp_path, lambda file: set())
    assert [str(file.relative_to(tmp_path)) for file in live["runs"]] == ["runs/s1/r1.parquet", "runs/s2/r1.parquet"]
    assert [file.name for file in live["events"]] == ["r1.parquet"]
    assert live["roofs"] == []


def test_a_sweep_alone(tmp_path: Path) -> None:
    """Runs and events of other sweeps are not there; an unknown sweep has none."""
    event = {"name": "k", "category": "kernel", "is_device": True, "ts_ns": 0, "dur_ns": 1}
    runs = [{"sweep_id": "one"}, {"sweep_id": "two", "size": 128}]
    store = write_store(tmp_path, runs=runs, events=[event, {**event, "run_id": "r001"}])
    for sweep_id, held in (("one", [("r000",)]), ("two", [("r001",)]), ("three", []), (None, [("r000",), ("r001",)])):
        with open_store(store, sweep_id=sweep_id) as connection:
            assert connection.sql("SELECT run_id FROM runs ORDER BY run_id").fetchall() == held
            assert connection.sql("SELECT run_id FROM events ORDER BY run_id").fetchall() == held


def test_a_compacted_run_counts_once(tmp_path: Path) -> None:
    """A run that stands in a compacted file and still as a part is one run, and so are its events."""
    event = {"name": "k", "category": "kernel", "is_device": True, "ts_ns": 0, "dur_ns": 1}
    store = write_store(tmp_path, runs=[{}, {"size": 128}], events=[event, {**event, "run_id": "r001"}])
    for kind in ("runs", "events"):
        folder = store / kind / "sweep"
        pl.read_parquet(folder / "r000.parquet").write_parquet(folder / "all-h.parquet")
    with open_store(store) as connection:
        assert connection.sql("SELECT run_id FROM runs ORDER BY ALL").fetchall() == [("r000",), ("r001",)]
        assert connection.sql("SELECT run_id FROM events ORDER BY ALL").fetchall() == [("r000",), ("r001",)]


def test_missing_store_is_one_sentence(tmp_path: Path) -> None:
    """A folder that does not exist names itself and the cure."""
    with pytest.raises(StoreError, match=r"there is no store at .*nowhere: run a sweep "):
        open_store(tmp_path / "nowhere")


def test_torn_file_is_one_sentence(tmp_path: Path) -> None:
    """A file that is no Parquet file is an error of one line, not a traceback of many."""
    write_store(tmp_path, runs=[{}])
    (tmp_path / "runs" / "sweep" / "r999.parquet").write_text("torn")
    with pytest.raises(StoreError, match="cannot be read") as error:
        open_store(tmp_path)
    assert "\n" not in str(error.value)
    assert f"`python -m runner.store repair --store {tmp_path}` moves unreadable files away" in str(error.value)


def test_empty_store_has_every_relation(tmp_path: Path) -> None:
    """An empty store is normal: every relation is there, without rows."""
    with open_store(tmp_path) as connection:
        counts = {name: connection.execute(f"SELECT count(*) FROM {name}").fetchall() for name in reading.RELATIONS}
    assert set(map(str, counts.values())) == {"[(0,)]"}


def test_missing_null_and_unknown_columns_are_normal(tmp_path: Path) -> None:
    """An older file lacks columns, another holds only NULL in them, a newer one has more: all three are read."""
    folder = tmp_path / "runs" / "s [1]'s"
    folder.mkdir(parents=True)
    pl.DataFrame({"run_id": ["old"], "size": [64]}).write_parquet(folder / "old.parquet")
    nulls = pl.DataFrame({"run_id": ["null"], "size": [None], "wall_us": [None], "facts": [None]})
    nulls.write_parquet(folder / "null.parquet")
    newer = pl.DataFrame({"run_id": ["new"], "wall_us": [[1.0, 0.5, float("nan")]], "colour": ["red"]})
    newer.write_parquet(folder / "new.parquet")
    with open_store(tmp_path) as connection:
        rows = connection.sql("SELECT run_id, size, wall_us, wall_us_low, wall_us_high FROM runs ORDER BY 1").fetchall()
        bounds = connection.sql("SELECT DISTINCT bound FROM bounds").fetchall()
    assert rows == [("new", None, 1.0, 0.5, None), ("null", None, None, None, None), ("old", 64, None, None, None)]
    assert bounds == [("unknown",)]


def test_a_file_of_nulls_alone_is_normal(tmp_path: Path) -> None:
    """A column whose only file has no type for it still has the type that the store states."""
    folder = tmp_path / "runs" / "s"
    folder.mkdir(parents=True)
    pl.DataFrame({"run_id": ["r"], "wall_us": [None], "samples": [None], "batch": [None]}).write_parquet(
        folder / "r.parquet"
    )
    with open_store(tmp_path) as connection:
        types = dict(connection.sql("SELECT column_name, column_type FROM (DESCRIBE runs)").fetchall())
        assert (types["batch"], types["wall_us"]) == ("BIGINT", "DOUBLE")
        assert connection.sql("SELECT count(*) FROM samples").fetchall() == [(0,)]


def test_events_without_their_run_do_not_count(tmp_path: Path) -> None:
    """The events file is written before the run: until the run appears they are not there."""
    event = {"name": "k", "category": "kernel", "is_device": True, "ts_ns": 0, "dur_ns": 1}
    write_store(tmp_path, runs=[{}], events=[event, {**event, "run_id": "unfinished"}])
    with open_store(tmp_path) as connection:
        assert connection.sql("SELECT run_id FROM events").fetchall() == [("r000",)]


def test_files_that_vanish_are_listed_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Compaction between the listing and the reading removes the listed parts: the second listing finds its file."""
    store = write_store(tmp_path, runs=[{}, {"size": 128}])
    listings = []

    def compacted_meanwhile(folder, run_ids_of, sweep_id):
        live = live_files(folder, run_ids_of, sweep_id)
        if not listings:
            pl.read_parquet(live["runs"]).write_parquet(store / "runs" / "sweep" / "all-h.parquet")
            for part in live["runs"]:
                part.unlink()
        listings.append(live)
        return live

    monkeypatch.setattr(reading, "live_files", compacted_meanwhile)
    with open_store(store) as connection:
        assert connection.sql("SELECT count(*) FROM runs").fetchall() == [(2,)]
    assert len(listings) == 2


@pytest.mark.parametrize("odd", [False, True], ids=["alike", "one part has other columns"])
def test_many_parts_are_read_as_few(tmp_path: Path, odd: bool) -> None:
    """A sweep that was never compacted has a file for every run: none is lost, and compacted files stay in place."""
    runs = [{"size": size, "wall_us": size} for size in range(reading.FEW_PARTS + 2)]
    store = write_store(tmp_path / "s [1]", runs=runs)
    folder = store / "runs" / "sweep"
    pl.read_parquet(folder / "r000.parquet", glob=False).write_parquet(folder / "all-h.parquet")
    if odd:
        pl.DataFrame({"run_id": ["r001"], "size": [1], "wall_us": [None], "new": [1]}).write_parquet(
            folder / "r001.parquet"
        )
    with open_store(store) as connection:
        sizes = connection.sql("SELECT size FROM runs ORDER BY size").fetchall()
        walls = connection.sql("SELECT count(wall_us) FROM runs").fetchall()
    assert sizes == [(size,) for size in range(len(runs))]
    assert walls == [(len(runs) - odd,)]


def test_reading_changes_nothing(tmp_path: Path) -> None:
    """The store is only read: same files, same contents afterwards."""
    write_store(tmp_path, runs=[{}], environments=[{}], roofs=[{"roof": "dram", "value_per_s": 1.0}])
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    with open_store(tmp_path) as connection:
        connection.sql("FROM crossovers").fetchall()
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before


def test_given_stores_have_the_documented_columns() -> None:
    """The builder of these tests writes the columns of docs/store.md and no others."""
    page = (Path(__file__).parents[1] / "docs" / "store.md").read_text(encoding="utf-8")
    runs, events = (
        page.split("## runs")[1].split("### facts")[0],
        page.split("## events")[1].split("The runner's own")[0],
    )
    for section, schema in ((runs, RUNS), (events, EVENTS)):
        rows = [line.split("|")[1] for line in section.splitlines() if line.startswith("| ")][1:]
        assert {name.strip() for row in rows for name in row.split(",")} == set(schema)


def test_the_analysis_needs_neither_torch_nor_runner() -> None:
    """Parquet is the only seam: importing the analysis imports neither."""
    code = "import analysis, analysis.__main__, sys; sys.exit(bool({'torch', 'runner'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], cwd=Path(__file__).parents[1], check=False).returncode == 0
