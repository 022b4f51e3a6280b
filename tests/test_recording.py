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


def test_generated_code_is_kept_once_and_named_by_its_content(tmp_path: Path) -> None:
    """Two runs with the same file name one file of the store; another graph is another file."""
    store = Store(tmp_path / "store")
    file = {"file_name": "c.py", "graph_hash": "f1", "source_text": "def call(): ..."}
    other = {**file, "graph_hash": "f2"}
    named = []
    for run_id, files in (("r1", [file]), ("r2", [file, other])):
        done = Measurement("ok", facts={"compile": {"seconds": 1.0, "code": [dict(each) for each in files]}})
        handed = Handed(job(size=8, compile=True), run_id, datetime.now(UTC), 0, FOUND, tmp_path / run_id)
        row = Recording(store, "s1", "given").write(handed, done)
        named.append(json.loads(row["facts"])["compile"]["code"])
    assert named[1][0] == named[0][0] != named[1][1]
    assert {path.stem for path in (store.folder / "code").iterdir()} == set(named[1])
    (text,) = pl.read_parquet(store.folder / "code" / f"{named[0][0]}.parquet")["source_text"]
    assert text == file["source_text"]


def test_an_unreadable_trace_keeps_what_the_worker_said(tmp_path: Path) -> None:
    """The conditions of the window stand beside the reason."""
    handed = Handed(job(size=8), "r1", datetime.now(UTC), 0, FOUND, tmp_path / "folder")
    done = Measurement("ok", traces=(str(tmp_path / "gone"),), facts={"profile": {"options": {"with_stack": True}}})
    row = Recording(Store(tmp_path / "store"), "s1", "given").write(handed, done)
    profile = json.loads(row["facts"])["profile"]
    assert profile["options"] == {"with_stack": True} and "cannot be read" in profile["reason"]
