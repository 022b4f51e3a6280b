"""A store as a DuckDB file, for programs that know DuckDB but not this one.

The file holds every relation, private ones and macros included, with their comments. What is read from the store's
files as it is (events, samples, generated code) is a view over them, by absolute path, so that the file stays small;
verdicts, findings and whatever else a store is opened with are tables: a snapshot, until the file is written again.
"""

from pathlib import Path

import duckdb

from analysis.output import OutputError, whole
from analysis.rules import SCHEMA
from analysis.store import FEW_PARTS, KINDS, StoreError, first_line, live_files, open_store, reader, rows_of

FORMAT = "v1.2.0"
"""Version of the file's format: DuckDB reads it from that release on."""


def write_database(store: Path, path: Path) -> int:
    """Write the store in folder `store` as the DuckDB file `path`, which appears whole or not at all.

    Returns the number of loose files that its views read: each costs every query over events 1.5 ms.

    Raises:
        StoreError: there is no store, or it cannot be read.
        OutputError: the file lies inside the store, or cannot be written.
    """
    refuse_inside(store, path)
    with open_store(store.resolve(), whole=True) as connection, whole(path) as draft:
        loose = _read_where_they_lie(connection, store.resolve())
        connection.execute(f"DROP SCHEMA {SCHEMA} CASCADE")  # what the rules share: they have been applied
        try:
            _copy(connection, draft)
        except duckdb.Error as error:
            raise StoreError(
                f"{path} cannot be written: {first_line(error)}; name another file with -o FILE"
            ) from error
    return loose


def refuse_inside(store: Path, path: Path) -> None:
    """Raises OutputError where `path` lies in the store: nothing but the runner writes there."""
    if path.resolve().is_relative_to(store.resolve()):
        raise OutputError(
            f"{path} lies inside the store at {store}, where only the runner writes; name another file with -o"
        )


def how_to(path: Path) -> str:
    """How to use the file from the programs that read DuckDB."""
    return f"""\
DuckDB's client   duckdb -readonly {path}     then: FROM bounds; and: DESCRIBE bounds;
its UI            duckdb {path} -ui     (it cannot open a file read-only, and keeps it to itself while it runs)
Python            duckdb.connect("{path}", read_only=True).sql("FROM bounds")
marimo, Jupyter   the same, or without a file: from analysis import frame, open_store
BI tools, JDBC    jdbc:duckdb:{path.resolve()}     with duckdb.read_only=true
comments          SELECT column_name, comment FROM duckdb_columns() WHERE table_name = 'bounds';
newer results     the same command again: verdicts are as they were when it ran, events and samples stay in the store"""


def _read_where_they_lie(connection: duckdb.DuckDBPyConnection, store: Path) -> int:
    """Make the relations over files read the store's own: opened, many small ones are copied to a folder that goes with
    the connection. Returns the number of small ones."""
    files = live_files(store, reader(connection))
    for kind in KINDS:
        connection.execute(f"CREATE OR REPLACE VIEW files_{kind} AS {rows_of(kind, files[kind])}")
    loose = sum(not file.name.startswith("all-") for kind in ("runs", "events") for file in files[kind])
    return loose if loose > FEW_PARTS else 0


def _copy(connection: duckdb.DuckDBPyConnection, draft: Path) -> None:
    """Copy all that the connection holds to a file."""
    name = str(draft).replace("'", "''")
    [[source]] = connection.execute("SELECT current_database()").fetchall()
    connection.execute(f"ATTACH '{name}' AS written (STORAGE_VERSION '{FORMAT}')")
    connection.execute(f'COPY FROM DATABASE "{source}" TO written')
    connection.execute("DETACH written")
