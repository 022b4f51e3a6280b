"""Who holds memory, phase by phase: a step run once more while the profiler tells every allocation.

An allocation is a block: an address, its bytes, and when it was given out and given back. Whose it is:
`parameters` (buffers too), `gradients`, `optimizer_state` and `inputs` are the storages of what the step is called
with, looked at wherever a phase begins or ends, each storage once, however many tensors share it. Of the rest,
`activations` are the blocks that the step has made when backward begins and that live on into it (the loss among
them); `temporaries` are all others that the step makes, its result among them; `other` is what was there before the
step and belongs to nothing that it is called with. Backward begins with the phase of that name, else with the first
function that autograd evaluates. Gradients that no phase's end has seen are temporaries: put `phase` round backward.

On CUDA the bytes of a phase are the allocator's own counters, which count whole blocks (multiples of 512 bytes; a
block of more than 1 MiB may be larger than what was asked for). The CPU's allocator has no counters: there the sum of
the holders is what is known, and the profiler's own running total checks its changes. What libraries allocate for
themselves, without torch, is seen by neither.
"""

from __future__ import annotations

import functools
import json
import math
import tempfile
import types
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile, record_function

from runner.phases import BACKWARD, heard

STEP = "step"
HOLDERS = ("parameters", "gradients", "optimizer_state", "inputs", "activations", "temporaries", "other")
"""From the one that claims a storage first."""
PARAMETERS, GRADIENTS, OPTIMIZER_STATE, INPUTS, ACTIVATIONS, TEMPORARIES, OTHER = HOLDERS
METHOD = "the profiler's memory events, storages of the step's arguments, {counters}"
CLOSE_FRAC = 0.01
ROUNDED_BYTES = 512
MOST_VISITED = 200_000
DEEPEST = 40
_MARK = "crossover: memory "
_EVALUATES = "autograd::engine::evaluate_function"
_DEVICE_TYPES = {"cpu": 0, "cuda": 1}
"""c10's numbers of the kinds of device."""

Owned = dict[int, tuple[str, int]]
"""Address of a storage -> its holder, and its bytes."""


# -- what the step is called with --------------------------------------------------------------------------------------


def owned(roots: Iterable[Any], kind: str) -> Owned:
    """Storages on a kind of device of all tensors that can be reached: in modules and optimizers, containers, the
    attributes of objects, what functions close over."""
    walk = _Walk(kind)
    for each in roots:
        walk.visit(each, INPUTS, 0)
    return walk.found


def holds_module(roots: Iterable[Any]) -> bool:
    """Whether a module or an optimizer is among them: without one, inputs and temporaries are all there is. Objects
    that cannot be looked at hold none."""
    walk = _Walk("")
    try:
        for each in roots:
            walk.visit(each, INPUTS, 0)
    except Exception:  # a user's attributes may raise anything
        return False
    return walk.modules > 0


