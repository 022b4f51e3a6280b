"""Rows as the views give them, with figures measured on an H200: small enough to check by eye."""

from __future__ import annotations

import math
from typing import Any

# size, wall, issue, device of matmul_add in bf16: microseconds a step.
EAGER = [
    (64, 18.0, 18.3, 4.9),
    (256, 18.7, 18.9, 5.7),
    (1024, 18.0, 18.1, 9.0),
    (1280, 18.8, 18.7, 13.6),
    (1536, 18.4, 18.7, 16.2),
    (1792, 27.0, 19.1, 27.0),
    (2048, 32.7, 19.0, 32.9),
    (2560, 68.4, 19.8, 68.7),
    (4096, 227.7, 20.9, 220.1),
]
COMPILED = [(256, 54.1, 54.4, 5.6), (2048, 61.0, 57.9, 29.8), (2560, 65.2, 57.1, 66.1), (4096, 218.1, 64.2, 209.2)]
ENVIRONMENT = "h200-1"


def point(size: int, compile_mode: str = "false", **changes: Any) -> dict[str, Any]:
    """The axes and keys of one point."""
    axes = {
        "point_id": f"{size:05d}{compile_mode[0]}0c",
        "run_id": f"run-{size}-{compile_mode}",
        "environment_id": ENVIRONMENT,
        "workload": "matmul_add",
        "size": size,
        "dtype": "bf16",
        "batch": None,
        "compile": compile_mode,
        "dynamic": "false",
        "warmup": "true",
        "device": "cuda",
        "params": "{}",
        "status": "ok",
        "reason": None,
    }
    return axes | changes


def spread(name: str, value: float | None, frac: float = 0.02) -> dict[str, float | None]:
    """A time with an interval of the given half width."""
    if value is None:
        return {name: None, f"{name}_low": None, f"{name}_high": None}
    return {name: value, f"{name}_low": value * (1 - frac), f"{name}_high": value * (1 + frac)}


def bound(size: int, wall: float, issue: float, device: float, compile_mode: str = "false", **changes: Any) -> dict:
    """One row of `bounds`."""
    name = "overhead-bound" if issue > device else "compute-bound" if device > 60 else "device-bound"
    times = {"wall_us": wall, "issue_us": issue, "device_us": device, "overhead_us": issue, "work_us": device}
    row = point(size, compile_mode) | {
        "bound": name,
        "margin": issue / device,
        "margin_low": 0.97 * issue / device,
        "margin_high": 1.03 * issue / device,
        "gain": wall / device,
        "replay_us": device * 0.95,
        "single_us": wall + 9.0,
        "sentence": f"{name}: the host issues a step in {issue:.1f} us and the device needs {device:.1f} us.",
    }
    for column, value in times.items():
        row |= spread(column, value)
    return row | changes


def bounds() -> list[dict[str, Any]]:
    """Rows of `bounds` of the two series."""
    return [bound(*each) for each in EAGER] + [bound(*each, compile_mode="true") for each in COMPILED]


def crossing(compile_mode: str = "false", **changes: Any) -> dict[str, Any]:
    """One row of `crossovers`: eager crosses between 1,536 and 1,792."""
    row = point(0, compile_mode) | {"size": None, "axis": "size", "status": "found", "reason": None}
    row |= {"value": 1620.0, "low": 1536.0, "high": 1792.0, "text": None, "command": None}
    return row | changes


def crossovers() -> list[dict[str, Any]]:
    """Rows of `crossovers` of the two series."""
    return [crossing(), crossing("true", value=2440.0, low=2048.0, high=2560.0)]


def first_steps(run_id: str, steps: int = 12, steady: float = 19.0) -> list[dict[str, Any]]:
    """Raw samples of a cold point: the first step pays for loading, the next few for growing caches."""
    return [
        {
            "run_id": run_id,
            "quantity": "first",
            "round": 0,
            "position": place,
            "value": steady * (1 + 4000 * math.exp(-2.2 * place)),
        }
        for place in range(steps)
    ]
