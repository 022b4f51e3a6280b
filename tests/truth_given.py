"""Points with an independent check, and pairs of points that differ in what they do."""

from __future__ import annotations

from typing import Any

Row = dict[str, Any]

ELEMENTS = 2**26
ROOFS = ({"roof": "flops", "dtype": "fp32", "value_per_s": 5e13}, {"roof": "dram", "value_per_s": 4e12})


def around(value: float, reach: float = 0.1) -> tuple[float, float, float]:
    """A value with an interval that reaches so far either way."""
    return value, value - reach, value + reach


def point(**changes: Any) -> Row:
    """An overhead-bound point of two launches that its slopes confirm; changes of `facts` add to the rest."""
    facts = {
        "device_method": "held",
        "profile": {"launches": 2, "profiled_host_us": 40},
        **changes.pop("facts", {}),
    }
    return {
        "wall_us": 20, "issue_us": 20, "device_us": 10, "busy_us": 7, "replay_us": 8, "margin": around(2.0),
        "host_slope": around(1.0), "device_slope": around(0.0), "facts": facts, **changes,
    }  # fmt: skip


def device_bound(**changes: Any) -> Row:
    """A device-bound point that its slopes confirm."""
    slopes = {"host_slope": around(0.0), "device_slope": around(1.0)}
    times = {"wall_us": 30, "issue_us": 20, "device_us": 30, "busy_us": 27, "replay_us": 28, "margin": around(0.67)}
    return point(**{**times, **slopes, **changes})


def fused(ops: int, reads: int, wall: float) -> Row:
    """A compiled point of one operation: `ops` FLOPs and `reads` + 1 elements moved an element."""
    operation = {"name": "fused", "flops": ops * ELEMENTS, "bytes": 4 * (reads + 1) * ELEMENTS}
    return {
        "workload": "intensity", "compile": "true", "size": 65536, "params": {"ops": ops, "reads": reads},
        "wall_us": wall, "issue_us": 40, "device_us": wall, "facts": {"cost": {"operations": [operation]}},
    }  # fmt: skip
