"""A point: one combination of the axes, checked at one door.

Runs where there is no torch: the parent checks every point before the first one is measured.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from runner import custom
from runner.workloads import WORKLOADS, Allowed, Workload

DTYPES = ("fp32", "tf32", "bf16", "fp16")
MODES = ("default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs")
DEVICES = ("cpu", "cuda", "mps", "xpu")  # torch's kinds; runner/device.py says which of them it can measure
L2 = ("warm", "cold")
AXES = (
    "workload", "size", "dtype", "batch", "compile", "dynamic", "warmup", "device", "schedule", "l2", "threads", "seed",
    "static_inputs",
)  # fmt: skip


class PointError(ValueError):
    """A setting has a value that cannot be measured: says what came, what is allowed and the cure."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """Phases of torch.profiler, in steps: `wait` unprofiled, `warmup` discarded, `active` kept, all `repeat` times."""

    wait: int
    warmup: int
    active: int
    repeat: int = 1

    def __str__(self) -> str:
        return f"{self.wait}/{self.warmup}/{self.active}/{self.repeat}"


WARM_SCHEDULE = Schedule(1, 1, 20)
COLD_SCHEDULE = Schedule(0, 0, 20)


@dataclass(frozen=True, slots=True)
class Point:
    """One combination of the axes. `dtype` and `device` may be `auto` until `resolved` is called.

    size and batch: None where the axis does not exist; compile: False, True or a torch.compile mode; warmup: True
    (until steady), a number of steps, or False (cold); params: the workload's own, sorted by name; static_inputs: the
    inputs are promised to stay where they are, so that a CUDA graph need not copy them.
    """

    workload: str
    params: tuple[tuple[str, Any], ...]
    size: int | None
    dtype: str
    batch: int | None
    compile: bool | str
    dynamic: bool | str | None
    warmup: bool | int
    device: str
    schedule: Schedule
    l2: str
    threads: int | None
    seed: int
    static_inputs: bool = False

    @classmethod
    def checked(cls, values: Mapping[str, Any]) -> Point:
        """The point of a configuration's values. Raises PointError for the first value that is not allowed."""
        workload = _workload(values["workload"])
        warmup = _warmup(values["warmup"])
        point = cls(
            workload=workload.name,
            params=_params(workload, values["workload"]),
            size=_count("size", values["size"], 1),
            dtype=_one_of("dtype", values["dtype"], ("auto", *DTYPES)),
            batch=None if values["batch"] is None else _count("batch", values["batch"], 1, "null or "),
            compile=_compile(values["compile"]),
            dynamic=_dynamic(values["dynamic"]),
            warmup=warmup,
            device=_one_of("device", values["device"], ("auto", *DEVICES)),
            schedule=_schedule(values["schedule"], cold=warmup is False),
            l2=_l2(values["l2"], workload),
            threads=None if values["threads"] is None else _count("threads", values["threads"], 1, "null or "),
            seed=_count("seed", values["seed"], 0),
            static_inputs=_static_inputs(values["static_inputs"], values["l2"], values["compile"]),
        )
        if (refusal := workload.refusal(point)) is not None:
            raise PointError(refusal)
        return point.without_absent_axes() if workload.idle else point

    def without_absent_axes(self) -> Point:
        """The same point for a workload that does no work: neither size nor batch exists, nothing is compiled."""
        return replace(self, size=None, batch=None, compile=False, dtype="fp32", device="cpu", static_inputs=False)

    def resolved(self, device: str) -> Point:
        """The point as it is measured and stored: `auto` replaced by what the machine has."""
        dtype = ("fp32" if device == "cpu" else "bf16") if self.dtype == "auto" else self.dtype
        return replace(self, device=device, dtype=dtype)

    @property
    def cold(self) -> bool:
        """Whether the first calls of fresh processes are measured, in place of a steady state."""
        return self.warmup is False

    @property
    def spec(self) -> Workload:
        """The workload's description."""
        return WORKLOADS[self.workload]

    @property
    def axes(self) -> dict[str, Any]:
        """All axes by name, as plain values: the columns of the store, and `params` for those without a column.

        static_inputs is named where it is true alone: points keep the ids that they had before it existed.
        """
        static = {"static_inputs": True} if self.static_inputs else {}
        return {
            "workload": self.workload, "size": self.size, "dtype": self.dtype, "batch": self.batch,
            "compile": _word(self.compile), "dynamic": _word(self.dynamic), "warmup": _word(self.warmup),
            "device": self.device,
            "params": {
                **dict(self.params), "l2": self.l2, "threads": self.threads, "seed": self.seed,
                "schedule": str(self.schedule), **static,
            },
        }  # fmt: skip

    @property
    def point_id(self) -> str:
        """12 hexadecimal digits: hash of the resolved axes and the workload's source, a user's own files included."""
        own = custom.sources(dict(self.params))
        text = json.dumps([self.axes, self.spec.source, *own], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:12]

    @property
    def label(self) -> str:
        """A short name for people: `matmul_add size=64 bf16 compile=true`."""
        parts = [self.workload, *(f"{name}={_word(value)}" for name, value in self._named)]
        if self.size is not None:
            parts.append(f"size={self.size}")
        parts.append(self.dtype)
        if self.batch is not None:
            parts.append(f"batch={self.batch}")
        parts.append("eager" if self.compile is False else f"compile={_word(self.compile)}")
        if self.compile is not False and self.dynamic is not False:
            parts.append(f"dynamic={_word(self.dynamic)}")
        parts.extend(["static_inputs=true"] if self.static_inputs else [])
        parts.extend(["cold"] if self.cold else [])
        return " ".join(parts)

    @property
    def _named(self) -> list[tuple[str, Any]]:
        """Parameters that a label names: those whose value is not the usual one."""
        usual = self.spec.defaults
        return [(name, value) for name, value in self.params if name not in usual or usual[name] != value]

    @property
    def file_name(self) -> str:
        """Stem of the point's artifacts, without the run: `matmul_add_64_bf16_warm_eager_bnone`."""
        mode = {"false": "eager", "true": "compile"}.get(_word(self.compile), _word(self.compile))
        size = "none" if self.size is None else self.size
        batch = "none" if self.batch is None else self.batch
        return f"{self.workload}_{size}_{self.dtype}_{'cold' if self.cold else 'warm'}_{mode}_b{batch}"


