"""Rules of memory: each with a case where it fires, and a near miss."""

import json
from pathlib import Path
from typing import Any

from rule_given import Trace, outcome

MIB, GIB = 2**20, 2**30


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
    counts = {"allocated_bytes": 4 * GIB, "reserved_bytes": 8 * GIB, "inactive_split_bytes": 0, "alloc_retries": 0}
    peaks = {"allocated_peak_bytes": 7 * GIB, "reserved_peak_bytes": 8 * GIB}
    return {"facts": {"memory": {**counts, **peaks, **counters}}}


def test_allocator_retries_fires(tmp_path: Path) -> None:
    """Number of retries, and the peaks."""
    found = outcome(tmp_path, "allocator_retries", Trace(), memory(alloc_retries=3))
    assert found["outcome"] == "fired"
    assert "tried again 3 times, at a peak of 7.00 GiB allocated and 8.00 GiB reserved" in found["sentence"]


def test_allocator_retries_near_miss(tmp_path: Path) -> None:
    """None; and a run that counted nothing has nothing to say."""
    assert outcome(tmp_path / "none", "allocator_retries", Trace(), memory())["outcome"] == "clear"
    assert outcome(tmp_path / "old", "allocator_retries", Trace())["outcome"] == "not applicable"


def test_fragmentation_fires(tmp_path: Path) -> None:
    """3 of 8 GiB lie between tensors."""
    found = outcome(tmp_path, "fragmentation", Trace(), memory(inactive_split_bytes=3 * GIB))
    assert found["outcome"] == "fired"
    told = "Of 8.00 GiB that the allocator holds, 4.00 GiB are in tensors, and 3.00 GiB lie in pieces"
    assert told in found["sentence"]


def test_fragmentation_near_miss(tmp_path: Path) -> None:
    """A quarter; and a large share of little memory."""
    quarter = memory(inactive_split_bytes=2 * GIB)
    assert outcome(tmp_path / "a", "fragmentation", Trace(), quarter)["outcome"] == "clear"
    little = memory(reserved_bytes=2 * GIB, inactive_split_bytes=GIB)
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
    trace = moments((10, MIB, 3 * MIB), (40, 2 * MIB, 5 * MIB), (60, -3 * MIB, 2 * MIB))
    found = outcome(tmp_path, "peak_in_step", trace)
    assert found["outcome"] == "fired"
    assert "at its peak of 5.00 MiB 40.0 us into the step (40.0 % of its host time), in aten::mm" in found["sentence"]
    assert "3.00 MiB more than before the step" in found["sentence"]


def test_peak_in_step_near_miss(tmp_path: Path) -> None:
    """Memory that only falls has no peak in the step; without such events the rule does not apply."""
    falling = moments((10, -1_000_000, 2_000_000))
    assert outcome(tmp_path / "falls", "peak_in_step", falling)["outcome"] == "clear"
    assert outcome(tmp_path / "none", "peak_in_step", moments())["outcome"] == "not applicable"
