"""Which points belong together: series, pairs of eager and compiled, cold points and their warm twins."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from analysis import theme
from analysis.charts import axis_value
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
    axes = [None if name in without else row.get(name) for name in AXES]
    return (*axes, _settings(row.get("params") or "{}", without))


@lru_cache(maxsize=65_536)
def _settings(params: str, without: tuple[str, ...]) -> str:
    """Further axes but those named, written alike where they are alike."""
    given = theme.json_params({"params": params})
    return json.dumps({name: value for name, value in given.items() if name not in without}, sort_keys=True)


def reading_order(row: Row) -> tuple[Any, ...]:
    """Sorts series and points for reading: eager before compiled, no batch before batches, what is usual first."""
    modes, mode = (EAGER, "true"), str(row["compile"])
    rank = modes.index(mode) if mode in modes else len(modes)
    axes = (str(row["workload"]), str(row["dtype"]), row["batch"] or 0)
    params = theme.json_params(row)
    unusual = sum(key in params and params[key] != usual for key, usual in theme.USUAL.items())
    return (
        *axes,
        rank,
        mode,
        row["warmup"] == COLD,
        unusual,
        str(row["params"]),
        row["size"] or 0,
        str(row["environment_id"]),
    )


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
