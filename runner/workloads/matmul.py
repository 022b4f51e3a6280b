"""Products of square matrices: matmul_add, matmul_item and addmm."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

from runner.workloads.base import ITEM_BYTES, Allowed, Cost, Operation, Workload

if TYPE_CHECKING:
    import torch

    from runner.point import Point


def _square(point: Point) -> tuple[int, ...]:
    """(size, size), or (batch, size, size)."""
    assert point.size is not None
    edge = (point.size, point.size)
    return edge if point.batch is None else (point.batch, *edge)


def _product_cost(point: Point, extra: tuple[tuple[str, int], ...], bias_elements: int, fused: bool) -> Cost:
    """x w (+ bias): `extra` names the operations after the product with their FLOPs an element."""
    assert point.size is not None
    batch, item = point.batch or 1, ITEM_BYTES[point.dtype]
    matrix = batch * point.size**2
    flops, moved = 2 * batch * point.size**3, 3 * matrix * item
    least = moved + bias_elements * item
    if fused:
        operations = (Operation("addmm", flops + matrix, least),)
        return Cost(operations, least, least)
    later = tuple(Operation(name, matrix * each, (2 * matrix + bias_elements) * item) for name, each in extra)
    return Cost((Operation("matmul", flops, moved), *later), least, least + matrix * item)


class MatmulAdd(Workload):
    """y = x w + b on square matrices: 2 n^3 + n^2 FLOPs; eager moves 6 n^2 elements, fused 4 n^2 (times batch)."""

    name = "matmul_add"

    def shapes(self, point: Point) -> tuple[tuple[int, ...], ...]:
        """x, w, b: (n, n) each, with a batch (batch, n, n)."""
        return (_square(point),) * 3

    def function(self, point: Point) -> Callable[..., Any]:
        """torch.add(torch.matmul(x, w), b)."""
        import torch

        def matmul_add(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
            return torch.add(torch.matmul(x, w), b)

        return matmul_add

    def cost(self, point: Point) -> Cost:
        """A product and an addition; compiled, torch makes them one addmm."""
        bias = (point.batch or 1) * (point.size or 0) ** 2
        return _product_cost(point, (("add", 1),), bias, fused=point.compile is not False)


class MatmulItem(MatmulAdd):
    """matmul_add with `.item()` of one element: the host waits for the device in every step."""

    name = "matmul_item"

    def function(self, point: Point) -> Callable[..., Any]:
        """torch.add(torch.matmul(x, w), b).view(-1)[0].item()."""
        import torch

        def matmul_item(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> float:
            return torch.add(torch.matmul(x, w), b).view(-1)[0].item()

        return matmul_item


class Addmm(Workload):
    """y = bias + x w in one operation: 2 n^3 + n^2 FLOPs; 3 n^2 elements and the bias (n or n^2), times batch."""

    name = "addmm"
    params: ClassVar[dict[str, Allowed]] = {"bias": range(1, 3)}

    def shapes(self, point: Point) -> tuple[tuple[int, ...], ...]:
        """bias: (n,) or (n, n); x, w: (n, n). With a batch (batch, n, n) each, but the 1-D bias stays (n,)."""
        square = _square(point)
        return (square if dict(point.params)["bias"] == 2 else square[-1:], square, square)

    def function(self, point: Point) -> Callable[..., Any]:
        """torch.addmm(bias, x, w); with a batch torch.baddbmm."""
        import torch

        product = torch.addmm if point.batch is None else torch.baddbmm

        def addmm(bias: torch.Tensor, x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
            return product(bias, x, w)

        return addmm

    def cost(self, point: Point) -> Cost:
        """One fused operation."""
        full = (point.batch or 1) * (point.size or 0) ** 2
        return _product_cost(point, (), full if dict(point.params)["bias"] == 2 else (point.size or 0), fused=True)
