"""Rules of memory: each with a case where it fires, and a near miss."""

import json
from pathlib import Path
from typing import Any

from rule_given import Trace, outcome


def steps_with_call(name: str, *steps: int) -> Trace:
    """Four steps; in `steps` a call of this name takes 300 us."""
    trace = Trace()
    for step in range(4):
        at = 1000.0 * step
        trace.step(step, at, 500)
        trace.host("aten::mm", at + 5, 10, step)
        trace.launched("gemm", at + 6, at + 20, 10, step)
        if step in steps:
            trace.call(name, at + 100, 300, step)
    return trace


def test_malloc_in_step_fires(tmp_path: Path) -> None:
    """In a step behind the first: number, names and time of all calls."""
    found = outcome(tmp_path, "malloc_in_step", steps_with_call("cudaMalloc", 0, 2))
    assert found["outcome"] == "fired"
    assert "2 calls inside the steps (cudaMalloc) take 600 us" in found["sentence"]


def test_malloc_in_step_near_miss(tmp_path: Path) -> None:
    """In the first step alone it is the start; a query of the free memory allocates nothing."""
    first = outcome(tmp_path / "first", "malloc_in_step", steps_with_call("cudaMalloc", 0))
    assert first["outcome"] == "clear"
    assert "its start" in first["reason"]
    assert outcome(tmp_path / "info", "malloc_in_step", steps_with_call("cudaMemGetInfo", 2))["outcome"] == "clear"


def test_host_memory_in_step_fires(tmp_path: Path) -> None:
    """Pinned memory, allocated inside a step."""
    found = outcome(tmp_path, "host_memory_in_step", steps_with_call("cudaHostAlloc", 1))
    assert found["outcome"] == "fired"
    assert "1 call inside the steps (cudaHostAlloc)" in found["sentence"]


def test_host_memory_in_step_near_miss(tmp_path: Path) -> None:
    """Memory of the device is another rule's."""
    assert outcome(tmp_path, "host_memory_in_step", steps_with_call("cudaMalloc", 1))["outcome"] == "clear"


def memory(**counters: int) -> dict[str, Any]:
    """A run whose allocator counted this."""
    counts = {"allocated_bytes": 4e9, "reserved_bytes": 8e9, "inactive_split_bytes": 0, "alloc_retries": 0}
    return {"facts": {"memory": {**counts, "allocated_peak_bytes": 7e9, "reserved_peak_bytes": 8e9, **counters}}}


def test_allocator_retries_fires(tmp_path: Path) -> None:
    """Number of retries, and the peaks."""
    found = outcome(tmp_path, "allocator_retries", Trace(), memory(alloc_retries=3))
    assert found["outcome"] == "fired"
    assert "tried again 3 times, at a peak of 7.00 GB allocated and 8.00 GB reserved" in found["sentence"]


def test_allocator_retries_near_miss(tmp_path: Path) -> None:
    """None; and a run that counted nothing has nothing to say."""
    assert outcome(tmp_path / "none", "allocator_retries", Trace(), memory())["outcome"] == "clear"
    assert outcome(tmp_path / "old", "allocator_retries", Trace())["outcome"] == "not applicable"


def test_fragmentation_fires(tmp_path: Path) -> None:
    """3 of 8 GB lie between tensors."""
    found = outcome(tmp_path, "fragmentation", Trace(), memory(inactive_split_bytes=3_000_000_000))
    assert found["outcome"] == "fired"
    assert "Of 8.00 GB that the allocator holds, 4.00 GB are in tensors, and 3.00 GB lie in pieces" in found["sentence"]


def test_fragmentation_near_miss(tmp_path: Path) -> None:
    """A quarter; and a large share of little memory."""
    assert (
        outcome(tmp_path / "a", "fragmentation", Trace(), memory(inactive_split_bytes=2 * 10**9))["outcome"] == "clear"
    )
    little = memory(reserved_bytes=10**9, inactive_split_bytes=9 * 10**8)
    assert outcome(tmp_path / "b", "fragmentation", Trace(), little)["outcome"] == "clear"


def moments(*allocations: tuple[float, int, int], device_type: int = 1) -> Trace:
    """Four steps of 100 us in which aten::mm allocates and frees: (us into the step, bytes, allocated then)."""
    trace = Trace()
    for step in range(4):
        at = 1000.0 * step
        trace.step(step, at, 100)
        trace.host("aten::mm", at + 5, 90, step)
        for moment, change, total in allocations:
            args = json.dumps({"Device Type": device_type, "Total Allocated": total})
            trace.host("[memory]", at + moment, 0, step, "cpu_instant_event", bytes=change, args=args)
    return trace


def test_peak_in_step_fires(tmp_path: Path) -> None:
    """The highest of three moments, who allocated there, and how much more than before the step."""
    trace = moments((10, 1_000_000, 3_000_000), (40, 2_000_000, 5_000_000), (60, -3_000_000, 2_000_000))
    found = outcome(tmp_path, "peak_in_step", trace)
    assert found["outcome"] == "fired"
    assert "at its peak of 5.00 MB 40.0 us into the step (40.0 % of its host time), in aten::mm" in found["sentence"]
    assert "3.00 MB more than before the step" in found["sentence"]


def test_peak_in_step_near_miss(tmp_path: Path) -> None:
    """Memory that only falls has no peak in the step; without such events the rule does not apply."""
    falling = moments((10, -1_000_000, 2_000_000))
    assert outcome(tmp_path / "falls", "peak_in_step", falling)["outcome"] == "clear"
    assert outcome(tmp_path / "none", "peak_in_step", moments())["outcome"] == "not applicable"
