"""Which calls of a program are its steps: those of a module, or those that are marked by hand."""

from __future__ import annotations

import atexit
import contextlib
import logging
import os
import sys
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch.compiler import is_dynamo_compiling
from torch.utils.hooks import RemovableHandle

from runner import tables
from runner.environment import describe
from runner.phases import DATA
from runner.store import Store, new_id
from runner.task import Found
from runner.trace import Event, read_trace
from runner.watching.meter import BETWEEN, Meter, Plan, Seen
from runner.watching.rows import Watched, rows_of
from runner.watching.silence import why_nothing
from runner.watching.stamps import Stamps, Timed, stamps_for

Batch = TypeVar("Batch")
DTYPES = {torch.float32: "fp32", torch.bfloat16: "bf16", torch.float16: "fp16"}
_NOTHING: AbstractContextManager[object] = contextlib.nullcontext()
_log = logging.getLogger("crossover")
_steps_of = threading.local()
"""Which watch a thread is in a step of: of watched modules inside one another the outermost counts."""


def watch(
    module: torch.nn.Module | None = None,
    *,
    store: str | Path = "outputs/store",
    name: str | None = None,
    skip: int = 20,
    steps: int = 20,
    profiled: int = 5,
    every: int | None = None,
    record_shapes: bool = True,
    memory: Sequence[Any] = (),
    device: torch.device | str | None = None,
) -> Watch:
    """Measure chosen steps of this program and write them to a store.

    With a module every outermost call of it is a step, and calls whose first tensor has another shape are steps of
    another kind. Without one, mark steps by hand: `with w.step():`, or `for batch in w.steps(loader):`.

    store: the folder of the store; name: of the workload, default the module's class or `program`; skip: steps that are
    left out first; steps: how many are timed of each kind, and profiled: how many are then profiled; every: measure
    again when so many steps have gone by, default once; record_shapes: of operators, in the profile; memory: what a
    step reads and changes, `[model, optimizer]`, where its memory is to be told by phase and holder as well: two more
    steps are watched, and on CUDA the allocator's peaks are counted anew; device: where the steps work, default where
    the module's weights lie, else CUDA if the program uses it.

    Raises:
        ValueError: a number, a name or a store that is not allowed.
        TypeError: what is to be watched is no module, or `memory` no list.
    """
    if not isinstance(memory, list | tuple):
        raise TypeError(f"memory={type(memory).__name__}: allowed is a list; for example memory=[model, optimizer].")
    plan = Plan(skip, steps, profiled, every, record_shapes, tuple(memory))
    if module is not None and not isinstance(module, torch.nn.Module):
        raise TypeError(
            f"watch({type(module).__name__}): allowed is a torch.nn.Module; mark other steps by hand: w.step()."
        )
    if name is not None and (not isinstance(name, str) or name in ("", DATA, BETWEEN) or not _is_text(name)):
        raise ValueError(f"name={name!r}: allowed is any other word; for example name='train'.")
    if isinstance(store, str) and (not store.strip() or "\0" in store):
        raise ValueError(f"store={store!r}: allowed is the path of a folder; for example store='outputs/store'.")
    return Watch(plan, module, Path(store), name, None if device is None else torch.device(device))


