"""Many files of a sweep become one, and what that leaves behind is removed later. Without a lock (docs/store.md).

Nothing is lost by who comes first: a compaction takes every run that it can see, looks again before it gives its file a
name, and starts anew where another compacted file has come meanwhile. What is removed stands in a compacted file that
every reader has seen for a while.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO

import polars as pl

from runner.store import files
from runner.store.writing import Store, StoreError
from runner.words import counted

AGE_S = 900.0
"""A superseded file stays this long, for readers that listed it before. Nobody may take longer from list to read."""

KINDS = ("events", "runs")
"""In the order they are written: the run commits its events."""

NAMED = {"environments": "environment_id", "roofs": "environment_id", "code": "code_id"}
"""Folders of files that are written once, and the column that each file is named by."""

_TEMPORARY = re.compile(r".*\.[0-9a-f]{8}\.tmp")


@dataclass(frozen=True, slots=True)
class Compacted:
    """A sweep after compaction. superseded: files beside the live ones, which `tidy` removes when they are old."""

    runs: int
    events: int
    superseded: int


def compact(store: Store, sweep_id: str) -> Compacted:
    """Put all runs of a sweep into one file and their events into another; where they are already, nothing changes.

    Events of runs that are not (yet) there stay where they lie, and so does a file that cannot be read.

    Raises:
        StoreError: a file cannot be written or read; every run stays as it was.
    """
    return gather(store, sweep_id, [])


def gather(store: Store, sweep_id: str, others: Sequence[Path]) -> Compacted:
    """Compact a sweep together with the runs of other stores that it lacks. Raises StoreError.

    Memory: events are streamed from file to file.
    """
    for _ in range(files.ATTEMPTS):
        try:
            _gather(store, sweep_id, others)
            return _summary(store.folder, sweep_id)
        except (FileNotFoundError, _Changed):
            continue
        except OSError as error:
            raise StoreError(f"store={store.folder}: cannot be read: {files.reason(error)}") from error
    raise StoreError(f"{store.folder / 'runs' / sweep_id}: other processes keep changing its files; try again")


def tidy(store: Store, age_s: float = AGE_S) -> list[Path]:
    """Remove what nobody needs any more and has been so for age_s seconds; the files removed.

    Superseded files, events whose run never came, unfinished files, claimed names. A live file never, and nothing of a
    sweep with a compacted file that cannot be read. age_s must exceed the time that any process takes from listing
    files to reading them.

    Raises:
        StoreError: files cannot be removed (another user's, say), told when all others are; a folder cannot be read.
    """
    removed, stayed = [], {}
    try:
        for file in _leftovers(store.folder, age_s):
            try:
                file.unlink(missing_ok=True)
                removed.append(file)
            except OSError as error:
                stayed[file] = files.reason(error)
    except OSError as error:
        raise StoreError(f"store={store.folder}: cannot be tidied: {files.reason(error)}") from error
    for file, why in stayed.items():
        many = f"{counted(len(stayed), 'leftover')} cannot be removed, {counted(len(removed), 'other')} went"
        raise StoreError(f"store={store.folder}: {many}: {file}: {why}")
    return removed


def superseded(folder: Path, age_s: float) -> list[Path]:
    """Files of one sweep whose runs all stand in the live file, and stood in a compacted file age_s ago.

    Whoever listed the folder since then has seen that file or a greater one, and reads none of these. None while a
    compacted file has a torn page: the parts may be all that is left of its runs.
    """
    present = files.parquet_files(folder)
    compacted = list(filter(files.is_compacted, present))
    settled = [file for file in compacted if _age_s(file) >= age_s]
    if not settled or len(present) == 1 or files.unreadable(compacted):
        return []
    held = files.held(compacted)
    rank = files.rank(held)
    live, known = max(held, key=rank), max(settled, key=rank)
    twice = held[live] & held[known]
    parts = [file for file in present if not files.is_compacted(file) and file.stem in twice]
    return parts + [file for file in compacted if rank(file) < rank(known) and held[file] <= held[live]]


def orphans(store: Path, sweep_id: str, age_s: float) -> list[Path]:
    """Parts of events whose run is not there, older than age_s; none while a file of runs cannot be read."""
    events = [file for file in files.parquet_files(store / "events" / sweep_id) if not files.is_compacted(file)]
    runs = files.parquet_files(store / "runs" / sweep_id)  # listed after the events, which are written before them
    held = [files.run_ids_of(file) for file in runs if files.is_compacted(file)]
    if not all(held):
        return []
    known = {file.stem for file in runs}.union(*held)
    return [file for file in events if file.stem not in known and _age_s(file) >= age_s]


def temporaries(store: Path, age_s: float) -> list[Path]:
    """Unfinished files older than age_s; their writers were killed."""
    found = (file for file in sorted(store.rglob("*.tmp")) if _TEMPORARY.fullmatch(file.name))
    return [file for file in found if _is_older(file, age_s)]


def claims(store: Path, age_s: float) -> list[Path]:
    """Names claimed more than age_s ago and never filled; their writers were killed."""
    return [file for folder in table_folders(store) for file in files.empty_files(folder) if _is_older(file, age_s)]


def table_folders(store: Path) -> list[Path]:
    """Every folder that holds Parquet files."""
    return [*(store / name for name in NAMED), *(each for kind in KINDS for each in files.folders(store / kind))]


# -- pieces ------------------------------------------------------------------------------------------------------------


class _Changed(Exception):
    """A file has gone, or another compacted file has come, while one was being written."""


@dataclass(frozen=True, slots=True)
class _Source:
    """Runs to take from one file; whole: all that are in it."""

    file: Path
    run_ids: frozenset[str]
    whole: bool


def _gather(store: Store, sweep_id: str, others: Sequence[Path]) -> None:
    own = {kind: _held(store.folder, kind, sweep_id) for kind in KINDS}
    run_ids = _union(own["runs"].values())
    # Events in a compacted file stay in its successor, run or not: with fewer run ids it would not be the live one.
    event_ids = run_ids | _union(ids for file, ids in own["events"].items() if files.is_compacted(file))
    chosen = {"events": _choose(own["events"], event_ids), "runs": _choose(own["runs"], run_ids)}
    for other in others:
        runs = _held(other, "runs", sweep_id)
        new = _union(runs.values()) - _taken(chosen["runs"])
        chosen["runs"] += _choose(runs, new)
        chosen["events"] += _choose(_held(other, "events", sweep_id), new - _taken(chosen["events"]))
    for kind in KINDS:
        _write(store, store.folder / kind / sweep_id, chosen[kind], set(filter(files.is_compacted, own[kind])))


def _held(store: Path, kind: str, sweep_id: str) -> dict[Path, set[str]]:
    """Run ids in each file of a sweep. A part that holds other runs than its name says is left alone."""
    held = files.held(files.parquet_files(store / kind / sweep_id))
    return {file: ids for file, ids in held.items() if files.is_compacted(file) or ids == {file.stem}}


def _choose(held: Mapping[Path, set[str]], wanted: Set[str]) -> list[_Source]:
    """Each wanted run from one file: compacted ones before parts, those of higher rank first."""
    left, chosen, rank = set(wanted), [], files.rank(held)
    compacted = sorted(filter(files.is_compacted, held), key=rank, reverse=True)
    for file in [*compacted, *(file for file in held if not files.is_compacted(file))]:
        if taken := held[file] & left:
            chosen.append(_Source(file, frozenset(taken), taken == held[file]))
            left -= taken
    return chosen


def _taken(sources: Sequence[_Source]) -> set[str]:
    return _union(source.run_ids for source in sources)


def _union(sets: Iterable[Set[str]]) -> set[str]:
    return set[str]().union(*sets)


def _write(store: Store, folder: Path, sources: Sequence[_Source], seen: set[Path]) -> None:
    """Publish the chosen runs as one compacted file, unless they are one already. seen: those known when chosen."""
    if not sources or (len(sources) == 1 and sources[0].file in seen):
        return
    path = folder / f"all-{files.digest(_taken(sources))}.parquet"
    store.place(path, lambda file: _fill(file, sources, folder, seen))
    if _compacted(folder) - seen - {path}:
        raise _Changed


def _fill(file: IO[bytes], sources: Sequence[_Source], folder: Path, seen: set[Path]) -> None:
    try:
        _rows(sources, files.known_schema(folder.parent.name)).sink_parquet(file, compression="zstd")
        if _compacted(folder) - seen:
            raise _Changed
    except FileNotFoundError as error:
        raise _Changed from error
    except pl.exceptions.PolarsError:
        for torn, why in files.unreadable(source.file for source in sources).items():
            raise StoreError(f"{torn}: cannot be read: {why}; `python -m runner.store repair` moves it aside") from None
        raise


def _compacted(folder: Path) -> set[Path]:
    return set(filter(files.is_compacted, files.parquet_files(folder)))


def _rows(sources: Sequence[_Source], known: pl.Schema) -> pl.LazyFrame:
    """Rows of the chosen runs, every column that any file has; the known ones first, in their order."""
    groups, _ = files.by_columns(source.file for source in sources if source.whole)
    scans = [files.scan(alike, columns) for columns, alike in groups]
    for source in sources:
        if not source.whole:
            columns = pl.Schema(pl.read_parquet_schema(source.file))
            chosen = pl.col("run_id").is_in(sorted(source.run_ids))
            scans.append(files.scan([source.file], columns).filter(chosen))
    rows = pl.concat(scans, how="diagonal_relaxed").drop(files.FILE)
    names = rows.collect_schema().names()
    return rows.select(*(name for name in known if name in names), *(name for name in names if name not in known))


def _summary(store: Path, sweep_id: str) -> Compacted:
    present = {kind: files.parquet_files(store / kind / sweep_id) for kind in KINDS}
    live = {kind: files.choose_live(present[kind], files.run_ids_of) for kind in KINDS}
    events = [file for file in live["events"] if files.is_compacted(file)]
    return Compacted(
        runs=len(_union(files.held(live["runs"]).values())),
        events=files.scan(events, _RUN_ID).select(pl.len()).collect().item() if events else 0,
        superseded=sum(len(present[kind]) - len(live[kind]) for kind in KINDS),
    )


_RUN_ID = pl.Schema({"run_id": pl.String})


def _leftovers(store: Path, age_s: float) -> Iterator[Path]:
    for folder in [each for kind in KINDS for each in files.folders(store / kind)]:
        yield from files.list_again(partial(superseded, folder, age_s))
    for folder in files.folders(store / "events"):
        yield from files.list_again(partial(orphans, store, folder.name, age_s))
    yield from files.list_again(partial(claims, store, age_s))
    yield from temporaries(store, age_s)


def _age_s(file: Path) -> float:
    """Seconds since a file got its name: publishing it is the last change of its inode."""
    return time.time() - file.stat().st_ctime


def _is_older(file: Path, age_s: float) -> bool:
    try:
        return _age_s(file) >= age_s
    except FileNotFoundError:
        return False
