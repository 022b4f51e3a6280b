"""FLOPs and bytes of a step without a cost model, counted by torch while the step is called once.

Every operation that reaches a kernel is seen where torch dispatches it, those of a backward pass included.

FLOPs: of products, convolutions and attention by torch.utils.flop_counter (2 for each multiplication with its addition;
attention as if every query met every key, also where it is causal), and by the same rule of products with a vector and
of 8-bit integers, which it lacks; of what works element by element 1 for each element of the result, whatever it
computes. Bytes: each tensor that an operation reads, once, and each that it writes, once; a
view moves nothing; where places are chosen by an index, those places. Left out: FLOPs of reductions, transforms and
solvers, of recurrent layers that a library runs as one (cuDNN), workspaces, what is called outside of torch's operators
(own kernels), collectives. A step with sparse or nested tensors is not counted: their shapes do not tell what is there.

Number format: a product computes in that of its first operand, all else in that of its result. It is told where it is
not the point's own. Whole numbers and tensors without an axis count as the point's, but for products of whole numbers.

A compiled step is counted as it is eager, and then taken as well compiled as can be: its products as they are, all else
as one operation that moves no more than what the step as a whole must, in the number format of most of its FLOPs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import flop_registry, sdpa_flop_count

from runner.workloads import Built
from runner.workloads.base import Operation

aten = torch.ops.aten
ALLOCATING = (aten.empty, aten.empty_like, aten.empty_strided, aten.new_empty, aten.new_empty_strided)
"""Make a tensor and write nothing into it."""
OVERWRITING = (aten.copy_, aten.fill_, aten.zero_, aten.normal_, aten.uniform_, aten.bernoulli_, aten._foreach_copy_,
               aten._foreach_zero_)  # fmt: skip
"""Write their first argument without reading it."""
CHOOSING = (aten.embedding, aten.index_select, aten.index, aten.gather)
"""Read of their first argument as many elements as the result has."""
PLACING = (aten.index_copy_, aten.index_put_, aten.scatter_, aten.index_add_, aten._index_put_impl_)
"""Write as many elements into their first argument as another one has."""
MOST_OPERATIONS = 200
"""Kinds of operations that are told apart; further ones are added up."""
DTYPES = {torch.float32: "fp32", torch.bfloat16: "bf16", torch.float16: "fp16", torch.float64: "fp64"}
"""Names of number formats; all others have torch's."""


class Call(NamedTuple):
    """One kind of call. dtype: the number format in which its FLOPs are computed, None = no other than the point's."""

    name: str
    flops: int
    bytes: int
    is_product: bool
    dtype: str | None


@dataclass
class _Seen:
    """Storages of a step. outside, changed: those that it has not made itself, with the bytes that are read of them and
    that are written to them."""

    inside: dict[int, StorageWeakRef] = field(default_factory=dict)
    kept: list[StorageWeakRef] = field(default_factory=list)
    outside: dict[int, int] = field(default_factory=dict)
    changed: dict[int, int] = field(default_factory=dict)
    inside_bytes: int = 0

    @property
    def least_bytes(self) -> int:
        """What the step must move besides its result."""
        return sum(self.outside.values()) + sum(self.changed.values())

    @property
    def working_bytes(self) -> int:
        """All that it touches."""
        found = {number: max(self.outside.get(number, 0), self.changed.get(number, 0)) for number in
                 {*self.outside, *self.changed}}  # fmt: skip
        return sum(found.values()) + self.inside_bytes

    def use(self, tensor: torch.Tensor, size: int | None = None) -> None:
        """A tensor is read. size: bytes of it that are, where not all."""
        storage = StorageWeakRef(tensor.untyped_storage())
        size = moved(tensor) if size is None else size
        if storage.cdata not in self.inside:
            self.kept.append(storage)  # as long as it is, no other storage gets its number
            self.outside[storage.cdata] = max(self.outside.get(storage.cdata, 0), size)

    def change(self, tensor: torch.Tensor, size: int | None = None) -> None:
        """A tensor that was there before the operation is written. size: bytes of it that are, where not all."""
        storage = StorageWeakRef(tensor.untyped_storage())
        size = moved(tensor) if size is None else size
        if storage.cdata not in self.inside:
            self.kept.append(storage)
            self.changed[storage.cdata] = max(self.changed.get(storage.cdata, 0), size)

    def make(self, tensor: torch.Tensor) -> None:
        """A tensor is the result of an operation, in a storage that may be new."""
        storage = StorageWeakRef(tensor.untyped_storage())
        if not {storage.cdata} & {*self.inside, *self.outside, *self.changed}:
            self.inside[storage.cdata] = storage
            self.inside_bytes += moved(tensor)


