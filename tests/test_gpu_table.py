"""The profiler's table on CUDA: device times, memory and calls of every row as torch has them where it is right."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("duckdb")
pytest.importorskip("msgspec")

import torch
from tabled import Difference, Key, differences, ours, profiled, torchs
from torch.profiler import ProfilerActivity, record_function

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
]

BOTH = [ProfilerActivity.CPU, ProfilerActivity.CUDA]


def matmul_add() -> Callable[[], Any]:
    """Twenty steps of the article's operation."""
    x, b = (torch.randn(1024, 1024, device="cuda") for _ in range(2))

    def program() -> None:
        for _ in range(20):
            with record_function("matmul_add"):
                torch.add(x @ x, b)
        torch.cuda.synchronize()

    return program


def training() -> Callable[[], Any]:
    """Three steps of a small network, whose backward runs on a thread of its own."""
    model = torch.nn.Sequential(torch.nn.Linear(256, 512), torch.nn.GELU(), torch.nn.Linear(512, 16)).cuda()
    optimizer, data = torch.optim.Adam(model.parameters()), torch.randn(64, 256, device="cuda")

    def program() -> None:
        for _ in range(3):
            optimizer.zero_grad()
            with record_function("forward"):
                loss = model(data).square().mean()
            loss.backward()
            optimizer.step()
        torch.cuda.synchronize()

    return program


def compiled() -> Callable[[], Any]:
    """A product and a fused kernel behind torch.compile."""
    x = torch.randn(1024, 1024, device="cuda")
    function = torch.compile(lambda a: torch.relu(a @ a + a).sin() * 2)

    def program() -> None:
        for _ in range(5):
            with record_function("compiled"):
                function(x)
        torch.cuda.synchronize()

    return program


def item() -> Callable[[], Any]:
    """A step that waits for its result."""
    x = torch.randn(1024, 1024, device="cuda")

    def program() -> None:
        for _ in range(5):
            with record_function("item"):
                (x @ x).sum().item()

    return program


@pytest.mark.parametrize("memory", [False, True], ids=["times", "memory"])
@pytest.mark.parametrize("made", [matmul_add, training, compiled, item])
def test_rows_are_those_of_torch(tmp_path: Path, made: Callable[[], Callable[[], Any]], memory: bool) -> None:
    """But for the device time that torch gives to the profiler's own work as well, every figure is alike."""
    program = made()
    program()
    program()
    torch.cuda.synchronize()
    prof = profiled(program, BOTH, profile_memory=memory)
    rows, theirs = ours(prof, tmp_path), torchs(prof)
    found = differences(rows, theirs)
    assert [each for each in found if not is_given_to_the_profiler(each, rows, theirs)] == []


def is_given_to_the_profiler(difference: Difference, rows: dict[Key, dict[str, Any]], theirs: dict[Key, Any]) -> bool:
    """Whether a device time is too large by what torch gives to the profiler's own rows, some or all of it."""
    _, attribute, torch_us, own_us = difference
    profilers = [key for key, row in rows.items() if row["kind"] == "profiler"]
    given_us = sum(theirs[key].self_device_time_total for key in profilers)
    return attribute.endswith("device_time_total") and 0 < torch_us - own_us <= given_us + 0.01


def test_the_device_total_is_that_of_the_work(tmp_path: Path) -> None:
    """torch's Self CUDA time total is the sum of kernels, copies and fills: shadows of annotations are none of it."""
    program = matmul_add()
    program()
    prof = profiled(program, BOTH)
    rows, theirs = ours(prof, tmp_path), torchs(prof)
    work = sum(row["self_device_us"] for row in rows.values() if row["kind"] == "work")
    total = sum(row.self_device_time_total for key, row in theirs.items() if key[1] and not key[2])
    assert work == pytest.approx(total, abs=1)
    assert rows["matmul_add", True, True, ""]["device_us"] > work
