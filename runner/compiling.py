"""torch.compile: what it did for a point, read from torch's own records.

Everything here but `seconds` and its like belongs to no stable interface of torch: what a release does not have is None
in the facts and costs no point anything.
"""

from __future__ import annotations

import contextlib
import math
import sys
import types
import weakref
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import torch

if TYPE_CHECKING:
    from runner.point import Point

T = TypeVar("T")

RESUMED = "torch_dynamo_resume_in_"
LONGEST_CODE_BYTES = 2**20
"""Generated code beyond it is not kept: a large model's would be most of a store."""
LONGEST_REASON = 300

_until_forgotten = contextlib.ExitStack()
"""Settings of torch that hold for one point."""

LIMITS = ("recompile limit", "recompile_limit", "cache_size_limit", "FailOnRecompileLimitHit", "RecompileLimitExceeded")
"""Words by which the releases of torch call that they gave up compiling a function again."""


def compiled(function: Callable[..., Any], mode: bool | str, dynamic: bool | None) -> Callable[..., Any]:
    """The function under torch.compile; unchanged with mode False.

    Fused CPU kernels are made to appear in profiles by name; torch leaves them out otherwise.
    """
    if mode is False:
        return function
    from torch._inductor import config

    config.cpp.enable_kernel_profile = True
    done = torch.compile(function, mode=None if mode is True else mode, dynamic=dynamic)
    _watch()
    return done


def of_point(point: Point, function: Callable[..., Any]) -> Callable[..., Any]:
    """The function compiled as the point says."""
    dynamic = None if isinstance(point.dynamic, str) else point.dynamic
    return compiled(function, point.compile, dynamic)


def apart(point: Point, function: Callable[..., Any]) -> Callable[..., Any]:
    """The same, compiled on its own: what a point's step has compiled knows nothing of it."""
    return function if point.compile is False else of_point(point, separate(function))


def mark_static(inputs: Iterable[Any]) -> None:
    """Promise that these tensors stay where they are, so that a CUDA graph reads them there and copies nothing.

    Until `forget`, torch's cache of functions is off: it takes one compiled without the promise for one with it, and
    would copy the inputs all the same (seen with 2.11). The cache of graphs tells them apart.
    """
    for each in inputs:
        if isinstance(each, torch.Tensor):
            torch._dynamo.mark_static_address(each)
    with contextlib.suppress(Exception):
        _until_forgotten.enter_context(torch._functorch.config.patch(enable_autograd_cache=False))


def separate(function: Callable[..., Any]) -> Callable[..., Any]:
    """A copy with a code object of its own, so that compiling it for another size leaves the original's cache alone."""
    assert isinstance(function, types.FunctionType)
    code = function.__code__.replace(co_name=f"{function.__name__}_floor")
    return types.FunctionType(code, function.__globals__, code.co_name, function.__defaults__, function.__closure__)


def forget() -> None:
    """Empty torch's compile caches and counters in this process: one point's compilations never serve the next."""
    _until_forgotten.close()
    if "torch._dynamo" in sys.modules:  # importing it takes seconds, and nothing was compiled without it
        torch._dynamo.reset()
        forget_counters()


def forget_counters() -> None:
    """Count compilations anew, keeping compiled code."""
    from torch._dynamo import utils

    utils.counters.clear()
    utils.clear_compilation_metrics()
    _graphs.clear()


def facts() -> dict[str, Any]:
    """What was compiled since `forget`: facts.compile of docs/store.md.

    `code` holds the generated files themselves (file_name, graph_hash, source_text); the store keeps them by their ids.
    """
    from torch._dynamo import utils

    records = utils.get_compilation_metrics()
    named = [each for each in records if getattr(each, "co_name", None)]
    frames = [each for each in named if getattr(each, "is_forward", None) is not False]
    inductor, autograd = utils.counters["inductor"], utils.counters["aot_autograd"]
    return {
        "seconds": sum(getattr(each, "entire_frame_compile_time_s", None) or 0.0 for each in frames),
        "compilations": len(frames),
        "reasons": [each.recompile_reason for each in frames if getattr(each, "recompile_reason", None)],
        "graph_breaks": sum(str(each.co_name).startswith(RESUMED) for each in frames),
        "cache_hits": inductor.get("fxgraph_cache_hit", 0) + autograd.get("autograd_cache_hit", 0),
        "frames": [_frame(each) for each in frames],
        "break_reasons": dict(_counted_breaks(utils.counters["graph_break"])),
        "limit_reached": _limit_reached(records, utils.counters),
        "guards": _known(lambda: dict(_guards({str(each.compile_id) for each in frames}))),
        "cudagraph_skips": inductor.get("cudagraph_skips", 0),
        **(_known(lambda: _graph_facts(_graphs, records)) or {}),
    }


