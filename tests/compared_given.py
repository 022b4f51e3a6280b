"""Stores and baselines to compare, and `python -m analysis compare` and `history` as functions."""

from __future__ import annotations

import argparse
import math
import random
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import polars as pl
from given import Row, write_store

from analysis.comparison import command, history
from analysis.comparison.compared import Row as Found
from analysis.comparison.compared import comparison, rows_of
from analysis.comparison.sides import named_side, stores

SIZES = (64, 128, 256, 512, 1024, 2048)


def swept(sweep_id: str, factor: float = 1.0, noise: Iterable[float] = (), **changes: Any) -> list[Row]:
    """One run of each of SIZES in a sweep: issue 20 us, device growing; all times multiplied by `factor`, and each
    point's by the exponential of its `noise`."""
    shifts = [*noise] or [0.0] * len(SIZES)
    rows = []
    for place, (size, shift) in enumerate(zip(SIZES, shifts, strict=True)):
        by = factor * math.exp(shift)
        times = {"issue_us": 20 * by, "device_us": size / 32 * by, "wall_us": max(20, size / 32) * by}
        spans = {name: (value, value * 0.999, value * 1.001) for name, value in times.items()}
        facts = {"device_method": "held", "peak_bytes": 1000 * size}
        row = {"run_id": f"{sweep_id}-{place}", "sweep_id": sweep_id, "size": size, **spans, "facts": facts, **changes}
        rows.append(row)
    return rows


def noise(seed: int, sd: float = 0.01) -> list[float]:
    """A shift of each point, normal of this standard deviation."""
    draw = random.Random(seed)
    return [draw.gauss(0, sd) for _ in SIZES]


def history_of(count: int, sd: float = 0.01, **changes: Any) -> list[Row]:
    """So many earlier sweeps of the same points, from which the spread between runs is known."""
    return [row for seed in range(count) for row in swept(f"h{seed}", noise=noise(seed, sd), **changes)]


def changes_of(store: Path, a: str, b: str, thresholds: Mapping[str, float] | None = None) -> list[Found]:
    """Rows of `changes` for two sides."""
    return relation(store, a, b, "changes", thresholds)


def relation(store: Path, a: str, b: str, name: str, thresholds: Mapping[str, float] | None = None) -> list[Found]:
    """Rows of a relation of a comparison of two sides."""
    with stores() as held:
        sides = [named_side(each, store, held) for each in (a, b)]
        more = [thresholds] if thresholds else []
        with comparison(sides[0], sides[1], held, *more) as connection:
            return rows_of(connection, f"FROM {name}")


def verdicts(rows: Iterable[Found], quantity: str | None) -> dict[int, str]:
    """Verdict by size, of one quantity."""
    return {row["size"]: row["verdict"] for row in rows if row["quantity"] == quantity}


def run_command(module: ModuleType, store: Path, *arguments: str) -> int:
    """Exit code of `compare` (module command) or `history`."""
    parser = argparse.ArgumentParser()
    module.add_arguments(parser)
    parser.add_argument("--store", type=Path)
    parser.add_argument("-o", dest="path", type=Path)
    return int(module.run(parser.parse_args([*arguments, "--store", str(store)])))


def run_compare(store: Path, *arguments: str) -> int:
    """Exit code of `python -m analysis compare`."""
    return run_command(command, store, *arguments)


def run_history(store: Path, *arguments: str) -> int:
    """Exit code of `python -m analysis history`."""
    return run_command(history, store, *arguments)


def two_sweeps(folder: Path, b: list[Row], environments: Iterable[Row] = ({},), events: Iterable[Row] = ()) -> Path:
    """A store of four earlier sweeps, sweep `a`, and the runs given as sweep `b`."""
    runs = [*history_of(4), *swept("a", noise=noise(8)), *b]
    return write_store(folder, runs=runs, environments=environments, events=events)


# --- baselines of simulated points


@dataclass(frozen=True)
class Time:
    """A wall time of one point, by size, in microseconds; sd_frac, dof and kind as side_times has them."""

    size: int
    value: float
    sd_frac: float | None = None
    dof: int | None = None
    kind: str = "wall"


def baseline_of(path: Path, given: Iterable[Time]) -> Path:
    """A baseline file of eager points that have a wall time each."""
    known = list(given)
    points = [_point(time.size) for time in known]
    times = [
        {
            "axes": str(time.size), "environment_id": path.stem, "quantity": "wall", "differs_as": time.kind,
            "value": time.value, "runs": 1, "own_sd": 0.001, "sd_frac": time.sd_frac, "dof": time.dof, "method": None,
        }
        for time in known
    ]  # fmt: skip
    frame = pl.DataFrame(
        {"baseline_version": [1], "label": [path.stem], "imports_left_out": [0], "points": [points], "times": [times]},
        schema_overrides={"times": pl.List(pl.Struct(TIMES)), "points": pl.List(pl.Struct(POINTS))},
    )
    frame.with_columns(
        crossovers=pl.lit(None, pl.List(pl.Struct(CROSSOVERS))),
        kernels=pl.lit(None, pl.List(pl.Struct(KERNELS))),
        facts=pl.lit(None, pl.List(pl.Struct(FACTS))),
    ).write_parquet(path)
    return path


def _point(size: int) -> dict[str, Any]:
    return {
        **dict.fromkeys(POINTS), "axes": str(size), "point": f"size={size}", "workload": "matmul_add", "size": size,
        "compile": "false", "status": "ok", "runs": 1, "ok_runs": 1, "point_id": str(size), "run_id": str(size),
    }  # fmt: skip


_TEXT = pl.String()
POINTS = {
    **dict.fromkeys(
        ("axes", "point", "workload", "dtype", "compile", "dynamic", "warmup", "device", "params", "point_id",
         "environment_id", "run_id", "status", "reason", "interpreter", "measure", "bound"), _TEXT
    ),
    **dict.fromkeys(("size", "batch", "runs", "ok_runs"), pl.Int64()),
    "host_contended": pl.Boolean(),
    **dict.fromkeys(("margin", "margin_low", "margin_high"), pl.Float64()),
}  # fmt: skip
TIMES = {
    **dict.fromkeys(("axes", "environment_id", "quantity", "differs_as", "method"), _TEXT),
    **dict.fromkeys(("runs", "dof"), pl.Int64()),
    **dict.fromkeys(("value", "own_sd", "sd_frac"), pl.Float64()),
}
CROSSOVERS = {
    **dict.fromkeys(("series", "name", "axis", "environment_id", "status", "text", "reason"), _TEXT),
    **dict.fromkeys(("value", "low", "high"), pl.Float64()),
}
KERNELS = {**dict.fromkeys(("axes", "name"), _TEXT), **dict.fromkeys(("calls", "us", "share"), pl.Float64())}
FACTS = {**dict.fromkeys(("environment_id", "fact", "value"), _TEXT), "place": pl.Int64()}
