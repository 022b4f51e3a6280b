"""Read a store: choose its live files, and load the relations of `sql/` over them.

The only things that are read are Parquet files; nothing is ever written in a store.
"""

import os
import shlex
import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import duckdb
import polars as pl

from analysis import rules

SQL = Path(__file__).parent / "sql"

RELATIONS = (
    "stg_runs",
    "stg_samples",
    "stg_events",
    "stg_environments",
    "stg_roofs",
    "stg_code",
    "stg_facts",
    "stg_memory",
    "stg_numerics",
    "stg_cycles",
    "runs",
    "environments",
    "roofs",
    "code",
    "axes",
    "samples",
    "events",
    "audits",
    "_imports",
    "_step_kinds",
    "_launch_points",
    "_sweep_issues",
    "_run_times",
    "_spread",
    "points",
    "_issue_times",
    "perturbation",
    "gaps",
    "steps",
    "kernels",
    "_import_spans",
    "_import_verdicts",
    "_launch_gaps",
    "_graph_gaps",
    "_roof_times",
    "_terms",
    "_verdicts",
    "bounds",
    "_series_points",
    "_series",
    "crossovers",
    "confidence",
    "law",
    "law_summary",
    "truth",
    "interventions",
    "_phase_memory",
    "holders",
    "numerics",
    "recompiles",
    "payback",
    "allocator",
)
"""The relations of every store, each after those it reads. A relation lives in the file of its name."""

ON_DEMAND = (
    "kernel_names",
    "cures",
    "host_tax",
    "roofline",
    "pairs",
    "phases",
    "holder_growth",
    "rules",
    "findings",
    "rule_outcomes",
)
"""Long queries: who opens a store waits for them only where they are asked for (`add`, or all of a store). The last
three are tables, made together."""

MACROS = ("_macros", "_kernel_name")
KINDS = ("runs", "events", "environments", "roofs", "code")
"""Kinds of Parquet file in a store; relation `files_KIND` holds their rows as they are."""

MEMORY_LIMIT = os.environ.get("CROSSOVER_MEMORY", "1GB")
"""What DuckDB may use before it writes to temporary files; a process takes about 0.1 GB more."""
ATTEMPTS = 5
FEW_PARTS = 50
"""Parts that DuckDB reads where they lie. Each costs it 1.5 ms and 0.4 MB whenever a relation over them is read."""
PARTS_AT_A_TIME = 500


class StoreError(Exception):
    """A store that cannot be read; the message is one sentence with the cure."""


def open_store(
    folder: str | Path, sweep_id: str | None = None, host: float = 1.0, device: float = 1.0, whole: bool = False
) -> duckdb.DuckDBPyConnection:
    """Open the store in `folder` as an in-memory database that holds every relation of `sql/`.

    sweep_id: the runs of this sweep alone, as if no other had been made; None for all. host, device: how many times as
    fast they are taken to be, by the two-term law (sql/whatif/move.sql). whole: with the relations of ON_DEMAND and a
    comment on every column as well, for who asks queries of their own; it takes a second more.
    Files are listed once. Where a file vanishes meanwhile (another process compacts the store), they are listed again.
    Events and samples stay in their files until a query asks for them.

    Raises:
        StoreError: there is no such folder, a file of it is no Parquet file, or files keep vanishing.
    """
    store = Path(folder)
    if not store.is_dir():
        cure = "run a sweep (make sweep) or import a trace (python -m runner.ingest FILE), or name one with --store DIR"
        raise StoreError(f"there is no store at {folder}: {cure}")
    for _ in range(ATTEMPTS):
        connection = connect()
        try:
            _load(connection, live_files(store, reader(connection), sweep_id), host, device)
            if whole:
                add(connection, *ON_DEMAND)
                document(connection)
            return connection
        except (duckdb.IOException, FileNotFoundError) as error:
            connection.close()
            failure = error
        except (duckdb.Error, pl.exceptions.PolarsError) as error:
            connection.close()
            repair = f"`python -m runner.store repair --store {shlex.quote(str(folder))}` moves unreadable files away"
            cure = repair if ".parquet" in str(error) else "was it written by another program?"
            raise StoreError(f"the store at {folder} cannot be read: {first_line(error)}; {cure}") from error
    raise StoreError(f"the store at {folder} cannot be read: {first_line(failure)}")


def first_line(error: BaseException) -> str:
    """First line of an error's message: DuckDB adds the query and a caret below it."""
    return str(error).partition("\n")[0]


