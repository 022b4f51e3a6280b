"""Steps that measure the sweep itself: noop does nothing, fault does not survive."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

from runner.workloads.base import Allowed, Workload

if TYPE_CHECKING:
    import torch

    from runner.point import Point


class Noop(Workload):
    """Nothing, without torch: a sweep's plumbing alone."""

    name = "noop"
    idle = True

    def function(self, point: Point) -> Callable[..., Any]:
        """A function that does nothing."""
        return lambda: None

    def shapes(self, point: Point) -> tuple[tuple[int, ...], ...]:
        """No inputs."""
        return ()

    def cost(self, point: Point) -> None:
        """No cost model."""
        return


def _raise(x: torch.Tensor) -> torch.Tensor:
    raise RuntimeError("this workload always fails")


def _hang(x: torch.Tensor) -> torch.Tensor:
    import time

    while True:
        time.sleep(1)


def _segfault(x: torch.Tensor) -> torch.Tensor:
    import ctypes

    ctypes.string_at(0)
    return x


def _abort(x: torch.Tensor) -> torch.Tensor:
    import os
    import sys

    print("about to abort", file=sys.stderr, flush=True)
    os.abort()


def _allocate(x: torch.Tensor) -> torch.Tensor:
    kept = [x]
    while True:
        kept.append(x.new_ones(2**26))


def _device_assert(x: torch.Tensor) -> torch.Tensor:
    return x[(x * 0).long() + x.numel()]


class Fault(Workload):
    """A step that does not survive, to see that a sweep does: `how` says what happens in its first call.

    raise: an exception; hang: no end; segfault, abort: the process dies; allocate: memory until there is none (on the
    host set memory_limit_gb); assert: an index out of range, which on CUDA leaves the device unusable in its process.
    """

    name = "fault"
    params: ClassVar[dict[str, Allowed]] = {"how": ("raise", "hang", "segfault", "abort", "allocate", "assert")}
    steps: ClassVar[dict[str, Callable[[torch.Tensor], torch.Tensor]]] = {
        "raise": _raise, "hang": _hang, "segfault": _segfault, "abort": _abort, "allocate": _allocate,
        "assert": _device_assert,
    }  # fmt: skip

    def shapes(self, point: Point) -> tuple[tuple[int, ...], ...]:
        """x: (size,)."""
        assert point.size is not None
        return ((point.size,),)

    def function(self, point: Point) -> Callable[..., Any]:
        """The step that fails; at floor size there is nothing to fail for."""
        return self.steps[dict(point.params)["how"]] if point.size != self.floor_size else lambda x: x

    def cost(self, point: Point) -> None:
        """No cost model."""
        return