class Watch:
    """A program that is watched. Ends when all is measured, with `close`, as a context manager, or with the program."""

    def __init__(
        self, plan: Plan, module: torch.nn.Module | None, store: Path, name: str | None, device: torch.device | None
    ) -> None:
        self.runs: list[str] = []
        """Ids of the runs that were written."""
        self.closed = self._closing = False
        self._plan, self._store = plan, Store(store)
        self._is_module = module is not None
        self._device = device
        self._watched = Watched(
            name or _name(module), _dtype(module), not self._is_module, plan.skip, new_id(), datetime.now(UTC)
        )
        self._idle = plan.skip + 1
        self._timed: list[Timed] = []
        self._failed = False
        self._meter: Meter | None = None
        self._thread: threading.Thread | None = None
        self._own = threading.local()
        self._process = os.getpid()
        self._depth = 0
        self._marked = _Step(self)
        self._module = module
        self._behind: RemovableHandle | None = None
        self._before = (
            None if module is None else module.register_forward_pre_hook(_Before(self), prepend=True, with_kwargs=True)
        )
        atexit.register(self._close)

    def __enter__(self) -> Watch:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def step(self, kind: str = "") -> AbstractContextManager[object]:
        """A step of the program, for `with`. What lies between two of them is the wait for the next input."""
        if is_dynamo_compiling():
            return _NOTHING
        self._idle -= 1
        if self._idle > 0:
            return _NOTHING
        self._marked.kind = kind
        return self._marked

    def steps(self, batches: Iterable[Batch], kind: str = "") -> Iterator[Batch]:
        """The batches of a loader. Each pass of the loop's body is a step; asking for the next batch is the wait."""
        for batch in batches:
            with self.step(kind):
                yield batch

    def close(self) -> None:
        """Write what was measured and leave the program as it was.

        On another thread than that of the steps, while the profiler runs: at the next mark of that thread.
        """
        if self.closed:
            return
        thread, meter = self._thread, self._meter
        if meter is not None and meter.is_out_of_reach and thread is not None and thread.is_alive():
            self._closing = True
            return
        self._close()

    def _close(self) -> None:
        if self.closed:
            return
        self.closed = True
        calls = self._plan.skip + 1 - self._idle
        self._detach()
        meter, self._meter = self._meter, None
        if os.getpid() != self._process:
            return
        if meter is not None:
            self._safely(lambda: self._write(meter))
        if not self.runs and not self._failed:
            with contextlib.suppress(Exception):
                _say(why_nothing(self._watched.name, self._is_module, self._plan.skip, calls, self._timed))
        self._timed = []

    # -- what the marks call -------------------------------------------------------------------------------------------

    def _begin(self, kind: Callable[[], str]) -> None:
        if self.closed or not self._enters():
            return
        self._safely(lambda: self._measured_begin(kind))

    def _end(self, broken: bool) -> None:
        if not self._leaves():
            return
        if self._meter is not None:
            meter = self._meter
            self._safely(lambda: meter.end(broken))
            if self._closing:
                self._close()

    def _enters(self) -> bool:
        """Whether a step begins: on the thread whose steps are measured (not in a fork of it), in no other step, and in
        no CUDA graph."""
        if self._thread is None:
            self._thread = threading.current_thread()
        if not self._is_own_thread() or os.getpid() != self._process:
            return False
        owner: Watch | None = getattr(_steps_of, "owner", None)
        if owner is not None and not owner.closed:
            self._depth += owner is self
            return False
        if _captures():
            return False
        _steps_of.owner, self._depth = self, 1
        return True

    def _is_own_thread(self) -> bool:
        """The thread itself and not its number, which the next one may have."""
        return threading.current_thread() is self._thread

    def _leaves(self) -> bool:
        """Whether a step ends: not that of a call inside it."""
        if not self._is_own_thread() or getattr(_steps_of, "owner", None) is not self:
            return False
        self._depth -= 1
        if self._depth > 0:
            return False
        _steps_of.owner = None
        return True

    def _measured_begin(self, kind: Callable[[], str]) -> None:
        if self._closing:
            _steps_of.owner, self._depth = None, 0
            self._close()
            return
        if self._meter is None:
            between = BETWEEN if self._is_module else DATA
            device = self._device if self._device is not None else _device_of(self._module)  # it may have moved
            self._watched = replace(self._watched, dtype=_dtype(self._module))
            self._own.end = _ThreadEnd(self)
            self._meter = Meter(self._plan, stamps_for(device), self._watched.name, between)
        self._meter.begin(kind())
        if self._meter.done:
            meter, self._meter = self._meter, None
            self._write(meter)
            self._rest()

    def _rest(self) -> None:
        """All is measured: for a while, or for good. The step that begins now is none of those measured."""
        _steps_of.owner, self._depth = None, 0
        self._sleep()
        if self._plan.every is None:
            self.close()
        else:
            self._idle = self._plan.every

    def _wake(self) -> None:
        """Hear of the end of calls as well: an idle watch has no hook for that, since it would cost as much again."""
        if self._module is not None and self._behind is None:
            self._behind = self._module.register_forward_hook(_Behind(self), with_kwargs=True, always_call=True)

    def _sleep(self) -> None:
        if self._behind is not None:
            self._behind.remove()
        self._behind = None

    # -- what must not reach the program -------------------------------------------------------------------------------

    def _safely(self, act: Callable[[], None]) -> None:
        """A failure of measuring is one warning, and ends the watch."""
        try:
            act()
        except Exception as error:
            meter, self._meter, self.closed, self._failed = self._meter, None, True, True
            self._detach()
            if meter is not None:
                with contextlib.suppress(Exception):
                    meter.abandon()
            _warn(f"crossover: watching {self._watched.name} has ended: {type(error).__name__}: {error}")

    def _detach(self) -> None:
        self._idle = 1 << 62
        self._sleep()
        if self._before is not None:
            self._before.remove()
        atexit.unregister(self._close)

    def _write(self, meter: Meter) -> None:
        try:
            seen = meter.finish()
            stamps = meter.stamps
            found = _found(stamps)
            events = _events(seen)
            if not self._store.environment_path(found.environment_id).exists():
                self._store.write_environment(tables.environment_frame(found.columns))
            for run, frame in rows_of(seen, events, stamps, self._watched, found):
                self._store.write_run(run, frame)
                self.runs.append(run.item(0, "run_id"))
            self._timed = [] if self.runs else seen.timed
            _log.info("watched %s: %d runs in %s", self._watched.name, len(self.runs), self._store.folder)
        finally:
            meter.clean()


