"""Write a small store from given rows: the words of docs/store.md, without a runner."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import polars as pl

Row = Mapping[str, Any]

TIMES = ("wall_us", "issue_us", "device_us", "replay_us", "single_us", "busy_us", "blocked_us", "floor_us")
RATIOS = ("host_slope", "device_slope", "margin")

SAMPLE = pl.Struct({"quantity": pl.String, "round": pl.Int32, "position": pl.Int32, "value": pl.Float64})

RUNS = pl.Schema(
    {
        **dict.fromkeys(("run_id", "point_id", "sweep_id", "environment_id", "source", "workload"), pl.String),
        "size": pl.Int64,
        "dtype": pl.String,
        "batch": pl.Int64,
        **dict.fromkeys(("compile", "dynamic", "warmup", "device", "params", "status", "reason"), pl.String),
        "started_at": pl.Datetime("us"),
        **dict.fromkeys((*TIMES, *RATIOS), pl.List(pl.Float64)),
        "samples": pl.List(SAMPLE),
        "facts": pl.String,
    }
)

EVENTS = pl.Schema(
    {
        "run_id": pl.String,
        "event_id": pl.Int64,
        **dict.fromkeys(("name", "category"), pl.String),
        **dict.fromkeys(("ts_ns", "dur_ns"), pl.Int64),
        "is_device": pl.Boolean,
        **dict.fromkeys(("device", "stream"), pl.Int64),
        **dict.fromkeys(("pid", "tid"), pl.String),
        **dict.fromkeys(("step", "parent_id", "depth", "correlation", "launch_id"), pl.Int64),
        **dict.fromkeys(("grid", "block"), pl.List(pl.Int64)),
        **dict.fromkeys(("registers_per_thread", "shared_memory_bytes", "bytes"), pl.Int64),
        **dict.fromkeys(("shapes", "args"), pl.String),
    }
)

ENVIRONMENTS = pl.Schema(
    {
        "environment_id": pl.String,
        "measure_version": pl.Int64,
        **dict.fromkeys(
            ("torch", "python", "device", "device_name", "driver", "cuda_runtime", "compute_capability"), pl.String
        ),
        "mig": pl.Boolean,
        **dict.fromkeys(("host_cpu", "affinity", "numa", "governor"), pl.String),
        "cgroup_cpus": pl.Float64,
        **dict.fromkeys(
            (
                "cores",
                "threads",
                "multiprocessors",
                "threads_per_multiprocessor",
                "registers_per_multiprocessor",
                "shared_memory_per_multiprocessor_bytes",
                "l2_bytes",
                "memory_bytes",
            ),
            pl.Int64,
        ),
        **dict.fromkeys(("sm_clock_max_mhz", "power_limit_w"), pl.Float64),
        **dict.fromkeys(("versions", "variables"), pl.String),
    }
)

ROOFS = pl.Schema(
    {
        **dict.fromkeys(("environment_id", "roof", "dtype"), pl.String),
        **dict.fromkeys(("value_per_s", "low_per_s", "high_per_s"), pl.Float64),
        **dict.fromkeys(("method", "reason"), pl.String),
    }
)

RUN = {
    "sweep_id": "sweep",
    "environment_id": "env",
    "source": "sweep",
    "workload": "matmul_add",
    "size": 64,
    "dtype": "fp32",
    "compile": "false",
    "dynamic": "false",
    "warmup": "true",
    "device": "cuda",
    "params": "{}",
    "status": "ok",
    "facts": "{}",
}
"""What a given run is when it says nothing else: a warm, eager point on an asynchronous device."""


def write_store(
    folder: Path,
    runs: Iterable[Row] = (),
    events: Iterable[Row] = (),
    environments: Iterable[Row] = (),
    roofs: Iterable[Row] = (),
) -> Path:
    """Write the rows as the runner does, one file a run, and return the folder.

    A run without ids gets `r000`, `r001`, ... and a point_id of its own axes. A time may be given as one number (an
    interval of no width) or as (value, low, high); params and facts as dicts. An event without ids belongs to `r000`,
    numbered in its run; an environment or roof without an id belongs to `env`.
    """
    folder.mkdir(parents=True, exist_ok=True)
    rows = [_run(number, row) for number, row in enumerate(runs)]
    sweep_of = {row["run_id"]: row["sweep_id"] for row in rows}
    for row in rows:
        _write(folder / "runs" / row["sweep_id"] / f"{row['run_id']}.parquet", [row], RUNS)
    for run_id, group in _events_by_run(events).items():
        _write(folder / "events" / sweep_of.get(run_id, "sweep") / f"{run_id}.parquet", group, EVENTS)
    for row in environments:
        named = {"environment_id": "env", **row}
        _write(folder / "environments" / f"{named['environment_id']}.parquet", [named], ENVIRONMENTS)
    for environment_id, group in _grouped({"environment_id": "env", **row} for row in roofs).items():
        _write(folder / "roofs" / f"{environment_id}.parquet", group, ROOFS)
    return folder


def _run(number: int, given: Row) -> dict[str, Any]:
    row = {"run_id": f"r{number:03d}", **RUN, **given}
    row["params"] = _json(row["params"])
    row["facts"] = _json(row["facts"])
    axes = ("workload", "size", "dtype", "batch", "compile", "dynamic", "warmup", "device", "params")
    row.setdefault("point_id", "-".join(str(row.get(axis)) for axis in axes))
    for name in (*TIMES, *RATIOS):
        row[name] = _interval(row.get(name))
    return row


def _json(value: object) -> object:
    return json.dumps(value) if isinstance(value, dict) else value


def _interval(value: Any) -> list[float | None] | None:
    if value is None or isinstance(value, (list, tuple)):
        return None if value is None else [None if part is None else float(part) for part in value]
    return [float(value)] * 3


def _events_by_run(events: Iterable[Row]) -> dict[str, list[Row]]:
    groups: dict[str, list[Row]] = {}
    for event in events:
        run_id = event.get("run_id", "r000")
        group = groups.setdefault(run_id, [])
        group.append({"run_id": run_id, "event_id": len(group), **event})
    return groups


def _grouped(rows: Iterable[Row]) -> dict[str, list[Row]]:
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(row["environment_id"], []).append(row)
    return groups


def _write(file: Path, rows: Iterable[Row], schema: pl.Schema) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    pl.DataFrame([dict(row) for row in rows], schema=schema).write_parquet(file)
