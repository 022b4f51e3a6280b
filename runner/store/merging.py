"""Copy stores into one. Nothing is overwritten, so a merge may be interrupted and repeated."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from runner.store import files
from runner.store.checking import unreadable
from runner.store.compaction import NAMED, gather
from runner.store.writing import Store, StoreError


@dataclass(frozen=True, slots=True)
class Merged:
    """What came from one store. dropped: runs that were there already; left: files that cannot be read, and why."""

    origin: Path
    runs: int
    dropped: int
    left: dict[Path, str]


def merge(origin: Path, target: Store) -> Merged:
    """Copy environments, roofs, code, artifacts, events and runs of a store into another; a run it has is dropped.

    The runs of a sweep commit last, all at once. Other processes may write both stores meanwhile.

    Raises:
        StoreError: `refuse` says why not, or a file cannot be read or written; what was copied until then stays, and
            the same merge again completes it.
    """
    refuse(origin, target.folder)
    target.check()
    try:
        left = files.list_again(partial(unreadable, origin))
        _copy(origin, target, left)
        counts = [_merge_sweep(origin, target, folder.name) for folder in files.folders(origin / "runs")]
    except OSError as error:
        raise StoreError(f"store={origin}: cannot be read: {files.reason(error)}") from error
    return Merged(origin, sum(new for new, _ in counts), sum(known for _, known in counts), left)


def refuse(origin: Path, target: Path) -> None:
    """Raise StoreError where there is no store at `origin`, or where it and the target are or hold one another."""
    if not origin.is_dir():
        raise StoreError(f"there is no store at {origin}")
    here, there = origin.resolve(), target.resolve()
    if here.is_relative_to(there) or there.is_relative_to(here):
        raise StoreError(f"{origin} cannot be merged into {target}: one lies within the other")


def _copy(origin: Path, target: Store, left: dict[Path, str]) -> None:
    for file in _loose_files(origin):
        if file not in left:
            target.copy(file, target.folder / file.relative_to(origin))


def _loose_files(origin: Path) -> Iterator[Path]:
    """Files that are copied as they are."""
    for name in NAMED:
        yield from files.parquet_files(origin / name)
    artifacts = sorted((origin / "artifacts").rglob("*"))
    yield from (file for file in artifacts if file.is_file() and file.suffix != ".tmp")


def _merge_sweep(origin: Path, target: Store, sweep_id: str) -> tuple[int, int]:
    """How many runs came, and how many were there."""
    theirs, ours = (files.list_again(partial(_run_ids, store / "runs" / sweep_id)) for store in (origin, target.folder))
    if theirs - ours:
        gather(target, sweep_id, [origin])
    return len(theirs - ours), len(theirs & ours)


def _run_ids(folder: Path) -> set[str]:
    return set[str]().union(*files.held(files.parquet_files(folder)).values())
