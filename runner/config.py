"""A composed configuration -> a job (one point, and how it is to be measured) and the settings of the whole command.

The one door for every value.
"""

from __future__ import annotations

import math
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from runner import custom
from runner.point import AXES, Point, PointError
from runner.rounds import Target
from runner.task import Interpreter, Recorder

OF_A_POINT = ("python", "env", "measure", "profiler", "nvtx", "max_step_s", "point_timeout", "artifacts")
OF_A_COMMAND = (
    "store", "devices", "wait", "order", "order_seed", "rerun", "dry_run", "on_error", "skip_after_oom",
    "recycle_after", "memory_limit_gb", "points", "search",
)  # fmt: skip
KEYS = (*AXES, *OF_A_POINT, *OF_A_COMMAND)
SEARCH = ("axis", "low", "high", "multiple", "tolerance_frac", "most_points", "most_runs")
SEARCHED = ("size", "batch", "threads")
DEFAULT_RANGES = {"size": (8, 16384)}
MEASURE = ("name", "target_frac", "limit_s", "slopes_every")
RECORDED = ("record_shapes", "profile_memory", "with_stack", "with_modules")
TOOLS = ("torch", "nsys")
NVTX = ("phases", "modules", "ops")
ORDERS = ("shuffled", "given")
ON_ERROR = ("continue", "stop")


@dataclass(frozen=True, slots=True)
class Job:
    """One point and how it is measured. index: its place in the list of points that the command line makes, from 0;
    slopes: whether host and device slopes are taken; timeout_s: after how many seconds its worker is given up;
    repeat: which further run of the point it is, taken whatever the store holds and in a worker that has not measured
    it yet; 0 = the first one."""

    index: int
    point: Point
    interpreter: Interpreter
    target: Target
    slopes: bool
    max_step_s: float
    timeout_s: float
    recorder: Recorder
    artifacts: bool
    repeat: int = 0

    @property
    def label(self) -> str:
        """A short name for people: the point's, with the interpreter's where it is not the runner's own."""
        python = [f"python={self.interpreter.python}"] if self.interpreter.python else []
        return " ".join([self.point.label, *python, *(f"env.{name}={value}" for name, value in self.interpreter.env)])

    @classmethod
    def checked(cls, values: Mapping[str, Any], index: int = 0, turn: int = 0) -> Job:
        """The job of a configuration. Raises PointError for the first value that is not allowed.

        turn: place of the point among those of the command, the same for all of its interpreters.
        """
        values = _with_own_axes(values)
        _refuse_keys("", values, KEYS)
        measure = _group(values, "measure", MEASURE)
        every = _count("measure.slopes_every", measure["slopes_every"])
        return cls(
            index=index,
            point=Point.checked(values),
            interpreter=Interpreter(_python(values["python"]), _env(values["env"])),
            target=Target(
                _name("measure.name", measure["name"]),
                _positive("measure.target_frac", measure["target_frac"]),
                _positive("measure.limit_s", measure["limit_s"]),
            ),
            slopes=every > 0 and turn % every == 0,
            max_step_s=_positive("max_step_s", values["max_step_s"]),
            timeout_s=_positive("point_timeout", values["point_timeout"]),
            recorder=_recorder(values),
            artifacts=_flag("artifacts", values["artifacts"]),
        )

    def repeated(self, repeat: int) -> Job:
        """A further run of the same point, measured longer: to half the target, in four times the limit."""
        closer = Target("confirming", self.target.target_frac / 2, self.target.limit_s * 4)
        return replace(self, target=closer, repeat=repeat)


