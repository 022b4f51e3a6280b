"""`python -m runner.store`: check tells every problem, repair and merge lose nothing."""

from __future__ import annotations

import errno
import shutil
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest
from store_given import events, files_in, live, run, write_runs

from runner.store import Problem, Store, StoreError, check, compact, merge, repair, tidy
from runner.store.__main__ import main
from runner.tables import CODE

ROOT = Path(__file__).parent.parent


def damages(store: Store) -> list[tuple[str, str]]:
    """Path below the store and words of everything damaged."""
    return [
        (str(each.path.relative_to(store.folder)), each.what) for each in check(store.folder).problems if each.damaged
    ]


def notes(store: Store) -> list[tuple[str, str]]:
    """Path below the store and words of everything that is no damage."""
    found: list[Problem] = [each for each in check(store.folder).problems if not each.damaged]
    return [(str(each.path.relative_to(store.folder)), each.what) for each in found]


def test_a_whole_store_is_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Runs, files, events and environments of each sweep; no problem; exit code 0."""
    store = write_runs(tmp_path, "r1", "r2", "r3")
    compact(store, "s1")
    tidy(store, age_s=0)
    write_runs(tmp_path, "r4")
    assert main(["check", "--store", str(tmp_path)]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "s1  4 runs (1 part, 1 compacted file), 8 events, 1 environment",
        "1 sweep, no damage, 0 notes",
    ]


def test_every_damage_is_told_with_its_path(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Torn files, a lost environment, runs of another name or sweep, one there twice, a retyped column; exit code 2."""
    store = write_runs(tmp_path, "r1", "r2")
    (tmp_path / "environments/e1.parquet").unlink()
    (tmp_path / "events/s1/r2.parquet").write_bytes(b"torn")
    store.publish(run("r3"), tmp_path / "runs/s1/r4.parquet")
    store.publish(run("r1", "s2"), tmp_path / "runs/s2/r1.parquet")
    store.publish(run("r5", "s2"), tmp_path / "runs/s3/r5.parquet")
    store.publish(run("r6").with_columns(pl.col("size").cast(pl.String)), tmp_path / "runs/s1/r6.parquet")
    found = damages(store)
    assert ("events/s1/r2.parquet", "cannot be read: parquet: ") in [(path, what[:25]) for path, what in found]
    told = [each for each in found if each[0] != "events/s1/r2.parquet"]
    assert sorted(told) == [
        ("environments/e1.parquet", "missing, but named by 1 run of the sweep s2"),
        ("environments/e1.parquet", "missing, but named by 1 run of the sweep s3"),
        ("environments/e1.parquet", "missing, but named by 4 runs of the sweep s1"),
        ("runs/s1/r4.parquet", "holds the run r3, not that of its name"),
        ("runs/s1/r6.parquet", "1 file: column size is String, not Int64"),
        ("runs/s2/r1.parquet", "run r1 is there 2 times"),
        ("runs/s3/r5.parquet", "holds a run of the sweep s2, not of its folder"),
    ]
    assert main(["check", "--store", str(tmp_path)]) == 2
    told = capsys.readouterr().out
    assert f"damaged: {tmp_path}/runs/s1/r4.parquet: holds the run r3" in told
    assert told.splitlines()[-1].startswith("3 sweeps, damage in 8 places, ")


def test_a_compacted_file_of_another_name_or_out_of_sight_is_told(tmp_path: Path) -> None:
    """A name that is not the hash of the runs; runs that no live file holds."""
    store = write_runs(tmp_path, "r1", "r2", "r3")
    compact(store, "s1")
    tidy(store, age_s=0)
    store.publish(run("r8"), tmp_path / "runs/s1/all-x.parquet")
    assert damages(store) == [
        ("runs/s1/all-x.parquet", "holds 1 run other than its name says"),
        ("runs/s1/all-x.parquet", "1 run of it in no live file: `compact` brings back what is hidden"),
    ]


def test_leftovers_and_older_tables_are_no_damage(tmp_path: Path) -> None:
    """Unfinished files, claims, orphans, superseded files, columns that came later: told, and the exit code is 0."""
    store = write_runs(tmp_path, "r1", "r2")
    compact(store, "s1")
    (tmp_path / "runs/s1/r3.parquet.0123abcd.tmp").write_bytes(b"unfinished")
    (tmp_path / "runs/s1/r4.parquet").touch()
    store.publish(events("r5"), tmp_path / "events/s1/r5.parquet")
    store.publish(run("r6", "s0").drop("facts", "margin"), tmp_path / "runs/s0/r6.parquet")
    assert sorted(notes(store)) == [
        ("events/s1", "2 superseded files"),
        ("events/s1/r5.parquet", "events whose run is not there"),
        ("runs/s0", "1 file without columns: margin, facts"),
        ("runs/s1", "2 superseded files"),
        ("runs/s1/r3.parquet.0123abcd.tmp", "unfinished"),
        ("runs/s1/r4.parquet", "empty: claimed and never written"),
    ]
    assert main(["check", "--store", str(tmp_path)]) == 0


