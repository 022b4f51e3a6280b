"""The relation allocator on small given rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from given import write_store

from analysis.store import open_store

ALLOCATOR = {
    "first_device_allocs": [6, 2, 0], "first_device_frees": [0, 0, 0], "settings": {}, "segments": 9,
    "free_bytes": 100, "largest_free_bytes": 40, "warm_us": 300, "cold_us": 2300, "release_us": 900,
    "cold_device_allocs": 5, "released_segments": 6,
}  # fmt: skip
MEMORY = {
    "reserved_bytes": 400, "allocated_bytes": 300, "reserved_peak_bytes": 420, "allocated_peak_bytes": 350,
    "inactive_split_bytes": 40, "alloc_retries": 0, "device_allocs": 0.0, "device_frees": 0.0,
}  # fmt: skip


def row(folder: Path, columns: str, facts: dict[str, Any], **run: Any) -> tuple[Any, ...]:
    """What the relation says of one run."""
    with open_store(write_store(folder, runs=[{**run, "facts": facts}])) as connection:
        (found,) = connection.execute(f"SELECT {columns} FROM allocator").fetchall()
    return found


def test_calls_of_the_driver_and_what_they_cost(tmp_path: Path) -> None:
    """6 in the first cycle, 2 in later ones, none in a steady step; 5 of them cost a cold step 2 ms, 400 us each."""
    facts = {"first_cycles_us": [9000, 500, 310], "allocator": ALLOCATOR, "memory": MEMORY}
    columns = (
        "first_cycle_us, first_device_allocs, later_device_allocs, first_cycles, device_allocs, cold_loss_us, "
        "alloc_us, free_us, pool, reason"
    )
    assert row(tmp_path, columns, facts) == (9000, 6, 2, 3, 0, 2000, 400, 150, "none", None)


def test_fragmentation_is_what_the_largest_piece_lacks(tmp_path: Path) -> None:
    """40 of 100 free bytes are one piece; 40 of 400 reserved lie between tensors; the peaks are 420 and 350."""
    facts = {"allocator": ALLOCATOR, "memory": MEMORY}
    columns = "fragmentation_frac, split_frac, reserved_over_allocated"
    assert row(tmp_path, columns, facts) == pytest.approx((0.6, 0.1, 1.2))


def test_what_nothing_is_free_of_has_no_fragments(tmp_path: Path) -> None:
    """Without free memory its largest piece says nothing; a step that asks for nothing has no cost a call."""
    quiet = {**ALLOCATOR, "free_bytes": 0, "largest_free_bytes": 0, "cold_device_allocs": 0}
    assert row(tmp_path, "fragmentation_frac, cold_loss_us, alloc_us", {"allocator": quiet}) == (None, None, None)


def test_pools_and_settings_tell_runs_apart(tmp_path: Path) -> None:
    """The pool is an axis of the workload; the allocator's settings come from the worker's environment."""
    settings = {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"}
    facts = {"allocator": {**ALLOCATOR, "settings": settings}}
    found = row(tmp_path, "pool, allocator_settings", facts, params={"pool": "warmup"})
    assert found == ("warmup", '{"PYTORCH_CUDA_ALLOC_CONF":"expandable_segments:True"}')


@pytest.mark.parametrize(
    ("run", "facts", "reason"),
    [
        ({"device": "cpu"}, {"first_cycles_us": [1.0]}, "on the CPU torch counts no calls of an allocator"),
        ({}, {}, "the run was recorded without it"),
        ({"status": "oom", "reason": "too big"}, {}, "oom: too big"),
        ({}, {"allocator": {"reason": "RuntimeError: no snapshot"}}, "RuntimeError: no snapshot"),
    ],
)
def test_what_is_unknown_has_its_reason(
    tmp_path: Path, run: dict[str, Any], facts: dict[str, Any], reason: str
) -> None:
    """No counter is zero because nobody counted."""
    columns = "first_device_allocs, device_allocs, cold_us, fragmentation_frac, reason"
    assert row(tmp_path, columns, facts, **run) == (None, None, None, None, reason)
