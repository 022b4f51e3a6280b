"""Attention of a sequence to itself: attention."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

from runner.workloads.base import Allowed, Built, Cost, Operation, Workload
from runner.workloads.layers import cost_of, item_bytes

if TYPE_CHECKING:
    import torch

    from runner.point import Point

SOFTMAX_FLOPS = 5
"""An element: maximum, difference, exponential, sum, division."""
BACKENDS = {"math": "MATH", "flash": "FLASH_ATTENTION", "efficient": "EFFICIENT_ATTENTION", "cudnn": "CUDNN_ATTENTION"}
"""Our words, and names of torch.nn.attention.SDPBackend."""


def later_keys(size: int, device: torch.device) -> torch.Tensor:
    """(size, size), true where a key lies behind its query, which may not see it."""
    import torch

    return torch.ones(size, size, dtype=torch.bool, device=device).triu(1)


def naive(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, later: torch.Tensor | None = None) -> torch.Tensor:
    """softmax(q k^T / sqrt(head_dim)) v with the full matrix of scores, a new one at every operation."""
    import torch

    scores = torch.matmul(q, k.transpose(-2, -1)) * q.shape[-1] ** -0.5
    if later is not None:
        scores = scores.masked_fill(later, float("-inf"))
    return torch.matmul(torch.softmax(scores, dim=-1), v)


def in_place(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, later: torch.Tensor | None = None) -> torch.Tensor:
    """The same with one matrix of scores: scaling, mask and softmax overwrite it."""
    import torch

    scores = torch.matmul(q, k.transpose(-2, -1)).mul_(q.shape[-1] ** -0.5)
    if later is not None:
        scores.masked_fill_(later, float("-inf"))
    torch.softmax(scores, dim=-1, out=scores)
    return torch.matmul(scores, v)


def full_attention(heads: int, size: int, head_dim: int, item: int, causal: bool, fused: bool) -> tuple[Operation, ...]:
    """Attention with the matrix of scores in memory. heads: those of all sequences together.

    4 s^2 d FLOPs a head in two products: a causal mask skips nothing, it hides what was computed. fused: scaling, mask
    and softmax are one pass over the scores.
    """
    scores, rows = heads * size**2, heads * size * head_dim
    mask = causal * size**2  # bytes of the mask, which all heads share
    passes: tuple[Operation, ...] = (Operation("scale", scores, 2 * scores * item),)
    passes += (Operation("mask", 0, 2 * scores * item + mask),) if causal else ()
    passes += (Operation("softmax", SOFTMAX_FLOPS * scores, 2 * scores * item),)
    one_pass = (Operation("scaled_softmax", (1 + SOFTMAX_FLOPS) * scores, 2 * scores * item + mask),)
    return (
        Operation("scores", 2 * scores * head_dim, (2 * rows + scores) * item),
        *(one_pass if fused else passes),
        Operation("values", 2 * scores * head_dim, (scores + 2 * rows) * item),
    )


def fused_attention(heads: int, size: int, head_dim: int, item: int, causal: bool) -> Operation:
    """Attention in one kernel: q, k and v are read once, the result is written once, scores stay on the chip.

    (4 d + 6) FLOPs for each pair of query and key; causal, there are s (s + 1) / 2 pairs and not s^2, since the kernels
    skip blocks of later keys. Source: Dao and others, FlashAttention (arXiv 2205.14135), section 3; skipping: Dao,
    FlashAttention-2 (arXiv 2307.08691), section 3.1. Left out: the later keys of the blocks on the diagonal, which are
    computed all the same, and keys and values that a kernel reads again for every block of queries.
    """
    pairs = heads * (size * (size + 1) // 2 if causal else size**2)
    return Operation("attention", pairs * (4 * head_dim + 1 + SOFTMAX_FLOPS), 4 * heads * size * head_dim * item)


class Attention(Workload):
    """softmax(q k^T / sqrt(head_dim)) v of `size` positions: 4 s^2 d FLOPs a head, and 6 s^2 in scaling and softmax.

    `naive` and `inplace` write the s x s scores to memory; `sdpa` is torch's scaled_dot_product_attention, with a
    `backend` of its own choice or that one and no other. Source: Vaswani and others, Attention Is All You Need (arXiv
    1706.03762), section 3.2.1.
    """

    name = "attention"
    uses: ClassVar[tuple[Any, ...]] = (naive, in_place, later_keys)
    params: ClassVar[dict[str, Allowed]] = {
        "impl": ("naive", "inplace", "sdpa"), "backend": ("auto", *BACKENDS), "causal": (True, False),
        "heads": range(1, 1025), "head_dim": range(1, 1025),
    }  # fmt: skip
    defaults: ClassVar[dict[str, Any]] = {
        "impl": "sdpa", "backend": "auto", "causal": False, "heads": 16, "head_dim": 64,
    }  # fmt: skip

    def refusal(self, point: Point) -> str | None:
        """A backend belongs to sdpa alone."""
        own = dict(point.params)
        if own["backend"] == "auto" or own["impl"] == "sdpa":
            return None
        return f"workload.backend={own['backend']}: allowed is auto with impl={own['impl']}; write workload.impl=sdpa."

    def shapes(self, point: Point) -> tuple[tuple[int, ...], ...]:
        """q, k, v: (batch, heads, size, head_dim), batch 1 where there is no such axis; `inputs` adds the mask."""
        assert point.size is not None
        own = dict(point.params)
        return ((point.batch or 1, own["heads"], point.size, own["head_dim"]),) * 3

    def inputs(self, point: Point, device: torch.device, generator: torch.Generator) -> tuple[torch.Tensor, ...]:
        """q, k, v, and with a causal mask of its own `later`: (size, size)."""
        own, tensors = dict(point.params), super().inputs(point, device, generator)
        assert point.size is not None
        masked = own["causal"] and own["impl"] != "sdpa"
        return (*tensors, later_keys(point.size, device)) if masked else tensors

    def function(self, point: Point) -> Callable[..., Any]:
        """The implementation that is asked for."""
        import torch

        own = dict(point.params)
        causal = own["causal"]

        def sdpa(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
            return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal)

        return {"naive": naive, "inplace": in_place, "sdpa": sdpa}[own["impl"]]

    def reference(self, point: Point, built: Built) -> Callable[..., Any]:
        """The naive form, whichever form is measured."""
        own = dict(point.params)
        if not own["causal"] or own["impl"] != "sdpa":
            return naive
        return lambda q, k, v: naive(q, k, v, later_keys(q.shape[-2], q.device))

    def cost(self, point: Point) -> Cost:
        """With the scores in memory, or in one kernel.

        In one kernel: sdpa but for its backend math (auto takes that where no other can: left out), and the other two
        where torch.compile puts such a kernel in their place, as it does where there is no mask.
        """
        own, item, fused = dict(point.params), item_bytes(point), point.compile is not False
        heads, causal = (point.batch or 1) * own["heads"], own["causal"]
        sizes = (heads, point.size or 0, own["head_dim"], item, causal)
        one = fused_attention(*sizes)
        replaced = own["impl"] != "sdpa" and fused and not causal
        if replaced or (own["impl"] == "sdpa" and own["backend"] != "math"):
            return cost_of((one,), one.bytes, 0)
        mask = (point.size or 0) ** 2 if causal and own["impl"] != "sdpa" else 0
        copies = 2 if fused else 1 if own["impl"] == "inplace" else 3 + causal
        return cost_of(full_attention(*sizes, fused), one.bytes + mask, copies * heads * (point.size or 0) ** 2 * item)

    def at_floor(self, point: Point) -> Point:
        """Two positions of one head with two features."""
        params = tuple(sorted({**dict(point.params), "heads": 1, "head_dim": 2}.items()))
        return replace(point, size=self.floor_size, batch=None if point.batch is None else 1, params=params)

    @contextlib.contextmanager
    def settings(self, point: Point) -> Iterator[None]:
        """The chosen backend alone is allowed while the point is measured; why it cannot run comes from torch."""
        backend = dict(point.params)["backend"]
        if backend == "auto":
            yield
            return
        from torch.nn.attention import SDPBackend, sdpa_kernel

        with warnings.catch_warnings(record=True) as told, sdpa_kernel(getattr(SDPBackend, BACKENDS[backend])):
            warnings.simplefilter("default")
            try:
                yield
            except RuntimeError as error:
                reasons = dict.fromkeys(" ".join(str(each.message).split(" (Triggered")[0].split()) for each in told)
                raise RuntimeError(" ".join((f"backend={backend}: {error}", *reasons))) from error
        for each in told:
            warnings.warn_explicit(each.message, each.category, each.filename, each.lineno)
