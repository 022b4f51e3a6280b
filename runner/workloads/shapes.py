"""A stream of inputs whose lengths vary: what compiling and the allocator make of changing shapes."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

from runner import allocating
from runner.workloads.base import ITEM_BYTES, Allowed, Built, Compile, Cost, Operation, Workload

if TYPE_CHECKING:
    import torch

    from runner.point import Point

FLOOR_FEATURES = 8
GELU_FLOPS = 4  # 0.5 x (1 + erf(x / sqrt 2)), erf counted as one
NORM_FLOPS = 5  # an element: the sum of the mean, the difference, its square and their sum, the product
MEAN_FLOPS = 1
WORKSPACE_BYTES = 64 * 2**20
"""Room for what cuBLAS keeps aside: at most 32 MiB for each of its two libraries on the cards that it asks most on."""


class ShapeSequence(Workload):
    """One step is one cycle: a block is called once with each of `shapes` lengths, whose mean is `size`.

    x: (length, features). The lengths lie evenly between size - spread % and size + spread %. mlp: linear, gelu, layer
    norm, mean over the length; norm: the same without the product, a bias in its place. Every call gives back all that
    it allocated but its (features,) result, as a batch of a training loop does.
    """

    name = "shape_sequence"
    params: ClassVar[dict[str, Allowed]] = {
        "shapes": range(1, 65), "spread": range(0, 91), "pattern": ("cycle", "random"), "op": ("mlp", "norm"),
        "features": range(8, 16385), "pool": allocating.POOLS,
    }  # fmt: skip
    defaults: ClassVar[dict[str, Any]] = {
        "shapes": 8, "spread": 50, "pattern": "cycle", "op": "mlp", "features": 1024, "pool": "none",
    }  # fmt: skip
    uses: ClassVar[tuple[Any, ...]] = (allocating.prepare,)

    def lengths(self, point: Point) -> tuple[int, ...]:
        """Lengths of a cycle in their order: rising, or with pattern=random one order that the seed fixes."""
        assert point.size is not None
        own = dict(point.params)
        count, spread = own["shapes"], own["spread"]
        steps = max(1, count - 1)
        found = [
            round(point.size * (100 * steps + spread * (2 * place - (count - 1))) / (100 * steps))
            for place in range(count)
        ]
        if own["pattern"] == "random":
            random.Random(point.seed).shuffle(found)
        return tuple(found)

    def shapes(self, point: Point) -> tuple[tuple[int, ...], ...]:
        """x of every length: (length, features), with a batch (batch, length, features); weight of an mlp; bias."""
        own = dict(point.params)
        features = own["features"]
        leading = () if point.batch is None else (point.batch,)
        weight = ((features, features),) if own["op"] == "mlp" else ()
        return (*((*leading, length, features) for length in self.lengths(point)), *weight, (features,))

    def build(self, point: Point, device: torch.device, generator: torch.Generator, compile: Compile) -> Built:
        """The block alone is compiled, so that each length is a call of its own; dynamic=mark says that they vary."""
        allocating.prepare(dict(point.params)["pool"], self._pool_bytes(point), device)
        inputs = self.inputs(point, device, generator)
        if point.dynamic == "mark" and point.compile is not False:
            self._mark(point, inputs)
        block = self.function(point)
        return Built(self._cycle(point, compile(block)), inputs, self._cycle(point, block))

    def function(self, point: Point) -> Callable[..., Any]:
        """The block: takes x of one length and the parameters, returns (features,), with a batch (batch, features)."""
        from torch.nn import functional

        def mlp(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
            y = functional.gelu(functional.linear(x, weight, bias))
            return functional.layer_norm(y, y.shape[-1:]).mean(-2)

        def norm(x: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
            y = functional.gelu(x + bias)
            return functional.layer_norm(y, y.shape[-1:]).mean(-2)

        return mlp if dict(point.params)["op"] == "mlp" else norm

    def _cycle(self, point: Point, block: Callable[..., Any]) -> Callable[..., Any]:
        """The step: the block with each x in turn; returns all results. Each length is a phase."""
        from runner.phases import phase

        lengths = self.lengths(point)
        names = tuple(f"length {length}" for length in lengths)

        def shape_sequence(*inputs: torch.Tensor) -> tuple[torch.Tensor, ...]:
            parameters, results = inputs[len(names) :], []
            for name, x in zip(names, inputs, strict=False):
                with phase(name):
                    results.append(block(x, *parameters))
            return tuple(results)

        return shape_sequence

    def _mark(self, point: Point, inputs: tuple[torch.Tensor, ...]) -> None:
        """Tell torch.compile that the length varies; where it cannot keep it open all the same, the call raises."""
        import torch

        for x in inputs[: len(self.lengths(point))]:
            torch._dynamo.mark_dynamic(x, x.dim() - 2)

    def cost(self, point: Point) -> Cost:
        """Sums over the cycle; compiled, all but the product is one operation. What kernels keep aside is left out."""
        own, item, batch = dict(point.params), ITEM_BYTES[point.dtype], point.batch or 1
        features, rows = own["features"], [batch * length for length in self.lengths(point)]
        operations = [each for count in rows for each in self._operations(point, count, item)]
        results, parameters = len(rows) * batch * features, features + (features**2 if own["op"] == "mlp" else 0)
        least = item * (sum(rows) * features + parameters + results)
        return Cost(tuple(operations), least, least + 2 * item * max(rows) * features)

    def _operations(self, point: Point, rows: int, item: int) -> list[Operation]:
        """Operations of one call on `rows` rows."""
        own, batch = dict(point.params), point.batch or 1
        features = own["features"]
        elements, result = rows * features, batch * features
        once = 2 * item * elements
        linear = Operation("linear", 2 * elements * features + elements, once + item * (features**2 + features))
        add = Operation("add", elements, once + item * features)
        first = linear if own["op"] == "mlp" else add
        later = (
            Operation("gelu", GELU_FLOPS * elements, once), Operation("layer_norm", NORM_FLOPS * elements, once),
            Operation("mean", MEAN_FLOPS * elements, item * (elements + result)),
        )  # fmt: skip
        if point.compile is False:
            return [first, *later]
        kept, fused = ([first], later) if own["op"] == "mlp" else ([], (first, *later))
        return [*kept, Operation("fused", sum(each.flops for each in fused), item * (elements + result))]

    def _pool_bytes(self, point: Point) -> dict[str, int]:
        """Bytes that each kind of pool is made for: `warmup` all that lives on, `preallocated` the step's peak as well.

        Two results of the longest length are alive at once; a third is room for what the allocator rounds up.
        Workspaces of libraries come on top.
        """
        item = ITEM_BYTES[point.dtype]
        elements = [_product(shape) for shape in self.shapes(point)]
        longest = max(elements[: len(self.lengths(point))])
        return {"warmup": item * sum(elements), "preallocated": item * (sum(elements) + 3 * longest) + WORKSPACE_BYTES}

    def at_floor(self, point: Point) -> Point:
        """As many calls, all of 2 rows of 8 features: compiled once, so that guards of further codes are left out."""
        params = {**dict(point.params), "spread": 0, "features": FLOOR_FEATURES}
        return replace(point, size=self.floor_size, params=tuple(sorted(params.items())))

    def refusal(self, point: Point) -> str | None:
        """Lengths that are not all different, or of 1 row, which torch compiles apart."""
        own = dict(point.params)
        found = self.lengths(point)
        if own["spread"] == 0 or own["shapes"] == 1 or (len(set(found)) == len(found) and min(found) > 1):
            return None
        return (
            f"shape_sequence: from {min(found)} to {max(found)} there are no {own['shapes']} different lengths from 2 "
            "on; take a larger size or workload.spread, or fewer workload.shapes (workload.spread=0: all alike)."
        )


def _product(shape: tuple[int, ...]) -> int:
    """Elements of a tensor."""
    found = 1
    for each in shape:
        found *= each
    return found