def frame_ids() -> list[str]:
    """Ids of the frames that were compiled since `forget`, as facts.compile names them."""
    from torch._dynamo import utils

    return [str(each.compile_id) for each in utils.get_compilation_metrics() if getattr(each, "co_name", None)]


def limit_reached() -> bool:
    """Whether a function was compiled as often as torch allows, so that calls of it run eager from then on."""
    from torch._dynamo import utils

    return _limit_reached(utils.get_compilation_metrics(), utils.counters)


# -- what dynamo tells -------------------------------------------------------------------------------------------------


def _known(ask: Callable[[], T]) -> T | None:
    """An answer, None where this torch has none: whatever it raises is no fault of the point."""
    try:
        return ask()
    except Exception:
        return None


def _frame(record: Any) -> dict[str, Any]:
    return {
        "frame": getattr(record, "compile_id", None),
        "name": record.co_name,
        "seconds": getattr(record, "entire_frame_compile_time_s", None),
        "reason": getattr(record, "recompile_reason", None),
        "guards": getattr(record, "guard_count", None),
    }


def _counted_breaks(counts: Mapping[str, int]) -> Counter[str]:
    """Reason in one line -> graph breaks; reasons that begin alike count together."""
    found: Counter[str] = Counter()
    for reason, count in counts.items():
        found[_line(reason)] += count
    return found


def _line(text: object) -> str:
    return " ".join(str(text).split())[:LONGEST_REASON]


def _limit_reached(records: Iterable[Any], counters: Mapping[str, Mapping[str, int]]) -> bool:
    """Whether a function was compiled as often as torch allows, so that it runs eager from then on."""
    told = [f"{getattr(each, 'fail_type', '')} {getattr(each, 'fail_reason', '')}" for each in records]
    told += [str(reason) for name in ("unimplemented", "graph_break") for reason in counters[name]]
    return any(word in text for text in told for word in LIMITS)


def _guards(frames: Collection[str]) -> Counter[str]:
    """Kind -> guards that every call of these frames (ids such as 0/0) has to pass."""
    from torch._dynamo import convert_frame
    from torch._dynamo.eval_frame import _debug_get_cache_entry_list

    codes = (seen() for seen in convert_frame.input_codes.seen)
    entries = (entry for code in codes if code is not None for entry in _debug_get_cache_entry_list(code))
    roots = [entry.guard_manager.root for entry in entries if str(entry.compile_id) in frames]
    guards = [guard for root in roots for guard in _guards_below(root)]
    return Counter(type(guard).__name__ for guard in {id(guard): guard for guard in guards}.values())


def _guards_below(manager: Any) -> Iterator[Any]:
    """Guards of one manager and of all below it. One that compares several inputs comes once for each of them."""
    yield from manager.get_leaf_guards()
    children = list(manager.get_child_managers())
    if hasattr(manager, "get_key_value_managers"):
        children += [each for pair in manager.get_key_value_managers().values() for each in pair if each is not None]
    for child in children:
        yield from _guards_below(child)
    if hasattr(manager, "get_epilogue_lambda_guards"):
        yield from manager.get_epilogue_lambda_guards()


# -- what inductor tells -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Graph:
    """A graph that inductor has finished. copied: bytes of each input that a CUDA graph copies at every call (None
    where its size varies); None without a CUDA graph. The graph itself belongs to the point and ends with it."""

    graph: weakref.ref[Any]
    copied: Sequence[int | None] | None


_graphs: list[_Graph] = []


def _watch() -> None:
    """Have torch call `_note_graphs` when it compiles. Importing inductor here instead would shorten the first call."""
    with contextlib.suppress(Exception):
        from torch._dynamo.callback import callback_handler

        if _note_graphs not in callback_handler.start_callbacks:
            callback_handler.register_start_callback(_note_graphs)


