"""Small stores as the runner writes them."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from runner.store import Store
from runner.tables import ENVIRONMENTS, EVENTS, RUNS


def run(run_id: str, sweep_id: str = "s1", size: int = 64) -> pl.DataFrame:
    """A run's row with every column."""
    row = {"run_id": run_id, "sweep_id": sweep_id, "environment_id": "e1", "status": "ok", "size": size}
    return pl.DataFrame([row], schema=RUNS)


def events(run_id: str, count: int = 2) -> pl.DataFrame:
    """Events of a run with every column."""
    rows = [{"run_id": run_id, "event_id": each, "name": "a name", "ts_ns": each} for each in range(count)]
    return pl.DataFrame(rows, schema=EVENTS)


def write_environment(store: Store) -> None:
    """The environment that the runs name."""
    store.write_environment(pl.DataFrame([{"environment_id": "e1"}], schema=ENVIRONMENTS))


def write_runs(folder: Path, *run_ids: str, sweep_id: str = "s1") -> Store:
    """A store with these runs, two events each."""
    store = Store(folder)
    write_environment(store)
    for run_id in run_ids:
        store.write_run(run(run_id, sweep_id), events(run_id))
    return store


def live(store: Store) -> list[str]:
    """Run ids of all live runs."""
    return sorted(store.live_runs(["run_id"])["run_id"])


def files_in(folder: Path) -> set[str]:
    """All files below a folder."""
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
