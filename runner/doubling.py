"""The same operations on twice the rows: a check of a bound on the CPU that trusts no floor.

wall = floor + work. On twice the rows the work is done twice and the floor once, so that the step takes floor + 2 work:
where it becomes longer by more than half of wall, the work is more than the floor, and binds. Left out: what a larger
product gains, since the libraries do more FLOPs a second on more rows.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import partial
from typing import Any

import torch

from runner import compiling
from runner.device import Device
from runner.point import Point

SHARED: dict[str, Collection[int]] = {
    "matmul_add": (1,), "matmul_item": (1,), "addmm": (2,), "elementwise": (), "intensity": (),
    "linear": (0,), "mlp": (0,), "norm": (0,), "attention": (3,), "transformer_block": (0,),
}  # fmt: skip
"""Workloads whose rows are independent, with the places of the inputs that all rows share (weights, a mask)."""
AXIS = {"attention": 0, "transformer_block": 0}
"""Axis of the independent rows where it is not the one before the last: here they are sequences."""


def refusal(point: Point) -> str | None:
    """Why a point cannot be measured on twice its rows; None if it can."""
    if point.workload not in SHARED:
        return f"the rows of {point.workload} are not known, so that its work cannot be doubled"
    return "l2=cold: twice the rows are another share of the cache" if point.l2 == "cold" else None


def doubled_step(point: Point, device: Device) -> Callable[[], Any]:
    """The point's step with its inputs' rows twice, compiled on its own where the point is, called once."""
    generator = torch.Generator(device.torch).manual_seed(point.seed)
    built = point.spec.build(point, device.torch, generator, partial(compiling.apart, point))
    step = partial(
        built.function, *twice_the_rows(built.arguments, SHARED[point.workload], AXIS.get(point.workload, -2))
    )
    step()
    return step


def twice_the_rows(
    inputs: tuple[torch.Tensor, ...], shared: Collection[int], axis: int = -2
) -> tuple[torch.Tensor, ...]:
    """Inputs with all rows twice, but those that all rows share; one with a single axis (a bias) is such as well."""
    return tuple(
        each if place in shared or each.dim() < 2 else torch.cat((each, each), dim=axis)
        for place, each in enumerate(inputs)
    )