def _note_graphs(*_: Any) -> None:
    """Keep every graph in mind from now on, made anew or taken from a cache: `post_compile` is called for both."""
    with contextlib.suppress(Exception):
        from torch._inductor.output_code import CompiledFxGraph

        original = CompiledFxGraph.post_compile
        if _is_watched(original):
            return

        def post_compile(graph: Any, inputs: Any, *arguments: Any, **named: Any) -> Any:
            sizes = _known(lambda: [_bytes_on_cuda(each) for each in inputs])
            done = original(graph, inputs, *arguments, **named)
            copied = _known(lambda: _copied(graph, sizes, (*arguments, *named.values())))
            _graphs.append(_Graph(weakref.ref(graph), copied))
            return done

        owner: Any = CompiledFxGraph
        owner.post_compile = post_compile


UNSIZED = -1


def _bytes_on_cuda(value: Any) -> int | None:
    """Bytes of a tensor on a CUDA device, UNSIZED where its shape varies; None of anything else."""
    if not isinstance(value, torch.Tensor) or value.device.type != "cuda":
        return None
    fixed = all(type(each) is int for each in value.shape)
    return math.prod(value.shape) * value.element_size() if fixed else UNSIZED


def _copied(graph: Any, sizes: list[int | None] | None, arguments: Iterable[Any]) -> list[int | None] | None:
    """Bytes of the inputs without a fixed address, where a CUDA graph replays the step."""
    switches = [each.get("cudagraphs") if isinstance(each, dict) else each for each in arguments]
    if sizes is None or not any(type(each).__name__ == "BoxedBool" and bool(each) for each in switches):
        return None
    static = set(graph.fx_kwargs["static_input_idxs"] or ())
    moving = [size for place, size in enumerate(sizes) if size is not None and place not in static]
    return [None if size == UNSIZED else size for size in moving]


def _graph_facts(graphs: Sequence[_Graph], records: Iterable[Any]) -> dict[str, Any]:
    """Of the graphs that the point still runs. Without any, what inductor did is not known: nothing is said of it."""
    alive = [graph for each in graphs if (graph := each.graph()) is not None]
    if not alive:
        return {"code": [] if _is_watching() else None}  # a torch without this class raises: the key is missing
    return {
        "graph_hashes": [_hash(graph) for graph in alive if _hash(graph)],
        "cudagraph_skip_reasons": _skip_reasons(alive, records),
        **_copies([each.copied for each in graphs if each.copied is not None]),
        **_files([each for graph in alive if (each := _code(graph))]),
    }


def _is_watching() -> bool:
    from torch._inductor.output_code import CompiledFxGraph

    return _is_watched(CompiledFxGraph.post_compile)


def _is_watched(method: Callable[..., Any]) -> bool:
    return getattr(method, "__module__", "") == __name__


def _copies(copied: Sequence[Sequence[int | None]]) -> dict[str, int | None]:
    """Inputs that CUDA graphs copy at every call, and their bytes; both None without a CUDA graph."""
    sizes = [size for each in copied for size in each]
    known = [size for size in sizes if size is not None]
    return {
        "cudagraph_copies": len(sizes) if copied else None,
        "cudagraph_copied_bytes": sum(known) if copied and len(known) == len(sizes) else None,
    }


def _files(files: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The generated files that are kept, and names and sizes of those that are too long for that."""
    sizes = [len(each["source_text"].encode()) for each in files]
    long = [(each, size) for each, size in zip(files, sizes, strict=True) if size > LONGEST_CODE_BYTES]
    return {
        "code": [each for each, size in zip(files, sizes, strict=True) if size <= LONGEST_CODE_BYTES],
        "code_left_out": [{"file_name": each["file_name"], "bytes": size} for each, size in long],
    }


def _hash(graph: Any) -> str | None:
    """Key of the graph in torch's cache: the one that a trace names at every call."""
    return getattr(graph, "_fx_graph_cache_key", None)


def _skip_reasons(graphs: Iterable[Any], records: Iterable[Any]) -> list[str]:
    """Why no CUDA graph was made where one was asked for, each reason once."""
    told = [getattr(each, "disabled_cudagraphs_reason", None) for each in graphs]
    for each in graphs:
        told += getattr(getattr(each, "cudagraph_info", None), "cudagraph_fail_reasons", None) or ()
    told += [getattr(each, "cudagraph_skip_reason", None) for each in records]
    return list(dict.fromkeys(_line(each) for each in told if each))


def _code(graph: Any) -> dict[str, Any] | None:
    """The Python file that inductor wrote for a graph, its kernels included; None where this torch keeps none."""
    text, key = getattr(graph, "source_code", None), getattr(graph, "cache_key", None)
    return {"file_name": f"{key}.py", "graph_hash": _hash(graph), "source_text": text} if text and key else None
