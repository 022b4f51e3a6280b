"""torch.compile: what it did for a point, read from torch's own records."""

from __future__ import annotations

import sys
import types
from collections.abc import Callable
from typing import Any

import torch

RESUMED = "torch_dynamo_resume_in_"


def compiled(function: Callable[..., Any], mode: bool | str, dynamic: bool | None) -> Callable[..., Any]:
    """The function under torch.compile; unchanged with mode False.

    Fused CPU kernels are made to appear in profiles by name; torch leaves them out otherwise.
    """
    if mode is False:
        return function
    from torch._inductor import config

    config.cpp.enable_kernel_profile = True
    return torch.compile(function, mode=None if mode is True else mode, dynamic=dynamic)


def separate(function: Callable[..., Any]) -> Callable[..., Any]:
    """A copy with a code object of its own, so that compiling it for another size leaves the original's cache alone."""
    assert isinstance(function, types.FunctionType)
    code = function.__code__.replace(co_name=f"{function.__name__}_floor")
    return types.FunctionType(code, function.__globals__, code.co_name, function.__defaults__, function.__closure__)


def forget() -> None:
    """Empty torch's compile caches and counters in this process: one point's compilations never serve the next."""
    if "torch._dynamo" in sys.modules:  # importing it takes seconds, and nothing was compiled without it
        torch._dynamo.reset()
        forget_counters()


def forget_counters() -> None:
    """Count compilations anew, keeping compiled code."""
    from torch._dynamo import utils

    utils.counters.clear()
    utils.clear_compilation_metrics()


def facts() -> dict[str, Any]:
    """What was compiled since `forget`: seconds, compilations, reasons of recompiling, graph breaks, cache hits."""
    from torch._dynamo import utils

    records = [each for each in utils.get_compilation_metrics() if getattr(each, "co_name", None)]
    frames = [each for each in records if getattr(each, "is_forward", None) is not False]
    inductor, autograd = utils.counters["inductor"], utils.counters["aot_autograd"]
    return {
        "seconds": sum(getattr(each, "entire_frame_compile_time_s", None) or 0.0 for each in frames),
        "compilations": len(frames),
        "reasons": [each.recompile_reason for each in frames if getattr(each, "recompile_reason", None)],
        "graph_breaks": sum(str(each.co_name).startswith(RESUMED) for each in frames),
        "cache_hits": inductor.get("fxgraph_cache_hit", 0) + autograd.get("autograd_cache_hit", 0),
    }
