"""The public verdict: Parquet -> DuckDB views (`sql/`, one file a relation) -> charts -> report.

Never imports torch or runner.
"""

from analysis.store import StoreError, open_store

__all__ = ["StoreError", "open_store"]
