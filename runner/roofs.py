"""Roofs: the ceilings of this device, measured once per environment.

FLOP/s per dtype by square products grown until one takes 20 ms; bytes/s of memory and of the L2 by copies (each byte
read and written counts). A roof is the best of several windows, since nothing measured can be above it but by chance.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import torch

from runner.device import Device
from runner.point import DTYPES
from runner.statistics import estimate

PRODUCT_US = 20_000.0
LEAST_EDGE, MOST_EDGE = 128, 8192
WINDOWS = 7
GRAPH_COPIES = 64


def measure_roofs(device: Device) -> list[dict[str, Any]]:
    """Rows of the store's `roofs`, without environment_id. What cannot be measured is NULL with the reason."""
    rows = [_row("flops", dtype, partial(_flops, device, dtype), "square products") for dtype in DTYPES]
    memory = 2**28 if device.asynchronous else 2**27
    rows.append(_row("dram", None, lambda: _copies(device, memory), f"copies of {memory} bytes"))
    within = None if device.l2_bytes is None else device.l2_bytes // 4
    rows.append(_row("l2", None, lambda: _copies(device, within), f"copies of {within} bytes, which stay in the cache"))
    return rows


def _row(roof: str, dtype: str | None, samples: Callable[[], list[float]], method: str) -> dict[str, Any]:
    row = {"roof": roof, "dtype": dtype, "value_per_s": None, "low_per_s": None, "high_per_s": None}
    try:
        rates = samples()
    except Exception as error:  # a roof that cannot be measured is told, and stops no sweep
        return {**row, "method": method, "reason": str(error).splitlines()[0]}
    spread = estimate(rates)
    assert spread is not None
    values = {"value_per_s": max(rates), "low_per_s": spread.low, "high_per_s": max(rates)}
    return {**row, **values, "method": method, "reason": None}


def _flops(device: Device, dtype: str) -> list[float]:
    """FLOP/s of each window of products of the largest edge that PRODUCT_US allows."""
    if (refusal := device.refusal(dtype)) is not None:
        raise ValueError(refusal)
    with device.numerics(dtype):
        edge = LEAST_EDGE
        while edge < MOST_EDGE and min(_product_us(device, dtype, edge) for _ in range(3)) < PRODUCT_US / 8:
            edge *= 2
        return [2 * edge**3 / _product_us(device, dtype, edge) * 1e6 for _ in range(WINDOWS)]


def _product_us(device: Device, dtype: str, edge: int) -> float:
    kind = {"bf16": torch.bfloat16, "fp16": torch.float16}.get(dtype, torch.float32)
    left, right = (torch.randn(edge, edge, device=device.torch, dtype=kind) for _ in range(2))
    out = torch.empty_like(left)
    return _step_us(device, lambda: torch.mm(left, right, out=out))


def _copies(device: Device, count: int | None) -> list[float]:
    """Bytes/s of each window of copies of `count` bytes."""
    if count is None:
        raise ValueError("the size of the cache cannot be read")
    source = torch.ones(count, dtype=torch.uint8, device=device.torch)
    target = torch.empty_like(source)
    copies, many = _without_launches(device, lambda: target.copy_(source))
    return [2 * count * copies / _step_us(device, many) * 1e6 for _ in range(WINDOWS)]


def _without_launches(device: Device, step: Callable[[], Any]) -> tuple[int, Callable[[], Any]]:
    """Many steps as one graph replay where the device has them, since a short copy would be bound by its launch."""
    if not device.asynchronous:
        return 1, step
    step()
    return GRAPH_COPIES, device.captured(step, GRAPH_COPIES)


def _step_us(device: Device, step: Callable[[], Any]) -> float:
    """Time of a step in a window of 10 ms or more, behind a first one that is not counted."""
    step()
    device.synchronize()
    steps = 1
    while True:
        start = time.perf_counter()
        for _ in range(steps):
            step()
        device.synchronize()
        seconds = time.perf_counter() - start
        if seconds >= 0.01 or steps >= 4096:
            return seconds / steps * 1e6
        steps *= 4
