"""A composed configuration -> a job: the point, and how it is to be measured. The one door for every value."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf

from runner.point import AXES, Point, PointError
from runner.rounds import Target
from runner.task import Recorder

SETTINGS = ("store", "measure", "profiler", "max_step_s", "artifacts")
MEASURE = ("name", "target_frac", "limit_s", "slopes_every")


@dataclass(frozen=True, slots=True)
class Job:
    """One point and its settings; slopes_every: host and device slopes at every n-th point, 0 = none."""

    point: Point
    store: Path
    target: Target
    slopes_every: int
    max_step_s: float
    recorder: Recorder
    artifacts: bool

    @classmethod
    def checked(cls, config: DictConfig) -> Job:
        """The job of a configuration. Raises PointError for the first value that is not allowed."""
        values = OmegaConf.to_container(config, resolve=True)
        assert isinstance(values, dict)
        _refuse_keys("", values, (*AXES, *SETTINGS))
        measure = _group(values, "measure", MEASURE)
        profiler = _group(values, "profiler", tuple(each.name for each in fields(Recorder)))
        return cls(
            point=Point.checked({str(key): value for key, value in values.items()}),
            store=_folder(values["store"]),
            target=Target(
                str(measure["name"]),
                _positive("measure.target_frac", measure["target_frac"]),
                _positive("measure.limit_s", measure["limit_s"]),
            ),
            slopes_every=_count("measure.slopes_every", measure["slopes_every"]),
            max_step_s=_positive("max_step_s", values["max_step_s"]),
            recorder=Recorder(*(_flag(f"profiler.{each.name}", profiler[each.name]) for each in fields(Recorder))),
            artifacts=_flag("artifacts", values["artifacts"]),
        )


def _group(values: Mapping[Any, Any], name: str, keys: tuple[str, ...]) -> Mapping[str, Any]:
    group = values[name]
    if not isinstance(group, Mapping):
        raise PointError(f"{name}={group}: allowed is a group; see conf/{name}.")
    _refuse_keys(f"{name}.", group, keys)
    return group


def _refuse_keys(place: str, values: Mapping[Any, Any], allowed: tuple[str, ...]) -> None:
    """A key added with `+` that nothing reads, or one taken away with `~`."""
    for key in values:
        if key not in allowed:
            raise PointError(f"{place}{key}: there is no such key; allowed are {', '.join(allowed)}.")
    for key in allowed:
        if key not in values:
            raise PointError(f"{place}{key}: it is missing; leave out ~{place}{key}.")


def _folder(value: Any) -> Path:
    if not isinstance(value, str) or not value.strip() or "\0" in value:
        raise PointError(f"store={value!r}: allowed is the path of a folder; for example store=outputs/store.")
    return Path(value)


def _positive(key: str, value: Any) -> float:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not math.isfinite(value) or value <= 0:
        raise PointError(f"{key}={value}: allowed is a number above 0; for example {key}=1.")
    return float(value)


def _count(key: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise PointError(f"{key}={value}: allowed is a whole number from 0 on; for example {key}=8.")
    return value


def _flag(key: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise PointError(f"{key}={value}: allowed is true or false; for example {key}=true.")
    return value
