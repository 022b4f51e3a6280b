"""Configurations, jobs and plans without Hydra: the defaults of conf/, some of them changed."""

from __future__ import annotations

import copy
from typing import Any

from runner.config import Job
from runner.plan import Plan

DEFAULTS: dict[str, Any] = {
    "workload": {"name": "matmul_add"}, "size": 1024, "dtype": "auto", "batch": None, "compile": False,
    "dynamic": False, "warmup": True, "device": "auto", "schedule": None, "l2": "warm", "threads": None, "seed": 0,
    "static_inputs": False,
    "python": None, "env": {},
    "measure": {"name": "default", "target_frac": 0.02, "limit_s": 1, "slopes_every": 8},
    "profiler": {
        "record_shapes": True, "profile_memory": False, "with_stack": False, "with_modules": False, "tool": "torch",
    },
    "nvtx": None,
    "max_step_s": 5, "point_timeout": 300, "artifacts": False,
    "store": "outputs/store", "devices": None, "wait": True, "order": "shuffled", "order_seed": 0, "rerun": False,
    "dry_run": False, "on_error": "continue", "skip_after_oom": True, "recycle_after": 500, "memory_limit_gb": None,
    "points": None,
    "search": {
        "axis": None, "low": None, "high": None, "multiple": 1, "tolerance_frac": 0.02, "most_points": 10,
        "most_runs": 14,
    },
}  # fmt: skip


GROUPS = ("measure", "profiler", "search")


def values(**changes: Any) -> dict[str, Any]:
    """A configuration as plain values; of a group, the given keys alone are changed."""
    found = copy.deepcopy(DEFAULTS)
    for key, value in changes.items():
        found[key] = {**found[key], **value} if isinstance(value, dict) and key in GROUPS else value
    return found


def job(**changes: Any) -> Job:
    """A checked job, its device the CPU unless another one is named."""
    return Job.checked(values(**{"device": "cpu", "dtype": "fp32", **changes}))


def plan(*points: dict[str, Any], **changes: Any) -> Plan:
    """A plan of points that differ from each other by these changes."""
    return Plan([values(**changes, **point) for point in points])