def test_repair_moves_what_is_torn_and_the_parts_count_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The torn file keeps its bytes under damaged/, leftovers go, the next check finds nothing."""
    store = write_runs(tmp_path, "r1", "r2")
    compact(store, "s1")
    (torn,) = (tmp_path / "runs/s1").glob("all-*")
    content = torn.read_bytes()[:-9]
    torn.write_bytes(content)
    (tmp_path / "runs/s1/r3.parquet.0123abcd.tmp").write_bytes(b"unfinished")
    assert main(["check", "--store", str(tmp_path)]) == 2
    assert main(["repair", "--store", str(tmp_path), "--age", "0"]) == 0
    assert (tmp_path / "damaged/runs/s1" / torn.name).read_bytes() == content
    told = capsys.readouterr().out
    assert "; with it went 0 runs; live runs beside it: 2\n" in told
    assert told.endswith("\n1 unreadable file moved, 3 leftovers removed, no damage left\n")
    assert live(store) == ["r1", "r2"]
    assert main(["check", "--store", str(tmp_path)]) == 0
    assert check(tmp_path).problems == []


@pytest.mark.parametrize(
    ("torn", "told"),
    [
        ("runs/s1/r3.parquet", "; with it went 1 run; live runs beside it: 2"),
        ("events/s1/r3.parquet", "; with it went the events of 1 run; live runs beside it: 2"),
        ("runs/s1/all-0123456789ab.parquet", "; with it went an unknown number of runs; live runs beside it: 2"),
        ("environments/e1.parquet", ")\nstill damaged: {0}: missing, but named by 2 runs of the sweep s1"),
    ],
)
def test_a_repair_that_loses_something_exits_2(
    tmp_path: Path, torn: str, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """What went with the file, as far as its name tells, and what is damaged for want of it."""
    folder = tmp_path / "runs"  # a store may have any name
    write_runs(folder, "r1", "r2")
    (folder / torn).write_bytes(b"torn")
    assert main(["repair", "--store", str(folder)]) == 2
    assert told.format(folder / torn) in capsys.readouterr().out


def test_repair_overwrites_nothing_in_the_damaged_folder(tmp_path: Path) -> None:
    """Two torn files of one name, one after the other: both are kept."""
    store = write_runs(tmp_path, "r1")
    for content in (b"torn once", b"torn twice"):
        (tmp_path / "runs/s1/r2.parquet").write_bytes(content)
        assert [each.live_runs for each in repair(store).moved] == [1]
    kept = {path.read_bytes() for path in (tmp_path / "damaged/runs/s1").iterdir()}
    assert kept == {b"torn once", b"torn twice"}


def test_merged_stores_hold_every_run_once(tmp_path: Path) -> None:
    """Parts and compacted files, shared sweeps and runs, environments, roofs, artifacts; what is there stays."""
    one, two = write_runs(tmp_path / "1", "r1", "r2"), write_runs(tmp_path / "2", "r2", "r3")
    write_runs(tmp_path / "2", "r4", sweep_id="s2")
    compact(two, "s1")
    two.write_roofs(pl.DataFrame({"environment_id": ["e1"], "roof": ["dram"]}))
    two.write_artifact("s1", "deep/trace.json", b"abc")
    two.publish(run("r2", size=7), tmp_path / "3/runs/s1/r2.parquet")
    assert (merge(two.folder, one).runs, merge(two.folder, one).dropped) == (2, 3)
    third = merge(tmp_path / "3", one)
    assert (third.runs, third.dropped) == (0, 1)
    assert live(one) == ["r1", "r2", "r3", "r4"]
    assert one.live_runs(["size"])["size"].unique().to_list() == [64]
    assert [each.events for each in check(one.folder).sweeps] == [6, 2]
    assert damages(one) == []
    assert (one.folder / "artifacts/s1/deep/trace.json").read_bytes() == b"abc"
    assert one.roofs("e1") is not None


def code(code_id: str) -> pl.DataFrame:
    """A generated file with every column."""
    row = {"code_id": code_id, "source_text": "def call(): ...", "file_name": "c.py", "graph_hash": None}
    return pl.DataFrame([row], schema=CODE)


def test_generated_code_is_merged_checked_and_repaired(tmp_path: Path) -> None:
    """The folder is looked after as environments are: copied, a wrong name and a torn file told, the torn one moved."""
    origin, target = write_runs(tmp_path / "from", "r1"), Store(tmp_path / "to")
    origin.write_code(code("c1"))
    merge(origin.folder, target)
    assert (target.folder / "code/c1.parquet").exists() and damages(target) == []
    target.publish(code("c2"), target.folder / "code/c3.parquet")
    (target.folder / "code/c4.parquet").write_bytes(b"torn")
    found = damages(target)
    assert ("code/c3.parquet", "holds the code c2, not that of its name") in found
    assert [path for path, what in found if what.startswith("cannot be read")] == ["code/c4.parquet"]
    (moved,) = repair(target).moved
    assert (moved.kind, moved.lost_runs) == ("code", 0)
    assert (target.folder / "damaged/code/c4.parquet").read_bytes() == b"torn"


def test_an_interrupted_merge_is_completed_by_another(tmp_path: Path) -> None:
    """Events that came without their runs: the target compacts and tidies as ever, the next merge brings the runs."""
    target, origin = write_runs(tmp_path / "to", "r1"), write_runs(tmp_path / "from", "r2", "r3", "r4")
    merge(origin.folder, target)
    for path in (target.folder / "runs/s1").glob("all-*"):
        path.unlink()
    target.write_run(run("r5"), events("r5"))
    compact(target, "s1")
    tidy(target, age_s=0)
    assert len(list((target.folder / "events/s1").iterdir())) == 1
    assert live(target) == ["r1", "r5"] and check(target.folder).sweeps[0].events == 4
    merge(origin.folder, target)
    tidy(target, age_s=0)
    assert live(target) == ["r1", "r2", "r3", "r4", "r5"]
    assert check(target.folder).sweeps[0].events == 10
    assert check(target.folder).problems == []


def test_a_merge_leaves_out_what_cannot_be_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The rest comes; the file is told; exit code 2."""
    origin = write_runs(tmp_path / "from", "r1")
    (origin.folder / "runs/s1/r2.parquet").write_bytes(b"torn")
    origin.roofs_path("e1").parent.mkdir()
    origin.roofs_path("e1").write_bytes(b"torn")
    assert main(["merge", str(origin.folder), "--store", str(tmp_path / "to")]) == 2
    assert live(Store(tmp_path / "to")) == ["r1"]
    told = capsys.readouterr().err
    assert "r2.parquet: left out" in told and "roofs/e1.parquet: left out" in told
    assert damages(Store(tmp_path / "to")) == []