@dataclass(frozen=True, slots=True)
class Search:
    """Where a crossing is looked for: at the multiples of `multiple` from low to high on one axis.

    axis: `size`, `batch`, `threads` or a parameter of the workload; low, high: multiples themselves; tolerance_frac:
    how far the ends of the bracket may be from the value, as a fraction of it, but a multiple at least; most_points,
    most_runs: of a series.
    """

    axis: str
    low: float
    high: float
    multiple: float = 1
    tolerance_frac: float = 0.02
    most_points: int = 10
    most_runs: int = 14

    @classmethod
    def checked(cls, group: Mapping[str, Any]) -> Search | None:
        """The search of a configuration, None for a command without one. Raises PointError."""
        _refuse_keys("search.", group, SEARCH)
        if (axis := group["axis"]) is None:
            return None
        axis = _name("search.axis", axis).removeprefix("workload.")
        multiple = _limited("search.multiple", group["multiple"])
        low, high = (_end(axis, name, value) for name, value in zip(("low", "high"), _range(axis, group), strict=True))
        first, last = math.ceil(low / multiple - 1e-9), math.floor(high / multiple + 1e-9)
        if last < first + 2:
            raise PointError(
                f"search.low={low:g} search.high={high:g}: allowed is a range that holds three multiples of "
                f"search.multiple={multiple:g} or more; for example search.high={multiple * (first + 100):g}."
            )
        points = _count("search.most_points", group["most_points"], least=4)
        return cls(
            axis, _times(first, multiple), _times(last, multiple), multiple,
            _limited("search.tolerance_frac", group["tolerance_frac"], 1e-6, 0.5), points,
            _count("search.most_runs", group["most_runs"], least=points),
        )  # fmt: skip

    @property
    def places(self) -> range:
        """All places that may be measured, counted in multiples."""
        return range(round(self.low / self.multiple), round(self.high / self.multiple) + 1)

    def value(self, place: int) -> float:
        """A place on the axis; a whole number where the multiple is one."""
        return _times(place, self.multiple)

    def is_within(self, low: float, value: float, high: float) -> bool:
        """Whether both ends of a bracket, counted in multiples, are as close to the value as is asked for."""
        return max(value - low, high - value) <= 1.01 * max(self.tolerance_frac * value, 1)

    def at(self, values: Mapping[str, Any], place: int) -> dict[str, Any]:
        """A configuration with its axis at a place. Raises PointError where it has no such axis."""
        value, group = self.value(place), values["workload"]
        if self.axis in values and self.axis not in KEYS:  # +heads=8 of a step of the user's own
            return {**values, self.axis: value}
        if isinstance(group, Mapping) and self.axis != "name" and (self.axis in group or self._is_own(group)):
            return {**values, "workload": {**group, self.axis: value}}
        if self.axis not in SEARCHED:
            numeric = [key for key, each in group.items() if isinstance(each, int | float)]
            allowed = ", ".join([*SEARCHED, *(f"workload.{key}" for key in numeric)])
            raise PointError(f"search.axis={self.axis}: allowed is {allowed}; for example search.axis=size.")
        return {**values, self.axis: value}

    def _is_own(self, group: Mapping[str, Any]) -> bool:
        """Whether the axis is a keyword of the user's function, which need not be given where it has a default."""
        try:
            return group.get("name") == "custom" and self.axis in (custom.keywords(group.get("target")) or ())
        except custom.TargetError:  # told where the point is checked
            return False

    def place(self, point: Point) -> int:
        """Where a point lies, counted in multiples."""
        value = getattr(point, self.axis) if self.axis in SEARCHED else dict(point.params)[self.axis]
        return round(value / self.multiple)


@dataclass(frozen=True, slots=True)
class Settings:
    """What holds for a whole command.

    devices: numbers of the cards, `all`, or None for the first; wait: for a device that another sweep holds;
    memory_limit_bytes: of a worker's own memory, None = none; search: None where the points are given.
    """

    store: Path
    devices: tuple[int, ...] | str | None
    wait: bool
    order: str
    order_seed: int
    rerun: bool
    dry_run: bool
    on_error: str
    skip_after_oom: bool
    recycle_after: int
    memory_limit_bytes: int | None
    search: Search | None

    @classmethod
    def checked(cls, values: Mapping[str, Any]) -> Settings:
        """The settings of a configuration. Raises PointError for the first value that is not allowed."""
        if values["points"] is not None:
            raise PointError("points: a list of points is a sweep of its own; leave out -m.")
        limit = values["memory_limit_gb"]
        return cls(
            store=_folder(values["store"]),
            devices=_devices(values["devices"]),
            wait=_flag("wait", values["wait"]),
            order=_word("order", values["order"], ORDERS),
            order_seed=_count("order_seed", values["order_seed"]),
            rerun=_flag("rerun", values["rerun"]),
            dry_run=_flag("dry_run", values["dry_run"]),
            on_error=_word("on_error", values["on_error"], ON_ERROR),
            skip_after_oom=_flag("skip_after_oom", values["skip_after_oom"]),
            recycle_after=_count("recycle_after", values["recycle_after"], least=1),
            memory_limit_bytes=None if limit is None else _gigabytes("memory_limit_gb", limit),
            search=Search.checked(_mapping("search", values["search"], "conf/config.yaml")),
        )


def command_values(values: Mapping[str, Any]) -> tuple[Any, ...]:
    """The values that must be alike for all points of a command, for a comparison that costs nothing."""
    return tuple(values.get(key) for key in OF_A_COMMAND)


def _recorder(values: Mapping[str, Any]) -> Recorder:
    profiler = _group(values, "profiler", (*RECORDED, "tool"))
    flags = {name: _flag(f"profiler.{name}", profiler[name]) for name in RECORDED}
    nvtx = None if values["nvtx"] is None else _word("nvtx", values["nvtx"], NVTX)
    tool = _word("profiler.tool", profiler["tool"], TOOLS)
    if nvtx == "ops" and tool != "nsys":
        raise PointError(
            "nvtx=ops: allowed with profiler=nsys, since torch.profiler shows the operators itself and excludes their "
            "NVTX ranges; for example nvtx=modules."
        )
    return Recorder(**flags, tool=tool, nvtx=nvtx)


