"""The public verdict: Parquet -> DuckDB views (`sql/`, one file a relation) -> charts -> report.

Never imports torch or runner.
"""

from pathlib import Path

import duckdb

from analysis import store
from analysis.store import StoreError

__all__ = ["StoreError", "open_store"]


def open_store(folder: str | Path) -> duckdb.DuckDBPyConnection:
    """Open the store in `folder` as an in-memory database with every public view, all of them documented (`DESCRIBE
    bounds`, or the comments in `duckdb_columns()`).

    Raises:
        StoreError: there is no such folder, or a file of it cannot be read.
    """
    return store.open_store(folder, whole=True)
