"""The public verdict: Parquet -> DuckDB views (`sql/`, one file a relation) -> charts -> report.

Never imports torch or runner. In a notebook: `from analysis import frame, open_store`. DuckDB and Polars are imported
when a store is opened, so that `python -m analysis --help` and a shell's completion need not wait for them.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import duckdb
    import polars as pl

    from analysis.store import StoreError

__all__ = ["StoreError", "frame", "open_store"]


def open_store(folder: str | Path) -> "duckdb.DuckDBPyConnection":
    """Open the store in `folder` as an in-memory database with every public view, all of them documented (`DESCRIBE
    bounds`, or the comments in `duckdb_columns()`).

    Raises:
        StoreError: there is no such folder, or a file of it cannot be read.
    """
    from analysis import store

    return store.open_store(folder, whole=True)


def frame(connection: "duckdb.DuckDBPyConnection", query: str) -> "pl.DataFrame":
    """The rows of a query as a Polars frame; DuckDB's own `.pl()` needs pyarrow, this does not.

    Raises:
        duckdb.Error: the query is wrong.
    """
    import polars as pl

    return pl.DataFrame(connection.sql(query))


def __getattr__(name: str) -> Any:
    """`StoreError`, whose module imports DuckDB."""
    if name == "StoreError":
        from analysis.store import StoreError

        return StoreError
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
