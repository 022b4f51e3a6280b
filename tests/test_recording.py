"""runner.recording: whatever a worker leaves, the point keeps its row."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import polars as pl
from configured import job

from runner.recording import Handed, Recording
from runner.store import Store
from runner.task import Found, Measurement

FOUND = Found("cpu", ("cpu",), (None,), {"environment_id": "e1", "multiprocessors": None}, {"host": "here"})


def test_a_trace_that_is_not_there_costs_no_times(tmp_path: Path) -> None:
    """The disk of temporary files was full: row and environment are written, and what is missing is told."""
    store = Store(tmp_path / "store")
    point = job(size=8, device="cpu", dtype="fp32", artifacts=True)
    handed = Handed(point, "r1", datetime.now(UTC), 0, FOUND, tmp_path / "folder")
    gone = str(tmp_path / "window0.json")
    row = Recording(store, "s1", "given").write(handed, Measurement("ok", traces=(gone,), table="a table"))
    facts = json.loads(pl.read_parquet(store.folder / "runs" / "s1" / "r1.parquet")["facts"][0])
    assert row["status"] == "ok"
    assert gone in facts["artifacts"]["missing"] and "table" in facts["artifacts"]
    assert "cannot be read" in facts["profile"]["reason"]
    assert store.environment("e1") is not None
