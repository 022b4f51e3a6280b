"""Normalisation of rows: norm."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from runner.workloads.base import Allowed, Cost, Operation
from runner.workloads.layers import Layer, cost_of, item_bytes, rows_of, rows_shape

if TYPE_CHECKING:
    import torch

    from runner.point import Point

FLOPS = {"layer": 7, "rms": 4}
"""Of an element: mean, difference, square, its sum, scaling, weight and bias; of RMS square, sum, scaling, weight."""


def norm_operations(name: str, kind: str, rows: int, features: int, item: int, fused: bool) -> tuple[Operation, ...]:
    """A normalisation of rows: x read once, the result written once, the weights (and biases) read once.

    fused: one pass, as torch does it, but for RMSNorm on the CPU: square, mean, scaling and weight are passes of their
    own there, in float32 whatever the dtype. Left out: the few FLOPs of a row's root and division.
    """
    elements, weights = rows * features, (2 if kind == "layer" else 1) * features * item
    if fused:
        return (Operation(name, FLOPS[kind] * elements, 2 * elements * item + weights),)
    return (
        Operation(f"{name} square", elements, elements * (item + 4)),
        Operation(f"{name} mean", elements, elements * 4),
        Operation(f"{name} scale", elements, elements * (item + 4)),
        Operation(f"{name} weight", elements, elements * (4 + item) + weights),
    )


def is_fused(kind: str, point: Point) -> bool:
    """Whether a normalisation is one operation."""
    return kind == "layer" or point.device != "cpu" or point.compile is not False


class Norm(Layer):
    """torch.nn.LayerNorm or RMSNorm of `size` rows of `features` elements: 7 or 4 FLOPs an element, 2 elements moved.

    Sources: Ba and others, Layer Normalization (arXiv 1607.06450); Zhang and Sennrich, Root Mean Square Layer
    Normalization (arXiv 1910.07467).
    """

    name = "norm"
    params: ClassVar[dict[str, Allowed]] = {"kind": ("layer", "rms"), "features": range(1, 65537)}
    defaults: ClassVar[dict[str, Any]] = {"kind": "layer", "features": 4096}
    smallest: ClassVar[dict[str, Any]] = {"features": 2}

    def module(self, point: Point, **where: Any) -> torch.nn.Module:
        """torch.nn.LayerNorm or torch.nn.RMSNorm, with weights."""
        import torch

        own = dict(point.params)
        kind = {"layer": torch.nn.LayerNorm, "rms": torch.nn.RMSNorm}[own["kind"]]
        return kind(own["features"], **where)

    def shapes(self, point: Point) -> tuple[tuple[int, ...], ...]:
        """x: (size, features), with a batch (batch, size, features)."""
        return (rows_shape(point, dict(point.params)["features"]),)

    def cost(self, point: Point) -> Cost:
        """One pass; RMSNorm, eager on the CPU, is several."""
        own, rows, item = dict(point.params), rows_of(point), item_bytes(point)
        fused = is_fused(own["kind"], point)
        operations = norm_operations(own["kind"], own["kind"], rows, own["features"], item, fused)
        (least,) = norm_operations(own["kind"], own["kind"], rows, own["features"], item, True)
        return cost_of(operations, least.bytes, 0 if fused else 2 * 4 * rows * own["features"])