def _word(value: Any) -> str:
    """A value as the user writes it: true, false, null."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return str(value)


def _refuse(key: str, value: Any, allowed: str, cure: str) -> PointError:
    return PointError(f"{key}={_word(value)}: allowed is {allowed}; {cure}.")


def _count(key: str, value: Any, least: int, also: str = "") -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < least or value >= 2**31:
        whole = isinstance(value, float) and value.is_integer() and least <= value < 2**31
        cure = f"write {key}={int(value)}" if whole else f"for example {key}={max(least, 8)}"
        raise _refuse(key, value, f"{also}a whole number from {least} on", cure)
    return value


def _one_of(key: str, value: Any, allowed: tuple[str, ...]) -> str:
    if not isinstance(value, str) or value not in allowed:
        raise _refuse(key, value, ", ".join(allowed), f"for example {key}={allowed[0]}")
    return value


def _compile(value: Any) -> bool | str:
    if isinstance(value, bool):
        return value
    return _one_of("compile", value, ("false", "true", *MODES)) if value not in ("true", "false") else value == "true"


def _dynamic(value: Any) -> bool | str | None:
    if value is None or isinstance(value, bool) or value == "mark":
        return value
    raise _refuse("dynamic", value, "false, true, null or mark", "for example dynamic=false")


def _warmup(value: Any) -> bool | int:
    if isinstance(value, bool):
        return value
    if isinstance(value, int) and value >= 1:
        return _count("warmup", value, 1)
    raise _refuse("warmup", value, "true, false or a number of steps from 1 on", "for a cold point write warmup=false")


def _schedule(value: Any, cold: bool) -> Schedule:
    if value is None:
        return COLD_SCHEDULE if cold else WARM_SCHEDULE
    match = re.fullmatch(r"(\d{1,6})/(\d{1,6})/(\d{1,6})(?:/(\d{1,6}))?", str(value))
    schedule = Schedule(*(int(part) for part in match.groups() if part is not None)) if match else None
    if schedule is None or schedule.active < 1 or schedule.repeat < 1:
        allowed = "wait/warmup/active or wait/warmup/active/repeat with active and repeat from 1 on"
        raise _refuse("schedule", value, allowed, "for example schedule=1/1/20")
    if cold and (schedule.wait or schedule.warmup):
        raise _refuse("schedule", value, "0/0/active with warmup=false, since a cold point profiles its first step",
                      f"write schedule=0/0/{schedule.active} or warmup=true")  # fmt: skip
    return schedule


def _workload(group: Mapping[str, Any]) -> Workload:
    if not isinstance(group, Mapping):
        raise _refuse("workload", group, "a mapping with a name", "for example workload={name:matmul_add}")
    name = group.get("name")
    if not isinstance(name, str) or name not in WORKLOADS:
        raise _refuse("workload", name, ", ".join(WORKLOADS), "for example workload=matmul_add")
    return WORKLOADS[name]


def _params(workload: Workload, group: Mapping[str, Any]) -> tuple[tuple[str, Any], ...]:
    given = {key: value for key, value in group.items() if key != "name"}
    if "target" in workload.params:
        return _own_params(given)
    for key in given:
        if key not in workload.params:
            allowed = ", ".join(f"workload.{name}" for name in workload.params) or "no parameter at all"
            raise _refuse(f"workload.{key}", given[key], f"{allowed} for {workload.name}", "leave it out")
    values = {**workload.defaults, **given}
    return tuple((key, _param(key, values.get(key), workload.params[key])) for key in sorted(workload.params))


def _own_params(given: Mapping[str, Any]) -> tuple[tuple[str, Any], ...]:
    """The target, and the keywords of its function, each with the value that is given or its default."""
    target = _accepted("workload.target", given.get("target"), custom.checked)
    known = _accepted("workload.target", target, custom.keywords)
    own = {key: value for key, value in given.items() if key != "target"}
    for key, value in own.items():
        if key in custom.TAKEN or (known is not None and key not in known):
            allowed = ", ".join(sorted(known or ())) or "none"
            raise PointError(
                f"{key}={_word(value)}: it is no keyword of {target}, whose keywords are {allowed}; leave it out."
            )
    values = {**(known or {}), **own}
    for key, value in values.items():
        if value is custom.NEEDED:
            raise PointError(f"{key}: {target} needs a value for it; for example +{key}=1.")
    values = {key: _accepted(key, value, custom.value) for key, value in values.items() if value is not custom.COMPUTED}
    return tuple(sorted({**values, "target": target}.items()))


def _param(key: str, value: Any, allowed: Allowed) -> Any:
    if isinstance(allowed, tuple):
        return _word_of(f"workload.{key}", value, allowed)
    if not isinstance(allowed, range):
        return _accepted(f"workload.{key}", value, allowed)
    if isinstance(value, bool) or not isinstance(value, int) or value not in allowed:
        span = f"a whole number from {allowed.start} to {allowed.stop - 1}"
        raise _refuse(f"workload.{key}", value, span, f"for example workload.{key}={allowed.start}")
    return value


def _word_of(key: str, value: Any, allowed: tuple[Any, ...]) -> Any:
    """One of some words, numbers, true, false and null; 1 is not true."""
    if not any(type(value) is type(each) and value == each for each in allowed):
        raise _refuse(key, value, ", ".join(map(_word, allowed)), f"for example {key}={_word(allowed[0])}")
    return value


def _accepted(key: str, value: Any, accept: Callable[[Any], Any]) -> Any:
    try:
        return accept(value)
    except ValueError as error:
        raise PointError(f"{key}={_word(value)}: {error}.") from None


def _l2(value: Any, workload: Workload) -> str:
    if value == "cold" and not workload.rotates:
        raise _refuse("l2", value, f"warm, since {workload.name} makes its inputs itself", "leave it out")
    return _one_of("l2", value, L2)


def _static_inputs(value: Any, l2: Any, compile: Any) -> bool:
    if not isinstance(value, bool):
        raise _refuse("static_inputs", value, "true or false", "for example static_inputs=true")
    if value and _compile(compile) is False:
        raise _refuse("static_inputs", value, "false with compile=false, which records no CUDA graph by itself",
                      "write compile=reduce-overhead")  # fmt: skip
    if value and l2 == "cold":
        raise _refuse("static_inputs", value, "false with l2=cold, whose inputs take turns", "write l2=warm")
    return value
