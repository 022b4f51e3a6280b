"""Which files of a store count, and what is in them (docs/store.md). Reading waits for nobody and locks nothing."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import polars as pl

T = TypeVar("T")

ATTEMPTS = 20
"""How often files are listed when some have vanished since. Twice is rare: what vanishes was superseded long ago."""

FILE = "_file"
"""Name of the column that says which file a row was read from."""


def known_schema(kind: str) -> pl.Schema:
    """Columns of `runs`, `events`, `environments`, `roofs` or `code` as this version writes them; else none."""
    from runner import tables  # here, because its imports reach the errors, and those this package

    known = {
        "runs": tables.RUNS,
        "events": tables.EVENTS,
        "environments": tables.ENVIRONMENTS,
        "roofs": tables.ROOFS,
        "code": tables.CODE,
    }
    return known.get(kind, pl.Schema())


def reason(error: BaseException) -> str:
    """Why reading or writing failed, in one line. Polars calls a full disk a fault of the file that it was writing."""
    text = getattr(error, "strerror", None) or str(error)
    return text.partition("\n")[0].rpartition("underlying IO error: ")[2]


def folders(folder: Path) -> list[Path]:
    """The sweeps' folders below runs/ or events/; none where there is no such folder."""
    found = folder.iterdir() if folder.is_dir() else ()
    return sorted(path for path in found if path.is_dir() and path.name.isascii())


def parquet_files(folder: Path) -> list[Path]:
    """Parquet files of a folder. An empty one is a name that a writer had claimed when it was killed: no file yet."""
    return [Path(entry) for entry in _entries(folder) if entry.stat().st_size]


def empty_files(folder: Path) -> list[Path]:
    """Names that a writer has claimed and not filled yet; after a while: never will."""
    return [Path(entry) for entry in _entries(folder) if not entry.stat().st_size]


def is_compacted(file: Path) -> bool:
    """Whether a file holds many runs; a part holds the one that its name says."""
    return file.name.startswith("all-")


def digest(run_ids: Iterable[str]) -> str:
    """What a compacted file of these runs is called by: 12 hexadecimal digits of SHA-256 over the sorted run ids."""
    return hashlib.sha256("\n".join(sorted(run_ids)).encode()).hexdigest()[:12]


def choose_live(files: Collection[Path], run_ids_of: Callable[[Path], set[str]]) -> list[Path]:
    """Live files of one sweep: the compacted file of highest rank, and the parts it lacks."""
    compacted = [file for file in files if is_compacted(file)]
    parts = [file for file in files if not is_compacted(file)]
    if not compacted or (len(compacted) == 1 and not parts):
        return compacted + parts
    held_by = {file: run_ids_of(file) for file in compacted}
    best = max(compacted, key=rank(held_by))
    return [best, *(part for part in parts if part.stem not in held_by[best])]


def rank(held_by: Mapping[Path, set[str]]) -> Callable[[Path], tuple[int, str]]:
    """Key by which compacted files are chosen: most run ids first, ties by the greater name."""
    return lambda file: (len(held_by[file]), file.name)


def run_ids_of(file: Path) -> set[str]:
    """Run ids in a file; none when it cannot be read, so that nothing counts on it. FileNotFoundError: it vanished."""
    return held([file])[file]


def held(files: Sequence[Path]) -> dict[Path, set[str]]:
    """Run ids in each file; none where it cannot be read. FileNotFoundError: one has vanished."""
    pairs = read(files, pl.Schema({"run_id": pl.String}), lambda rows: rows.unique()).unique().drop_nulls()
    found = {Path(file): set(run_ids) for file, run_ids in pairs.group_by(FILE).agg("run_id").iter_rows()}
    return {file: found.get(file, set()) for file in files}


def live_runs(runs: Path, columns: Sequence[str]) -> pl.DataFrame:
    """These columns of the live runs of all sweeps, each run_id once. OSError: unreadable, or vanishing for ever."""
    known = known_schema("runs")
    schema = pl.Schema({name: known[name] for name in ("run_id", *columns)})
    rows = list_again(lambda: read(live_files(runs), schema))
    return rows.drop_nulls("run_id").unique("run_id", keep="first", maintain_order=True).select(columns)


def live_files(folder: Path) -> list[Path]:
    """Live files of all sweeps below runs/ or events/."""
    return [file for sweep in folders(folder) for file in choose_live(parquet_files(sweep), run_ids_of)]


