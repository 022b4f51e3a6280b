"""Which points belong together: series, pairs of eager and compiled, cold points and their warm twins."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from analysis import marks, theme
from analysis.charts import axis_value, measured_at
from analysis.theme import Row

AXES = ("environment_id", "workload", "size", "dtype", "batch", "compile", "dynamic", "warmup", "device")
COLD = "false"
EAGER = "false"


@dataclass(frozen=True)
class Series:
    """A row of `crossovers` and the rows of `bounds` that it speaks of, in the order of the axis."""

    crossing: Row
    points: Sequence[Row]

    @property
    def axis(self) -> str:
        """The axis that varies."""
        return str(self.crossing["axis"])


def key(row: Row, *without: str) -> Hashable:
    """Everything that two points of a series have in common: all axes but those named."""
    params = {name: value for name, value in theme.json_params(row).items() if name not in without}
    axes = [None if name in without else row.get(name) for name in AXES]
    return (*axes, json.dumps(params, sort_keys=True))


def series_of(crossovers: Iterable[Row], bounds: Iterable[Row]) -> list[Series]:
    """Join every row of `crossovers` with its points; one value of an axis counts once, the latest run of it."""
    bounds, crossovers = list(bounds), list(crossovers)
    groups: dict[Hashable, dict[float, Row]] = defaultdict(dict)
    for axis in {str(row["axis"]) for row in crossovers}:
        for point in sorted(bounds, key=lambda row: str(row.get("run_id"))):
            value = axis_value(point, axis)
            if value is not None:
                groups[axis, key(point, axis)][value] = point
    found = [(row, groups[row["axis"], key(row, row["axis"])]) for row in crossovers]
    return [Series(row, [points[value] for value in sorted(points)]) for row, points in found if points]


def compile_pairs(bounds: Iterable[Row], axis: str) -> dict[Hashable, list[dict[str, Any]]]:
    """Wall and overhead of eager over compiled, where both were measured; one list a compile mode and series."""
    warm = [row for row in bounds if row["warmup"] != COLD and axis_value(row, axis) is not None]
    eager = {key(row, "compile"): row for row in warm if row["compile"] == EAGER}
    pairs: dict[Hashable, list[dict[str, Any]]] = defaultdict(list)
    for row in warm:
        twin = eager.get(key(row, "compile"))
        if twin is not None and row["compile"] != EAGER:
            pairs[key(row, axis)] += _ratios(twin, row, axis)
    return {group: rows for group, rows in pairs.items() if rows}


def _ratios(eager: Row, compiled: Row, axis: str) -> list[dict[str, Any]]:
    columns = {"wall": "wall_us", theme.overhead_word(eager): "overhead_us"}
    pairs = [(word, marks.span(eager, column), marks.span(compiled, column)) for word, column in columns.items()]
    return [
        {
            "axis_value": measured_at(eager, axis),
            "quantity": word,
            "ratio": ours[0] / theirs[0],
            "low": _quotient(ours[1], theirs[2]),
            "high": _quotient(ours[2], theirs[1]),
            "eager_us": ours[0],
            "compiled_us": theirs[0],
            "compiled": compiled,
        }
        for word, ours, theirs in pairs
        if ours[0] and theirs[0]
    ]


def _quotient(above: float | None, below: float | None) -> float | None:
    return above / below if above is not None and below else None


def cold_points(first_steps: Iterable[Row]) -> list[list[Row]]:
    """Samples of the latest run of each cold point, a list a point, in the order taken."""
    runs: dict[Hashable, dict[str, list[Row]]] = defaultdict(lambda: defaultdict(list))
    for sample in first_steps:
        runs[key(sample)][str(sample["run_id"])].append(sample)
    latest = [samples[max(samples)] for samples in runs.values()]
    return [sorted(samples, key=lambda sample: sample["position"]) for samples in latest]


def twin_key(row: Row) -> Hashable:
    """What a cold point and its warm twin have in common."""
    return key(row, "warmup", "schedule")


def warm_twins(bounds: Iterable[Row]) -> dict[Hashable, Row]:
    """Warm points with a wall time by everything but warm-up and schedule, which a cold point has its own of."""
    warm = [row for row in bounds if row["warmup"] != COLD and row.get("wall_us") is not None]
    return {twin_key(row): row for row in warm}
