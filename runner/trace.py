"""Chrome/Kineto trace -> the rows of the `events` table (docs/store.md), exact to the nanosecond.

The chain is `read_trace`: bytes -> JSON document -> one `Event` per complete event -> links between them. `link` knows
nothing of JSON, so another reader can end in it as well. Only the standard library is needed: the parent process, which
imports no torch, reads traces too.

Left out: flow, metadata and instant events (phase other than X), and formats older than today's Kineto names.
"""

import gzip
import json
import re
import zlib
from bisect import bisect_right
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from decimal import ROUND_HALF_EVEN, Context, Decimal
from typing import Any

DEVICE_WORK = frozenset({"kernel", "gpu_memcpy", "gpu_memset"})
RUNTIME = frozenset({"cuda_runtime", "cuda_driver"})  # ROCm's hip calls carry cuda_runtime as well
_DEVICE_TIMELINE = DEVICE_WORK | {
    "gpu_user_annotation",
    "cuda_sync",
}  # drawn in the device's rows: no host call nests there
_GZIP_MAGIC = b"\x1f\x8b"
_INT64 = range(-(2**63), 2**63)
_LONGEST_US = 2**53  # 285 years, which as nanoseconds still fit 64 bits
_EXACT = Context(prec=60)  # the default 28 digits could round an absolute time
_ENCODER = json.JSONEncoder(default=float, ensure_ascii=False)  # the only foreign type is Decimal
_STEP_NAME = re.compile(r"ProfilerStep#(\d+)")

StepAt = Callable[[int], int | None]


class TraceError(ValueError):
    """The bytes are no trace that can be read; the message is one sentence."""


@dataclass(frozen=True, slots=True)
class Event:
    """One complete event of a trace: a row of the `events` table without its run_id.

    Times are integer nanoseconds with the trace's base time included. Columns that the event does not have are None.
    `step`, `parent_id`, `depth` and `launch_id` come from `link`.
    """

    event_id: int
    name: str
    category: str
    ts_ns: int
    dur_ns: int
    is_device: bool
    device: int | None
    stream: int | None
    pid: str
    tid: str
    step: int | None
    parent_id: int | None
    depth: int
    correlation: int | None
    launch_id: int | None
    grid: list[int] | None
    block: list[int] | None
    registers_per_thread: int | None
    shared_memory_bytes: int | None
    bytes: int | None
    shapes: str | None
    args: str | None

    @property
    def end_ns(self) -> int:
        """First nanosecond after the event."""
        return self.ts_ns + self.dur_ns


def read_trace(data: bytes) -> list[Event]:
    """Read a Chrome trace as torch.profiler exports it, plain or gzip (told by its bytes), in the order of the file.

    Timestamps may be microseconds relative to `baseTimeNanoseconds` or absolute ones, with decimals or without.

    Raises:
        TraceError: the bytes are no JSON object with `traceEvents`, an event lacks its name, time or duration, or a
            value is of a kind or size that no profiler writes.
    """
    try:
        return _read(data)
    except TraceError:
        raise
    except (ArithmeticError, ValueError, TypeError, RecursionError) as error:
        raise TraceError(f"A value cannot be read: {type(error).__name__}: {str(error)[:200]}") from error


def _read(data: bytes) -> list[Event]:
    document = _document(data)
    base_ns = document.get("baseTimeNanoseconds", 0)
    if type(base_ns) is not int:
        raise TraceError(f"baseTimeNanoseconds is {base_ns!r}, not an integer.")
    complete = [raw for raw in document["traceEvents"] if isinstance(raw, dict) and raw.get("ph") == "X"]
    return link([_event(event_id, raw, base_ns) for event_id, raw in enumerate(complete)])


def join(traces: Iterable[list[Event]]) -> list[Event]:
    """One list from the windows of one run (a schedule with repeat > 1), event ids running on.

    torch numbers its steps through all windows; a window whose numbers begin again is moved behind the one before it.
    """
    joined: list[Event] = []
    next_step = 0
    for trace in traces:
        steps = [event.step for event in trace if event.step is not None]
        shift = max(0, next_step - min(steps)) if steps else 0
        next_step = max(steps) + shift + 1 if steps else next_step
        first_id = len(joined)
        joined += [_moved(event, first_id, shift) for event in trace]
    return joined