def live_files(
    store: Path, run_ids_of: Callable[[Path], set[str]], sweep_id: str | None = None
) -> dict[str, list[Path]]:
    """Files of the store that count, by kind, of one sweep or of all. `run_ids_of` tells which runs a compacted file
    holds."""
    return {
        "runs": _live_in_sweeps(store / "runs", run_ids_of, sweep_id),
        "events": _live_in_sweeps(store / "events", run_ids_of, sweep_id),
        "environments": _parquet_files(store / "environments"),
        "roofs": _parquet_files(store / "roofs"),
        "code": _parquet_files(store / "code"),
    }


def choose_live(files: Iterable[Path], run_ids_of: Callable[[Path], set[str]]) -> list[Path]:
    """Live files of one sweep: the `all-*` file with most run ids (ties: the greater name), and the parts it lacks.

    A part holds the run that its name says.
    """
    compacted = [file for file in files if file.name.startswith("all-")]
    parts = [file for file in files if not file.name.startswith("all-")]
    if not compacted:
        return parts
    if len(compacted) == 1 and not parts:
        return compacted
    held = {file: run_ids_of(file) for file in compacted}
    best = max(compacted, key=lambda file: (len(held[file]), file.name))
    return [best, *(part for part in parts if part.stem not in held[best])]


def _live_in_sweeps(folder: Path, run_ids_of: Callable[[Path], set[str]], sweep_id: str | None) -> list[Path]:
    found = sorted(path for path in folder.iterdir() if path.is_dir()) if folder.is_dir() else []
    sweeps = [path for path in found if sweep_id in (None, path.name)]
    return [file for sweep in sweeps for file in choose_live(_parquet_files(sweep), run_ids_of)]


def _parquet_files(folder: Path) -> list[Path]:
    """Parquet files of a folder. An empty one is a name that a writer had claimed when it was killed: no file yet."""
    found = folder.glob("*.parquet") if folder.is_dir() else []
    return sorted(path for path in found if path.name.isascii() and path.is_file() and path.stat().st_size)


def connect() -> duckdb.DuckDBPyConnection:
    """An empty database in memory, which loads no extension and stays within MEMORY_LIMIT."""
    connection = duckdb.connect(
        config={
            "memory_limit": MEMORY_LIMIT,
            "temp_directory": str(Path(tempfile.gettempdir()) / f"crossover-{os.getpid()}"),
            "autoinstall_known_extensions": "false",
            "autoload_known_extensions": "false",
        }
    )
    connection.execute("SET enable_progress_bar = false")  # it would stand in the output of a long query
    connection.execute("SET asof_loop_join_threshold = 0")  # rows of events are estimated far too low for nested loops
    return connection


def reader(connection: duckdb.DuckDBPyConnection) -> Callable[[Path], set[str]]:
    """What tells `live_files` the run ids of a file."""

    def run_ids_of(file: Path) -> set[str]:
        rows = connection.execute(f"SELECT DISTINCT run_id::VARCHAR FROM {_read_parquet([file])}").fetchall()
        return {row[0] for row in rows}

    return run_ids_of


def _load(
    connection: duckdb.DuckDBPyConnection, files: Mapping[str, Sequence[Path]], host: float, device: float
) -> None:
    for macros in MACROS:
        connection.execute((SQL / f"{macros}.sql").read_text(encoding="utf-8"))
    folder = _folder_beside(connection)
    for kind in KINDS:
        merged = merge_parts(files[kind], folder / kind)
        connection.execute(f"CREATE VIEW files_{kind} AS {rows_of(kind, merged)}")
    staged = [relation for relation in RELATIONS if relation.startswith("stg_")]
    make(connection, staged)
    if (host, device) != (1.0, 1.0):
        connection.execute(f"SET VARIABLE host_factor = {host}::DOUBLE; SET VARIABLE device_factor = {device}::DOUBLE")
        connection.execute((SQL / "whatif" / "move.sql").read_text(encoding="utf-8"))
    make(connection, [relation for relation in RELATIONS if relation not in staged])


def add(connection: duckdb.DuckDBPyConnection, *relations: str) -> None:
    """Add relations of ON_DEMAND to an open store; those that it has already stay, but for the judged ones."""
    judged = {"rules", "findings", "rule_outcomes"}
    made = {*judged, *_present(connection)}
    make(connection, [relation for relation in relations if relation not in made])
    if judged.intersection(relations):
        rules.judge(connection, outcomes="rule_outcomes" in relations)