def _events(seen: Seen) -> list[Event]:
    """Events of the trace. One that was not written (a full disk, say) costs no timed step: its reason is told."""
    if seen.trace is None:
        return []
    try:
        return read_trace(seen.trace.read_bytes())
    except Exception as error:
        seen.reason = f"the trace is not there to be read: {type(error).__name__}: {' '.join(str(error).split())[:200]}"
        seen.trace, seen.profiled_kinds = None, []
        return []


class _ThreadEnd:
    """Lies among what the thread of the steps keeps for itself, and goes with it: a profiler must not outlive it."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch

    def __del__(self) -> None:
        meter = self._watch._meter
        if meter is not None and meter.is_profiling and not meter.is_out_of_reach:
            self._watch._close()


class _Step:
    """A step that is marked by hand, while it is measured."""

    def __init__(self, watch: Watch) -> None:
        self._watch, self.kind = watch, ""

    def __enter__(self) -> None:
        kind = self.kind
        self._watch._begin(lambda: kind)

    def __exit__(self, kind_of_error: type[BaseException] | None, *_: object) -> None:
        self._watch._end(kind_of_error is not None and kind_of_error is not GeneratorExit)


def _found(stamps: Stamps) -> Found:
    """The environment of this process. No other device is asked for: that may break processes that it forks."""
    described = describe(stamps.kind, stamps.index, torch.get_num_threads())
    attributes = {**described.attributes, **_ranks()}
    return Found(stamps.kind, (stamps.kind,), (None,), dict(described.columns), attributes)


def _ranks() -> dict[str, int]:
    """Rank and world size of a distributed program."""
    distributed = torch.distributed
    if not (distributed.is_available() and distributed.is_initialized()):
        return {}
    return {"rank": distributed.get_rank(), "world_size": distributed.get_world_size()}


def _warn(text: str) -> None:
    """Say it once, also where the program has turned warnings into errors."""
    text = " ".join(text.split())
    try:
        warnings.warn(text, RuntimeWarning, stacklevel=2)
    except Warning:
        _log.warning(text)


def _say(text: str) -> None:
    """A line on stderr, where there is one."""
    if sys.stderr is not None:
        print(" ".join(text.split()), file=sys.stderr, flush=True)


# -- modules -----------------------------------------------------------------------------------------------------------


class _Before:
    """Hook in front of a module's forward. A copy of the module, or one from a file, is not watched."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch

    def __call__(self, module: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if is_dynamo_compiling():
            return
        watch = self._watch
        watch._idle -= 1
        if watch._idle <= 0:
            watch._wake()
            watch._begin(lambda: kind_of(args, kwargs))

    def __reduce__(self) -> tuple[Callable[[], object], tuple[()]]:
        return _unwatched, ()


class _Behind(_Before):
    """Hook behind a module's forward; also where that has raised, which then has no output."""

    def __call__(self, module: torch.nn.Module, args: Any, kwargs: Any, output: Any = None) -> None:
        if not is_dynamo_compiling() and self._watch._idle <= 0:
            self._watch._end(output is None)


def _nothing(*_: object) -> None:
    """The hook of a copy."""


def _unwatched() -> object:
    return _nothing


def kind_of(args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    """Kind of a call: shape and dtype of its first tensor, `1x512 int64`. Others grow with every token."""
    first = next((each for each in (*args, *kwargs.values()) if isinstance(each, torch.Tensor)), None)
    if first is None:
        return ""
    return f"{'x'.join(map(str, first.shape)) or 'scalar'} {str(first.dtype).removeprefix('torch.')}"


def _is_text(name: str) -> bool:
    """Whether a profiler takes it as a name: half a surrogate pair is no text."""
    return not any("\ud800" <= each <= "\udfff" for each in name)


def _name(module: torch.nn.Module | None) -> str:
    if module is None:
        return "program"
    inner = getattr(module, "_orig_mod", getattr(module, "module", module))  # compiled, or run on several devices
    return type(inner if isinstance(inner, torch.nn.Module) else module).__name__


def _device_of(module: torch.nn.Module | None) -> torch.device | None:
    first = None if module is None else next(iter(module.parameters()), None)
    return None if first is None else first.device


def _dtype(module: torch.nn.Module | None) -> str | None:
    dtypes = (
        (each.dtype for each in module.parameters() if each.is_floating_point()) if module is not None else iter(())
    )
    first = next(dtypes, None)
    return None if first is None else DTYPES.get(first, str(first).removeprefix("torch."))


def _captures() -> bool:
    """Whether the current stream records a CUDA graph, in which nothing may be waited for."""
    return torch.cuda.is_initialized() and torch.cuda.is_current_stream_capturing()
