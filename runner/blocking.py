"""Calls in which the host waits for the device: timed one by one, without a profiler."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import torch

from runner.clock import Clock

_TENSOR = ("item", "tolist", "cpu", "numpy", "nonzero", "__bool__", "__float__", "__int__", "__index__")


def _places() -> list[tuple[Any, str, str]]:
    """Owner, attribute and printed name of every synchronizing call that Python code can make."""
    return [
        *((torch.Tensor, name, f"Tensor.{name}") for name in _TENSOR),
        (torch, "nonzero", "torch.nonzero"),
        (torch, "equal", "torch.equal"),
        (torch.cuda, "synchronize", "torch.cuda.synchronize"),
        (torch.cuda.Stream, "synchronize", "Stream.synchronize"),
        (torch.cuda.Event, "synchronize", "Event.synchronize"),
    ]


class BlockingCalls:
    """Watches the synchronizing calls while `watched` is entered: how often each is made, and the time inside them.

    A call made inside another counts once. `before` runs ahead of each call, its own time left out: a synchronize
    there shows what the call costs when nothing is pending. `kind`: of the device that may be waited for; a call that
    speaks of tensors elsewhere alone (Adam's counters on the host, say) waits for nothing and is left out.
    """

    def __init__(self, clock: Clock, before: Callable[[], Any] | None = None, kind: str | None = None) -> None:
        self.clock, self.before, self.kind = clock, before, kind
        self.inside_ns = 0
        self.counts: Counter[str] = Counter()
        self._busy = False

    @contextlib.contextmanager
    def watched(self) -> Iterator[BlockingCalls]:
        """Replace the calls by watched ones, and put them back."""
        originals = [(owner, name, owner.__dict__.get(name), getattr(owner, name)) for owner, name, _ in _places()]
        for (owner, name, _, original), (_, _, label) in zip(originals, _places(), strict=True):
            setattr(owner, name, self._watch(original, label))
        try:
            yield self
        finally:
            for owner, name, own, _ in originals:
                if own is None:
                    delattr(owner, name)
                else:
                    setattr(owner, name, own)

    def _watch(self, original: Callable[..., Any], label: str) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            if self._busy or self._is_elsewhere(args):
                return original(*args, **kwargs)
            self._busy = True
            try:
                return self._timed(original, label, args, kwargs)
            finally:
                self._busy = False

        return call

    def _is_elsewhere(self, args: Any) -> bool:
        """Whether a call speaks of tensors, none of which is on the device."""
        kinds = {each.device.type for each in args if isinstance(each, torch.Tensor)}
        return self.kind is not None and bool(kinds) and self.kind not in kinds

    def _timed(self, original: Callable[..., Any], label: str, args: Any, kwargs: Any) -> Any:
        if self.before is not None:
            self.before()
        started = self.clock()
        try:
            return original(*args, **kwargs)
        finally:
            ended = self.clock()
            self.counts[label] += 1
            self.inside_ns += ended - started