def list_again(work: Callable[[], T]) -> T:
    """Do work that lists files and then reads them; once more whenever one has vanished in between."""
    for _ in range(ATTEMPTS - 1):
        try:
            return work()
        except FileNotFoundError:
            continue
    return work()


def read(
    files: Sequence[Path], schema: pl.Schema, reduce: Callable[[pl.LazyFrame], pl.LazyFrame] = lambda rows: rows
) -> pl.DataFrame:
    """Columns of many files and each row's file, in one scan where the files agree, else in several.

    A missing column is null, one of another type is cast. A file that cannot be read has no rows. `reduce` makes the
    rows of each scan fewer while they are read, so that they never are in memory all at once.
    """
    if not files:
        return reduce(pl.LazyFrame(schema={**schema, FILE: pl.String})).collect()
    try:
        return reduce(scan(files, schema)).collect(engine="streaming")
    except pl.exceptions.PolarsError:
        if len(files) == 1:
            return reduce(_read_odd(files[0], schema).lazy()).collect()
    half = len(files) // 2
    return pl.concat([read(files[:half], schema, reduce), read(files[half:], schema, reduce)])


def scan(files: Sequence[Path], schema: pl.Schema) -> pl.LazyFrame:
    """Columns of many files and each row's file; a missing column is null."""
    return pl.scan_parquet(
        list(files),
        schema=schema,
        missing_columns="insert",
        extra_columns="ignore",
        include_file_paths=FILE,
        glob=False,
        hive_partitioning=False,
    )


def by_columns(files: Iterable[Path]) -> tuple[list[tuple[pl.Schema, list[Path]]], dict[Path, str]]:
    """Files grouped by their columns, and why the others' columns cannot be read."""
    groups: dict[tuple[tuple[str, pl.DataType], ...], list[Path]] = {}
    unreadable = {}
    for file in files:
        try:
            groups.setdefault(tuple(pl.read_parquet_schema(file).items()), []).append(file)
        except pl.exceptions.PolarsError as error:
            unreadable[file] = reason(error)
    return [(pl.Schema(columns), alike) for columns, alike in groups.items()], unreadable


def unreadable(files: Iterable[Path]) -> dict[Path, str]:
    """Files whose columns or pages cannot be decoded, and why. FileNotFoundError: one has vanished."""
    groups, torn = by_columns(files)
    return torn | torn_pages(groups)


def torn_pages(groups: Iterable[tuple[pl.Schema, Sequence[Path]]]) -> dict[Path, str]:
    """Files, grouped by their columns, that have a page which cannot be decoded, and why."""
    return {file: why for columns, alike in groups for file, why in _with_torn_pages(alike, columns).items()}


def _with_torn_pages(alike: Sequence[Path], columns: pl.Schema) -> dict[Path, str]:
    """Those among files of the same columns that have a torn page. Halves what fails until it is found."""
    try:
        scan(alike, columns).select(pl.all().null_count()).collect(engine="streaming")
    except pl.exceptions.PolarsError as error:
        if len(alike) == 1:
            return {alike[0]: reason(error)}
        half = len(alike) // 2
        return _with_torn_pages(alike[:half], columns) | _with_torn_pages(alike[half:], columns)
    return {}


def _entries(folder: Path) -> Iterator[os.DirEntry[str]]:
    """Files of a folder that are called NAME.parquet, by name. A name that is not ASCII is none that a writer gave."""
    if folder.is_dir():
        with os.scandir(folder) as found:
            named = (entry for entry in found if entry.name.endswith(".parquet") and entry.name.isascii())
            yield from sorted((entry for entry in named if entry.is_file()), key=lambda entry: entry.name)


def _read_odd(file: Path, schema: pl.Schema) -> pl.DataFrame:
    """A file alone: columns of other types are cast where that can be done; where not, or if it is torn, no rows."""
    empty = read([], schema)
    try:
        table = pl.read_parquet(file, glob=False, hive_partitioning=False)
        present = pl.Schema({name: dtype for name, dtype in schema.items() if name in table.columns})
        cast = table.select(*present).cast(present, strict=False)
    except pl.exceptions.PolarsError:
        return empty
    return pl.concat([empty, cast.with_columns(pl.lit(str(file)).alias(FILE))], how="diagonal")
