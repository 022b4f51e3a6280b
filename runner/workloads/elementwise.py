"""Elements one by one: elementwise and intensity."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

from runner.workloads.base import ITEM_BYTES, Allowed, Cost, Operation, Workload

if TYPE_CHECKING:
    import torch

    from runner.point import Point


ROW_ELEMENTS = 1024


class Elementwise(Workload):
    """`ops` multiplications and additions in turn with a number, on (size, 1024) elements.

    Eager, each is a kernel of 1 FLOP and 2 elements moved; compiled to one kernel, `ops` FLOPs at equal bytes.
    """

    name = "elementwise"
    floor_size = 1
    params: ClassVar[dict[str, Allowed]] = {"ops": range(1, 1025)}

    def shapes(self, point: Point) -> tuple[tuple[int, ...], ...]:
        """x: (size, 1024), with a batch (batch, size, 1024)."""
        assert point.size is not None
        rows = (point.size, ROW_ELEMENTS)
        return (rows if point.batch is None else (point.batch, *rows),)

    def function(self, point: Point) -> Callable[..., Any]:
        """x * 0.75 + 0.5, and so on in turn: every value tends to 2, none overflows."""
        ops = dict(point.params)["ops"]

        def elementwise(x: torch.Tensor) -> torch.Tensor:
            for index in range(ops):
                x = x * 0.75 if index % 2 == 0 else x + 0.5
            return x

        return elementwise

    def cost(self, point: Point) -> Cost:
        """`ops` passes over the tensor, or one when compiled."""
        elements = (point.batch or 1) * (point.size or 0) * ROW_ELEMENTS
        ops, once = dict(point.params)["ops"], 2 * elements * ITEM_BYTES[point.dtype]
        fused = (Operation("fused", ops * elements, once),)
        separate = tuple(Operation("mul" if index % 2 == 0 else "add", elements, once) for index in range(ops))
        return Cost(separate if point.compile is False else fused, once, once if ops == 1 else once // 2 * 3)


class Intensity(Workload):
    """`ops` FLOPs an element from `reads` input tensors, on (size, 1024) elements: x 0.75, plus an input, and so on.

    Compiled to one kernel, ops changes the FLOPs at equal bytes, and reads the bytes at equal FLOPs: (reads + 1)
    elements are moved for each of the result, so that there are ops / ((reads + 1) x bytes an element) FLOPs a byte.
    Eager, each operation is a kernel of 1 FLOP, which moves 2 elements (a product with a number) or 3 (a sum).
    """

    name = "intensity"
    floor_size = 1
    params: ClassVar[dict[str, Allowed]] = {"ops": range(16, 4097), "reads": range(1, 9)}

    def shapes(self, point: Point) -> tuple[tuple[int, ...], ...]:
        """`reads` tensors of (size, 1024), with a batch (batch, size, 1024)."""
        assert point.size is not None
        rows = (point.size, ROW_ELEMENTS)
        return (rows if point.batch is None else (point.batch, *rows),) * dict(point.params)["reads"]

    def function(self, point: Point) -> Callable[..., Any]:
        """y * 0.75 + each input in turn: |y| stays below 4 times the greatest input, and no step can be left out."""
        ops, reads = dict(point.params)["ops"], dict(point.params)["reads"]

        def intensity(*inputs: torch.Tensor) -> torch.Tensor:
            y = inputs[0]
            for index in range(ops):
                y = y * 0.75 if index % 2 == 0 else y + inputs[index // 2 % reads]
            return y

        return intensity

    def cost(self, point: Point) -> Cost:
        """`ops` passes, or one when compiled, which reads every input once and writes the result."""
        elements = (point.batch or 1) * (point.size or 0) * ROW_ELEMENTS
        ops, reads = dict(point.params)["ops"], dict(point.params)["reads"]
        tensor = elements * ITEM_BYTES[point.dtype]
        least = (reads + 1) * tensor
        if point.compile is not False:
            return Cost((Operation("fused", ops * elements, least),), least, least)
        passes = (Operation("mul", elements, 2 * tensor), Operation("add", elements, 3 * tensor))
        return Cost(tuple(passes[index % 2] for index in range(ops)), least, least + tensor)