def link(events: list[Event]) -> list[Event]:
    """Set launch_id, step, parent_id and depth of events whose event_id is their place in the list.

    - launch_id: the runtime or driver call with the correlation of a row of the device's timeline.
    - step: host events belong to the step in whose time they start, on any thread (autograd has its own); what a call
      launched to the step of the call, whenever it ran; device work without a launch to the step it starts in; an
      annotation's shadow on the device to the step of the annotation.
    - parent_id, depth: the innermost host event of the same process and thread that encloses the event.
    """
    launches = _launch_ids(events)
    steps = _step_numbers(events, launches)
    parents, depths = _nesting(events)
    return [
        replace(event, launch_id=launch_id, step=step, parent_id=parent_id, depth=depth)
        for event, launch_id, step, parent_id, depth in zip(events, launches, steps, parents, depths, strict=True)
    ]


def _moved(event: Event, first_id: int, step_shift: int) -> Event:
    return replace(
        event,
        event_id=event.event_id + first_id,
        parent_id=None if event.parent_id is None else event.parent_id + first_id,
        launch_id=None if event.launch_id is None else event.launch_id + first_id,
        step=None if event.step is None else event.step + step_shift,
    )


# --- bytes -> document


def _document(data: bytes) -> dict[str, Any]:
    try:
        # Decimal keeps every digit of a timestamp; NaN and Infinity are no JSON and say nothing.
        document = json.loads(_plain(data), parse_float=Decimal, parse_constant=lambda _: None)
    except (ValueError, RecursionError) as error:
        raise TraceError(f"The trace is not valid JSON: {error}.") from error
    if not isinstance(document, dict) or not isinstance(document.get("traceEvents"), list):
        raise TraceError("The JSON is no Chrome trace: it has no list of traceEvents.")
    return document


def _plain(data: bytes) -> bytes:
    if not data.startswith(_GZIP_MAGIC):
        return data
    try:
        return gzip.decompress(data)
    except (OSError, EOFError, zlib.error) as error:
        raise TraceError(f"The gzip data of the trace is damaged: {error}.") from error


# --- document -> events


def _event(event_id: int, raw: dict[str, Any], base_ns: int) -> Event:
    args = _arguments(event_id, raw)
    category = str(raw.get("cat", "")).lower()
    is_device = category in DEVICE_WORK
    on_device_timeline = category in _DEVICE_TIMELINE
    return Event(
        event_id=event_id,
        name=_text(event_id, raw, "name"),
        category=category,
        ts_ns=base_ns + _nanoseconds(event_id, raw, "ts"),
        dur_ns=_duration(event_id, raw),
        is_device=is_device,
        # A host event may carry a "stream" too (Triton's cpu_op does): that one is an argument, not its place.
        device=_place(args, "device", raw.get("pid")) if on_device_timeline else None,
        stream=_place(args, "stream", raw.get("tid")) if on_device_timeline else None,
        pid=str(raw.get("pid", "")),
        tid=str(raw.get("tid", "")),
        step=None,
        parent_id=None,
        depth=0,
        correlation=_take_integer(args, "correlation"),
        launch_id=None,
        grid=_take_integers(args, "grid"),
        block=_take_integers(args, "block"),
        registers_per_thread=_take_integer(args, "registers per thread"),
        shared_memory_bytes=_take_integer(args, "shared memory"),
        bytes=_take_integer(args, "bytes") if is_device else None,
        shapes=_json(args.pop("Input Dims", None)),
        args=_json(args or None),
    )


def _arguments(event_id: int, raw: dict[str, Any]) -> dict[str, Any]:
    """A copy of the arguments, from which the columns are taken: what remains is the column `args`."""
    args = raw.get("args") or {}
    if not isinstance(args, dict):
        raise TraceError(f"The args of event {event_id} are {type(args).__name__}, not an object.")
    return dict(args)


def _text(event_id: int, raw: dict[str, Any], key: str) -> str:
    value = raw.get(key)
    if not isinstance(value, str):
        raise TraceError(f"The {key} of event {event_id} is {value!r}, not a text.")
    return value


def _nanoseconds(event_id: int, raw: dict[str, Any], key: str) -> int:
    """Microseconds of the file in nanoseconds: the decimal text x 1000, rounded half to even."""
    value: Any = raw.get(key)
    if type(value) not in (int, Decimal) or abs(value) > _LONGEST_US:
        raise TraceError(f"The {key} of event {event_id} is {value!r}, not a number of microseconds.")
    return int(Decimal(value).scaleb(3, _EXACT).to_integral_value(ROUND_HALF_EVEN, _EXACT))


