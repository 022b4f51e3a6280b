"""The store's only writer: files appear whole or not at all, and are never overwritten (docs/store.md).

`python -m runner.store --help` checks, compacts, repairs and merges stores.
"""

from runner.store.checking import Checked, Problem, SweepCounts, check
from runner.store.compaction import AGE_S, Compacted, compact, gather, tidy
from runner.store.merging import Merged, merge, refuse
from runner.store.repairing import Moved, Repaired, repair
from runner.store.writing import Store, StoreError, new_id

__all__ = [
    "AGE_S",
    "Checked",
    "Compacted",
    "Merged",
    "Moved",
    "Problem",
    "Repaired",
    "Store",
    "StoreError",
    "SweepCounts",
    "check",
    "compact",
    "gather",
    "merge",
    "new_id",
    "refuse",
    "repair",
    "tidy",
]
