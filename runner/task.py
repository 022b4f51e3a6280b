"""What the parent hands to a worker, and what comes back. Imports no torch: both sides share it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from runner.point import Point
from runner.rounds import Sample, Target

PROTOCOL = 4
"""Of pickle, between parent and worker: what every Python that torch supports can read."""


@dataclass(frozen=True, slots=True)
class Recorder:
    """What the profiler records besides times, and which it is.

    tool: `torch` (torch.profiler) or `nsys` (Nsight Systems); nvtx: None, or what gets an NVTX range in the profiled
    window: `phases`, `modules` (and the phases) or `ops` (and both).
    """

    record_shapes: bool = True
    profile_memory: bool = False
    with_stack: bool = False
    with_modules: bool = False
    tool: str = "torch"
    nvtx: str | None = None


@dataclass(frozen=True, slots=True)
class Interpreter:
    """The Python that a worker runs in: its path, None = the runner's own; variables that are set, None = unset."""

    python: str | None = None
    env: tuple[tuple[str, str | None], ...] = ()


@dataclass(frozen=True, slots=True)
class Task:
    """One point to measure. roofs: (roof, dtype) -> value per second; folder: where trace files go; table: whether the
    profiler's table is wanted; slopes: whether host and device slopes are."""

    point: Point
    target: Target
    max_step_s: float
    slopes: bool
    recorder: Recorder
    table: bool
    roofs: dict[tuple[str, str | None], float]
    folder: str


@dataclass(frozen=True, slots=True)
class Measurement:
    """What a worker answers. samples: in the order taken; slopes: one value a round of host_slope and device_slope;
    traces: one file a profiled window; lost: the device is unusable in this process, which must be replaced."""

    status: str
    reason: str | None = None
    samples: tuple[Sample, ...] = ()
    slopes: dict[str, list[float]] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)
    traces: tuple[str, ...] = ()
    table: str | None = None
    lost: bool = False


@dataclass(frozen=True, slots=True)
class Found:
    """What a worker says of a device before it uses it, and which kinds torch can use there.

    uuids: of all devices of its kind, None where they have none; columns, attributes: see runner/environment.py.
    """

    kind: str
    kinds: tuple[str, ...]
    uuids: tuple[str | None, ...]
    columns: dict[str, Any]
    attributes: dict[str, Any]

    @property
    def environment_id(self) -> str:
        """Identity of the environment."""
        return str(self.columns["environment_id"])


class NoDevice(Exception):
    """A kind of device that torch cannot use on this machine: says so, with the cure."""
