"""runner.store: files appear whole or not at all, and are never overwritten."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import polars as pl
import pytest

from runner.store import Store, StoreError, new_id

ROOT = Path(__file__).parent.parent


def run(run_id: str = "r1", value: int = 1) -> pl.DataFrame:
    """One row that names its place."""
    return pl.DataFrame({"run_id": [run_id], "sweep_id": ["s1"], "value": [value]})


def files(folder: Path) -> set[str]:
    """All files below a folder."""
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def test_a_run_lies_beside_its_events(tmp_path: Path) -> None:
    """runs/<sweep>/<run>.parquet and events/<sweep>/<run>.parquet, and nothing else."""
    assert Store(tmp_path).write_run(run(), run())
    assert files(tmp_path) == {"runs/s1/r1.parquet", "events/s1/r1.parquet"}


def test_a_run_without_events_has_no_events_file(tmp_path: Path) -> None:
    """Neither None nor an empty table makes a file."""
    store = Store(tmp_path)
    store.write_run(run("r1"), None)
    store.write_run(run("r2"), run().clear())
    assert files(tmp_path) == {"runs/s1/r1.parquet", "runs/s1/r2.parquet"}


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    """Whoever is second to publish a name drops its content."""
    store = Store(tmp_path)
    assert store.write_run(run(value=1), None)
    assert not store.write_run(run(value=2), None)
    assert pl.read_parquet(tmp_path / "runs/s1/r1.parquet")["value"].to_list() == [1]
    assert files(tmp_path) == {"runs/s1/r1.parquet"}


@pytest.mark.parametrize("links", [True, False], ids=["links", "no links"])
def test_of_many_writers_one_wins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, links: bool) -> None:
    """Eight threads publish one name at once, with and without a file system that has links: one file, one winner."""
    if not links:

        def refuse(self: Path, target: Path) -> None:
            raise OSError(1, "Operation not permitted")

        monkeypatch.setattr(Path, "hardlink_to", refuse)
    store, ready = Store(tmp_path), threading.Barrier(8)
    won: list[int] = []

    def write(number: int) -> None:
        ready.wait()
        if store.publish(run(value=number), tmp_path / "runs/s1/r1.parquet"):
            won.append(number)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(won) == 1
    assert pl.read_parquet(tmp_path / "runs/s1/r1.parquet")["value"].to_list() == won
    assert files(tmp_path) == {"runs/s1/r1.parquet"}


def test_roofs_and_environments_are_written_once(tmp_path: Path) -> None:
    """Both are named by the environment, and roofs can be read back."""
    store = Store(tmp_path)
    frame = pl.DataFrame({"environment_id": ["e1"], "value": [1.0]})
    assert store.roofs("e1") is None
    assert store.write_environment(frame) and store.write_roofs(frame)
    assert not store.write_environment(frame) and not store.write_roofs(frame)
    found = store.roofs("e1")
    assert found is not None and found.equals(frame)
    assert files(tmp_path) == {"environments/e1.parquet", "roofs/e1.parquet"}


def test_generated_code_is_written_once(tmp_path: Path) -> None:
    """It is named by its id, and the second who brings it changes nothing."""
    store = Store(tmp_path)
    frame = pl.DataFrame({"code_id": ["c1"], "source_text": ["one"]})
    assert store.write_code(frame) == store.write_code(frame.with_columns(source_text=pl.lit("two"))) == "c1"
    assert files(tmp_path) == {"code/c1.parquet"}
    assert pl.read_parquet(tmp_path / "code/c1.parquet")["source_text"].to_list() == ["one"]


def test_an_artifact_lies_below_its_sweep(tmp_path: Path) -> None:
    """Its path is told relative to the store."""
    assert Store(tmp_path).write_artifact("s1", "trace.json.gz", b"abc") == "artifacts/s1/trace.json.gz"
    assert (tmp_path / "artifacts/s1/trace.json.gz").read_bytes() == b"abc"


def test_check_makes_the_folder_and_leaves_nothing(tmp_path: Path) -> None:
    """The proof that a file can be written leaves no file."""
    folder = tmp_path / "new" / "store"
    Store(folder).check()
    assert folder.is_dir() and files(folder) == set()


@pytest.mark.parametrize("place", ["file", "file/store", "/proc/store", "x" * 300])
def test_a_store_that_cannot_be_is_told(tmp_path: Path, place: str) -> None:
    """A file in the way, a folder that cannot be made, a name too long: which store, and why, in one sentence."""
    (tmp_path / "file").write_text("in the way")
    folder = tmp_path / place
    with pytest.raises(StoreError, match=r"store=.*: cannot be written: \w+") as error:
        Store(folder).check()
    assert "\n" not in str(error.value)


def test_a_full_disk_is_told_and_leaves_no_file(tmp_path: Path) -> None:
    """A file that cannot grow gives StoreError, and neither a torn file nor a temporary one stays."""
    code = f"""
import resource, sys
from pathlib import Path
import polars as pl
from runner.store import Store, StoreError
frame = pl.DataFrame({{"value": list(range(100_000))}})
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
store = Store(Path({str(tmp_path)!r}))
for write in (
    lambda: store.publish(frame, store.folder / "runs" / "big.parquet"),
    lambda: store.write_artifact("s1", "big.txt", bytes(100_000)),
):
    try:
        write()
    except StoreError as error:
        print(error)
"""
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert told.returncode == 0, told.stderr
    assert len(told.stdout.splitlines()) == 2
    assert all("cannot be written: " in line for line in told.stdout.splitlines()), told.stdout
    assert files(tmp_path) == set()


def test_ids_are_ordered_by_time_and_never_alike() -> None:
    """19 hexadecimal digits; later ids are greater once a millisecond has passed."""
    ids = [new_id() for _ in range(1000)]
    assert len(set(ids)) == 1000
    assert all(len(each) == 19 and int(each, 16) for each in ids)
    times = [each[:11] for each in ids]
    assert times == sorted(times)


@pytest.mark.parametrize("content", [b"", b"torn"])
def test_roofs_that_cannot_be_read_are_not_there(tmp_path: Path, content: bytes) -> None:
    """A torn file of roofs is measured anew, and stops no sweep."""
    store = Store(tmp_path)
    store.roofs_path("e1").parent.mkdir(parents=True)
    store.roofs_path("e1").write_bytes(content)
    assert store.roofs("e1") is None
    assert store.roofs("e2") is None
