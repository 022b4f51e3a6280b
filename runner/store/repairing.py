"""Put a damaged store right without losing anything: what cannot be read is moved aside, leftovers are removed."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from runner.store import files
from runner.store.checking import unreadable
from runner.store.compaction import AGE_S, tidy
from runner.store.writing import Store, StoreError


@dataclass(frozen=True, slots=True)
class Moved:
    """A file that cannot be read, and why. live_runs: how many runs of its sweep other files still hold."""

    path: Path
    to: Path
    why: str
    live_runs: int


@dataclass(frozen=True, slots=True)
class Repaired:
    """What a repair did."""

    moved: list[Moved]
    removed: list[Path]


def repair(store: Store, age_s: float = AGE_S) -> Repaired:
    """Move unreadable files to damaged/ (same path below it) and tidy the store. Harmless while others use it.

    With a torn compacted file out of the way the parts or older compacted files that still exist are live again.

    Raises:
        StoreError: a file cannot be moved or removed.
    """
    try:
        torn = files.list_again(partial(unreadable, store.folder))
        moved = [_move(store.folder, file, why) for file, why in torn.items() if file.exists()]
    except OSError as error:
        raise StoreError(f"store={store.folder}: cannot be repaired: {files.reason(error)}") from error
    return Repaired(moved, tidy(store, age_s))


def _move(store: Path, file: Path, why: str) -> Moved:
    to = store / "damaged" / file.relative_to(store)
    to.parent.mkdir(parents=True, exist_ok=True)
    if to.exists():  # an earlier repair moved a file of this name
        to = to.with_name(f"{to.name}.{secrets.token_hex(4)}")
    file.rename(to)
    live = files.list_again(lambda: files.choose_live(files.parquet_files(file.parent), files.run_ids_of))
    return Moved(file, to, why, len(set[str]().union(*files.held(live).values())))
