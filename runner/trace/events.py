"""What an event of a trace is: its columns, and the words of Kineto that say what it stands for."""

from __future__ import annotations

import re
from dataclasses import dataclass

import polars as pl

DEVICE_WORK = frozenset({"kernel", "gpu_memcpy", "gpu_memset"})
RUNTIME = frozenset({"cuda_runtime", "cuda_driver"})  # ROCm's hip calls carry cuda_runtime as well
DEVICE_TIMELINE = DEVICE_WORK | {"gpu_user_annotation", "cuda_sync"}
"""Categories drawn in the device's rows: no host call nests there."""

TODAY = {
    "operator": "cpu_op",
    "runtime": "cuda_runtime",
    "memcpy": "gpu_memcpy",
    "memset": "gpu_memset",
}
"""Categories of 2021, lower case, and what they are called today; `kernel` stayed."""

MEMORY_NAME = "[memory]"
MEMORY = "cpu_instant_event"
"""Instants of this name and category tell what an allocator did: the only ones that are kept, with no duration."""

STEP_NAME = re.compile(r"ProfilerStep#([0-9]{1,18})")

ROWS = pl.Schema(
    {"event_id": pl.Int64, "name": pl.String, "category": pl.String, "ts_ns": pl.Int64, "dur_ns": pl.Int64}
    | {"device": pl.Int64, "stream": pl.Int64, "pid": pl.String, "tid": pl.String, "correlation": pl.Int64}
    | {"grid": pl.List(pl.Int64), "block": pl.List(pl.Int64)}
    | dict.fromkeys(("registers_per_thread", "shared_memory_bytes", "bytes"), pl.Int64)
    | {"shapes": pl.String, "args": pl.String, "external": pl.String}
)
"""Columns of an event before it is linked. dur_ns is null where an event only begins; external: id of an annotation."""

EVENTS = pl.Schema(
    {"event_id": pl.Int64, "name": pl.String, "category": pl.String, "ts_ns": pl.Int64, "dur_ns": pl.Int64}
    | {"is_device": pl.Boolean, "device": pl.Int64, "stream": pl.Int64, "pid": pl.String, "tid": pl.String}
    | dict.fromkeys(("step", "parent_id", "depth", "correlation", "launch_id"), pl.Int64)
    | {"grid": pl.List(pl.Int64), "block": pl.List(pl.Int64)}
    | dict.fromkeys(("registers_per_thread", "shared_memory_bytes", "bytes"), pl.Int64)
    | {"shapes": pl.String, "args": pl.String}
)
"""Columns of the `events` table without run_id (docs/store.md)."""


class TraceError(ValueError):
    """The bytes are no trace that can be read; the message is one sentence."""


@dataclass(frozen=True, slots=True)
class Event:
    """One complete event of a trace: a row of the `events` table without its run_id.

    Times are integer nanoseconds with the trace's base time included. Columns that the event does not have are None.
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


def is_runtime() -> pl.Expr:
    """Whether a row is a call of a device's runtime or driver, of any maker (cuda, xpu, mtia, ...)."""
    category = pl.col("category")
    return category.str.ends_with("_runtime") | category.str.ends_with("_driver")


def is_annotation() -> pl.Expr:
    """Whether a row is an annotation of the user's, or its shadow on the device."""
    return pl.col("category").str.ends_with("user_annotation")


def on_device_timeline() -> pl.Expr:
    """Whether a row is drawn on the device's timeline."""
    return pl.col("category").is_in(list(DEVICE_TIMELINE))


def is_device_work() -> pl.Expr:
    """Whether a row is work of a device: a kernel, a copy or a fill."""
    return pl.col("category").is_in(list(DEVICE_WORK))
