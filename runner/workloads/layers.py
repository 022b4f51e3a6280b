"""What workloads that call a module have in common: the module among the arguments, and the cost of a product.

An elementary operation other than a product (exponential, root, division, comparison of a maximum) counts as one FLOP.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

from runner.workloads.base import ITEM_BYTES, Built, Compile, Cost, Operation, Workload, torch_dtype

if TYPE_CHECKING:
    import torch

    from runner.point import Point

SILU_FLOPS = 4
"""x / (1 + exp(-x)): negation, exponential, addition, division."""


def rounded_hidden(width: int) -> int:
    """Hidden features of a gated MLP with as many weights as a plain one of 4 x width: 8/3 x width, in steps of 64.

    Source: Shazeer, GLU Variants Improve Transformer (arXiv 2002.05202), section 2, for the two thirds of 4 x width.
    """
    return -(-8 * width // (3 * 64)) * 64


def drawn(module: torch.nn.Module, generator: torch.Generator) -> torch.nn.Module:
    """The module without gradients, its weights drawn anew: vectors standard normal, matrices of unit gain.

    A matrix of `inner` inputs has the deviation 1/sqrt(inner), so that values stay near 1 through any number of layers.
    """
    for weight in module.requires_grad_(False).parameters():
        weight.normal_(0.0, weight.shape[-1] ** -0.5 if weight.dim() > 1 else 1.0, generator=generator)
    return module


def product(name: str, rows: int, inner: int, columns: int, item: int, bias: bool = False) -> Operation:
    """x W^T (+ bias as epilogue): 2 m k n FLOPs (and m n); x, W and bias read once, the result written once."""
    elements = rows * inner + inner * columns + rows * columns + bias * columns
    return Operation(name, 2 * rows * inner * columns + bias * rows * columns, elements * item)


class Layer(Workload):
    """A torch.nn.Module called on one tensor, without gradients. A subclass gives `module`, `shapes` and `cost`.

    `smallest`: the values of its own axes with which the module has as good as nothing to do.
    """

    rotates = False
    uses: ClassVar[tuple[Any, ...]] = (drawn,)
    smallest: ClassVar[dict[str, Any]] = {}

    def module(self, point: Point, **where: Any) -> torch.nn.Module:
        """The module on a device and in a dtype (`where`), its weights as torch makes them."""
        raise NotImplementedError

    def build(self, point: Point, device: torch.device, generator: torch.Generator, compile: Compile) -> Built:
        """function(module, x) = module(x)."""

        def layer(module: torch.nn.Module, x: torch.Tensor) -> torch.Tensor:
            result: torch.Tensor = module(x)
            return result

        module = drawn(self.module(point, device=device, dtype=torch_dtype(point.dtype)), generator)
        return Built(compile(layer), (module, *self.inputs(point, device, generator)), layer)

    def at_floor(self, point: Point) -> Point:
        """Two rows of the smallest module, a batch of one where there is a batch."""
        params = tuple(sorted({**dict(point.params), **self.smallest}.items()))
        return replace(point, size=self.floor_size, batch=None if point.batch is None else 1, params=params)


def rows_of(point: Point) -> int:
    """Rows that a layer works on: batch x size."""
    return (point.batch or 1) * (point.size or 0)


def rows_shape(point: Point, features: int) -> tuple[int, ...]:
    """(size, features), with a batch (batch, size, features)."""
    assert point.size is not None
    return (point.size, features) if point.batch is None else (point.batch, point.size, features)


def item_bytes(point: Point) -> int:
    """Bytes of an element in the point's dtype."""
    return ITEM_BYTES[point.dtype]


def cost_of(operations: tuple[Operation, ...], least: int, between: int) -> Cost:
    """Cost of a layer; least: bytes of its input, weights and result; between: of all that arises on the way."""
    return Cost(operations, least, least + between)
