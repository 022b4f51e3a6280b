"""CUDA's caching allocator: pools laid before a point, and what asking the driver for memory costs its step.

The allocator belongs to the process: a point begins with an empty cache (runner/measure.py, `_clean`), so that its
first cycle asks for everything anew. Importing this module imports no torch.
"""

from __future__ import annotations

import itertools
import os
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from runner.clock import Clock

if TYPE_CHECKING:
    import torch

    from runner.device import Device

Step = Callable[[], Any]
POOLS = ("none", "preallocated", "warmup", "fraction")
CAP_FRAC = 0.5
"""Share of the device's memory that pool=fraction allows the process."""
SETTINGS = ("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF")
COLD_CYCLES = 3
LONG_CYCLE_US = 50_000.0
"""A cycle beyond it is taken cold once."""

_capped: list[torch.device] = []


def prepare(pool: str, pool_bytes: Mapping[str, int], device: torch.device) -> None:
    """Lay the pool of a point, before anything of it is allocated. On other devices than CUDA's there is none to lay.

    preallocated, warmup: one block of so many bytes is allocated and given back, so that the allocator cuts tensors
    above 1 MiB out of it instead of asking the driver (smaller ones have segments of 2 MiB of their own). fraction: the
    process may use half of the device, which is a limit and no memory.
    """
    if pool == "none" or device.type != "cuda":
        return
    import torch

    if pool == "fraction":
        torch.cuda.set_per_process_memory_fraction(CAP_FRAC, device)
        _capped.append(device)
        return
    block = torch.empty(pool_bytes[pool], dtype=torch.uint8, device=device)
    del block
    torch.cuda.reset_peak_memory_stats(device)  # the block is no peak of the step


def restore() -> None:
    """Take the caps of earlier points back."""
    while _capped:
        import torch

        torch.cuda.set_per_process_memory_fraction(1.0, _capped.pop())


def at_rest(counters: Sequence[Mapping[str, int] | None], device: Device) -> dict[str, Any]:
    """facts.allocator of docs/store.md, as it is between two steps of a warm point on CUDA.

    counters: the allocator's own, before the first cycle and behind each of the first ones. Never raises: what fails is
    the reason, and the rest is missing.
    """
    return {
        "first_device_allocs": _differences(counters, "num_device_alloc"),
        "first_device_frees": _differences(counters, "num_device_free"),
        "settings": {name: os.environ[name] for name in SETTINGS if name in os.environ},
        **_or_reason(lambda: layout(_segments(device))),
    }


def cold_cycles(step: Step, device: Device, clock: Clock) -> dict[str, Any]:
    """What is added to them when the times have been taken: cycles in turn with the cache as it is and emptied."""
    return _or_reason(lambda: _cold_cycles(step, device, clock))


def _or_reason(ask: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    try:
        return ask()
    except Exception as error:
        return {"reason": f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"}


def _differences(counters: Sequence[Mapping[str, int] | None], key: str) -> list[int | None]:
    """What happened between each reading and the next."""
    pairs = itertools.pairwise(counters)
    return [now[key] - then[key] if then and now and key in then and key in now else None for then, now in pairs]


def layout(segments: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    """Of an allocator's segments: how many there are, their free bytes, and those of the largest free piece."""
    known = list(segments)
    free = [
        block["size"] for segment in known for block in segment.get("blocks", ()) if block.get("state") == "inactive"
    ]
    return {"segments": len(known), "free_bytes": sum(free), "largest_free_bytes": max(free, default=0)}


def _segments(device: Device) -> list[Mapping[str, Any]]:
    """Segments of this device that serve every tensor; those of a CUDA graph are its own."""
    import torch

    device.synchronize()
    ours = [each for each in torch.cuda.memory_snapshot() if each.get("device", device.index) == device.index]
    return [each for each in ours if tuple(each.get("segment_pool_id", ())) in ((), (0, 0))]


def _cold_cycles(step: Step, device: Device, clock: Clock) -> dict[str, Any]:
    """Cycles in turn with the cache as it is and emptied: what asking the driver costs, with everything else warm.

    release_us: giving the cache back, which calls cudaFree for each free segment.
    """
    from runner import memory, timing

    warm, cold, release, allocs, frees = [], [], [], [], []
    for _ in range(COLD_CYCLES):
        warm.append(timing.wall_us(step, 1, device, clock))
        readings = [memory.read(device.kind)]
        device.synchronize()
        start = clock()
        device.empty_cache()
        release.append((clock() - start) / 1000)
        readings.append(memory.read(device.kind))
        cold.append(timing.wall_us(step, 1, device, clock))
        readings.append(memory.read(device.kind))
        frees.append(_differences(readings[:2], "num_device_free")[0])
        allocs.append(_differences(readings[1:], "num_device_alloc")[0])
        if cold[-1] > LONG_CYCLE_US or not allocs[-1]:
            break
    return {
        "warm_us": statistics.median(warm), "cold_us": statistics.median(cold),
        "release_us": statistics.median(release), "cold_device_allocs": _median(allocs),
        "released_segments": _median(frees),
    }  # fmt: skip


def _median(values: Sequence[int | None]) -> float | None:
    known = [each for each in values if each is not None]
    return statistics.median(known) if known else None