class _Walk:
    """One look at everything that can be reached, each object once; beyond MOST_VISITED objects it ends."""

    def __init__(self, kind: str) -> None:
        self.kind, self.modules = kind, 0
        self.found: Owned = {}
        self._seen: dict[int, Any] = {}  # the objects themselves: an id is another's as soon as its object is gone

    def visit(self, value: Any, holder: str, depth: int) -> None:
        """Whatever it is, and what is in it."""
        if value is None or isinstance(value, str | bytes | int | float | complex | type | types.ModuleType):
            return
        if id(value) in self._seen or depth > DEEPEST or len(self._seen) > MOST_VISITED:
            return
        self._seen[id(value)] = value
        if isinstance(value, torch.Tensor):
            self._tensor(value, holder)
        elif isinstance(value, torch.nn.Module):
            self._module(value)
        elif isinstance(value, torch.optim.Optimizer):
            self._optimizer(value, depth)
        else:
            inside = OPTIMIZER_STATE if isinstance(value, torch.amp.GradScaler) else holder
            for each in _parts(value):
                self.visit(each, inside, depth + 1)

    def _module(self, module: torch.nn.Module) -> None:
        self.modules += 1
        for each in (*module.parameters(), *module.buffers()):
            self._tensor(each, PARAMETERS)

    def _optimizer(self, optimizer: torch.optim.Optimizer, depth: int) -> None:
        self.modules += 1
        for group in optimizer.param_groups:
            for each in group["params"]:
                self._tensor(each, PARAMETERS)
        for state in list(optimizer.state.values()):
            self.visit(state, OPTIMIZER_STATE, depth + 1)

    def _tensor(self, tensor: torch.Tensor, holder: str) -> None:
        if tensor.is_leaf and tensor.grad is not None:
            self._tensor(tensor.grad, GRADIENTS)
        if hasattr(tensor, "__tensor_flatten__"):  # a tensor made of others, as 8-bit states are
            for name in tensor.__tensor_flatten__()[0]:
                self._tensor(getattr(tensor, name), holder)
        elif tensor.device.type == self.kind and tensor.layout == torch.strided:
            self._storage(tensor.untyped_storage(), holder)

    def _storage(self, storage: torch.UntypedStorage, holder: str) -> None:
        address, size = storage.data_ptr(), storage.nbytes()
        if size:
            self.found[address] = min((holder, size), self.found.get(address, (OTHER, 0)), key=_claim)


def _claim(owner: tuple[str, int]) -> int:
    return HOLDERS.index(owner[0])


def _parts(value: Any) -> Iterable[Any]:
    """What an object holds. Of a compiled function that is the function: the compiler's own objects are no inputs."""
    if isinstance(original := getattr(value, "_torchdynamo_orig_callable", None), Callable):  # type: ignore[arg-type]
        return (original,)
    if isinstance(value, Mapping):
        return list(value.values())
    if isinstance(value, list | tuple | set | frozenset):
        return value
    if isinstance(value, types.FunctionType):
        return _closed_over(value)
    if isinstance(value, types.MethodType):
        return (value.__self__, value.__func__)
    if isinstance(value, functools.partial):
        return (value.func, value.args, value.keywords)
    slots = [getattr(value, name, None) for each in type(value).__mro__ for name in _slots(each)]
    return [*slots, *getattr(value, "__dict__", {}).values()]


def _slots(kind: type) -> Iterable[str]:
    slots = vars(kind).get("__slots__", ())
    return (slots,) if isinstance(slots, str) else slots


def _closed_over(function: types.FunctionType) -> list[Any]:
    cells = []
    for cell in function.__closure__ or ():
        try:
            cells.append(cell.cell_contents)
        except ValueError:  # not filled yet
            continue
    return [*cells, *(function.__defaults__ or ())]


# -- the pass ----------------------------------------------------------------------------------------------------------


@dataclass
class Span:
    """A phase that has been entered. before, behind: what the arguments owned then; start, end, peak: bytes by the
    allocator's own counters, None where it has none; begin_us, end_us: on the profiler's clock."""

    name: str
    parent: int | None
    before: Owned
    behind: Owned = field(default_factory=dict)
    start: int | None = None
    end: int | None = None
    peak: int | None = None
    begin_us: float = math.nan
    end_us: float = math.nan


