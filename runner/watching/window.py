"""The profiled steps of a watched program: torch.profiler, begun and ended between two of its steps."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import torch
from torch.profiler import ProfilerAction, profile, record_function

from runner.phases import Listener, heard
from runner.profiling import FENCE
from runner.watching.stamps import Stamps

UNDER_NSYS = "NSYS_PROFILING_SESSION_ID"


def program_profiles() -> bool:
    """Whether a profiler runs in this process at this moment."""
    enabled = getattr(torch._C._autograd, "_profiler_enabled", lambda: False)
    return bool(enabled() or getattr(torch.autograd.profiler, "_is_profiler_enabled", False))


def program_has_profiler() -> bool:
    """Whether a torch.profiler.profile has been made and not yet been left: a scheduled one may start at any step."""
    tracker = getattr(torch.autograd.profiler, "KinetoStepTracker", None)
    return "ProfilerStep" in getattr(tracker, "_step_dict", {})


class ProfiledSteps:
    """The steps between `start` and `stop`. A range named as the workload covers each step up to the next one, a range
    `between` in it the time behind the step. Under Nsight Systems the ranges are NVTX, and torch.profiler stays off."""

    def __init__(self, stamps: Stamps, name: str, between: str, folder: Path, record_shapes: bool) -> None:
        self._stamps, self._name, self._between = stamps, name, between
        self._file, self._shapes = folder / "window.json", record_shapes
        self.under_nsys = UNDER_NSYS in os.environ
        self._range: Listener = _nvtx_range if self.under_nsys else record_function
        self._profiler: profile | None = None
        self._open = ExitStack()
        self._step = ExitStack()
        self.kinds: list[str] = []
        """Kind of each step, in their order; the profiler numbers them from 1."""

    def start(self) -> None:
        """Begin to record. The device is idle, and nothing has been issued since."""
        self._open.enter_context(_cuda_profiler(self._stamps))
        if not self.under_nsys:
            self._profiler = profile(activities=self._stamps.activities, schedule=_schedule, record_shapes=self._shapes)
            self._open.enter_context(self._profiler)
            self._profiler.step()  # from warm-up, in which no step runs, to recording
        self._open.enter_context(heard(self._range))

    def begin(self, kind: str) -> None:
        """The program comes to a step."""
        if self.kinds:
            self._close_step()
            if self._profiler is not None:
                self._profiler.step()
        self.kinds.append(kind)
        self._step.enter_context(self._range(self._name))

    def end(self) -> None:
        """The program goes on behind a step."""
        self._step.enter_context(self._range(self._between))

    def stop(self) -> Path | None:
        """End recording behind a fence; the trace, None where none was made."""
        self._close_step()
        with self._range(FENCE):
            self._stamps.synchronize()
        self._open.close()
        if self._profiler is None:
            return None
        self._profiler.export_chrome_trace(str(self._file))
        return self._file

    def abandon(self) -> None:
        """Leave every range and end the profiler, whatever fails on the way."""
        for stack in (self._step, self._open):
            with suppress(Exception):
                stack.close()

    def _close_step(self) -> None:
        stack, self._step = self._step, ExitStack()
        stack.close()


def _schedule(number: int) -> ProfilerAction:
    return ProfilerAction.RECORD if number else ProfilerAction.WARMUP


@contextmanager
def _cuda_profiler(stamps: Stamps) -> Iterator[None]:
    """cudaProfilerStart and cudaProfilerStop: what `nsys profile --capture-range=cudaProfilerApi` waits for."""
    runtime: Any = torch.cuda.cudart() if stamps.kind == "cuda" else None
    if runtime is not None:
        runtime.cudaProfilerStart()
    try:
        yield
    finally:
        if runtime is not None:
            runtime.cudaProfilerStop()


def _nvtx_range(name: str) -> AbstractContextManager[object]:
    return torch.cuda.nvtx.range(name) if torch.cuda.is_initialized() else ExitStack()
