"""A block of a transformer: transformer_block."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from runner.workloads.attention import fused_attention
from runner.workloads.base import Allowed, Cost, Operation
from runner.workloads.layers import Layer, cost_of, drawn, item_bytes, product, rounded_hidden, rows_of
from runner.workloads.mlp import gated_mlp, mlp_between, mlp_operations
from runner.workloads.norm import is_fused, norm_operations

if TYPE_CHECKING:
    import torch

    from runner.point import Point


def block(heads: int, head_dim: int, causal: bool, **where: Any) -> torch.nn.Module:
    """x + attention(norm(x)), then x + mlp(norm(x)): RMSNorm, no biases, no encoding of positions."""
    import torch

    width = heads * head_dim

    class Block(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.attention_norm = torch.nn.RMSNorm(width, **where)
            self.qkv = torch.nn.Linear(width, 3 * width, bias=False, **where)
            self.out = torch.nn.Linear(width, width, bias=False, **where)
            self.mlp_norm = torch.nn.RMSNorm(width, **where)
            self.mlp = gated_mlp(width, rounded_hidden(width), **where)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            x = x + self.attend(self.attention_norm(x))
            result: torch.Tensor = x + self.mlp(self.mlp_norm(x))
            return result

        def attend(self, x: torch.Tensor) -> torch.Tensor:
            batch, size, _ = x.shape
            q, k, v = self.qkv(x).view(batch, size, 3, heads, head_dim).permute(2, 0, 3, 1, 4)
            seen = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal)
            mixed: torch.Tensor = self.out(seen.transpose(1, 2).reshape(batch, size, width))
            return mixed

    return Block()


class TransformerBlock(Layer):
    """A pre-norm block on sequences of `size` tokens; width = heads x head_dim, the gated MLP of 8/3 of it.

    FLOPs a token: 8 w^2 in the attention's products, 6 w h in the MLP's, 4 s w (causal 2 (s + 1) w) in the attention
    itself; norms, softmax, activation and the two additions count as in the workloads norm, attention and mlp.
    Compiled, activation and product are one pass, and the first addition is one with the norm behind it.
    """

    name = "transformer_block"
    uses: ClassVar[tuple[Any, ...]] = (drawn, block, gated_mlp, rounded_hidden)
    params: ClassVar[dict[str, Allowed]] = {
        "heads": range(1, 1025), "head_dim": range(1, 1025), "causal": (True, False),
    }  # fmt: skip
    defaults: ClassVar[dict[str, Any]] = {"heads": 16, "head_dim": 64, "causal": True}
    smallest: ClassVar[dict[str, Any]] = {"heads": 1, "head_dim": 2}

    def module(self, point: Point, **where: Any) -> torch.nn.Module:
        """Two norms, attention by scaled_dot_product_attention, and a gated MLP."""
        own = dict(point.params)
        return block(own["heads"], own["head_dim"], own["causal"], **where)

    def shapes(self, point: Point) -> tuple[tuple[int, ...], ...]:
        """x: (batch, size, width), batch 1 where there is no such axis."""
        assert point.size is not None
        own = dict(point.params)
        return ((point.batch or 1, point.size, own["heads"] * own["head_dim"]),)

    def cost(self, point: Point) -> Cost:
        """Attention and MLP, their norms and additions."""
        own, rows, item, fused = dict(point.params), rows_of(point), item_bytes(point), point.compile is not False
        width = own["heads"] * own["head_dim"]
        hidden, heads = rounded_hidden(width), (point.batch or 1) * own["heads"]
        middle, last = _additions(rows, width, item, point)
        operations = (
            *norm_operations("attention_norm", "rms", rows, width, item, is_fused("rms", point)),
            product("qkv", rows, width, 3 * width, item),
            fused_attention(heads, point.size or 0, own["head_dim"], item, own["causal"]),
            product("out", rows, width, width, item),
            *middle,
            *mlp_operations(rows, width, hidden, item, fused),
            last,
        )
        weights = 4 * width**2 + 3 * width * hidden + 2 * width
        between = (8 if fused else 9) * rows * width * item + mlp_between(rows, hidden, item, fused)
        return cost_of(operations, (2 * rows * width + weights) * item, between)


def _additions(rows: int, width: int, item: int, point: Point) -> tuple[tuple[Operation, ...], Operation]:
    """What lies between attention and MLP, x + out and its norm; and what ends the block.

    Compiled, addition and norm are one pass that does not write the sum: the last one adds x, out and the MLP's.
    """
    elements = rows * width
    norm = norm_operations("mlp_norm", "rms", rows, width, item, is_fused("rms", point))
    if point.compile is False:
        add = Operation("add", elements, 3 * elements * item)
        return (add, *norm), add
    (whole,) = norm
    both = Operation("add_norm", whole.flops + elements, whole.bytes + elements * item)
    return (both,), Operation("add", 2 * elements, 4 * elements * item)
