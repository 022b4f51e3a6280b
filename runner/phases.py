"""Phases of a step: named ranges inside it, which cost a step nothing while nobody listens.

    with phase("forward"):
        loss = model(x)

In the profiled window a phase is a `record_function` range (and an NVTX range where `nvtx` asks for it); while memory
is watched it is the span whose peak is taken; in the passes that take times it is nothing at all. Code under
torch.compile never sees a phase: put phases round what is compiled, not into it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager

from torch.compiler import is_compiling

Listener = Callable[[str], AbstractContextManager[object]]
"""Given a phase's name, what is entered where it begins and left where it ends."""

FORWARD, BACKWARD, OPTIMIZER, DATA = "forward", "backward", "optimizer", "data"

_NOBODY: AbstractContextManager[object] = contextlib.nullcontext()
_listener: Listener | None = None


def phase(name: str) -> AbstractContextManager[object]:
    """A range of the running step, for `with`. It may hold others."""
    if is_compiling() or _listener is None:
        return _NOBODY
    return _listener(str(name).encode(errors="backslashreplace").decode())  # a program that runs unheard runs heard


@contextlib.contextmanager
def heard(*listeners: Listener) -> Iterator[None]:
    """Phases are told to these listeners, the first outermost, until the block ends."""
    global _listener
    before = _listener
    _listener = listeners[0] if len(listeners) == 1 else lambda name: _all(name, listeners)
    try:
        yield
    finally:
        _listener = before


@contextlib.contextmanager
def _all(name: str, listeners: tuple[Listener, ...]) -> Iterator[None]:
    with contextlib.ExitStack() as stack:
        for each in listeners:
            stack.enter_context(each(name))
        yield
