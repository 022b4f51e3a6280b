"""Rows of the tables of an Nsight Systems export -> events of a Chrome trace, under the words that Kineto uses.

Releases of 2020 to 2025 differ in columns. Needed is what no event can do without; what else a table lacks is null.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import msgspec

Row = Mapping[str, Any]
"""Columns of one row of a table, those that it lacks as None."""
OS_RUNTIME = "osrt"
"""Category of calls of the operating system's libraries. It must not end in _runtime: those launch work."""
PUSHED, STARTED = (59, 70), (60, 71)
DECLARED = (33, 39, 64, 72, 73, 74, 75, 76, 97, 98, 99)
"""Event types of NVTX: ranges of one thread, ranges that may end on another, and what only gives something a name."""
COPIES = {
    1: "HtoD", 2: "DtoH", 3: "HtoA", 4: "AtoH", 5: "AtoA", 6: "AtoD", 7: "DtoA", 8: "DtoD", 9: "HtoH", 10: "PtoP",
    11: "HtoD (unified memory)", 12: "DtoH (unified memory)", 13: "DtoD (unified memory)",
}  # fmt: skip
WAITS = {1: "Event Synchronize", 2: "Stream Wait Event", 3: "Stream Synchronize", 4: "Context Synchronize"}
_VERSION = re.compile(r"_v[0-9]{4,5}$")
_OF_DRIVER = re.compile("cu[A-Z]")
_NOWHERE = 2**31 - 1
"""Numbers of streams from here on stand for none."""


@dataclass(frozen=True, slots=True)
class Context:
    """What rows refer to. name: of a string's number; domains: of NVTX, by process and number; cards: by process and
    the number that CUDA has for it there; memory: kinds of memory."""

    name: Callable[[object], str | None]
    domains: Mapping[tuple[object, object], object] = field(default_factory=dict)
    cards: Mapping[tuple[object, object], object] = field(default_factory=dict)
    memory: Mapping[object, object] = field(default_factory=dict)
    processes: dict[object, int] = field(default_factory=dict)

    def correlation(self, process: object, number: object) -> int | None:
        """The number of a call among all processes: as it stands for the first process, above 2^32 for others."""
        if type(number) is not int:
            return None
        place = self.processes.setdefault(process, len(self.processes))
        return number if place == 0 else (place << 32) + number


@dataclass(frozen=True, slots=True)
class Table:
    """A table of events. needed: columns without which it is refused; told: a row as an event."""

    name: str
    needed: tuple[str, ...]
    optional: tuple[str, ...]
    told: Callable[[Row, Context], dict[str, Any]]


# -- what all have -----------------------------------------------------------------------------------------------------


def _event(category: str, name: str | None, row: Row, place: Row, args: Row, phase: str = "X") -> dict[str, Any]:
    """An event; what has no value is left out, so that the audit can say what is missing."""
    start, end = row["start"], row["end"]
    told = {"ph": phase, "cat": category, **place}
    if name is not None:
        told["name"] = name
    if type(start) is int:
        told["ts"] = _us(start)
        if type(end) is int:
            told["dur"] = _us(end - start)
    told["args"] = {key: value for key, value in args.items() if value is not None}
    return told


def _us(nanoseconds: int) -> msgspec.Raw:
    """Microseconds with three decimals, which is exact."""
    sign, size = (b"", nanoseconds) if nanoseconds >= 0 else (b"-", -nanoseconds)
    return msgspec.Raw(b"%b%d.%03d" % (sign, *divmod(size, 1000)))


def _thread(global_id: object) -> dict[str, int]:
    """Process and thread of a serialized id: 24 bits each, below those of the machine."""
    number = global_id if type(global_id) is int else 0
    return {"pid": number >> 24 & 0xFFFFFF, "tid": number & 0xFFFFFF}


def process_of(global_id: object) -> int | None:
    """What all threads of a process share of their ids."""
    return global_id >> 24 if type(global_id) is int else None


def _device(row: Row, context: Context) -> tuple[dict[str, Any], dict[str, Any]]:
    """Place and arguments that all work of a device has."""
    process, number = process_of(row["globalPid"]), row["deviceId"]
    pid = None if process is None else process & 0xFFFFFF
    device = context.cards.get((pid, number), number)
    stream = row["streamId"]
    stream = None if type(stream) is int and stream >= _NOWHERE else stream
    args = {
        "device": device, "stream": stream, "correlation": context.correlation(process, row["correlationId"]),
        "context": row["contextId"], "graph node id": row.get("graphNodeId"), "process": pid,
    }  # fmt: skip
    return {"pid": device, "tid": stream}, args


# -- one table each ----------------------------------------------------------------------------------------------------


def _range(row: Row, context: Context) -> dict[str, Any]:
    """A range of NVTX; a mark is an instant, a name given to a domain or a thread is metadata: both are set aside."""
    text = row["text"]
    name = text if isinstance(text, str) else context.name(row["textId"])
    kind, thread = row["eventType"], row["globalTid"]
    if kind in (*PUSHED, *STARTED) or (kind is None and row["end"] is not None):
        ended = row["endGlobalTid"]
        args = {
            "domain": context.domains.get((process_of(thread), row["domainId"])) if row["domainId"] else None,
            "category": row["category"],
            "ended on thread": _thread(ended)["tid"] if type(ended) is int and ended != thread else None,
        }
        return _event("user_annotation", name, row, _thread(thread), args)
    return _event("nvtx", name, row, _thread(thread), {}, "M" if kind in DECLARED else "i")