def _duration(event_id: int, raw: dict[str, Any]) -> int:
    dur_ns = _nanoseconds(event_id, raw, "dur")
    if dur_ns < 0:
        raise TraceError(f"The dur of event {event_id} is {raw['dur']}, a negative duration.")
    return dur_ns


def _place(args: dict[str, Any], key: str, row: object) -> int | None:
    """Device or stream of a row on the device's timeline; Kineto repeats them as pid and tid."""
    taken = _take_integer(args, key)
    return row if taken is None and type(row) is int else taken


def _take_integer(args: dict[str, Any], key: str) -> int | None:
    """The column's value, or None; what does not fit the column stays among the arguments."""
    value = args.get(key)
    if type(value) is not int or value not in _INT64:
        return None
    return int(args.pop(key))


def _take_integers(args: dict[str, Any], key: str) -> list[int] | None:
    value = args.get(key)
    if not isinstance(value, list) or any(type(item) is not int for item in value):
        return None
    return list(args.pop(key))


def _json(value: object) -> str | None:
    return None if value is None else _ENCODER.encode(value)


# --- links


def _launch_ids(events: list[Event]) -> list[int | None]:
    calls: dict[int, int] = {}
    for event in events:
        if event.category in RUNTIME and event.correlation is not None:
            calls.setdefault(event.correlation, event.event_id)
    return [
        calls.get(event.correlation) if event.category in _DEVICE_TIMELINE and event.correlation is not None else None
        for event in events
    ]


def _step_numbers(events: list[Event], launches: list[int | None]) -> list[int | None]:
    step_at = _step_lookup(events)
    annotations = {_external_id(event): step_at(event.ts_ns) for event in events if event.category == "user_annotation"}

    def step_of(event: Event, launch_id: int | None) -> int | None:
        if launch_id is not None:
            return step_at(events[launch_id].ts_ns)
        if event.category == "gpu_user_annotation":
            return annotations.get(_external_id(event))
        return step_at(event.ts_ns)

    return [step_of(event, launch_id) for event, launch_id in zip(events, launches, strict=True)]


def _step_lookup(events: list[Event]) -> StepAt:
    """Time in nanoseconds -> number of the profiler step that lasts then: its start belongs to it, its end does not."""
    steps = sorted((event.ts_ns, event.end_ns, number) for event, number in _profiler_steps(events))
    starts = [start for start, _, _ in steps]

    def step_at(ts_ns: int) -> int | None:
        place = bisect_right(starts, ts_ns) - 1
        return steps[place][2] if place >= 0 and ts_ns < steps[place][1] else None

    return step_at


def _profiler_steps(events: list[Event]) -> Iterable[tuple[Event, int]]:
    for event in events:
        matched = _STEP_NAME.fullmatch(event.name)
        if matched and event.category not in _DEVICE_TIMELINE:
            yield event, int(matched[1])


def _external_id(event: Event) -> object:
    """What an annotation and its shadow on the device share; without one, an id that nothing else has."""
    return json.loads(event.args or "{}").get("External id", ("none", event.event_id))


def _nesting(events: list[Event]) -> tuple[list[int | None], list[int]]:
    """Innermost enclosing host event of the same thread, and the number of all that enclose it.

    An event lasts from its start to just before its end: what starts where another ends is not inside it, and an event
    of no duration encloses nothing. Of two events with the same times the earlier in the file is the outer one. What
    reaches beyond an event (a call clipped by the window, two annotations that cross) is not inside it either.
    """
    parents: list[int | None] = [None] * len(events)
    depths = [0] * len(events)
    open_events: dict[tuple[str, str], list[Event]] = {}
    host = (event for event in events if event.category not in _DEVICE_TIMELINE)
    for event in sorted(host, key=lambda e: (e.ts_ns, -e.dur_ns, e.event_id)):
        stack = open_events.setdefault((event.pid, event.tid), [])
        while stack and stack[-1].end_ns <= event.ts_ns:
            stack.pop()
        parent = _innermost(stack, event)
        if parent is not None:
            parents[event.event_id], depths[event.event_id] = parent, depths[parent] + 1
        stack.append(event)
    return parents, depths


def _innermost(stack: list[Event], event: Event) -> int | None:
    enclosing = (
        outer.event_id for outer in reversed(stack) if outer.end_ns > event.ts_ns and outer.end_ns >= event.end_ns
    )
    return next(enclosing, None)