class Count(TorchDispatchMode):
    """While it is entered: how often each kind of operation is called, and storages."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Nothing is compiled in here: hiding from torch's compiler would import it, which takes seconds."""
        return False

    def __init__(self) -> None:
        super().__init__()
        self.operations: Counter[Call] = Counter()
        self.seen = _Seen()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Call and count an operation; one that is made of others is counted as these."""
        kwargs = kwargs or {}
        packet = func._overloadpacket
        if packet not in flop_registry and packet not in _OWN:
            with self:
                parts = func.decompose(*args, **kwargs)
            if parts is not NotImplemented:
                return parts
        result = func(*args, **kwargs)
        if not _is_view(func, args, result):
            name = packet.__name__
            flops, is_product = _flops(func, args, kwargs, result)
            dtype = _dtype([args, kwargs], result, is_product) if flops else None
            self.operations[Call(name, flops, self._bytes(func, args, kwargs, result), is_product, dtype)] += 1
        return result

    def _bytes(self, func: Any, args: Any, kwargs: Any, result: Any) -> int:
        read, changed, made = _moved(func, args, kwargs, result)
        chosen = sum(map(moved, made)) if func._overloadpacket in CHOOSING else None
        for place, each in enumerate(read):
            if func._overloadpacket not in PLACING or place:
                self.seen.use(each, chosen if place == 0 else None)
        packet = func._overloadpacket
        placed = max(map(moved, read[1:]), default=0) if packet in PLACING else None
        for each in changed:
            self.seen.change(each, placed)
        for each in made:
            self.seen.make(each)
        written = [*changed, *made]
        if packet in ALLOCATING:
            return 0
        if chosen is not None:
            return 2 * chosen + sum(map(moved, read[1:]))
        if placed is not None:
            return placed + sum(map(moved, read[1:]))
        return sum(map(moved, read)) + sum(map(moved, written))


def counted(built: Built, compiled: bool, dtype: str = "fp32") -> dict[str, Any]:
    """facts.cost of a step, which is called once, eager, with its own arguments. dtype: the point's."""
    count = Count()
    with count:
        result = built.eager(*built.arguments)
    results = sum(map(moved, _tensors(result)))
    seen = count.seen
    least = seen.least_bytes + results
    calls = _fused(count.operations, least) if compiled else count.operations
    return {
        "operations": list(_told(calls, dtype)),
        "bytes_min": least,
        "working_set_bytes": seen.working_bytes,
        "source": "counted",
    }


def cost_of(built: Built, compiled: bool, dtype: str = "fp32") -> dict[str, Any]:
    """facts.cost of a step without a cost model: told by its author where he does, else counted. source: which."""
    flops, size = getattr(built.eager, "flops", None), getattr(built.eager, "bytes", None)
    if flops is not None and size is not None:
        return _given(flops, size) | {"working_set_bytes": size}
    cost = counted(built, compiled, dtype)
    if flops is None and size is None:
        return cost
    if flops is None:
        flops = sum(each["flops"] for each in cost["operations"])
    return _given(flops, cost["bytes_min"] if size is None else size) | {"working_set_bytes": cost["working_set_bytes"]}


def _given(flops: int, size: int) -> dict[str, Any]:
    return {"operations": [{"name": "step", "flops": flops, "bytes": size}], "bytes_min": size, "source": "given"}


# -- one operation -----------------------------------------------------------------------------------------------------


def moved(tensor: torch.Tensor) -> int:
    """Bytes of a tensor's elements; of one that repeats its elements, those that there are."""
    return min(tensor.numel() * tensor.element_size(), tensor.untyped_storage().nbytes())


def _cpu_attention(query: Any, key: Any, value: Any, *_: Any, **__: Any) -> int:
    return int(sdpa_flop_count(query.shape, key.shape, value.shape))


def _matrix_by_vector(matrix: Any, *_: Any, **__: Any) -> int:
    return 2 * int(matrix.numel())


def _sum_and_matrix_by_vector(_: Any, matrix: Any, *__: Any, **___: Any) -> int:
    return 2 * int(matrix.numel())


def _matrix_by_matrix(left: Any, right: Any, *_: Any, **__: Any) -> int:
    return 2 * int(left.numel()) * int(right.shape[-1])


_COUNTS: dict[str, Callable[..., int]] = {
    "_scaled_dot_product_flash_attention_for_cpu": _cpu_attention, "mv": _matrix_by_vector,
    "addmv": _sum_and_matrix_by_vector, "dot": _matrix_by_vector, "vdot": _matrix_by_vector,
    "_int_mm": _matrix_by_matrix,
}  # fmt: skip
_OWN = {getattr(aten, name): count for name, count in _COUNTS.items() if hasattr(aten, name)}
"""Products that torch 2.13 still counts as nothing."""