def _with_own_axes(values: Mapping[str, Any]) -> Mapping[str, Any]:
    """Keys that nothing else knows, `+heads=8`, are keywords of the user's function, among the workload's settings."""
    group = values.get("workload")
    own = {key: value for key, value in values.items() if key not in KEYS}
    if not own or not isinstance(group, Mapping) or group.get("name") != "custom":
        return values
    if twice := sorted(set(own) & set(group)):
        raise PointError(f"{twice[0]}={own[twice[0]]}: it is given twice; leave out workload.{twice[0]}.")
    rest = {key: value for key, value in values.items() if key in KEYS}
    return {**rest, "workload": {**group, **own}}


def _group(values: Mapping[str, Any], name: str, keys: tuple[str, ...]) -> Mapping[str, Any]:
    group = _mapping(name, values[name], f"conf/{name}")
    _refuse_keys(f"{name}.", group, keys)
    return group


def _mapping(name: str, group: Any, place: str) -> Mapping[str, Any]:
    if not isinstance(group, Mapping):
        raise PointError(f"{name}={group}: allowed is a group; see {place}.")
    return group


def _range(axis: str, group: Mapping[str, Any]) -> tuple[Any, Any]:
    """Both ends as they were given, where they are left out those of the axis, if there are any."""
    low, high = DEFAULT_RANGES.get(axis, (None, None))
    return (low if group["low"] is None else group["low"], high if group["high"] is None else group["high"])


def _end(axis: str, name: str, value: Any) -> float:
    if value is None:
        raise PointError(
            f"search.{name}=null: allowed is a number above 0, since {axis} has no range of its own; "
            "for example search.low=1 search.high=64."
        )
    return _limited(f"search.{name}", value)


def _times(count: int, multiple: float) -> float:
    """A multiple without the noise of binary fractions; a whole number stays one."""
    return count * multiple if isinstance(multiple, int) else float(f"{count * multiple:.12g}")


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


def _python(value: Any) -> str | None:
    """Path of another interpreter, None for the runner's own."""
    if value is None:
        return None
    found = shutil.which(value) if isinstance(value, str) else None
    if found is None:
        raise PointError(
            f"python={value}: allowed is null or a Python that can be run; for example python=.venv/bin/python."
        )
    return str(Path(found).absolute())  # not resolved: a virtual environment is known by its own path


def _env(value: Any) -> tuple[tuple[str, str | None], ...]:
    """Environment variables of the worker, sorted; null takes one away."""
    if not isinstance(value, Mapping):
        raise PointError(f"env={value}: allowed are variables by name; for example env.OMP_NUM_THREADS=1.")
    for name, each in value.items():
        if name == "CUDA_VISIBLE_DEVICES":
            raise PointError(f"env.{name}={each}: it chooses the card, which is no axis; for example devices=[0,1].")
        if not re.fullmatch(r"[A-Za-z_]\w*", str(name)) or isinstance(each, list | dict) or "\0" in str(each):
            raise PointError(f"env.{name}={each}: allowed is a text or a number; for example env.OMP_NUM_THREADS=1.")
    return tuple(sorted((str(name), _text(each)) for name, each in value.items()))


def _text(value: Any) -> str | None:
    if isinstance(value, bool):
        return str(value).lower()
    return None if value is None else str(value)


def _devices(value: Any) -> tuple[int, ...] | str | None:
    if value is None or value == "all":
        return value
    numbers = value if isinstance(value, list) else [value]
    whole = all(isinstance(each, int) and not isinstance(each, bool) and each >= 0 for each in numbers)
    if not numbers or not whole or len(set(numbers)) < len(numbers):
        raise PointError(
            f"devices={value}: allowed is null (the first), all, or a list of numbers; for example devices=[0,2]."
        )
    return tuple(numbers)


def _word(key: str, value: Any, allowed: tuple[str, ...]) -> str:
    if value not in allowed:
        raise PointError(f"{key}={value}: allowed is {', '.join(allowed)}; for example {key}={allowed[0]}.")
    return str(value)


def _name(key: str, value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise PointError(f"{key}={value}: allowed is a text; for example {key}=default.")
    return value


def _positive(key: str, value: Any) -> float:
    return float(_number(key, value))


def _number(key: str, value: Any) -> float:
    """A number above 0; a whole one stays whole."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not math.isfinite(value) or value <= 0:
        raise PointError(f"{key}={value}: allowed is a number above 0; for example {key}=1.")
    return value


def _limited(key: str, value: Any, least: float = 1e-9, most: float = 1e15) -> float:
    """A number within limits; a whole one stays whole."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not least <= value <= most:
        example = f"{min(1, most / 10):g}"
        raise PointError(f"{key}={value}: allowed is a number from {least:g} to {most:g}; for example {key}={example}.")
    return value


def _gigabytes(key: str, value: Any) -> int:
    """Bytes; torch alone takes a few hundred megabytes."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not 0.5 <= value <= 1e6:
        raise PointError(f"{key}={value}: allowed is null or a number from 0.5 to 1e6; for example {key}=8.")
    return round(value * 1e9)


def _count(key: str, value: Any, least: int = 0) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise PointError(f"{key}={value}: allowed is a whole number from {least} on; for example {key}=8.")
    return value


def _flag(key: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise PointError(f"{key}={value}: allowed is true or false; for example {key}=true.")
    return value
