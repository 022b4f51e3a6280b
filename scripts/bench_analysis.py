"""How long the verdicts, crossovers and findings of 10,000 points take, and in how much memory.

A store is made from kept results: their profiled runs again and again, each copy a point of its own (another seed),
with its times scaled by up to a third, and one compacted file of all. Then one process opens it and reads all rows of
`bounds`, `crossovers` and `findings`; another one those of `rule_outcomes`, which is more than was asked.

    python scripts/bench_analysis.py [POINTS] [STORE]
"""

import json
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import polars as pl

SWEEP = "1a000000000000000000"
ORIGIN = "docs/results/h200"
ASKED, MORE = ("bounds", "crossovers", "findings"), ("rule_outcomes",)
EVENTS_A_POINT = 250
TIMES = ("wall_us", "issue_us", "device_us", "replay_us", "single_us", "busy_us", "blocked_us", "floor_us")


def main() -> int:
    """Make the store and read it, each in a process of its own: at the fork a child's peak memory is its parent's."""
    if sys.argv[1:2] == ["--make"]:
        print(make(Path(sys.argv[2]), Path(sys.argv[3]), int(sys.argv[4])))
    elif sys.argv[1:2] == ["--read"]:
        print(json.dumps(read(Path(sys.argv[2]), sys.argv[3:])))
    else:
        compare(sys.argv[1] if len(sys.argv) > 1 else "10000", sys.argv[2] if len(sys.argv) > 2 else ORIGIN)
    return 0


def compare(points: str, origin: str) -> None:
    """Print the tables."""
    with tempfile.TemporaryDirectory(prefix="bench-analysis-") as folder:
        print(f"{int(points):,} points, {int(_run('--make', origin, folder, points)):,} events")
        for relations in (ASKED, MORE):
            told = json.loads(_run("--read", folder, *relations))
            for name, seconds, rows in told["steps"]:
                print(f"{name:<14} {seconds:6.2f} s  {rows:>9,} rows")
            print(f"{'together':<14} {told['seconds']:6.2f} s   peak {told['peak_bytes'] / 1e9:.2f} GB\n")


def _run(*arguments: str) -> str:
    return subprocess.check_output([sys.executable, __file__, *arguments], text=True)


def make(origin: Path, folder: Path, points: int) -> int:
    """Write a store of so many points into `folder`; the number of its events."""
    runs, events = _table(origin, "runs"), _table(origin, "events")
    sizes = events.group_by("run_id").len().sort("len", "run_id")
    runs = runs.join(_about(sizes, EVENTS_A_POINT), on="run_id", how="semi").sort("run_id")
    runs = runs.with_columns(place=pl.int_range(pl.len()).over("point_id"))  # a run more is a point of its own here
    generator = random.Random(0)
    copies = -(-points // runs.height)
    many = pl.concat([_copy(runs, number, generator.uniform(0.75, 1.33)) for number in range(copies)]).head(points)
    named = many.select("run_id", original=pl.col("run_id").str.head(-4))
    traces = named.join(events.rename({"run_id": "original"}), on="original").drop("original")
    _write(many, folder / "runs")
    _write(traces, folder / "events")
    for kind in ("environments", "roofs"):
        shutil.copytree(origin / kind, folder / kind)
    return traces.height


def _about(sizes: pl.DataFrame, mean: int) -> pl.DataFrame:
    """The runs with the fewest events whose mean is at least this; all of them, where they have fewer."""
    ordered = sizes.with_columns(mean=pl.col("len").cum_sum() / pl.int_range(1, pl.len() + 1))
    return ordered.filter(pl.col("mean") <= mean)


def _copy(runs: pl.DataFrame, number: int, factor: float) -> pl.DataFrame:
    """The same runs as points of their own, their times `factor` times as long."""
    scaled = [pl.col(name).list.eval(pl.element() * factor) for name in TIMES]
    copy = pl.format(', "copy": {}}}', pl.col("place") + 100 * number)
    params = pl.concat_str(pl.col("params").str.strip_suffix("}"), copy)
    ids = [(pl.col("run_id") + f"{number:04d}").alias(name) for name in ("run_id", "point_id")]
    return runs.with_columns(*scaled, *ids, params=params, sweep_id=pl.lit(SWEEP)).drop("place")


def _table(origin: Path, kind: str) -> pl.DataFrame:
    files = sorted((origin / kind).glob("*/*.parquet"))
    return pl.concat([pl.read_parquet(file) for file in files], how="diagonal_relaxed")


def _write(table: pl.DataFrame, folder: Path) -> None:
    (folder / SWEEP).mkdir(parents=True)
    table.write_parquet(folder / SWEEP / "all-000000000000.parquet", compression="zstd")


def read(folder: Path, relations: list[str]) -> dict[str, object]:
    """Open the store and fetch the relations: seconds and rows of each, and the peak memory of the process."""
    from analysis.store import ON_DEMAND, add, open_store

    begin = time.perf_counter()
    connection = open_store(folder)
    steps = [("open", time.perf_counter() - begin, 0)]
    for name in relations:
        begin = time.perf_counter()
        if name in ON_DEMAND:
            add(connection, name)
        rows = len(connection.execute(f"FROM {name}").fetchall())
        steps.append((name, time.perf_counter() - begin, rows))
    peak_bytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return {"steps": steps, "seconds": sum(each[1] for each in steps), "peak_bytes": peak_bytes}


if __name__ == "__main__":
    sys.exit(main())
