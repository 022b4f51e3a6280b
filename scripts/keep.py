"""Keep sweeps as data: `python scripts/keep.py FROM_STORE... TO_STORE`.

Each sweep becomes one compacted file of events and one of runs (docs/store.md). Which card it was, and where a
compiler put its files, is left out. What is kept for good is pressed as hard as zstd can: a fifth smaller.
"""

from __future__ import annotations

import io
import sys
from pathlib import Path

import polars as pl

from runner.store import Store, compact, tidy


def main(sources: list[Path], target: Path) -> None:
    """Copy environments, roofs, code, and events before the runs that commit them; then compact every sweep."""
    store = Store(target)
    store.check()
    for source in sources:
        for kind in ("environments", "roofs", "code", "events", "runs"):
            for path in sorted((source / kind).rglob("*.parquet")):
                store.publish(_anonymous(pl.read_parquet(path)), target / path.relative_to(source))
    for folder in sorted((target / "runs").iterdir()):
        compact(store, folder.name)
    tidy(store, age_s=0)  # nobody else reads a folder that is being made
    for path in sorted(target.rglob("*.parquet")):
        press(path)


def press(path: Path) -> None:
    """Write a table's file anew, smaller, unless it is as small as that already."""
    content = io.BytesIO()
    pl.read_parquet(path).write_parquet(content, compression="zstd", compression_level=19)
    if content.getbuffer().nbytes < path.stat().st_size:
        path.write_bytes(content.getvalue())


def _anonymous(frame: pl.DataFrame) -> pl.DataFrame:
    """Without the card's UUID, and paths cut to file names."""
    if "facts" in frame.columns:
        return frame.with_columns(pl.col("facts").str.replace_all(r'"device_uuid": "[^"]*", ', ""))
    if "args" in frame.columns:
        return frame.with_columns(pl.col("args").str.replace_all(r'"/[^"]*/([^"/]+)"', '"$1"'))
    if "source_text" in frame.columns:
        return frame.with_columns(
            pl.col("source_text").str.replace_all(r"(^|[\s\"'<=])(?:/[\w.+-]+)+/([\w.+-]+)", "$1$2")
        )
    return frame


if __name__ == "__main__":
    *froms, to = (Path(each) for each in sys.argv[1:])
    main(froms, to)
