"""A gated MLP: mlp."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from runner.workloads.base import Allowed, Cost, Operation
from runner.workloads.layers import (
    SILU_FLOPS,
    Layer,
    cost_of,
    drawn,
    item_bytes,
    product,
    rounded_hidden,
    rows_of,
    rows_shape,
)

if TYPE_CHECKING:
    import torch

    from runner.point import Point


def gated_mlp(width: int, hidden: int, **where: Any) -> torch.nn.Module:
    """down(silu(gate(x)) * up(x)), without biases."""
    import torch

    class GatedMlp(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.gate = torch.nn.Linear(width, hidden, bias=False, **where)
            self.up = torch.nn.Linear(width, hidden, bias=False, **where)
            self.down = torch.nn.Linear(hidden, width, bias=False, **where)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            result: torch.Tensor = self.down(torch.nn.functional.silu(self.gate(x)) * self.up(x))
            return result

    return GatedMlp()


def mlp_operations(rows: int, width: int, hidden: int, item: int, fused: bool) -> tuple[Operation, ...]:
    """gate, up, activation, product, down; fused: activation and product are one pass."""
    elements = rows * hidden
    return (
        product("gate", rows, width, hidden, item),
        product("up", rows, width, hidden, item),
        *(
            (Operation("silu_mul", (SILU_FLOPS + 1) * elements, 3 * elements * item),)
            if fused
            else (
                Operation("silu", SILU_FLOPS * elements, 2 * elements * item),
                Operation("mul", elements, 3 * elements * item),
            )
        ),
        product("down", rows, hidden, width, item),
    )


def mlp_between(rows: int, hidden: int, item: int, fused: bool) -> int:
    """Bytes of gate, up, their product and, not fused, the activation."""
    return (3 if fused else 4) * rows * hidden * item


def checked_hidden(value: Any) -> int | None:
    """Hidden features, or None for 8/3 of the width rounded up to a multiple of 64. Raises ValueError."""
    if value is None or (type(value) is int and 1 <= value <= 262144):
        return value
    raise ValueError("allowed is null or a whole number from 1 to 262144; for example workload.hidden=2752")


class Mlp(Layer):
    """down(silu(gate(x)) * up(x)) on `size` rows: 6 m w h FLOPs in three products, 5 m h in the gate between them.

    Source: Shazeer, GLU Variants Improve Transformer (arXiv 2002.05202), equation 6 (SwiGLU). Eager, activation and
    product are two kernels; compiled they are one, which reads two tensors and writes one.
    """

    name = "mlp"
    uses: ClassVar[tuple[Any, ...]] = (drawn, gated_mlp, rounded_hidden)
    params: ClassVar[dict[str, Allowed]] = {"width": range(1, 65537), "hidden": checked_hidden}
    defaults: ClassVar[dict[str, Any]] = {"width": 1024, "hidden": None}
    smallest: ClassVar[dict[str, Any]] = {"width": 2, "hidden": 2}

    def sizes(self, point: Point) -> tuple[int, int]:
        """Width and hidden features."""
        own = dict(point.params)
        return own["width"], own["hidden"] or rounded_hidden(own["width"])

    def module(self, point: Point, **where: Any) -> torch.nn.Module:
        """Three linear layers without biases, and SiLU."""
        return gated_mlp(*self.sizes(point), **where)

    def shapes(self, point: Point) -> tuple[tuple[int, ...], ...]:
        """x: (size, width), with a batch (batch, size, width)."""
        return (rows_shape(point, dict(point.params)["width"]),)

    def cost(self, point: Point) -> Cost:
        """Three products and what lies between them."""
        (width, hidden), rows, item = self.sizes(point), rows_of(point), item_bytes(point)
        fused = point.compile is not False
        least = (2 * rows * width + 3 * width * hidden) * item
        return cost_of(mlp_operations(rows, width, hidden, item, fused), least, mlp_between(rows, hidden, item, fused))
