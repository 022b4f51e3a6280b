"""What a workload is: what one step does, and the arithmetic of its cost beside it.

Importing this module imports no torch; building a step does. A FLOP is one multiplication or addition; a product of an
m x k with a k x n matrix has 2 m n k of them (Golub and Van Loan, Matrix Computations, section 1.1). Bytes are the
fewest that an operation must move to and from memory: each input read once, each output written once. Caches,
workspaces and padding are left out.
"""

from __future__ import annotations

import contextlib
import hashlib
import inspect
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    import torch

    from runner.point import Point

ITEM_BYTES = {"fp32": 4, "tf32": 4, "bf16": 2, "fp16": 2}

Allowed = range | tuple[str | bool | int | None, ...] | Callable[[Any], Any]
"""Values of a workload's own axis: whole numbers, words, or a function that returns the value as it is stored and
raises ValueError with what is allowed and an example."""

Compile = Callable[[Callable[..., Any]], Callable[..., Any]]
"""torch.compile with the point's mode, or nothing at all for an eager point. Takes plain functions: a module is called
in one."""


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation of a step: its FLOPs, and the fewest bytes that it must move. dtype: in which it computes, an axis
    value such as bf16; None = the point's."""

    name: str
    flops: int
    bytes: int
    dtype: str | None = None

    def facts(self) -> dict[str, Any]:
        """What the store holds of it; without a dtype where that is the point's."""
        told = {"name": self.name, "flops": self.flops, "bytes": self.bytes}
        return told if self.dtype is None else {**told, "dtype": self.dtype}


@dataclass(frozen=True, slots=True)
class Cost:
    """Cost of one step. bytes_min: of the step as one fused operation; working_set_bytes: of all tensors it touches."""

    operations: tuple[Operation, ...]
    bytes_min: int
    working_set_bytes: int


@dataclass(frozen=True, slots=True)
class Built:
    """A step that can be called: `function(*arguments)`, again and again, each call like the one before.

    eager: the same step with nothing compiled. Whatever a step reads and changes (tensors, modules, optimizers, caches)
    is among its arguments: then a copy of them is another step of the same kind, in another dtype as well.
    """

    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    eager: Callable[..., Any]


def predicted_step_s(operations: tuple[Operation, ...], dtype: str, roofs: Mapping[Any, float]) -> float | None:
    """Seconds of a step by the roofs: sum over its operations of max(FLOPs/roof, bytes/roof); None without roofs.

    dtype: the point's, for operations that have none of their own.
    """
    memory, total = roofs.get(("dram", None)), 0.0
    for each in operations:
        flops = roofs.get(("flops", each.dtype or dtype))
        if flops is None or memory is None:
            return None
        total += max(each.flops / flops, each.bytes / memory)
    return total


def torch_dtype(name: str) -> torch.dtype:
    """torch's own dtype of an axis value; tf32 is float32, whose products run in TF32."""
    import torch

    return {"fp32": torch.float32, "tf32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}[name]


class Workload:
    """One step as a function of its inputs. `floor_size`: the size at which the work is as good as nothing.

    `params` names the workload's own axes with what each may be, `defaults` those that may be left out. `idle`: it does
    nothing. `rotates`: its inputs are tensors of which there may be several sets in turn (l2=cold). `uses`: functions
    and classes outside of this one that are part of the step, so that a change of theirs makes another point;
    `packages`: what it needs beside torch, whose versions are told in the facts.

    A subclass gives `shapes` and `function`; or `build`, where the step holds more than tensors of normal numbers.
    """

    name: ClassVar[str]
    floor_size: ClassVar[int] = 2
    params: ClassVar[Mapping[str, Allowed]] = {}
    defaults: ClassVar[Mapping[str, Any]] = {}
    idle: ClassVar[bool] = False
    rotates: ClassVar[bool] = True
    uses: ClassVar[tuple[Any, ...]] = ()
    packages: ClassVar[tuple[str, ...]] = ()

    @cached_property
    def source(self) -> str:
        """Hash of the source text of the class, its bases and what it uses: a changed step is another point."""
        text = "".join(inspect.getsource(each) for each in (*type(self).__mro__[:-1], *self.uses))
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

        dtype = torch_dtype(point.dtype)
        return tuple(
            torch.randn(shape, device=device, dtype=dtype, generator=generator) for shape in self.shapes(point)
        )

    def build(self, point: Point, device: torch.device, generator: torch.Generator, compile: Compile) -> Built:
        """The step of a point on a device. `compile` is applied to the parts that the point's mode is meant for."""
        function = self.function(point)
        return Built(compile(function), self.inputs(point, device, generator), function)

    def reference(self, point: Point, built: Built) -> Callable[..., Any]:
        """The plainest eager form of the step, with the same arguments and result: what numerics are compared with."""
        return built.eager

    def at_floor(self, point: Point) -> Point | None:
        """The point at which the same operations have as good as nothing to do; None where that is not known."""
        return replace(point, size=self.floor_size)

    def settings(self, point: Point) -> AbstractContextManager[object]:
        """What holds in torch while the point is measured."""
        return contextlib.nullcontext()

    def predicted(self, point: Point) -> dict[str, Any] | None:
        """What a cure would do to the memory of the step, by arithmetic (facts.train); None where nothing is known."""
        return None

    def refusal(self, point: Point) -> str | None:
        """Why the values of a point, each allowed, cannot be measured together; None if they can."""
        return None