def _call(row: Row, context: Context) -> dict[str, Any]:
    """A call of the CUDA runtime or of the driver, by its name without the version that Nsight Systems adds."""
    category, name = _called(context.name(row["nameId"]))
    args = {
        "correlation": context.correlation(process_of(row["globalTid"]), row["correlationId"]),
        "return value": row["returnValue"] or None,
    }
    return _event(category, name, row, _thread(row["globalTid"]), args)


@lru_cache(4096)
def _called(full: str | None) -> tuple[str, str | None]:
    """Category and name of a call."""
    name = None if full is None else _VERSION.sub("", full)
    return ("cuda_driver" if name is not None and _OF_DRIVER.match(name) else "cuda_runtime"), name


def _library_call(row: Row, context: Context) -> dict[str, Any]:
    return _event(OS_RUNTIME, context.name(row["nameId"]), row, _thread(row["globalTid"]), {})


def _overhead(row: Row, context: Context) -> dict[str, Any]:
    return _event("overhead", context.name(row["nameId"]), row, _thread(row["globalTid"]), {})


def _kernel(row: Row, context: Context) -> dict[str, Any]:
    place, args = _device(row, context)
    names = (context.name(row[column]) for column in ("demangledName", "shortName", "mangledName"))
    shared = [each for each in (row["staticSharedMemory"], row["dynamicSharedMemory"]) if type(each) is int]
    args |= {
        "grid": _three(row, "grid"), "block": _three(row, "block"),
        "registers per thread": row["registersPerThread"], "shared memory": sum(shared) if shared else None,
    }  # fmt: skip
    return _event("kernel", next((each for each in names if each), None), row, place, args)


def _copy(row: Row, context: Context) -> dict[str, Any]:
    place, args = _device(row, context)
    ends = [context.memory.get(row[column]) for column in ("srcKind", "dstKind")]
    between = f" ({ends[0]} -> {ends[1]})" if all(isinstance(each, str) for each in ends) else ""
    kind = COPIES.get(row["copyKind"], "unknown")
    return _event("gpu_memcpy", f"Memcpy {kind}{between}", row, place, {**args, "bytes": row["bytes"]})


def _fill(row: Row, context: Context) -> dict[str, Any]:
    place, args = _device(row, context)
    kind = context.memory.get(row["memKind"], "Device")
    return _event("gpu_memset", f"Memset ({kind})", row, place, {**args, "bytes": row["bytes"], "value": row["value"]})


def _wait(row: Row, context: Context) -> dict[str, Any]:
    place, args = _device(row, context)
    name = WAITS.get(row["syncType"], f"Synchronization {row['syncType']}")
    return _event("cuda_sync", name, row, place, {**args, "event id": row["eventId"]})


def _graph(row: Row, context: Context) -> dict[str, Any]:
    """A CUDA graph that was traced as a whole: one piece of work, its inner pauses included."""
    place, args = _device(row, context)
    return _event("kernel", f"CUDA graph {row['graphId']}", row, place, {**args, "graph id": row["graphId"]})


def _three(row: Row, what: str) -> list[int] | None:
    sizes = [row[f"{what}{axis}"] for axis in "XYZ"]
    return sizes if all(type(each) is int for each in sizes) else None


_AT_A_TIME = ("start", "end")
_OF_A_DEVICE = ("streamId", "contextId", "correlationId", "globalPid", "graphNodeId")
_SIZES = tuple(f"{what}{axis}" for what in ("grid", "block") for axis in "XYZ")
TABLES = (
    Table(
        "NVTX_EVENTS", _AT_A_TIME,
        ("eventType", "text", "textId", "globalTid", "endGlobalTid", "domainId", "category"), _range,
    ),
    Table(
        "CUPTI_ACTIVITY_KIND_RUNTIME", (*_AT_A_TIME, "nameId"), ("globalTid", "correlationId", "returnValue"), _call
    ),
    Table("OSRT_API", (*_AT_A_TIME, "nameId"), ("globalTid",), _library_call),
    Table("PROFILER_OVERHEAD", (*_AT_A_TIME, "nameId"), ("globalTid",), _overhead),
    Table(
        "CUPTI_ACTIVITY_KIND_KERNEL", (*_AT_A_TIME, "deviceId", "shortName"),
        (
            *_OF_A_DEVICE, "demangledName", "mangledName", "registersPerThread", *_SIZES, "staticSharedMemory",
            "dynamicSharedMemory",
        ), _kernel,
    ),
    Table(
        "CUPTI_ACTIVITY_KIND_MEMCPY", (*_AT_A_TIME, "deviceId", "copyKind"),
        (*_OF_A_DEVICE, "bytes", "srcKind", "dstKind"), _copy,
    ),
    Table(
        "CUPTI_ACTIVITY_KIND_MEMSET", (*_AT_A_TIME, "deviceId"), (*_OF_A_DEVICE, "bytes", "value", "memKind"), _fill
    ),
    Table(
        "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", (*_AT_A_TIME, "deviceId", "syncType"), (*_OF_A_DEVICE, "eventId"), _wait
    ),
    Table("CUPTI_ACTIVITY_KIND_GRAPH_TRACE", (*_AT_A_TIME, "deviceId"), (*_OF_A_DEVICE, "graphId"), _graph),
)  # fmt: skip
"""Tables that are read, ranges before the calls inside them: of two events with equal times the first is the outer."""
