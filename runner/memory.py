"""What CUDA's caching allocator holds and has done, from its own counters. Other devices count nothing: None."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

Stats = Mapping[str, int]

SIZES = {
    "allocated_peak_bytes": "allocated_bytes.all.peak",
    "reserved_peak_bytes": "reserved_bytes.all.peak",
    "allocated_bytes": "allocated_bytes.all.current",
    "reserved_bytes": "reserved_bytes.all.current",
    "inactive_split_bytes": "inactive_split_bytes.all.current",
}
"""Facts of a moment, and torch's names of them. Peaks are counted from the begin of the point."""
TROUBLES = {"alloc_retries": "num_alloc_retries", "ooms": "num_ooms"}
"""Facts of the whole point: how often cached memory had to be given back first, and how often that was not enough."""
CALLS = {"device_allocs": "num_device_alloc", "device_frees": "num_device_free"}
"""Facts of a step: calls of cudaMalloc and cudaFree."""


def read(kind: str) -> Stats | None:
    """The allocator's counters for a kind of device; some tenths of a millisecond, without waiting for the device."""
    if kind != "cuda":
        return None
    try:
        return dict(torch.cuda.memory_stats())
    except Exception:  # a device with a sticky error, or another allocator: unknown
        return None


def sizes(stats: Stats | None) -> dict[str, int | None]:
    """Bytes that are allocated and reserved; nothing without counters."""
    return {name: stats.get(key) for name, key in SIZES.items()} if stats else {}


def troubles(before: Stats | None, now: Stats | None) -> dict[str, int | None]:
    """Retries and failures between two readings."""
    return {name: _difference(before, now, key) for name, key in TROUBLES.items()} if before and now else {}


def calls(before: Stats | None, now: Stats | None, steps: int) -> dict[str, float | None]:
    """Calls of cudaMalloc and cudaFree a step, between two readings round so many steps."""
    if not before or not now:
        return {}
    counts: dict[str, Any] = {name: _difference(before, now, key) for name, key in CALLS.items()}
    return {name: None if count is None else count / steps for name, count in counts.items()}


def _difference(before: Stats, now: Stats, key: str) -> int | None:
    return now[key] - before[key] if key in before and key in now else None
