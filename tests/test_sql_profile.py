"""Steps, kernels and perturbation of a small given trace; times in the trace are nanoseconds."""

from pathlib import Path
from typing import Any

import pytest
from given import write_store

from analysis.store import open_store


def event(name: str, category: str, start: int, end: int, step: int | None = 1, **more: Any) -> dict[str, Any]:
    """An event from start to end; kernels, copies and fills are work of the device."""
    device = {"is_device": True, "device": 0, "stream": 7} if category in ("kernel", "gpu_memcpy", "gpu_memset") else {}
    times = {"ts_ns": start, "dur_ns": end - start, "step": step}
    return {"name": name, "category": category, "is_device": False, **times, **device, **more}


TRACE = [
    event("ProfilerStep#1", "user_annotation", 1_000, 60_000),
    event("matmul_add", "user_annotation", 10_000, 50_000),
    event("matmul_add", "gpu_user_annotation", 20_000, 90_000),
    event("aten::outside", "cpu_op", 5_000, 6_000),
    event("aten::matmul", "cpu_op", 12_500, 30_000),
    event("cudaLaunchKernel", "cuda_runtime", 15_000, 16_000),
    event("cuLaunchKernelEx", "cuda_driver", 17_000, 18_000),
    event("cudaMemcpyAsync", "cuda_runtime", 19_000, 20_000),
    event("cudaMemsetAsync", "cuda_runtime", 20_000, 21_000),
    event("cudaGraphLaunch", "cuda_runtime", 21_000, 22_000),
    event("cudaDeviceSynchronize", "cuda_runtime", 22_000, 23_000),
    event("gemm", "kernel", 20_000, 30_000),
    event("gemm", "kernel", 25_000, 40_000, stream=8),
    event("short", "kernel", 26_000, 27_000),
    event("Memcpy DtoD", "gpu_memcpy", 50_000, 52_000),
    event("ProfilerStep#2", "user_annotation", 100_000, 130_000, step=2),
    event("lost", "kernel", 200_000, 210_000, step=None),
]


def test_steps(tmp_path: Path) -> None:
    """Host time of the workload's annotation, busy time as the union of all streams, launches by kind."""
    query = """
        SELECT step, host_us, busy_us, kernel_launches, memcpy_launches, memset_launches, graph_launches, kernels,
            first_operation_gap_us
        FROM steps ORDER BY step
    """
    with open_store(write_store(tmp_path, runs=[{}], events=TRACE)) as connection:
        assert connection.sql(query).fetchall() == [
            (1, 40.0, 22.0, 2, 1, 1, 1, 3, 2.5),
            (2, 30.0, None, 0, 0, 0, 0, 0, None),
        ]


LIMITS = {
    "multiprocessors": 10,
    "threads_per_multiprocessor": 2048,
    "registers_per_multiprocessor": 65536,
    "shared_memory_per_multiprocessor_bytes": 100_000,
}


def kernel(name: str, dur_ns: int, **more: Any) -> dict[str, Any]:
    """A kernel of 40 blocks of 256 threads, 32 registers and no shared memory."""
    launch = {"grid": [4, 5, 2], "block": [128, 2, 1], "registers_per_thread": 32, "shared_memory_bytes": 0}
    return event(name, "kernel", 0, dur_ns, **{**launch, **more})


def test_kernels(tmp_path: Path) -> None:
    """One row a name, grid and block; the scarcest of threads, registers and shared memory limits the resident blocks.

    256 threads: 8 blocks by threads. 64 registers: 4 by registers. 30,000 bytes: 3 by shared memory. 40 blocks on 10
    multiprocessors that hold 8 each are half a wave.
    """
    events = [
        kernel("threads", 2_000),
        kernel("threads", 6_000),
        kernel("threads", 10_000, grid=[1, 1, 1]),
        kernel("registers", 1_000, registers_per_thread=64),
        kernel("shared", 1_000, shared_memory_bytes=30_000),
        kernel("unknown", 1_000, registers_per_thread=None),
    ]
    query = """
        SELECT name, blocks, threads_per_block, calls, total_us, median_us, min_us, max_us,
            resident_blocks, occupancy, waves
        FROM kernels ORDER BY name, blocks
    """
    with open_store(write_store(tmp_path, runs=[{}], events=events, environments=[LIMITS])) as connection:
        assert connection.sql(query).fetchall() == [
            ("registers", 40, 256, 1, 1.0, 1.0, 1.0, 1.0, 4, 0.5, 1.0),
            ("shared", 40, 256, 1, 1.0, 1.0, 1.0, 1.0, 3, 0.375, pytest.approx(4 / 3)),
            ("threads", 1, 256, 1, 10.0, 10.0, 10.0, 10.0, 8, 1.0, 0.0125),
            ("threads", 40, 256, 2, 8.0, 4.0, 2.0, 6.0, 8, 1.0, 0.5),
            ("unknown", 40, 256, 1, 1.0, 1.0, 1.0, 1.0, None, None, None),
        ]


def test_occupancy_without_limits_is_unknown(tmp_path: Path) -> None:
    """An environment that does not know its limits gives no occupancy, and no guess."""
    with open_store(write_store(tmp_path, runs=[{}], events=[kernel("k", 1_000)], environments=[{}])) as connection:
        assert connection.sql("SELECT name, occupancy, waves FROM kernels").fetchall() == [("k", None, None)]


def test_perturbation(tmp_path: Path) -> None:
    """Profiled against unprofiled host time: issue + blocked on an asynchronous device, wall on the CPU."""
    profiled = {"profile": {"profiled_host_us": 36}}
    runs = [
        {"issue_us": 18, "wall_us": 99, "facts": profiled},
        {"issue_us": 10, "blocked_us": 8, "wall_us": 99, "facts": profiled},
        {"device": "cpu", "wall_us": 12, "floor_us": 4, "facts": profiled},
        {"facts": {**profiled, "reasons": {"issue_us": "queue-full"}}},
        {"issue_us": 18, "facts": {"profile": {"reason": "no CUPTI"}}},
        {"status": "failed"},
    ]
    query = "SELECT run_id, unprofiled_host_us, perturbation, reason FROM perturbation ORDER BY run_id"
    with open_store(write_store(tmp_path, runs=runs)) as connection:
        assert connection.sql(query).fetchall() == [
            ("r000", 18.0, 2.0, None),
            ("r001", 18.0, 2.0, None),
            ("r002", 12.0, 3.0, None),
            ("r003", None, None, "queue-full"),
            ("r004", 18.0, None, "no CUPTI"),
        ]