def make(connection: duckdb.DuckDBPyConnection, relations: Iterable[str]) -> None:
    """Make relations, each in the file of its name, in the order given; their comments are left to `document`."""
    for relation in relations:
        connection.execute(_definition_and_comments(relation)[0])
        if relation == "_import_verdicts" and connection.execute("FROM _imports LIMIT 1").fetchall():
            _judge_imports(connection)


def _definition_and_comments(relation: str) -> tuple[str, str]:
    """The two parts of a relation's file: its comments stand behind all else, and storing them takes as long."""
    definition, comment, rest = (SQL / f"{relation}.sql").read_text(encoding="utf-8").partition("\nCOMMENT ON ")
    return definition, comment + rest


def _judge_imports(connection: duckdb.DuckDBPyConnection) -> None:
    """Fill `_import_spans` and `_import_verdicts`: the only relations whose making reads events, those of imports."""
    for part in ("spans", "gaps", "steps", "verdicts"):
        connection.execute((SQL / "imports" / f"{part}.sql").read_text(encoding="utf-8"))


def merge_parts(files: Sequence[Path], folder: Path) -> list[Path]:
    """The same rows in fewer files: many parts are copied into large files in `folder`, few stay where they lie."""
    parts = [file for file in files if not file.name.startswith("all-")]
    if len(parts) <= FEW_PARTS:
        return list(files)
    folder.mkdir(parents=True)
    merged = [file for file in files if file.name.startswith("all-")]
    for first in range(0, len(parts), PARTS_AT_A_TIME):
        merged.append(folder / f"{first}.parquet")
        _rows_of_parts(parts[first : first + PARTS_AT_A_TIME]).write_parquet(merged[-1])
    return merged


def _rows_of_parts(parts: Sequence[Path]) -> pl.DataFrame:
    """Rows of all parts: read at once where their columns are alike, as they are in one sweep, else one by one."""
    try:
        return pl.scan_parquet(list(parts), glob=False, hive_partitioning=False).collect()
    except pl.exceptions.PolarsError:
        tables = [pl.read_parquet(part, glob=False, hive_partitioning=False) for part in parts]
        return pl.concat(tables, how="diagonal_relaxed")


def _folder_beside(connection: duckdb.DuckDBPyConnection) -> Path:
    """A temporary folder, outside the store, that goes when the connection does."""
    folder = tempfile.mkdtemp(prefix="crossover-")
    weakref.finalize(connection, shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)


def rows_of(kind: str, files: Sequence[Path]) -> str:
    """The query for all rows of files of a kind (KINDS); without a file a table without rows."""
    key = "run_id" if kind in ("runs", "events") else "environment_id"
    return f"FROM {_read_parquet(files)}" if files else f"SELECT NULL::VARCHAR AS {key} WHERE false"


def _read_parquet(files: Sequence[Path]) -> str:
    names = ", ".join("'" + str(file).replace("'", "''") + "'" for file in files)
    return f"read_parquet([{names}], union_by_name = true, hive_partitioning = false)"


def document(connection: duckdb.DuckDBPyConnection) -> None:
    """Comment on the relations that are there and on their columns, as their files do; a column of a public relation
    that its file says nothing of gets the comment of the first relation with a column of its name."""
    comments = [_definition_and_comments(relation)[1] for relation in _present(connection)]
    connection.execute("BEGIN; " + "\n".join(comments) + " COMMIT")
    known: dict[str, str] = {}
    inherited = []
    for relation, column, comment in _comments(connection):
        if comment is not None:
            known.setdefault(column, comment)
        elif column in known and not relation.startswith("_"):
            text = known[column].replace("'", "''")
            inherited.append(f"""COMMENT ON COLUMN {relation}."{column}" IS '{text}';""")
    connection.execute("BEGIN; " + " ".join(inherited) + " COMMIT")


def _present(connection: duckdb.DuckDBPyConnection) -> list[str]:
    """The relations that are there, in their order."""
    found = {row[0] for row in connection.execute("SELECT table_name FROM information_schema.tables").fetchall()}
    return [relation for relation in (*RELATIONS, *ON_DEMAND) if relation in found]


def _comments(connection: duckdb.DuckDBPyConnection) -> list[tuple[str, str, str | None]]:
    """(relation, column, comment) of every column of the relations, in their order."""
    rows = connection.execute("SELECT table_name, column_name, comment FROM duckdb_columns()").fetchall()
    order = {relation: place for place, relation in enumerate((*RELATIONS, *ON_DEMAND))}
    return sorted((row for row in rows if row[0] in order), key=lambda row: order[row[0]])
