"""The user's own step: custom."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from runner import custom
from runner.workloads.base import Allowed, Built, Compile, Workload

if TYPE_CHECKING:
    import torch

    from runner.point import Point


class Custom(Workload):
    """A step of the user's own, `target` (see runner/custom.py); what it does is known to its author alone.

    Every keyword of the target is an axis besides.
    """

    name = "custom"
    params: ClassVar[Mapping[str, Allowed]] = {"target": custom.checked}
    rotates = False

    def build(self, point: Point, device: torch.device, generator: torch.Generator, compile: Compile) -> Built:
        """The user's function of this point, and its arguments; a module is the first of them."""
        made = custom.build(dict(point.params)["target"], point)
        function, arguments = _plain(made)
        if made.flops is not None or made.bytes is not None:
            function = _told(function, made)
        return Built(compile(function), arguments, function)

    def cost(self, point: Point) -> None:
        """Not known before the step is built: told by it, or counted (runner/counting.py)."""
        return

    def at_floor(self, point: Point) -> None:
        """What it does when there is nothing to do is not known."""
        return


def _plain(made: custom.Step) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """A module as a function that takes it: whatever a step changes is among its arguments."""
    import torch

    if not isinstance(made.function, torch.nn.Module):
        return made.function, made.arguments

    def call(module: torch.nn.Module, *arguments: Any) -> Any:
        return module(*arguments)

    return call, (made.function, *made.arguments)


def _told(function: Callable[..., Any], made: custom.Step) -> Callable[..., Any]:
    """The function, with what it computes and moves as attributes."""

    def step(*arguments: Any) -> Any:
        return function(*arguments)

    step.flops, step.bytes = made.flops, made.bytes  # type: ignore[attr-defined]
    return step
