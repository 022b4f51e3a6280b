"""What is in a store and what is wrong with it. Reads every page of every table, changes nothing."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import polars as pl

from runner.store import files
from runner.store.compaction import KINDS, NAMED, claims, orphans, superseded, table_folders, temporaries
from runner.store.writing import StoreError
from runner.words import counted

_KEYS = ("run_id", "sweep_id", "environment_id", "code_id")


@dataclass(frozen=True, slots=True)
class SweepCounts:
    """What a sweep holds: live runs, their events, files of runs that are parts and compacted ones, environments."""

    sweep_id: str
    runs: int
    events: int
    parts: int
    compacted: int
    environments: int


@dataclass(frozen=True, slots=True)
class Problem:
    """Something about one path. damaged: rows are wrong, hidden or lost; else it is a leftover or an older table."""

    path: Path
    what: str
    damaged: bool


@dataclass(frozen=True, slots=True)
class Checked:
    """Every sweep, and every problem."""

    sweeps: list[SweepCounts]
    problems: list[Problem]


def check(store: Path) -> Checked:
    """Look at every file of a store; other processes may write and compact it meanwhile. Raises StoreError."""
    try:
        return files.list_again(partial(_check, store))
    except OSError as error:
        raise StoreError(f"store={store}: cannot be read: {files.reason(error)}") from error


def unreadable(store: Path) -> dict[Path, str]:
    """Files of a store whose columns or pages cannot be decoded, and why. FileNotFoundError: one has vanished."""
    return {
        file: why
        for folder in table_folders(store)
        for file, why in files.unreadable(files.parquet_files(folder)).items()
    }


# -- pieces ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Folder:
    """The readable files of one sweep's runs or events, which of them are live, and how often each holds each run.

    rows: run_id, for runs sweep_id and environment_id too, `_file`, and the number of rows alike in these.
    """

    path: Path
    held: dict[Path, set[str]]
    live: list[Path]
    rows: pl.DataFrame

    @property
    def live_rows(self) -> pl.DataFrame:
        """Rows of live files alone."""
        return self.rows.filter(pl.col(files.FILE).is_in([str(file) for file in self.live]))


def _check(store: Path) -> Checked:
    tables = {folder: files.by_columns(files.parquet_files(folder)) for folder in table_folders(store)}
    torn = {file: why for groups, found in tables.values() for file, why in (found | files.torn_pages(groups)).items()}
    runs = [_folder(path, torn) for path in files.folders(store / "runs")]
    events = [_folder(path, torn) for path in files.folders(store / "events")]
    problems = [Problem(file, f"cannot be read: {why}", True) for file, why in torn.items()]
    for path, (groups, _) in tables.items():
        problems += _columns_of(path, groups)
    for folder in runs + events:
        problems += [*_names_of(folder), *_hidden_in(folder)]
    problems += [*_misplaced(store, runs), *_duplicates(runs), *_environments_of(store, runs), *_leftovers(store)]
    return Checked(_counts(runs, events), problems)


def _folder(path: Path, torn: Container[Path]) -> _Folder:
    known = files.known_schema(path.parent.name)
    keys = pl.Schema({key: known[key] for key in _KEYS if key in known})
    present = [file for file in files.parquet_files(path) if file not in torn]
    rows = files.read(present, keys, lambda rows: rows.group_by(*keys, files.FILE).agg(pl.len().alias("rows")))
    pairs = rows.drop_nulls("run_id").group_by(files.FILE).agg("run_id").iter_rows()
    found = {Path(file): set(run_ids) for file, run_ids in pairs}
    held = {file: found.get(file, set()) for file in present}
    return _Folder(path, held, files.choose_live(present, held.__getitem__), rows)


def _columns_of(folder: Path, groups: Sequence[tuple[pl.Schema, list[Path]]]) -> Iterator[Problem]:
    """Columns that older files lack, told once for all of them, and columns of another type than documented."""
    known = files.known_schema(folder.name) or files.known_schema(folder.parent.name)
    for columns, alike in groups:
        if lacking := [name for name in known if name not in columns]:
            what = f"{counted(len(alike), 'file')} without columns: {', '.join(lacking)}"
            yield Problem(folder, what, damaged=not set(_KEYS).isdisjoint(lacking))
        for name, dtype in known.items():
            if columns.get(name, dtype) != dtype:
                many = counted(len(alike), "file")
                yield Problem(alike[0], f"{many}: column {name} is {columns[name]}, not {dtype}", True)


def _names_of(folder: _Folder) -> Iterator[Problem]:
    """Files that hold other runs than their names say."""
    for file, run_ids in folder.held.items():
        if files.is_compacted(file) and file.stem != f"all-{files.digest(run_ids)}":
            yield Problem(file, f"holds {counted(len(run_ids), 'run')} other than its name says", True)
        elif not files.is_compacted(file) and run_ids != {file.stem}:
            yield Problem(file, f"holds the run {', '.join(sorted(run_ids)) or 'of no id'}, not that of its name", True)


def _hidden_in(folder: _Folder) -> Iterator[Problem]:
    """Compacted files with runs that no live file holds: two were published at once and a process was killed then."""
    live = set[str]().union(*(folder.held[file] for file in folder.live))
    for file, run_ids in folder.held.items():
        if hidden := run_ids - live:
            what = f"{counted(len(hidden), 'run')} of it in no live file: `compact` brings back what is hidden"
            yield Problem(file, what, True)


def _misplaced(store: Path, runs: Sequence[_Folder]) -> Iterator[Problem]:
    """Runs and environments that lie under the name of another sweep or environment."""
    for folder in runs:
        others = folder.rows.filter(pl.col("sweep_id") != folder.path.name).unique(files.FILE, maintain_order=True)
        for file, sweep_id in others.select(files.FILE, "sweep_id").iter_rows():
            yield Problem(Path(file), f"holds a run of the sweep {sweep_id}, not of its folder", True)
    for name, key in NAMED.items():
        found = files.read(files.parquet_files(store / name), pl.Schema({key: pl.String}))
        for held, file in found.unique(maintain_order=True).iter_rows():
            if held != Path(file).stem:
                what = key.removesuffix("_id")
                yield Problem(Path(file), f"holds the {what} {held}, not that of its name", True)


def _duplicates(runs: Sequence[_Folder]) -> Iterator[Problem]:
    """Run ids that more than one live row has, in the whole store."""
    if not runs:
        return
    rows = pl.concat([folder.live_rows for folder in runs]).drop_nulls("run_id")
    counted = rows.group_by("run_id", maintain_order=True).agg(pl.col("rows").sum(), pl.col(files.FILE).last())
    for run_id, count, file in counted.filter(pl.col("rows") > 1).iter_rows():
        yield Problem(Path(file), f"run {run_id} is there {count} times", True)


def _environments_of(store: Path, runs: Sequence[_Folder]) -> Iterator[Problem]:
    """Environments that runs name and the store lacks."""
    there = {file.stem for file in files.parquet_files(store / "environments")}
    for folder in runs:
        named = folder.live_rows.drop_nulls("environment_id").group_by("environment_id").agg(pl.col("rows").sum())
        for environment_id, count in named.sort("environment_id").iter_rows():
            if environment_id not in there:
                path = store / "environments" / f"{environment_id}.parquet"
                named_by = f"{counted(count, 'run')} of the sweep {folder.path.name}"
                yield Problem(path, f"missing, but named by {named_by}", True)


def _leftovers(store: Path) -> Iterator[Problem]:
    """What processes left that were killed, or have not finished yet, and what compaction superseded."""
    for file in temporaries(store, 0):
        yield Problem(file, "unfinished", False)
    for file in claims(store, 0):
        yield Problem(file, "empty: claimed and never written", False)
    for folder in files.folders(store / "events"):
        for file in orphans(store, folder.name, 0):
            yield Problem(file, "events whose run is not there", False)
    for folder in [each for kind in KINDS for each in files.folders(store / kind)]:
        if old := superseded(folder, 0):
            yield Problem(folder, counted(len(old), "superseded file"), False)


def _counts(runs: Sequence[_Folder], events: Sequence[_Folder]) -> list[SweepCounts]:
    rows_of = {folder.path.name: folder.live_rows for folder in events}
    return [_count(folder, rows_of.get(folder.path.name)) for folder in runs]


def _count(runs: _Folder, events: pl.DataFrame | None) -> SweepCounts:
    rows = runs.live_rows.drop_nulls("run_id")
    compacted = sum(map(files.is_compacted, runs.held))
    return SweepCounts(
        sweep_id=runs.path.name,
        runs=rows["run_id"].n_unique(),
        events=0 if events is None else int(events.join(rows, on="run_id", how="semi")["rows"].sum()),
        parts=len(runs.held) - compacted,
        compacted=compacted,
        environments=rows["environment_id"].drop_nulls().n_unique(),
    )
