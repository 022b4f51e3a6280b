"""Put a damaged store right without losing anything: what cannot be read is moved aside, leftovers are removed."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from runner.store import files
from runner.store.checking import unreadable
from runner.store.compaction import AGE_S, KINDS, tidy
from runner.store.writing import Store, StoreError


@dataclass(frozen=True, slots=True)
class Moved:
    """A file that cannot be read, and why.

    kind: runs, events, environments, roofs or code; the latter three hold no runs. live_runs: how many runs of its
    sweep other files still hold; lost_runs: how many went with it, None where nothing tells how many there were. Of
    events: the events of how many runs.
    """

    path: Path
    to: Path
    why: str
    kind: str
    live_runs: int
    lost_runs: int | None


@dataclass(frozen=True, slots=True)
class Repaired:
    """What a repair did. untidy: why leftovers stayed, None where none had to."""

    moved: list[Moved]
    removed: list[Path]
    untidy: str | None


def repair(store: Store, age_s: float = AGE_S) -> Repaired:
    """Move unreadable files to damaged/ (same path below it) and tidy the store. Harmless while others use it.

    With a torn compacted file out of the way the parts or older compacted files that still exist are live again.

    Raises:
        StoreError: a file cannot be moved.
    """
    try:
        torn = files.list_again(partial(unreadable, store.folder))
        places = {file: _move(store.folder, file) for file in torn if file.exists()}
        moved = [_moved(store.folder, file, to, torn[file]) for file, to in places.items()]
    except OSError as error:
        raise StoreError(f"store={store.folder}: cannot be repaired: {files.reason(error)}") from error
    try:
        return Repaired(moved, tidy(store, age_s), None)
    except StoreError as error:
        return Repaired(moved, [], str(error))


def _move(store: Path, file: Path) -> Path:
    to = store / "damaged" / file.relative_to(store)
    to.parent.mkdir(parents=True, exist_ok=True)
    if to.exists():  # an earlier repair moved a file of this name
        to = to.with_name(f"{to.name}.{secrets.token_hex(4)}")
    file.rename(to)
    return to


def _moved(store: Path, file: Path, to: Path, why: str) -> Moved:
    """What its going means, once all that is torn has gone."""
    kind = file.relative_to(store).parts[0]
    if kind not in KINDS:
        return Moved(file, to, why, kind, live_runs=0, lost_runs=0)
    live = files.list_again(lambda: files.choose_live(files.parquet_files(file.parent), files.run_ids_of))
    run_ids = set[str]().union(*files.held(live).values())
    return Moved(file, to, why, kind, len(run_ids), _lost(file, files.run_ids_of(to), run_ids))


def _lost(file: Path, held: set[str], live: set[str]) -> int | None:
    """Runs of a torn file that no live file holds, by its name or by what can still be read of it."""
    if not files.is_compacted(file):
        return len({file.stem} - live)
    if file.stem == f"all-{files.digest(live)}":
        return 0
    return len(held - live) if held else None
