"""Keep sweeps as data: `python scripts/keep.py FROM_STORE... TO_STORE`.

Each sweep becomes one compacted file of events and one of runs (docs/store.md). Which card it was, and where a
compiler put its files, is left out.
"""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path

import polars as pl

from runner.store import Store


def main(sources: list[Path], target: Path) -> None:
    """Copy environments and roofs; compact runs and the kept events of every sweep."""
    store = Store(target)
    store.check()
    for source in sources:
        for name in ("environments", "roofs"):
            for path in sorted((source / name).glob("*.parquet")):
                store.publish(pl.read_parquet(path), target / name / path.name)
        for folder in sorted((source / "runs").iterdir()):
            keep_sweep(store, source, folder.name)


def keep_sweep(store: Store, source: Path, sweep_id: str) -> None:
    """One sweep: its events first, since the runs commit them."""
    for kind in ("events", "runs"):
        parts = [_anonymous(pl.read_parquet(path)) for path in sorted((source / kind / sweep_id).glob("*.parquet"))]
        if parts:
            publish(store, kind, sweep_id, pl.concat(parts))


def _anonymous(frame: pl.DataFrame) -> pl.DataFrame:
    """Without the card's UUID, and paths cut to file names."""
    if "facts" in frame.columns:
        return frame.with_columns(pl.col("facts").str.replace_all(r'"device_uuid": "[^"]*", ', ""))
    return frame.with_columns(pl.col("args").str.replace_all(r'"/[^"]*/([^"/]+)"', '"$1"'))


def publish(store: Store, kind: str, sweep_id: str, frame: pl.DataFrame) -> None:
    """A compacted file, named by the hash of the run ids in it (docs/store.md)."""
    run_ids = "\n".join(sorted(frame["run_id"].unique().to_list()))
    digest = hashlib.sha256(run_ids.encode()).hexdigest()[:12]
    store.publish(frame, store.folder / kind / sweep_id / f"all-{digest}.parquet")


if __name__ == "__main__":
    *froms, to = (Path(each) for each in sys.argv[1:])
    main(froms, to)
