"""runner.engine over several stations: every point once, and the sweep ends."""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from pathlib import Path

import pytest

from runner.composition import compose
from runner.engine import Engine
from runner.launch import Listed
from runner.plan import Plan
from runner.progress import Progress
from runner.recording import Recording
from runner.resume import Measured
from runner.station import Shop, Station
from runner.store import Store


async def sweep(plan: Plan, folder: Path, stations: int) -> Progress:
    """The plan's points at so many stations that need no device."""
    store = Store(plan.settings.store)
    progress = Progress(plan.paces, plan.width, store.folder)
    there = [Station(Shop(store, plan.settings, print), "none", index) for index in range(stations)]
    engine = Engine(plan.settings, Recording(store, "s1", "given"), Measured.load(store), progress, folder)
    source = Listed([plan[index] for index in batch] for batch in plan.batches())
    try:
        await asyncio.wait_for(engine.run(source, there), 60)
    finally:
        await asyncio.gather(*(station.close() for station in there))
    return progress


@pytest.mark.parametrize("points", [1, 2, 3, 20])
def test_stations_share_the_points_and_all_of_them_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, points: int
) -> None:
    """Three workers, fewer points than they are or more: each point is measured once, and nobody waits for ever."""
    arguments = ["-m", "workload=noop", f"seed=range(0,{points})", f"store={tmp_path / 'store'}"]
    monkeypatch.setattr(sys, "argv", ["runner", *arguments])
    progress = asyncio.run(sweep(Plan(compose().points), tmp_path, stations=3))
    assert progress.counts == Counter(ok=points)
    assert len(list((tmp_path / "store" / "runs" / "s1").iterdir())) == points
