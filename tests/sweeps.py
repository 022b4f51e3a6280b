"""Sweeps as users start them: real commands on the CPU, and what they leave in their stores."""

from __future__ import annotations

import asyncio
import getpass
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from runner import tables
from runner.process import WorkerProcess
from runner.store import Store, files

ROOT = Path(__file__).parent.parent
PATIENCE_S = 240
"""No command of the tests takes as long, however busy the machine is."""


@dataclass(frozen=True)
class Done:
    """A finished sweep: its exit code, what it said, its rows by position, and where its files lie."""

    code: int
    stdout: str
    stderr: str
    rows: list[dict[str, Any]]
    store: Path
    scratch: Path

    def facts(self, position: int) -> dict[str, Any]:
        """Facts of one row."""
        return json.loads(self.rows[position]["facts"])

    def samples(self, position: int, quantity: str) -> list[float]:
        """Raw samples of one quantity."""
        return [each["value"] for each in self.rows[position]["samples"] if each["quantity"] == quantity]

    def events(self, position: int) -> pl.DataFrame:
        """Events of one run."""
        row = self.rows[position]
        return pl.read_parquet(self.store / "events" / row["sweep_id"] / f"{row['run_id']}.parquet")


def environment(scratch: Path) -> dict[str, str]:
    """A temp folder of its own, and the compiler's cache where it always is: a cold one costs half a minute."""
    cache = Path(tempfile.gettempdir()) / f"torchinductor_{getpass.getuser()}"
    return {"TORCHINDUCTOR_CACHE_DIR": str(cache), **os.environ, "TMPDIR": str(scratch), "CUDA_VISIBLE_DEVICES": ""}


def start(store: Path, scratch: Path, *arguments: str, **variables: str) -> subprocess.Popen[str]:
    """Start a sweep on the CPU, in the order given."""
    scratch.mkdir(exist_ok=True)
    return subprocess.Popen(
        [sys.executable, "-m", "runner", "-m", f"store={store}", "device=cpu", "order=given", *arguments],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT,
        env={**environment(scratch), **variables},
    )  # fmt: skip


def finish(sweep: subprocess.Popen[str], store: Path, scratch: Path) -> Done:
    """Wait for a sweep and read its rows: those of the latest sweep in the store, in the order of their positions."""
    stdout, stderr = sweep.communicate(timeout=PATIENCE_S)
    runs = all_runs(store)
    last = max((row["sweep_id"] for row in runs), default=None)
    rows = [row for row in runs if row["sweep_id"] == last]
    return Done(sweep.returncode, stdout, stderr, rows, store, scratch)


def swept(store: Path, *arguments: str, **variables: str) -> Done:
    """A sweep from its start to its end."""
    scratch = store.parent / "scratch"
    return finish(start(store, scratch, *arguments, **variables), store, scratch)


def all_runs(store: Path) -> list[dict[str, Any]]:
    """Every live run of a store, sweep by sweep in the order of their positions."""
    rows = [row for file in files.live_files(store / "runs") for row in pl.read_parquet(file).to_dicts()]
    return sorted(rows, key=lambda row: (row["sweep_id"], json.loads(row["facts"])["position"]))


def store_with(folder: Path, roofs: Path) -> Path:
    """A store that holds the CPU's roofs already."""
    shutil.copytree(roofs / "roofs", folder / "store" / "roofs")
    return folder / "store"


def measure_roofs(folder: Path) -> Path:
    """Put nothing but the CPU's roofs into a store, measured whatever else keeps the CPU busy."""
    environment_id, rows = asyncio.run(_roofs())
    Store(folder).write_roofs(tables.roofs_frame(environment_id, rows))
    return folder


async def _roofs() -> tuple[str, list[dict[str, Any]]]:
    worker = WorkerProcess()
    try:
        found = await worker.ask("look", ("cpu", 0, ()))
        await worker.ask("open", ("cpu", 0))
        rows, _ = await worker.ask("roofs")
    finally:
        await worker.close()
    return found.environment_id, rows


def children(pid: int) -> list[int]:
    """Processes that a process has started."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            name, _, rest = path.read_text().rpartition(")")
        except OSError:
            continue
        if int(rest.split()[1]) == pid:
            found.append(int(name.split()[0]))
    return found


def gone(pid: int, seconds: float = 10) -> bool:
    """Whether a process ends within some seconds (a zombie has ended)."""
    return until(lambda: _ended(pid), seconds)


def _ended(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


def until(holds: Callable[[], object], seconds: float = PATIENCE_S) -> bool:
    """Wait until something holds; whether it does in time."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if holds():
            return True
        time.sleep(0.02)
    return False


def wait_for_runs(store: Path, sweep: subprocess.Popen[str], count: int = 1) -> None:
    """Until a sweep has written so many runs."""
    assert until(lambda: len(list(store.glob("runs/*/*.parquet"))) >= count or sweep.poll() is not None)
    assert sweep.poll() is None


def kill(process: subprocess.Popen[str]) -> None:
    """End a process at once, and read what it leaves in its pipes."""
    process.send_signal(signal.SIGKILL)
    process.communicate()
