"""The engine against Hydra's basic launcher, in one run: `python scripts/bench_engine.py [POINTS]` (1,000).

Both go through so many points that do nothing, with the same configuration files. What remains is what the plumbing
costs: seconds until the first point is handed out, milliseconds between two points, memory of the process in charge.
"""

from __future__ import annotations

import itertools
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import polars as pl

ROOT = Path(__file__).parent.parent

# Hydra's own way: one function, called once a point by its basic launcher. It notes when it begins and ends.
HYDRAS_WAY = """
import atexit, json, sys, time
import hydra
times = []
@hydra.main(version_base="1.3", config_path=sys.argv.pop(1), config_name="config")
def point(config):
    times.append(time.time())
out = sys.argv.pop(1)
atexit.register(lambda: open(out, "w").write(json.dumps(times)))
sys.path.append(sys.argv.pop(1))
point()
"""


@dataclass(frozen=True)
class Figures:
    """What one way took. first_s: from the start of the command; wait_ms: median between two points; peak_bytes: of the
    process in charge."""

    first_s: float
    wait_ms: float
    peak_bytes: int


def ours(points: int, folder: Path) -> Figures:
    """The engine: one worker, every point a row in a store."""
    store = folder / f"store{points}"
    command = [sys.executable, "-m", "runner", "-m", "workload=noop", f"seed=range(0,{points})", f"store={store}"]
    start, peak_bytes = _run(command)
    runs = pl.concat([pl.read_parquet(path) for path in (store / "runs").rglob("*.parquet")])
    assert runs["point_id"].n_unique() == points
    waits = [json.loads(facts)["waited_s"] * 1e3 for facts in runs.sort("started_at")["facts"].to_list()[1:]]
    first = runs["started_at"].min().timestamp()  # type: ignore[union-attr]
    return Figures(first - start, statistics.median(waits), peak_bytes)


def hydras(points: int, folder: Path) -> Figures:
    """Hydra's basic sweeper and launcher."""
    out = folder / "times.json"
    command = [
        sys.executable, "-c", HYDRAS_WAY, str(ROOT / "conf"), str(out), str(ROOT / "runner" / "_plugins"), "-m",
        "hydra/sweeper=basic", "hydra/launcher=basic", f"hydra.sweep.dir={folder / 'hydra'}", "workload=noop",
        f"seed=range(0,{points})",
    ]  # fmt: skip
    start, peak_bytes = _run(command)
    times = json.loads(out.read_text())
    assert len(times) == points
    waits = [(later - earlier) * 1e3 for earlier, later in itertools.pairwise(times)]
    return Figures(times[0] - start, statistics.median(waits), peak_bytes)


# A process begins with its parent's peak memory, so the parent is a small one: this.
WATCHED = """
import resource, subprocess, sys
code = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL).returncode
print(code, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""


def _run(command: list[str]) -> tuple[float, int]:
    """When the command was started, and the most memory that its process had in use."""
    start = time.time()
    with tempfile.TemporaryDirectory() as locks:
        watched = subprocess.run(
            [sys.executable, "-S", "-c", WATCHED, *command], cwd=ROOT, stdout=subprocess.PIPE, text=True,
            env={**os.environ, "PYTHONPATH": str(ROOT), "CROSSOVER_LOCKS": locks},
        )  # fmt: skip
    code, peak_kilobytes = map(int, watched.stdout.split())
    if code:
        raise SystemExit(f"{' '.join(command)} failed")
    return start, peak_kilobytes * 1024


def main(points: int) -> None:
    """Measure and print."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        engine, many, basic = ours(points, folder), ours(10 * points, folder), hydras(points, folder)
    print(f"{points:,} points that do nothing      engine   Hydra's basic launcher    ratio")
    for name, unit, ours_, basics in (
        ("first point handed out after", "s", engine.first_s, basic.first_s),
        ("a device waits between two", "ms", engine.wait_ms, basic.wait_ms),
        ("peak memory of the parent", "MB", engine.peak_bytes / 1e6, basic.peak_bytes / 1e6),
    ):
        print(f"{name:30} {ours_:9.2f} {unit:2} {basics:20.2f} {unit:2} {basics / ours_:9.1f}x")
    growth = many.peak_bytes / engine.peak_bytes - 1
    print(
        f"ten times as many points       {many.first_s:9.2f} s until the first, {many.wait_ms:.2f} ms between two,",
        end=" ",
    )
    print(f"{many.peak_bytes / 1e6:.0f} MB: {growth:+.1%}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1000)
