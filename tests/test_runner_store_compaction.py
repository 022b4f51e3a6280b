"""runner.store: compaction keeps every run and event, tidying removes only what nobody needs."""

from __future__ import annotations

import hashlib
from pathlib import Path
from types import ModuleType

import polars as pl
import pytest
from store_given import events, files_in, live, run, write_runs

from runner.store import Compacted, Store, StoreError, compact, files, gather, repair, tidy, writing
from runner.tables import EVENTS, RUNS


def name_of(*run_ids: str) -> str:
    """What a compacted file of these runs is called."""
    return f"all-{hashlib.sha256(chr(10).join(sorted(run_ids)).encode()).hexdigest()[:12]}.parquet"


def write(store: Store, path: str, run_ids: list[str], **columns: object) -> None:
    """A file of these runs."""
    frame = pl.DataFrame({"run_id": run_ids, **columns})
    assert store.publish(frame, store.folder / path)


def tear_a_page(file: Path) -> None:
    """Spoil the later columns of a file; its footer and run_id, the first column, can still be read."""
    content = file.read_bytes()
    footer = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    file.write_bytes(content[: footer // 2] + bytes([255]) * (footer - footer // 2) + content[footer:])


def test_runs_become_one_file_and_events_another(tmp_path: Path) -> None:
    """Both are named by their run ids, hold what the parts held, and the parts stay for readers at work."""
    store = write_runs(tmp_path, "r2", "r1")
    before = {kind: pl.read_parquet(tmp_path / kind / "s1/*.parquet") for kind in ("runs", "events")}
    assert compact(store, "s1") == Compacted(runs=2, events=4, superseded=4)
    for kind, schema in (("runs", RUNS), ("events", EVENTS)):
        table = pl.read_parquet(tmp_path / kind / "s1" / name_of("r1", "r2"))
        assert table.equals(before[kind]) and table.schema == schema
        assert (tmp_path / kind / "s1/r1.parquet").exists()


def test_what_is_compacted_is_left_as_it_is(tmp_path: Path) -> None:
    """A second compaction writes nothing, before and after tidying."""
    store = write_runs(tmp_path, "r1", "r2")
    compact(store, "s1")
    written = files_in(tmp_path)
    assert compact(store, "s1") == Compacted(2, 4, 4)
    assert files_in(tmp_path) == written
    tidy(store, age_s=0)
    assert compact(store, "s1") == Compacted(2, 4, 0)
    assert files_in(tmp_path) == {f"{kind}/s1/{name_of('r1', 'r2')}" for kind in ("runs", "events")} | {
        "environments/e1.parquet"
    }


def test_later_runs_join_the_compacted_ones(tmp_path: Path) -> None:
    """Parts beside a compacted file: the next compaction holds both."""
    store = write_runs(tmp_path, "r1", "r2")
    compact(store, "s1")
    tidy(store, age_s=0)
    write_runs(tmp_path, "r3")
    assert live(store) == ["r1", "r2", "r3"]
    assert compact(store, "s1") == Compacted(3, 6, 4)
    tidy(store, age_s=0)
    assert live(store) == ["r1", "r2", "r3"]
    assert files_in(tmp_path / "runs") == {f"s1/{name_of('r1', 'r2', 'r3')}"}


def test_runs_of_older_stores_keep_all_columns(tmp_path: Path) -> None:
    """Columns that some files lack are null there, one that no version knows stays; known ones come first, in order."""
    store = Store(tmp_path)
    write(store, "runs/s1/r1.parquet", ["r1"], later=["kept"], size=[64])
    write(store, "runs/s1/r2.parquet", ["r2"], sweep_id=["s1"])
    compact(store, "s1")
    table = pl.read_parquet(tmp_path / "runs/s1" / name_of("r1", "r2")).sort("run_id")
    assert table.columns == ["run_id", "sweep_id", "size", "later"]
    assert table.rows() == [("r1", None, 64, "kept"), ("r2", "s1", None, None)]


def test_events_without_their_run_are_left_out(tmp_path: Path) -> None:
    """Their writer may be about to commit the run: they stay where they lie, and count when it has come."""
    store = write_runs(tmp_path, "r1", "r2")
    store.publish(events("r3"), tmp_path / "events/s1/r3.parquet")
    assert compact(store, "s1") == Compacted(2, 4, 4)
    assert tidy(store) == []
    assert store.write_run(run("r3"), events("r3"))
    assert compact(store, "s1").events == 6


def test_orphaned_events_go_when_they_are_old(tmp_path: Path) -> None:
    """But not while a file of runs cannot be read, which may hold their run."""
    store = write_runs(tmp_path, "r1")
    orphan = tmp_path / "events/s1/r9.parquet"
    store.publish(events("r9"), orphan)
    torn = tmp_path / "runs/s1/all-x.parquet"
    torn.write_bytes(b"torn")
    assert tidy(store) == [] and tidy(store, age_s=0) == []
    torn.unlink()
    assert tidy(store, age_s=0) == [orphan]
    assert files_in(tmp_path / "events") == {"s1/r1.parquet"}


def test_runs_that_two_compacted_files_split_come_together(tmp_path: Path) -> None:
    """Two compactions published at once hide each other's runs; the next one holds them all, nothing goes before."""
    store = Store(tmp_path)
    write(store, f"runs/s1/{name_of('r1', 'r2', 'r3')}", ["r1", "r2", "r3"])
    write(store, f"runs/s1/{name_of('r3', 'r4')}", ["r3", "r4"])
    assert live(store) == ["r1", "r2", "r3"]
    assert tidy(store, age_s=0) == []
    compact(store, "s1")
    assert live(store) == ["r1", "r2", "r3", "r4"]
    tidy(store, age_s=0)
    assert files_in(tmp_path) == {f"runs/s1/{name_of('r1', 'r2', 'r3', 'r4')}"}
    assert live(store) == ["r1", "r2", "r3", "r4"]


def test_superseded_files_stay_for_a_quarter_of_an_hour(tmp_path: Path) -> None:
    """Readers that listed them may still read them."""
    store = write_runs(tmp_path, "r1", "r2")
    compact(store, "s1")
    assert tidy(store) == []
    assert {file.name for file in tidy(store, age_s=0)} == {"r1.parquet", "r2.parquet"}
    assert live(store) == ["r1", "r2"]


def test_parts_that_differ_from_their_names_are_left_alone(tmp_path: Path) -> None:
    """A part copied to another name holds a run that is there already: it does not count twice after compaction."""
    store = write_runs(tmp_path, "r1", "r2")
    (tmp_path / "runs/s1/r3.parquet").write_bytes((tmp_path / "runs/s1/r2.parquet").read_bytes())
    assert compact(store, "s1").runs == 2
    assert pl.read_parquet(tmp_path / "runs/s1" / name_of("r1", "r2"))["run_id"].to_list() == ["r1", "r2"]


def test_a_torn_part_is_left_out_and_stays(tmp_path: Path) -> None:
    """Without a readable footer it is no run; repair moves it, tidying does not touch it."""
    store = write_runs(tmp_path, "r1", "r2")
    torn = tmp_path / "runs/s1/r3.parquet"
    torn.write_bytes(b"torn")
    assert compact(store, "s1").runs == 2
    tidy(store, age_s=0)
    assert torn.read_bytes() == b"torn"


def test_a_torn_page_is_told_with_the_cure(tmp_path: Path) -> None:
    """Its footer can be read, its rows cannot: the file is named, nothing is written, the other runs stay."""
    store = write_runs(tmp_path, "r1", "r2")
    torn = tmp_path / "runs/s1/r2.parquet"
    tear_a_page(torn)
    with pytest.raises(StoreError, match=r"r2\.parquet: cannot be read: .*repair` moves it aside"):
        compact(store, "s1")
    assert files_in(tmp_path / "runs") == {"s1/r1.parquet", "s1/r2.parquet"}
    assert live(store)[0] == "r1"


def test_parts_stay_while_their_compacted_file_has_a_torn_page(tmp_path: Path) -> None:
    """Its run ids can still be read, its other columns cannot: the parts are all that is left of the runs."""
    store = write_runs(tmp_path, "r1", "r2")
    compact(store, "s1")
    tear_a_page(tmp_path / "runs/s1" / name_of("r1", "r2"))
    tidy(store, age_s=0)
    repair(store, age_s=0)
    assert live(store) == ["r1", "r2"]
    assert store.live_runs(["size"])["size"].to_list() == [64, 64]


def test_runs_that_a_torn_page_leaves_readable_are_counted(tmp_path: Path) -> None:
    """Of a compacted file with one bad column the run ids tell how many runs no other file holds."""
    store = write_runs(tmp_path, "r1", "r2", "r3")
    compact(store, "s1")
    (tmp_path / "runs/s1/r1.parquet").unlink()
    tear_a_page(tmp_path / "runs/s1" / name_of("r1", "r2", "r3"))
    assert [(each.live_runs, each.lost_runs) for each in repair(store).moved] == [(2, 1)]


def test_unfinished_files_and_claims_go_when_they_are_old(tmp_path: Path) -> None:
    """Names that no writer gave stay, whatever they are."""
    store = write_runs(tmp_path, "r1")
    for name in ("runs/s1/r2.parquet.0123abcd.tmp", "probe.89abcdef.tmp", "notes.tmp"):
        (tmp_path / name).write_bytes(b"unfinished")
    (tmp_path / "runs/s1/r3.parquet").touch()
    assert tidy(store) == []
    tidy(store, age_s=0)
    assert files_in(tmp_path) == {"notes.tmp", "environments/e1.parquet", "runs/s1/r1.parquet", "events/s1/r1.parquet"}


@pytest.mark.parametrize(
    ("module", "step", "names"),
    [(files, "by_columns", 2), (writing, "_publish", 3)],
    ids=["while it writes", "before it has a name"],
)
def test_a_compaction_that_was_overtaken_starts_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: ModuleType, step: str, names: int
) -> None:
    """Another process merges fewer runs, one of them new, meanwhile: this one is not hidden behind the greater file.

    Where that is seen in time the greater file gets no name at all.
    """
    store = write_runs(tmp_path / "store", *(f"r{number}" for number in range(9)))
    other = write_runs(tmp_path / "other", "a0")
    rest, original, calls = tmp_path / "rest", getattr(module, step), []

    def be_overtaken(*arguments: object) -> object:
        calls.append(step)
        if len(calls) < 2:  # the first is for the events
            return original(*arguments)
        monkeypatch.setattr(module, step, original)
        for part in sorted((store.folder / "runs/s1").glob("r*"))[:5]:
            part.rename(rest / part.name)
        gather(store, "s1", [other.folder])
        for part in rest.iterdir():
            part.rename(store.folder / "runs/s1" / part.name)
        return original(*arguments)

    rest.mkdir()
    monkeypatch.setattr(module, step, be_overtaken)
    compact(store, "s1")
    assert live(store) == ["a0", *(f"r{number}" for number in range(9))]
    assert len(list((store.folder / "runs/s1").glob("all-*"))) == names


def test_a_read_only_store_is_told(tmp_path: Path) -> None:
    """One sentence that names the place; nothing is left behind. (A file in the way: root may write anywhere.)"""
    store = write_runs(tmp_path, "r1")
    (tmp_path / "events/s2").write_text("in the way")
    store.publish(run("r2", "s2"), tmp_path / "runs/s2/r2.parquet")
    assert compact(store, "s2").runs == 1
    before = files_in(tmp_path)
    with pytest.raises(StoreError, match=r"cannot be written: \w+"):
        store.write_run(run("r3", "s2"), events("r3"))
    assert files_in(tmp_path) == before
