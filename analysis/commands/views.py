"""The relations that are commands as they are: a row of the store's answer a line."""

import argparse
from dataclasses import dataclass
from typing import Literal

import duckdb

from analysis import store
from analysis.commands.options import WELL, Parser, add_examples, add_points, add_result, is_told
from analysis.naming import ORDER, choose_runs
from analysis.output import without_empty_columns, write_rows
from analysis.store import ON_DEMAND

AXES = (
    "workload, size, dtype, batch, compile, CASE WHEN compile <> 'false' THEN dynamic END AS dynamic, "
    "warmup, device, nullif(_settings(params), '') AS settings"
)
"""The axes of a point, as tables show them."""
H200 = "--store docs/results/h200"

Grain = Literal["point", "run", "latest run", "series", "environment"]


@dataclass(frozen=True)
class View:
    """A relation as a command.

    grain: what a row is of, and so which rows a POINT stands for: `run` all runs of the point, `latest run` its latest
    ok one. shown: the columns of its table; the other formats have all columns. example: arguments that tests run.
    """

    grain: Grain
    order: str
    shown: str = "*"
    example: str = H200


VIEWS = {
    "bounds": View(
        "point",
        f"{ORDER}, point_id",
        f"{AXES}, wall_us, issue_us, device_us, floor_us, bound, margin, gain, reason",
        f"dtype=bf16 compile=false {H200}",
    ),
    "crossovers": View(
        "series",
        f"axis, {ORDER}",
        f'{AXES}, axis, "text" AS crossover, status, reason',
        f"dtype=bf16 {H200}",
    ),
    "confidence": View(
        "point",
        f"confidence, {ORDER}, point_id",
        f"{AXES}, bound, margin, margin_low, margin_high, confidence, flips, flip_factor, ok_runs AS runs, "
        "spread_frac, spread_source, host_noise",
    ),
    "law": View(
        "point",
        f"{ORDER}, point_id",
        f"{AXES}, bound, wall_us, model_us, deviation, margin, "
        "slopes_verdict, slopes_agree, replay_verdict, replay_agrees",
    ),
    "points": View(
        "point",
        f"{ORDER}, point_id",
        f"{AXES}, runs, ok_runs, status, wall_us, issue_us, device_us, replay_us, single_us, busy_us, floor_us, reason",
    ),
    "runs": View(
        "run",
        "run_id",
        f"run_id, {AXES}, status, wall_us, issue_us, device_us, replay_us, single_us, busy_us, floor_us, reason",
        f"size=1024 dtype=bf16 {H200} --format csv",
    ),
    "environments": View(
        "environment",
        "environment_id",
        "environment_id, device, device_name, host_cpu, threads, torch, python, driver, multiprocessors",
    ),
    "steps": View(
        "latest run", "run_id, step", example="size=64 dtype=bf16 compile=false --store docs/results/h200_findings"
    ),
    "kernels": View(
        "latest run",
        "run_id, total_us DESC, name, grid, block",
        "run_id, name, grid, block, registers_per_thread AS registers, shared_memory_bytes, calls, median_us, "
        "total_us, occupancy, waves",
        f"workload=matmul_add size=4096 {H200}",
    ),
    "gaps": View(
        "latest run",
        "run_id, device, start_ns",
        "run_id, device, step, round((start_ns - min(start_ns) OVER (PARTITION BY run_id)) / 1e3, 3) AS start_us, "
        "round(dur_ns / 1e3, 3) AS dur_us, cause, detail, next_event_id, launch_id",
        "size=64 --store docs/results/h200_findings",
    ),
    "audits": View(
        "run",
        "file, run_id",
        "file, events, kept, set_aside, repaired, lost_events, device_events, unlinked, overlapping, outside_steps, "
        "before_launch, suspiciously_long, step_method, steps, rank, line",
    ),
    "perturbation": View(
        "run",
        f"{ORDER}, run_id",
        f"run_id, {AXES}, profiled_host_us, unprofiled_host_us, perturbation, reason",
    ),
    "cures": View(
        "point",
        "environment_id, axes, point_id, rank",
        "axes AS point, cure, basis, gain, issue_gain, memory_gain, sentence",
        f"size=64 dtype=bf16 compile=false {H200}",
    ),
    "host_tax": View(
        "latest run",
        "run_id, us DESC NULLS LAST, part",
        "run_id, part, profiled_us, share, us, basis",
        f"size=64 dtype=bf16 {H200}",
    ),
    "recompiles": View(
        "run",
        f"{ORDER}, run_id, compilation",
        f"run_id, {AXES}, compilation, frame, name, seconds, cycle, phase, reason",
        f"size=64 compile=true {H200}",
    ),
    "payback": View(
        "point",
        f"{ORDER}, point_id, against",
        "workload, size, dtype, batch, nullif(_settings(params), '') AS settings, choice, against, lost_s, "
        "against_lost_s, wall_us, against_wall_us, wall_ratio, device_ratio, steps, ahead_steps, reason",
        f"size=64 dtype=bf16 {H200}",
    ),
    "allocator": View(
        "run",
        f"{ORDER}, run_id",
        f"run_id, {AXES}, pool, allocator_settings, first_device_allocs, later_device_allocs, device_allocs, warm_us, "
        "cold_us, cold_device_allocs, alloc_us, fragmentation_frac, split_frac, reserved_over_allocated, reason",
        f"size=64 dtype=bf16 {H200}",
    ),
    "phases": View(
        "latest run",
        'run_id, kind, "order"',
        "run_id, kind, path, steps, calls, host_us, host_frac, device_us, device_frac, launches, kernels, idle_us, "
        "wait_us, peak_bytes",
        "size=64 --store docs/results/h200_findings",
    ),
    "holders": View(
        "latest run",
        'run_id, depth > 0, "order", path, at_peak_bytes DESC, holder',
        "run_id, path, holder, at_peak_bytes, at_peak_frac, at_end_bytes, peak_bytes, is_at_peak",
    ),
    "holder_growth": View(
        "series",
        f'{ORDER}, axis, "order", holder',
        f"{AXES}, axis, path, holder, points, low_bytes, high_bytes, slope_bytes, fixed_bytes, power, reason",
    ),
    "numerics": View(
        "point",
        "passed IS NOT false, passed, allowed_frac DESC NULLS LAST, workload, dtype, compile, settings",
        "workload, nullif(_settings(settings), '') AS settings, dtype, compile, dynamic, device, passed, error, "
        "eager_error, allowed, checks, failures, size, reason",
    ),
    "roofs": View("environment", "environment_id, roof, dtype"),
    "axes": View("run", "run_id, axis", example=f"size=64 {H200} --format csv"),
}

