"""The profiled window of a point: torch.profiler's own schedule, fenced so that no other step's work lies inside."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch
from torch.profiler import ProfilerAction, profile, record_function

from runner import nvml
from runner.device import Device
from runner.phases import heard
from runner.point import Schedule
from runner.task import Recorder

FENCE = "crossover: fence"
MICROSECONDS = {"s": 1e6, "ms": 1e3, "us": 1.0}


@dataclass(frozen=True, slots=True)
class Profile:
    """Chrome traces of one point, one file a repetition, and the profiler's table where it was asked for.

    conditions: what the card said right before and right behind the last window; None where there is no card to ask.
    device_us: what torch's own table adds up to for the device, microseconds a step; None without a table.
    """

    traces: tuple[Path, ...]
    table: str | None
    conditions: dict[str, dict[str, Any]] | None = None
    device_us: float | None = None


def record(
    step: Callable[[], Any],
    name: str,
    schedule: Schedule,
    recorder: Recorder,
    device: Device,
    folder: Path,
    table: bool,
    inside: AbstractContextManager[object] | None = None,
) -> Profile:
    """Run the schedule; every step is annotated with `name`, every recorded window begins and ends with a fence.

    inside: what is entered for the whole schedule (see runner/ranges.py). Files appear in `folder`. Raises what the
    step or the profiler raises.
    """
    traces: list[Path] = []
    tables: list[str] = []
    behind: list[dict[str, Any] | None] = []

    def keep(profiler: profile) -> None:
        behind.append(condition(device))
        traces.append(folder / f"window{len(traces)}.json")
        profiler.export_chrome_trace(str(traces[-1]))
        if table:
            tables.append(profiler.key_averages().table(row_limit=-1))

    phases = torch.profiler.schedule(
        wait=schedule.wait, warmup=schedule.warmup, active=schedule.active, repeat=schedule.repeat
    )
    steps = (schedule.wait + schedule.warmup + schedule.active) * schedule.repeat
    device.synchronize()
    before = condition(device)
    with inside or heard(record_function), profile(
        activities=device.activities, schedule=phases, on_trace_ready=keep,
        record_shapes=recorder.record_shapes, profile_memory=recorder.profile_memory,
        with_stack=recorder.with_stack, with_modules=recorder.with_modules,
    ) as profiler:  # fmt: skip
        for number in range(steps):
            with record_function(name):
                step()
            if _edge(phases, number):
                with record_function(FENCE):
                    device.synchronize()
            profiler.step()
    conditions = {"before": before, "behind": behind[-1]} if before and behind and behind[-1] else None
    text = "\n".join(tables) if table else None
    return Profile(tuple(traces), text, conditions, _device_us(text, schedule.active * schedule.repeat))


def _device_us(table: str | None, steps: int) -> float | None:
    """The device's time a step in torch's own table, which tells its total below the rows; None where it tells none."""
    found = re.findall(r"^Self (?!CPU)\w+ time total: ([\d.]+)(s|ms|us)$", table or "", re.MULTILINE)
    return sum(float(value) * MICROSECONDS[unit] for value, unit in found) / steps if found else None


def warm_profiler(device: Device, folder: Path) -> None:
    """An empty session: the first one in a process takes seconds, which belong to no point."""
    with profile(activities=device.activities) as profiler:
        device.synchronize()
    profiler.export_chrome_trace(str(folder / "empty.json"))


def condition(device: Device) -> dict[str, Any] | None:
    """Clocks (MHz), power (W), temperature (Celsius) and throttle reasons of the device's card at this moment, in some
    40 microseconds; None where NVML knows no such card. What the card does not say is None."""
    card = _card(device.index) if device.kind == "cuda" else None
    if card is None:
        return None
    reasons = card.throttle_reasons()
    return {
        "sm_clock_mhz": card.sm_clock_mhz(),
        "memory_clock_mhz": card.ask("nvmlDeviceGetClockInfo", card.nvml.NVML_CLOCK_MEM),
        "power_w": card.power_w(),
        "temperature_c": card.temperature_c(),
        "throttle_reasons": None if reasons is None else list(reasons),
    }


@lru_cache
def _card(index: int) -> nvml.Card | None:
    """Found once a process: NVML takes longer to start than to answer."""
    uuid = getattr(torch.cuda.get_device_properties(index), "uuid", None)
    return nvml.find(None if uuid is None else str(uuid))


def _edge(phases: Callable[[int], ProfilerAction], number: int) -> bool:
    """Whether recording begins or ends between step `number` and the next."""
    recording = (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE)
    now, later = phases(number), phases(number + 1)
    return now is ProfilerAction.RECORD_AND_SAVE or (now in recording) != (later in recording)
