"""One linear layer: linear."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from runner.workloads.base import Allowed, Cost
from runner.workloads.layers import Layer, cost_of, item_bytes, product, rows_of, rows_shape

if TYPE_CHECKING:
    import torch

    from runner.point import Point


class Linear(Layer):
    """torch.nn.Linear from `features` to `features` on `size` rows: 2 m f^2 FLOPs, and m f with a bias.

    One operation, compiled or not: the bias is the product's epilogue.
    """

    name = "linear"
    params: ClassVar[dict[str, Allowed]] = {"features": range(1, 65537), "bias": (True, False)}
    defaults: ClassVar[dict[str, Any]] = {"features": 1024, "bias": True}
    smallest: ClassVar[dict[str, Any]] = {"features": 2}

    def module(self, point: Point, **where: Any) -> torch.nn.Module:
        """torch.nn.Linear."""
        import torch

        own = dict(point.params)
        return torch.nn.Linear(own["features"], own["features"], bias=own["bias"], **where)

    def shapes(self, point: Point) -> tuple[tuple[int, ...], ...]:
        """x: (size, features), with a batch (batch, size, features)."""
        return (rows_shape(point, dict(point.params)["features"]),)

    def cost(self, point: Point) -> Cost:
        """One product."""
        own = dict(point.params)
        done = product("linear", rows_of(point), own["features"], own["features"], item_bytes(point), own["bias"])
        return cost_of((done,), done.bytes, 0)
