"""The window that Nsight Systems records, from inside the process that it watches: steps as NVTX ranges, fenced."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any

import torch

from runner.device import Device
from runner.point import Point
from runner.profiling import FENCE, condition
from runner.ranges import Span, nvtx_span

Conditions = dict[str, dict[str, Any]]


def record_window(
    step: Callable[[], Any], point: Point, device: Device, inside: AbstractContextManager[object]
) -> Conditions | None:
    """Run the schedule once; its active steps are recorded, each in a range `ProfilerStep#N` and one of the workload's
    name inside it. What the card said before and behind, None where there is none to ask.

    inside: what is entered for the recorded steps: phases and more as ranges (see runner/ranges.py).

    Raises what the step raises, and ValueError where NVTX ranges cannot be made.
    """
    span = nvtx_span()
    if span is None:
        raise ValueError("without CUDA NVTX ranges need the package nvtx, which is not installed: pip install nvtx")
    schedule = point.schedule
    first = schedule.wait + schedule.warmup
    for _ in range(first):
        step()
    with inside:
        device.synchronize()
        before = condition(device)
        with _captured(device):
            for number in range(first, first + schedule.active):
                last = number + 1 == first + schedule.active
                _one(step, span, f"ProfilerStep#{number}", point.workload, device if last else None)
        behind = condition(device)
    return {"before": before, "behind": behind} if before and behind else None


def _one(step: Callable[[], Any], span: Span, number: str, name: str, fence: Device | None) -> None:
    with span(number):
        with span(name):
            step()
        if fence is not None:
            with span(FENCE):
                fence.synchronize()


@contextmanager
def _captured(device: Device) -> Iterator[None]:
    """What Nsight Systems records: between cudaProfilerStart and cudaProfilerStop; on the CPU it records everything."""
    with ExitStack() as stack:
        if device.kind == "cuda":
            torch.cuda.profiler.start()
            stack.callback(torch.cuda.profiler.stop)
        yield