def _flops(func: Any, args: Any, kwargs: Any, result: Any) -> tuple[int, bool]:
    """FLOPs of a call, and whether it is a product."""
    packet = func._overloadpacket
    counts: Callable[..., Any] | None = flop_registry.get(packet) or _OWN.get(packet)
    if counts is not None:
        return int(counts(*args, **kwargs, out_val=result)), True
    if packet in OVERWRITING or packet is aten._to_copy or torch.Tag.pointwise not in func.tags:
        return 0, False
    return sum(each.numel() for each in _tensors(result)), False


def _dtype(given: Any, result: Any, is_product: bool) -> str | None:
    """The number format in which a call computes; None for whole and single numbers, but for products of them."""
    if is_product:
        candidates = _tensors(given)[:1]
    else:
        candidates = [each for each in _tensors([result, given]) if each.is_floating_point() and each.dim() > 0]
    found = next((each.dtype for each in candidates), None)
    return None if found is None else DTYPES.get(found, str(found).removeprefix("torch."))


def _is_view(func: Any, args: Any, result: Any) -> bool:
    """Whether a call only looks at a tensor in another way; nothing that is written is one."""
    if func._schema.is_mutable:
        return False
    results = _tensors(result)
    if func.is_view:
        return True
    given = {each.untyped_storage()._cdata for each in _tensors(args)}
    return bool(results) and all(each.untyped_storage()._cdata in given for each in results)


def _moved(
    func: Any, args: Any, kwargs: Any, result: Any
) -> tuple[list[torch.Tensor], list[torch.Tensor], list[torch.Tensor]]:
    """Tensors that a call reads, changes, and makes; each once, however often it is named."""
    given = dict(zip((each.name for each in func._schema.arguments), args, strict=False)) | kwargs
    written = [each.name for each in func._schema.arguments if each.alias_info is not None and each.alias_info.is_write]
    changed = _tensors([given.get(name) for name in written])
    inputs, untouched = _tensors([args, kwargs]), {id(each) for each in changed}
    if func._overloadpacket in OVERWRITING or "out" in kwargs:
        inputs = [each for each in inputs if id(each) not in untouched]
    made = [each for each in _tensors(result) if id(each) not in untouched]
    return _once(inputs), _once(changed), _once(made)


def _tensors(value: Any) -> list[torch.Tensor]:
    """All tensors in a value.

    Raises NotImplementedError for one whose shape does not tell what is there.
    """
    found = [each for each in tree_leaves(value) if isinstance(each, torch.Tensor)]
    for each in found:
        if each.layout is not torch.strided or each.is_nested:
            kind = "nested" if each.is_nested else str(each.layout).removeprefix("torch.")
            raise NotImplementedError(f"its shape does not tell what a tensor holds ({kind})")
    return found


def _once(tensors: Iterable[torch.Tensor]) -> list[torch.Tensor]:
    return list({(each.data_ptr(), each.shape, each.stride()): each for each in tensors}.values())


# -- all operations ----------------------------------------------------------------------------------------------------


def _fused(calls: Counter[Call], least: int) -> Counter[Call]:
    """A compiled step: its products, and all else as one operation that moves what of `least` the products do not."""
    products = Counter({call: times for call, times in calls.items() if call.is_product})
    moved_by_them = sum(call.bytes * times for call, times in products.items())
    rest = [(call.dtype, call.flops * times) for call, times in calls.items() if not call.is_product]
    flops, size = sum(each for _, each in rest), max(0, least - moved_by_them)
    return products + Counter({Call("fused", flops, size, False, _most(rest)): 1})


def _most(flops: Iterable[tuple[str | None, int]]) -> str | None:
    """The number format of most FLOPs; None where there are none."""
    totals: Counter[str | None] = Counter()
    for dtype, count in flops:
        totals[dtype] += count
    return max(totals, key=lambda each: totals[each]) if totals.total() else None


def _told(calls: Counter[Call], own: str) -> Iterator[dict[str, Any]]:
    """One entry for each kind of call, the costliest ones first; calls that are alike are added up. own: the point's
    number format, which is not told; fp32 is that of a tf32 point's tensors."""
    same = {None, own, "fp32" if own == "tf32" else own}
    kinds = [
        Operation(
            call.name if times == 1 else f"{call.name} x{times}", call.flops * times, call.bytes * times,
            None if call.dtype in same else call.dtype,
        )
        for call, times in calls.items() if call.flops or call.bytes
    ]  # fmt: skip
    kinds.sort(key=lambda each: (-each.bytes, -each.flops, each.name))
    yield from (each.facts() for each in kinds[:MOST_OPERATIONS])
    if rest := kinds[MOST_OPERATIONS:]:
        dtype = _most((each.dtype, each.flops) for each in rest)
        yield Operation("others", sum(each.flops for each in rest), sum(each.bytes for each in rest), dtype).facts()