SERIES = (
    "environment_id",
    "axis",
    *["workload", "size", "dtype", "batch", "compile", "dynamic", "warmup", "device", "params"],
)
"""Columns that tell one series from another."""

_KEYS: dict[Grain, str] = {
    "point": "(SELECT point_id, environment_id FROM chosen_runs)",
    "run": "(SELECT run_id FROM chosen_runs)",
    "latest run": "(SELECT run_id FROM chosen_runs WHERE is_latest)",
    "series": "(SELECT s.* FROM _series_points AS s SEMI JOIN chosen_runs AS c "
    "ON s.point_id = c.point_id AND s.environment_id IS NOT DISTINCT FROM c.environment_id)",
    "environment": "(SELECT environment_id FROM chosen_runs)",
}
_MATCHED: dict[Grain, tuple[str, ...]] = {
    "point": ("point_id", "environment_id"),
    "run": ("run_id",),
    "latest run": ("run_id",),
    "series": SERIES,
    "environment": ("environment_id",),
}


def arguments(command: Parser) -> None:
    """What a view takes: the points whose rows to show."""
    name = command.get_default("name")
    add_points(command)
    add_result(command)
    add_examples(command, f"{name} {VIEWS[name].example}")


def run(given: argparse.Namespace) -> int:
    """Write the rows of a view."""
    with store.open_store(given.store) as connection:
        if given.name in ON_DEMAND:
            store.add(connection, given.name)
        write_view(connection, given)
    return WELL


def write_view(connection: duckdb.DuckDBPyConnection, given: argparse.Namespace) -> None:
    """Write the view `given.name`: the rows of the points `given.point`, all for none."""
    view = VIEWS[given.name]
    source = rows_of(connection, given.name, given.point)
    if given.name == "gaps" and is_told(given):
        print("".join(f"{line}\n" for line in gaps_in_words(connection, source)))
    columns = view.shown if given.format == "table" else "*"
    query = f"SELECT {columns} FROM {source} ORDER BY {view.order}"
    if given.format == "table":
        query = without_empty_columns(connection, query)
    write_rows(connection, query, given.format, given.path)


def rows_of(connection: duckdb.DuckDBPyConnection, name: str, point: list[str]) -> str:
    """The rows of a view that belong to the points that `point` names, as a query in brackets; all for none.

    Raises:
        PointError: no point fits.
    """
    if not point:
        return name
    choose_runs(connection, " ".join(point))
    grain = VIEWS[name].grain
    same = " AND ".join(f"v.{column} IS NOT DISTINCT FROM c.{column}" for column in _MATCHED[grain])
    return f"(SELECT * FROM {name} AS v SEMI JOIN {_KEYS[grain]} AS c ON {same})"


def gaps_in_words(connection: duckdb.DuckDBPyConnection, source: str = "gaps") -> list[str]:
    """How much of a device's idle time each cause took, over all gaps or those of another query."""
    causes = connection.execute(
        "SELECT cause, count(*), _time(sum(dur_ns) / 1e3), _percent(sum(dur_ns) / sum(sum(dur_ns)) OVER ()) "
        f"FROM {source} GROUP BY cause ORDER BY sum(dur_ns) DESC, cause"
    ).fetchall()
    return [f"{cause}: {time} in {number:,} gaps, {share}" for cause, number, time, share in causes]
