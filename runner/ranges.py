"""Ranges of the profiled window: phases, and with `nvtx` NVTX ranges of phases, modules and operators.

A range is what torch.profiler shows as an annotation (`record_function`) and Nsight Systems as an NVTX range; that of a
module is both. torch's own NVTX ranges of operators (`torch.autograd.profiler.emit_nvtx`) and torch.profiler exclude
each other, so that `nvtx=ops` needs `profiler=nsys`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from typing import Any

import torch
from torch.nn.modules import module as hooks
from torch.profiler import record_function

from runner.phases import Listener, heard
from runner.task import Recorder

Span = Callable[[str], AbstractContextManager[object]]


def nvtx_span() -> Span | None:
    """What makes an NVTX range: torch's own with CUDA, else the package `nvtx`; None where there is neither."""
    if torch.cuda.is_available():
        return torch.cuda.nvtx.range
    try:
        import nvtx
    except ImportError:
        return None
    return lambda name: nvtx.annotate(name)


def module_names(arguments: Iterable[Any]) -> dict[torch.nn.Module, str]:
    """Modules among the arguments of a step, and those inside them, with name and class, as in `layers.0 (Mlp)`."""
    return {
        module: f"{name} ({type(module).__name__})" if name else type(module).__name__
        for each in arguments
        if isinstance(each, torch.nn.Module)
        for name, module in each.named_modules()
    }


@contextlib.contextmanager
def ranges(recorder: Recorder, names: Mapping[torch.nn.Module, str], compiled: bool) -> Iterator[None]:
    """Phases are ranges until the block ends; modules and operators as well where `recorder.nvtx` asks for them.

    names: of modules (see `module_names`); others go by their class. compiled: what torch.compile has fused has no
    modules any more, and hooks would make it compile again, so that modules get no range.
    """
    emitted = recorder.nvtx == "ops" and recorder.tool == "nsys" and torch.cuda.is_available()
    span = nvtx_span() if recorder.nvtx and not emitted else None  # torch itself emits what is recorded as a function
    spans: list[Listener] = [record_function, *([span] if span else [])]
    with contextlib.ExitStack() as stack:
        stack.enter_context(heard(*spans))
        if recorder.nvtx in ("modules", "ops") and not compiled:
            stack.enter_context(_modules_in(spans, names))
        if emitted:
            stack.enter_context(torch.autograd.profiler.emit_nvtx(record_shapes=recorder.record_shapes))
        yield


@contextlib.contextmanager
def _modules_in(spans: Iterable[Span], names: Mapping[torch.nn.Module, str]) -> Iterator[None]:
    """Every module's forward call is a range, until the block ends."""
    entered: list[contextlib.ExitStack] = []

    def begin(module: torch.nn.Module, _: Any) -> None:
        stack = contextlib.ExitStack()
        for each in spans:
            stack.enter_context(each(names.get(module, type(module).__name__)))
        entered.append(stack)

    def end(*_: Any) -> None:
        if entered:
            entered.pop().close()

    handles = [
        hooks.register_module_forward_pre_hook(begin),
        hooks.register_module_forward_hook(end, always_call=True),
    ]
    try:
        yield
    finally:
        for each in handles:
            each.remove()
