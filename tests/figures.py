"""A store as a sweep on an H200 leaves it: figures measured there, small enough to check by eye."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from tests.given import write_store

# size, wall, issue, device of matmul_add in bf16: microseconds a step.
EAGER = (
    (64, 18.0, 18.3, 4.9),
    (256, 18.7, 18.9, 5.7),
    (1024, 18.0, 18.1, 9.0),
    (1280, 18.8, 18.7, 13.6),
    (1536, 18.4, 18.7, 16.2),
    (1792, 27.0, 19.1, 27.0),
    (2048, 32.7, 19.0, 32.9),
    (2560, 68.4, 19.8, 68.7),
    (4096, 227.7, 20.9, 220.1),
)
COMPILED = ((64, 53.8, 54.0, 4.6), (256, 54.1, 54.4, 5.6), (2048, 61.0, 57.9, 29.8), (4096, 218.1, 64.2, 209.2))
ENVIRONMENT = {
    "measure_version": 1,
    "torch": "2.11.0+cu128",
    "python": "3.12.3",
    "device": "cuda",
    "device_name": "NVIDIA H200",
    "driver": "570.86",
    "host_cpu": "Intel Xeon Platinum 8481C",
    "cores": 16,
    "threads": 8,
    "multiprocessors": 132,
    "l2_bytes": 62914560,
    "sm_clock_max_mhz": 1980.0,
    "power_limit_w": 700.0,
    "versions": '{"torch": "2.11.0", "triton": "3.5"}',
}
ROOFS = (
    {"roof": "flops", "dtype": "bf16", "value_per_s": 7.6e14, "low_per_s": 7.5e14, "high_per_s": 7.7e14},
    {"roof": "dram", "value_per_s": 4.1e12, "low_per_s": 4.0e12, "high_per_s": 4.2e12},
    {"roof": "l2", "reason": "the L2 could not be isolated"},
)


def spread(value: float, frac: float = 0.015) -> tuple[float, float, float]:
    """A value with an interval of the given half width."""
    return value, value * (1 - frac), value * (1 + frac)


def warm(size: int, wall: float, issue: float, device: float, **changes: Any) -> dict[str, Any]:
    """One warm run of matmul_add on the H200."""
    run = {
        "size": size,
        "dtype": "bf16",
        "wall_us": spread(wall),
        "issue_us": spread(issue),
        "device_us": spread(device),
        "replay_us": spread(0.95 * device),
        "single_us": spread(wall + 9),
        "margin": spread(issue / device),
        "facts": {
            "device_method": "held",
            "profile": {"profiled_host_us": issue * 1.8, "perturbation": 1.8, "launches": 2, "kernels": 2},
            "cost": {
                "operations": [
                    {"name": "mm", "flops": 2 * size**3, "bytes": 6 * size**2},
                    {"name": "add", "flops": size**2, "bytes": 6 * size**2},
                ],
                "bytes_min": 8 * size**2,
            },
        },
    }
    return run | changes


def cold(size: int, steady: float, **changes: Any) -> dict[str, Any]:
    """One cold run: the first step pays for loading, the next few for growing caches."""
    steps = [steady * (1 + 4000 * math.exp(-2.2 * place)) for place in range(12)]
    samples = [
        {"quantity": "first", "round": 0, "position": place, "value": value} for place, value in enumerate(steps)
    ]
    return {"size": size, "dtype": "bf16", "warmup": "false", "samples": samples, **changes}


def sweep() -> list[dict[str, Any]]:
    """Runs of a sweep: eager and compiled over size, two cold points, one out of memory and one skipped."""
    return [
        *(warm(*each) for each in EAGER),
        *(warm(*each, compile="true") for each in COMPILED),
        cold(64, 18.5),
        cold(4096, 230.0),
        {"size": 65536, "dtype": "bf16", "status": "oom", "reason": "CUDA out of memory: tried to allocate 8 GiB"},
        {"size": 65536, "dtype": "bf16", "compile": "true", "status": "skipped", "reason": "a step would take 9.1 s"},
    ]


def h200_store(folder: Path) -> Path:
    """Write the sweep as a store and return its folder."""
    return write_store(folder, runs=sweep(), environments=[ENVIRONMENT], roofs=ROOFS)