@pytest.mark.parametrize("origin", ["store", "store/runs", ".", "nowhere"])
def test_a_store_is_not_merged_into_itself(tmp_path: Path, origin: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Nor one that holds it, nor one that is not there: one sentence, exit code 1, nothing changed."""
    write_runs(tmp_path / "store", "r1")
    before = files_in(tmp_path)
    assert main(["merge", str(tmp_path / origin), "--store", str(tmp_path / "store")]) == 1
    assert capsys.readouterr().err.count("\n") == 1
    assert files_in(tmp_path) == before


def test_compact_takes_all_sweeps_or_those_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An unknown sweep is told before anything is done."""
    write_runs(tmp_path, "r1", "r2")
    write_runs(tmp_path, "r3", "r4", sweep_id="s2")
    assert main(["compact", "s2", "s9", "--store", str(tmp_path)]) == 1
    assert "holds no sweep s9; it holds s1, s2" in capsys.readouterr().err
    assert not list(tmp_path.rglob("all-*"))
    assert main(["compact", "s2", "--store", str(tmp_path), "--age", "0"]) == 0
    assert [path.parent.name for path in (tmp_path / "runs").rglob("all-*")] == ["s2"]
    assert main(["compact", "--store", str(tmp_path), "--age", "0"]) == 0
    assert len(list((tmp_path / "runs").rglob("*.parquet"))) == 2


@pytest.mark.parametrize("command", ["check", "compact", "repair"])
def test_a_store_that_is_not_there_is_one_sentence(
    tmp_path: Path, command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit code 1, and no folder is made."""
    assert main([command, "--store", str(tmp_path / "nowhere")]) == 1
    assert capsys.readouterr().err.startswith("error: there is no store at ")
    assert not (tmp_path / "nowhere").exists()


def test_wrong_usage_exits_1(tmp_path: Path) -> None:
    """As everywhere in this project; 2 says that something is damaged."""
    for arguments in ([], ["mend"], ["merge"], ["compact", "--age", "old"]):
        told = subprocess.run([sys.executable, "-m", "runner.store", *arguments], capture_output=True, cwd=ROOT)
        assert told.returncode == 1 and told.stderr
        assert b"Traceback" not in told.stderr


@pytest.mark.parametrize("age", ["-1", "nan", "old"])
@pytest.mark.parametrize("command", ["compact", "repair"])
def test_an_age_is_a_number_of_seconds(command: str, age: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Less than nothing is refused in one sentence, before anything is removed."""
    with pytest.raises(SystemExit) as end:
        main([command, "--age", age])
    assert end.value.code == 1
    told = capsys.readouterr().err
    assert f"--age: {age}: allowed is a number of seconds from 0 on" in told and told.count("\n") == 1


def test_superseded_files_wait_for_their_age(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The second compaction says of the first one's leftovers what the first said: they wait."""
    write_runs(tmp_path, "r1")
    write_runs(tmp_path, "r2")
    for _ in range(2):
        assert main(["compact", "--store", str(tmp_path)]) == 0
        assert capsys.readouterr().out.splitlines() == [
            "s1: 2 runs, 4 events; 4 superseded files to go at an age of 900 s",
            "0 leftovers removed",
        ]
    assert main(["compact", "--store", str(tmp_path), "--age", "0"]) == 0
    assert main(["compact", "--store", str(tmp_path), "--age", "0"]) == 0
    assert capsys.readouterr().out.splitlines()[-2:] == ["s1: 2 runs, 4 events", "0 leftovers removed"]


def test_leftovers_that_cannot_be_removed_are_told_at_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The others go, the runs are compacted or moved; exit code 2. (Root may remove anything, hence the refusal.)"""
    unlink = Path.unlink

    def refused(path: Path, missing_ok: bool = False) -> None:
        if path.name == "r1.parquet":
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        unlink(path, missing_ok)

    store = write_runs(tmp_path, "r1", "r2")
    monkeypatch.setattr(Path, "unlink", refused)
    assert main(["compact", "--store", str(tmp_path), "--age", "0"]) == 2
    said = capsys.readouterr()
    assert said.out == "s1: 2 runs, 4 events; 4 superseded files to go at an age of 0 s\n"
    assert "2 leftovers cannot be removed, 2 others went: " in said.err and said.err.endswith(": Permission denied\n")
    assert sorted(path.name for path in tmp_path.rglob("r*.parquet")) == ["r1.parquet", "r1.parquet"]
    with pytest.raises(StoreError, match="2 leftovers cannot be removed, 0 others went"):
        tidy(store, age_s=0)
    assert main(["repair", "--store", str(tmp_path), "--age", "0"]) == 2
    assert live(store) == ["r1", "r2"]


def test_a_store_that_cannot_be_written_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A merge into a file: one sentence, exit code 1."""
    write_runs(tmp_path / "from", "r1")
    (tmp_path / "to").write_text("in the way")
    assert main(["merge", str(tmp_path / "from"), "--store", str(tmp_path / "to")]) == 1
    assert "to: cannot be written: " in capsys.readouterr().err


def test_names_too_long_are_told(tmp_path: Path) -> None:
    """A run whose id the file system refuses: StoreError, and nothing is left."""
    with pytest.raises(StoreError, match="cannot be written: File name too long"):
        Store(tmp_path).write_run(run("r" * 300), events("r" * 300))
    assert files_in(tmp_path) == set()


def test_keeping_a_store_copies_it_compacted(tmp_path: Path) -> None:
    """scripts/keep.py on kept results gives the same files with the same rows."""
    kept = ROOT / "docs/results/h200"
    shutil.copytree(kept, tmp_path / "from")
    command = [sys.executable, str(ROOT / "scripts/keep.py"), str(tmp_path / "from"), str(tmp_path / "to")]
    subprocess.run(command, check=True, cwd=ROOT)
    tables = sorted(path.relative_to(kept) for path in kept.rglob("*.parquet"))
    assert sorted(path.relative_to(tmp_path / "to") for path in (tmp_path / "to").rglob("*.parquet")) == tables
    assert all(pl.read_parquet(kept / path).equals(pl.read_parquet(tmp_path / "to" / path)) for path in tables)
