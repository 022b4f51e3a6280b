"""When a step begins and ends: on the host's clock, and on the device by events that nobody waits for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import torch


@dataclass(slots=True)
class Timed:
    """One timed step of the program. Host times in nanoseconds, marks are events on the device (None on the CPU).

    asked_ns, left_ns: when the program came to the step and when it went on behind it, marking included; begin_ns,
    end_ns: the same without. behind: steps that the device had not begun when this one had been issued, itself among
    them; queued: whether it was, so that its whole work lay ready; broken: the step has ended with an exception.
    """

    kind: str
    asked_ns: int
    begin_ns: int
    begin: Any
    end_ns: int | None = None
    left_ns: int | None = None
    end: Any = None
    behind: int = 0
    queued: bool = False
    broken: bool = False


class HostStamps:
    """The CPU as the device: a call returns when its work is done, and the host's clock tells everything."""

    kind: ClassVar[str] = "cpu"
    index = 0
    activities: ClassVar[list[Any]] = [torch.profiler.ProfilerActivity.CPU]

    def synchronize(self) -> None:
        """Nothing to wait for."""

    def mark(self) -> Any:
        """No event."""
        return None

    def begun(self, step: Timed) -> bool:
        """Whether the device has begun a step."""
        return True

    def span_us(self, step: Timed) -> float | None:
        """Device time between the events round a step; unknown."""
        return None

    def period_us(self, step: Timed, following: Timed) -> float:
        """From a step to the next: its host time and the time between the two, without what marking them costs."""
        assert step.end_ns is not None and step.left_ns is not None
        return (step.end_ns - step.begin_ns + following.asked_ns - step.left_ns) / 1000


class CudaStamps:
    """A CUDA device: events on the stream that is current where the step begins and ends."""

    kind: ClassVar[str] = "cuda"
    activities: ClassVar[list[Any]] = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]

    def __init__(self, index: int) -> None:
        self.index = index

    def synchronize(self) -> None:
        """Wait until the device has finished all work."""
        torch.cuda.synchronize(self.index)

    def mark(self) -> Any:
        """A time stamp in the stream: it is reached when all work before it is done."""
        event = torch.cuda.Event(enable_timing=True)
        event.record(torch.cuda.current_stream(self.index))
        return event

    def begun(self, step: Timed) -> bool:
        """Whether the device has begun a step."""
        return bool(step.begin.query())

    def span_us(self, step: Timed) -> float | None:
        """Device time between the events round a step, which both have been reached; its idle time included."""
        return float(step.begin.elapsed_time(step.end)) * 1000

    def period_us(self, step: Timed, following: Timed) -> float:
        """From the begin of a step to that of the next, as the device meets them."""
        return float(step.begin.elapsed_time(following.begin)) * 1000


Stamps = HostStamps | CudaStamps


def stamps_for(device: torch.device | None) -> Stamps:
    """The stamps of a device; of None, of CUDA's current one where the program uses CUDA, else of the CPU.

    Raises ValueError for one whose work would end unseen, behind the host's clock.
    """
    if device is None:
        return CudaStamps(torch.cuda.current_device()) if torch.cuda.is_initialized() else HostStamps()
    if device.type == "cuda":
        return CudaStamps(torch.cuda.current_device() if device.index is None else device.index)
    if device.type != "cpu":
        raise ValueError(f"device={device}: allowed is cpu or cuda")
    return HostStamps()