class PhaseMemory:
    """Watches the memory of a step, in a profiler session of its own:

        memory = PhaseMemory((function, *arguments), torch.device("cuda", 0))
        with memory, heard(memory.listener):
            for _ in range(2):
                with memory.listener("step"):
                    function(*arguments)
        memory.facts()

    Two steps, of which the last is told: the CPU's profiler does not tell when blocks from before its session are
    given back, and the gradients of the step before are such. On CUDA it counts the allocator's peaks anew.
    """

    def __init__(self, arguments: Iterable[Any], device: torch.device) -> None:
        self._roots = tuple(arguments)
        self._kind = device.type
        self._index = device.index if device.index is not None or self._kind == "cpu" else torch.cuda.current_device()
        self._spans: list[Span] = []
        self._open: list[int] = []
        self._events: list[dict[str, Any]] = []
        self._block_bytes: dict[int, int] = {}

    def __enter__(self) -> PhaseMemory:
        self._profile = profile(activities=[ProfilerActivity.CPU], profile_memory=True)
        self._profile.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self._profile.__exit__(*error)
        if error[0] is None:
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / "memory.json"
                self._profile.export_chrome_trace(str(path))
                self._events = json.loads(path.read_bytes())["traceEvents"]
        del self._profile

    @contextmanager
    def listener(self, name: str) -> Iterator[None]:
        """A phase, for `runner.phases.heard`; the step itself is the phase `step`, entered round it."""
        self._count()
        parent = self._open[-1] if self._open else None
        number, span = len(self._spans), Span(name, parent, owned(self._roots, self._kind))
        if parent is None and self._kind == "cuda":
            self._block_bytes = _block_bytes()
        span.start = span.peak = self._allocated()
        self._spans.append(span)
        self._open.append(number)
        try:
            with record_function(f"{_MARK}{number}"):
                yield
                span.behind = owned(self._roots, self._kind)
        finally:
            self._count()
            span.end = self._allocated()
            self._open.remove(number)

    def facts(self) -> dict[str, Any]:
        """facts.phase_memory and facts.memory_sums of the last step. Raises ValueError without one."""
        self._place_spans()
        steps = [number for number, each in enumerate(self._spans) if each.parent is None]
        if not steps or math.isnan(self._spans[steps[-1]].end_us):
            raise ValueError("no step was seen")
        spans = self._spans[steps[-1] :]
        first = steps[-1]
        story = _Story(self._memory_events(), spans, self._backward_us(spans), self._block_bytes)
        told = [story.of(span) for span in spans]
        phases = [
            {
                "phase": span.name,
                "parent": None if span.parent is None else spans[span.parent - first].name,
                "order": order,
                "start_bytes": each.start if span.start is None else span.start,
                "end_bytes": each.end if span.end is None else span.end,
                "peak_bytes": each.peak if span.peak is None else span.peak,
                "holders_at_peak": each.holders_at_peak,
                "holders_at_end": each.holders_at_end,
            }
            for order, (span, each) in enumerate(zip(spans, told, strict=True))
        ]
        return {"phase_memory": phases, "memory_sums": self._sums(spans, told)}

    # -- CUDA's counters -----------------------------------------------------------------------------------------------

    def _allocated(self) -> int | None:
        return torch.cuda.memory_allocated(self._index) if self._kind == "cuda" else None

    def _count(self) -> None:
        """The peak since the last look belongs to every phase that is open; then peaks are counted anew."""
        if self._kind != "cuda":
            return
        peak = torch.cuda.max_memory_allocated(self._index)
        for number in self._open:
            self._spans[number].peak = max(peak, self._spans[number].peak or 0)
        torch.cuda.reset_peak_memory_stats(self._index)

    # -- what the profiler saw -----------------------------------------------------------------------------------------

    def _place_spans(self) -> None:
        for each in self._events:
            name = each.get("name", "")
            if name.startswith(_MARK) and each.get("ph") == "X":
                span = self._spans[int(name.removeprefix(_MARK))]
                span.begin_us, span.end_us = each["ts"], each["ts"] + each["dur"]

    def _memory_events(self) -> list[Change]:
        """Allocations and their ends on the device, in their order."""
        wanted = (_DEVICE_TYPES[self._kind], self._index)
        found = [each for each in self._events if each.get("name") == "[memory]"]
        told = [(each["ts"], each["args"]) for each in found]
        changes = [
            Change(time_us, args["Addr"], args["Bytes"], args["Total Allocated"])
            for time_us, args in sorted(told, key=lambda each: (each[0], each[1].get("Ev Idx", 0)))
            if args["Device Type"] == wanted[0] and (self._kind == "cpu" or args["Device Id"] == wanted[1])
        ]
        if not changes and self._kind == "cpu":  # on CUDA a replayed step may make none, and the counters would tell
            raise ValueError("the profiler saw no allocation")
        return changes

    def _backward_us(self, spans: list[Span]) -> float:
        """When backward begins; never, where there is none."""
        named = [each.begin_us for each in spans if each.name == BACKWARD]
        step = spans[0]
        evaluated = [
            each["ts"]
            for each in self._events
            if each.get("name", "").startswith(_EVALUATES) and step.begin_us <= each["ts"] <= step.end_us
        ]
        return min(named or evaluated, default=math.inf)

    def _sums(self, spans: list[Span], told: list[Told]) -> dict[str, Any]:
        """Sums of the holders against what the allocator counts, the worst of all phases."""
        off = max(
            abs(mine - counted) / max(counted, 1)
            for span, each in zip(spans, told, strict=True)
            for mine, counted in (
                (each.start, each.counted_start if span.start is None else span.start),
                (each.end, each.counted_end if span.end is None else span.end),
                (each.peak, each.counted_peak if span.peak is None else span.peak),
            )
        )
        counters = "CUDA's own counters" if self._kind == "cuda" else "the profiler's own total"
        far = f"the holders' sum is up to {off:.1%} off what the allocator counts" if off > CLOSE_FRAC else None
        return {
            "method": METHOD.format(counters=counters),
            "allocated_bytes": told[0].counted_peak if spans[0].peak is None else spans[0].peak,
            "held_bytes": told[0].peak,
            "off_frac": off,
            "reason": far,
        }


