"""The user's own step: custom."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from runner import custom
from runner.workloads.base import Allowed, Built, Compile, Workload

if TYPE_CHECKING:
    from collections.abc import Mapping

    import torch

    from runner.point import Point


class Custom(Workload):
    """A step of the user's own, `target` (see runner/custom.py); what it does is known to its author alone."""

    name = "custom"
    params: ClassVar[Mapping[str, Allowed]] = {"target": custom.checked}
    rotates = False

    def build(self, point: Point, device: torch.device, generator: torch.Generator, compile: Compile) -> Built:
        """The user's function of this point, and its arguments."""
        function, arguments = custom.build(dict(point.params)["target"], point)
        return Built(compile(function), arguments, function)

    def cost(self, point: Point) -> None:
        """No cost model."""
        return

    def at_floor(self, point: Point) -> None:
        """What it does when there is nothing to do is not known."""
        return
