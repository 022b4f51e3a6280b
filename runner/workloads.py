"""Workloads: what one step does, and the arithmetic of its cost beside it.

Importing this module imports no torch; building a step does. A FLOP is one multiplication or addition; a product of an
m x k with a k x n matrix has 2 m n k of them (Golub and Van Loan, Matrix Computations, section 1.1). Bytes are the
fewest that an operation must move to and from memory: each input read once, each output written once. Caches,
workspaces and padding are left out.
"""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    import torch

    from runner.point import Point

ITEM_BYTES = {"fp32": 4, "tf32": 4, "bf16": 2, "fp16": 2}
ROW_ELEMENTS = 1024


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation of a step: its FLOPs, and the fewest bytes that it must move."""

    name: str
    flops: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Cost:
    """Cost of one step. bytes_min: of the step as one fused operation; working_set_bytes: of all tensors it touches."""

    operations: tuple[Operation, ...]
    bytes_min: int
    working_set_bytes: int


def predicted_step_s(operations: tuple[Operation, ...], dtype: str, roofs: Mapping[Any, float]) -> float | None:
    """Seconds of a step by the roofs: sum over its operations of max(FLOPs/roof, bytes/roof); None without roofs."""
    flops, memory = roofs.get(("flops", dtype)), roofs.get(("dram", None))
    if flops is None or memory is None:
        return None
    return sum(max(each.flops / flops, each.bytes / memory) for each in operations)


class Workload:
    """One step as a function of its inputs. `floor_size`: the size at which the work is as good as nothing.

    `params` names the workload's own axes with the whole numbers or words each may have. `idle`: it does nothing.
    """

    name: ClassVar[str]
    floor_size: ClassVar[int] = 2
    params: ClassVar[dict[str, range | tuple[str, ...]]] = {}
    idle: ClassVar[bool] = False

    @cached_property
    def source(self) -> str:
        """Hash of the source text of the class and its bases: a changed step is another point."""
        text = "".join(inspect.getsource(each) for each in type(self).__mro__[:-1])
        return hashlib.sha256(text.encode()).hexdigest()[:12]

    def shapes(self, point: Point) -> tuple[tuple[int, ...], ...]:
        """Shapes of the inputs, the batch axis included."""
        raise NotImplementedError

    def function(self, point: Point) -> Callable[..., Any]:
        """The step: takes the inputs, returns the output."""
        raise NotImplementedError

    def cost(self, point: Point) -> Cost | None:
        """Cost of one step; None where there is no model of it."""
        raise NotImplementedError

    def inputs(self, point: Point, device: torch.device, generator: torch.Generator) -> tuple[torch.Tensor, ...]:
        """Normal random inputs of `shapes`, in the point's dtype."""
        import torch

        dtype = {"fp32": torch.float32, "tf32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
        return tuple(
            torch.randn(shape, device=device, dtype=dtype[point.dtype], generator=generator)
            for shape in self.shapes(point)
        )


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
    params: ClassVar[dict[str, range | tuple[str, ...]]] = {"bias": range(1, 3)}

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


class Elementwise(Workload):
    """`ops` multiplications and additions in turn with a number, on (size, 1024) elements.

    Eager, each is a kernel of 1 FLOP and 2 elements moved; compiled to one kernel, `ops` FLOPs at equal bytes.
    """

    name = "elementwise"
    floor_size = 1
    params: ClassVar[dict[str, range | tuple[str, ...]]] = {"ops": range(1, 1025)}

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
    params: ClassVar[dict[str, range | tuple[str, ...]]] = {"ops": range(16, 4097), "reads": range(1, 9)}

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
    params: ClassVar[dict[str, range | tuple[str, ...]]] = {
        "how": ("raise", "hang", "segfault", "abort", "allocate", "assert")
    }
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


class Custom(Workload):
    """A step of the user's own, `target` (see runner/custom.py); what it does is known to its author alone."""

    name = "custom"
    params: ClassVar[dict[str, range | tuple[str, ...]]] = {"target": ()}  # any word that runner.custom accepts

    def __init__(self) -> None:
        self._arguments: tuple[Any, ...] = ()

    def shapes(self, point: Point) -> tuple[tuple[int, ...], ...]:
        """Not known."""
        return ()

    def function(self, point: Point) -> Callable[..., Any]:
        """The user's function of this point; the arguments that were made with it wait for `inputs`."""
        from runner import custom

        function, self._arguments = custom.build(dict(point.params)["target"], point)
        return function

    def inputs(self, point: Point, device: torch.device, generator: torch.Generator) -> tuple[Any, ...]:
        """The arguments made by the latest `function`, handed out once: nothing keeps them alive here."""
        arguments, self._arguments = self._arguments, ()
        return arguments

    def cost(self, point: Point) -> None:
        """No cost model."""
        return


_ALL = (MatmulAdd, MatmulItem, Addmm, Elementwise, Intensity, Noop, Fault, Custom)
WORKLOADS: dict[str, Workload] = {each.name: each() for each in _ALL}
