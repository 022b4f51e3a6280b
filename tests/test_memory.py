"""runner.memory: facts from the counters of CUDA's allocator."""

from __future__ import annotations

from runner import memory

BEFORE = {
    "allocated_bytes.all.current": 100, "allocated_bytes.all.peak": 300, "reserved_bytes.all.current": 400,
    "reserved_bytes.all.peak": 500, "inactive_split_bytes.all.current": 20, "num_alloc_retries": 1, "num_ooms": 0,
    "num_device_alloc": 7, "num_device_free": 2,
}  # fmt: skip


def test_the_cpu_counts_nothing() -> None:
    """No counters, no facts: never zeros."""
    assert memory.read("cpu") is None
    assert memory.sizes(None) == memory.troubles(None, BEFORE) == memory.calls(BEFORE, None, 5) == {}


def test_sizes_are_those_of_the_moment() -> None:
    """Peaks, what is given out, what is reserved, and its free parts; a counter that is missing is unknown."""
    assert memory.sizes(BEFORE) == {
        "allocated_peak_bytes": 300, "reserved_peak_bytes": 500, "allocated_bytes": 100, "reserved_bytes": 400,
        "inactive_split_bytes": 20,
    }  # fmt: skip
    assert memory.sizes({"reserved_bytes.all.current": 4})["allocated_bytes"] is None


def test_troubles_are_differences() -> None:
    """Only what happened between the two readings counts."""
    now = {**BEFORE, "num_alloc_retries": 4, "num_ooms": 1}
    assert memory.troubles(BEFORE, now) == {"alloc_retries": 3, "ooms": 1}


def test_calls_are_told_a_step() -> None:
    """Differences over the steps between; unknown where a release of torch lacks the counter."""
    now = {**BEFORE, "num_device_alloc": 17}
    assert memory.calls(BEFORE, now, 5) == {"device_allocs": 2.0, "device_frees": 0.0}
    del now["num_device_free"]
    assert memory.calls(BEFORE, now, 5)["device_frees"] is None