def _block_bytes() -> dict[int, int]:
    """Address -> bytes of all blocks that CUDA's allocator has given out; empty where it does not tell."""
    found: dict[int, int] = {}
    try:
        for segment in torch.cuda.memory_snapshot():
            address = segment["address"]
            for block in segment["blocks"]:
                found[address] = block["size"]
                address += block["size"]
    except Exception:  # another allocator, or another form of the answer
        return {}
    return found


# -- the story of the step's blocks ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Change:
    """Bytes given out (positive) or back at an address; total: what the profiler counts behind it."""

    time_us: float
    address: int
    bytes: int
    total: int


@dataclass
class Block:
    """Memory that was given out at one moment and back at another."""

    bytes: int
    begin_us: float
    end_us: float = math.inf
    holder: str | None = None


@dataclass(frozen=True, slots=True)
class Told:
    """A phase: bytes at its start, end and peak by the holders' sum, and as the profiler counts them."""

    start: int
    end: int
    peak: int
    counted_start: int
    counted_end: int
    counted_peak: int
    holders_at_peak: dict[str, int]
    holders_at_end: dict[str, int]


class _Story:
    """Which blocks live when in a step, and whose they are."""

    def __init__(
        self, changes: list[Change], spans: list[Span], backward_us: float, block_bytes: Mapping[int, int]
    ) -> None:
        self._step, self._changes = spans[0], changes
        self._at: defaultdict[int, list[Block]] = defaultdict(list)
        self._replay(block_bytes)
        for span in spans:
            self._see(span.begin_us, span.before)
            self._see(span.end_us, span.behind)
        self._blocks = [block for blocks in self._at.values() for block in blocks]
        for block in self._blocks:
            block.holder = block.holder or self._rest(block, backward_us)
        at_start = [each for each in self._blocks if each.begin_us < self._step.begin_us < each.end_us]
        unseen = 0 if self._step.start is None else self._step.start - sum(each.bytes for each in at_start)
        if unseen > 0:
            self._blocks.append(Block(unseen, -math.inf, math.inf, OTHER))
        self._timeline = self._ordered()

    def _replay(self, block_bytes: Mapping[int, int]) -> None:
        """All blocks of the session; what the arguments own when the step begins was there before."""
        live: dict[int, Block] = {}
        before = [each for each in self._changes if each.time_us < self._step.begin_us]
        self._follow(before, live)
        for address, (_, size) in self._step.before.items():
            if address not in live:
                rounded = size if self._step.start is None else -(-size // ROUNDED_BYTES) * ROUNDED_BYTES
                live[address] = Block(block_bytes.get(address, rounded), -math.inf)
                self._at[address].append(live[address])
        self._follow(self._changes[len(before) :], live)

    def _follow(self, changes: Iterable[Change], live: dict[int, Block]) -> None:
        for each in changes:
            if each.bytes > 0:
                live[each.address] = Block(each.bytes, each.time_us)
                self._at[each.address].append(live[each.address])
            elif (block := live.pop(each.address, None)) is not None:
                block.end_us = each.time_us

    def _see(self, time_us: float, seen: Owned) -> None:
        """At this moment these addresses are known to belong to someone."""
        for address, (holder, size) in seen.items():
            for block in self._at.get(address, ()):
                if block.begin_us <= time_us <= block.end_us:
                    block.holder = min((holder, size), (block.holder or OTHER, 0), key=_claim)[0]

    def _rest(self, block: Block, backward_us: float) -> str:
        if block.begin_us < self._step.begin_us:
            return OTHER
        return ACTIVATIONS if block.begin_us < backward_us < block.end_us else TEMPORARIES

    def _ordered(self) -> list[tuple[float, int, str]]:
        """(when, bytes given out or back, holder) of the whole step; what was there before comes first."""
        changes = []
        for block in self._blocks:
            assert block.holder is not None
            changes.append((block.begin_us, block.bytes, block.holder))
            if block.end_us < math.inf:
                changes.append((block.end_us, -block.bytes, block.holder))
        return sorted(changes, key=lambda each: each[0])

    def of(self, span: Span) -> Told:
        """One phase."""
        held = dict.fromkeys(HOLDERS, 0)
        start = total = 0
        peak, holders_at_peak, begun = -1, dict(held), False
        for time_us, change, holder in [*self._timeline, (math.inf, 0, OTHER)]:
            if not begun and time_us >= span.begin_us:
                start, begun = total, True
                peak, holders_at_peak = total, dict(held)
            if time_us > span.end_us:
                break
            held[holder] += change
            total += change
            if begun and total > peak:
                peak, holders_at_peak = total, dict(held)
        return Told(start, total, peak, *self._counted(span), _some(holders_at_peak), _some(held))

    def _counted(self, span: Span) -> tuple[int, int, int]:
        """Bytes at start, end and peak of a phase by the profiler's total, which begins anywhere: only its changes
        count, from what is held when the step begins."""
        base = sum(each.bytes for each in self._blocks if each.begin_us < self._step.begin_us < each.end_us)
        base -= self._total_before(self._step.begin_us)
        start, end = (base + self._total_before(each) for each in (span.begin_us, span.end_us))
        inside = [each.total for each in self._changes if span.begin_us <= each.time_us <= span.end_us]
        return start, end, max([start, *(base + each for each in inside)])

    def _total_before(self, time_us: float) -> int:
        earlier = [each.total for each in self._changes if each.time_us < time_us]
        if earlier or not self._changes:
            return earlier[-1] if earlier else 0
        return self._changes[0].total - self._changes[0].bytes


def _some(held: dict[str, int]) -> dict[str, int]:
    """Holders that hold anything."""
    return {holder: size for holder, size in held.items() if size}


# -- for a point -------------------------------------------------------------------------------------------------------


def watched(step: Callable[[], Any], roots: Iterable[Any], device: Any) -> dict[str, Any]:
    """facts.phase_memory and facts.memory_sums of a warm step; whatever goes wrong is memory_sums.reason.

    roots: the step's function and arguments; device: see runner/device.py.
    """
    try:
        memory = PhaseMemory(roots, device.torch)
        with memory, heard(memory.listener):
            for _ in range(2):
                with memory.listener(STEP):
                    step()
                device.synchronize()
        return memory.facts()
    except Exception as error:
        reason = f"memory could not be watched: {' '.join(f'{type(error).__name__}: {error}'.split())[:300]}"
        return {"memory_sums": {"reason": reason}}
