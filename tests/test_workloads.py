"""runner.workloads: what a step computes, what it costs, and that its description needs no torch."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from runner.point import WARM_SCHEDULE, Point
from runner.workloads import WORKLOADS, Cost, Operation

ROOT = Path(__file__).parent.parent


def point(workload: str = "matmul_add", size: int = 4, **changes: Any) -> Point:
    """A small point on the CPU."""
    values = {
        "params": (), "dtype": "fp32", "batch": None, "compile": False, "dynamic": False, "warmup": True,
        "device": "cpu", "schedule": WARM_SCHEDULE, "l2": "warm", "threads": None, "seed": 0, **changes,
    }  # fmt: skip
    return Point(workload=workload, size=size, **values)


POINTS = [
    point(), point(batch=3), point("matmul_item"), point("addmm", params=(("bias", 1),)),
    point("addmm", params=(("bias", 2),)), point("addmm", params=(("bias", 1),), batch=3),
    point("addmm", params=(("bias", 2),), batch=3), point("elementwise", params=(("ops", 3),)),
    point("elementwise", params=(("ops", 2),), batch=2), point("intensity", params=(("ops", 17), ("reads", 1))),
    point("intensity", params=(("ops", 16), ("reads", 8)), batch=2),
]  # fmt: skip


def inputs(given: Point, seed: int = 0) -> tuple[torch.Tensor, ...]:
    """The inputs of a point."""
    return given.spec.inputs(given, torch.device("cpu"), torch.Generator().manual_seed(seed))


def operations(cost: Cost | None) -> list[tuple[str, int, int]]:
    """Operations as plain tuples."""
    assert cost is not None
    return [(each.name, each.flops, each.bytes) for each in cost.operations]


@pytest.mark.parametrize("given", POINTS, ids=lambda each: each.label)
def test_inputs_have_the_stated_shapes_and_are_normal(given: Point) -> None:
    """Shapes as described, the batch leading; the same seed gives the same numbers, another others, none is zero."""
    tensors = inputs(given)
    assert tuple(tuple(each.shape) for each in tensors) == given.spec.shapes(given)
    assert all(torch.equal(one, other) for one, other in zip(tensors, inputs(given), strict=True))
    assert not torch.equal(tensors[0], inputs(given, 1)[0])
    assert all(bool((each != 0).all()) for each in tensors)


def test_inputs_are_standard_normal() -> None:
    """Mean 0, deviation 1: zeros would be faster than anything real."""
    (x, *_) = inputs(point(size=128))
    assert abs(x.mean().item()) < 0.05 and abs(x.std().item() - 1) < 0.05


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [("fp32", torch.float32), ("tf32", torch.float32), ("bf16", torch.bfloat16), ("fp16", torch.float16)],
)
def test_dtypes_are_torchs(dtype: str, expected: torch.dtype) -> None:
    """tf32 is fp32 in memory."""
    assert {each.dtype for each in inputs(point(dtype=dtype))} == {expected}


@pytest.mark.parametrize("batch", [None, 3])
def test_matmul_add_computes_its_formula(batch: int | None) -> None:
    """x w + b, for each of the batch."""
    given = point(batch=batch)
    x, w, b = inputs(given)
    torch.testing.assert_close(given.spec.function(given)(x, w, b), x @ w + b)


def test_matmul_item_gives_a_number() -> None:
    """One element, on the host."""
    given = point("matmul_item")
    x, w, b = inputs(given)
    value = given.spec.function(given)(x, w, b)
    assert isinstance(value, float)
    assert value == pytest.approx((x @ w + b)[0, 0].item())


@pytest.mark.parametrize(("bias", "batch"), [(1, None), (2, None), (1, 3), (2, 3)])
def test_addmm_computes_its_formula(bias: int, batch: int | None) -> None:
    """bias + x w with a bias of either rank, and in a batch."""
    given = point("addmm", params=(("bias", bias),), batch=batch)
    b, x, w = inputs(given)
    assert b.dim() == (1 if bias == 1 else 2 + (batch is not None))
    torch.testing.assert_close(given.spec.function(given)(b, x, w), x @ w + b)


def test_elementwise_stays_finite() -> None:
    """1,024 operations in turn tend to 2 and overflow in no dtype."""
    given = point("elementwise", params=(("ops", 1024),), size=1, dtype="fp16")
    (x,) = inputs(given)
    y = given.spec.function(given)(x)
    torch.testing.assert_close(y, torch.full_like(y, 2), rtol=0.01, atol=0.01)


def test_elementwise_does_as_many_operations_as_it_says() -> None:
    """ops=3: times 0.75, plus 0.5, times 0.75."""
    given = point("elementwise", params=(("ops", 3),))
    (x,) = inputs(given)
    torch.testing.assert_close(given.spec.function(given)(x), (x * 0.75 + 0.5) * 0.75)


def test_intensity_does_as_many_operations_as_it_says() -> None:
    """ops=17, reads=2: eight times (y 0.75 + an input in turn), and once more times 0.75."""
    given = point("intensity", params=(("ops", 17), ("reads", 2)), size=1)
    first, second = inputs(given)
    expected = first
    for each in (first, second) * 4:
        expected = expected * 0.75 + each
    torch.testing.assert_close(given.spec.function(given)(first, second), expected * 0.75)


@pytest.mark.parametrize("reads", [1, 8])
def test_intensity_stays_finite_and_reads_every_input(reads: int) -> None:
    """4,096 operations overflow in no dtype; the result changes with any of the inputs."""
    given = point("intensity", params=(("ops", 4096), ("reads", reads)), size=1, dtype="fp16")
    tensors = inputs(given)
    step = given.spec.function(given)
    assert step(*tensors).isfinite().all()
    for place in range(reads):
        changed = [each + 1 if number == place else each for number, each in enumerate(tensors)]
        assert not torch.equal(step(*changed), step(*tensors))


def test_costs_of_matmul_add() -> None:
    """n = 4 in fp32: 2 n^3 and n^2 FLOPs; eager moves 3 n^2 elements each, compiled 4 n^2 in one operation."""
    eager, fused = point().spec.cost(point()), point(compile=True).spec.cost(point(compile=True))
    assert operations(eager) == [("matmul", 128, 3 * 16 * 4), ("add", 16, 3 * 16 * 4)]
    assert operations(fused) == [("addmm", 144, 4 * 16 * 4)]
    assert eager is not None and fused is not None
    assert eager.bytes_min == fused.bytes_min == 4 * 16 * 4
    assert (eager.working_set_bytes, fused.working_set_bytes) == (5 * 16 * 4, 4 * 16 * 4)


def test_costs_grow_with_batch_and_element() -> None:
    """A batch of 8 costs 8 times as much, bf16 moves half the bytes."""
    one, eight, half = (point(**each).spec.cost(point(**each)) for each in ({}, {"batch": 8}, {"dtype": "bf16"}))
    assert operations(eight) == [(name, 8 * flops, 8 * moved) for name, flops, moved in operations(one)]
    assert operations(half) == [(name, flops, moved // 2) for name, flops, moved in operations(one)]


def test_costs_of_addmm() -> None:
    """One operation; a 1-D bias is n elements, with a batch as well."""
    vector, matrix = point("addmm", params=(("bias", 1),)), point("addmm", params=(("bias", 2),))
    batched = point("addmm", params=(("bias", 1),), batch=3)
    assert operations(vector.spec.cost(vector)) == [("addmm", 144, (48 + 4) * 4)]
    assert operations(matrix.spec.cost(matrix)) == [("addmm", 144, (48 + 16) * 4)]
    assert operations(batched.spec.cost(batched)) == [("addmm", 3 * 144, (3 * 48 + 4) * 4)]


def test_costs_of_elementwise() -> None:
    """Every operation reads and writes the tensor; compiled, one pass does them all."""
    given = point("elementwise", params=(("ops", 3),), size=2)
    once = 2 * 2 * 1024 * 4
    eager = given.spec.cost(given)
    assert operations(eager) == [("mul", 2048, once), ("add", 2048, once), ("mul", 2048, once)]
    assert eager is not None and eager.bytes_min == once
    fused = point("elementwise", params=(("ops", 3),), size=2, compile=True)
    assert operations(fused.spec.cost(fused)) == [("fused", 3 * 2048, once)]


def test_costs_of_intensity() -> None:
    """Eager, products move 2 tensors and sums 3; compiled, every input and the result once, whatever ops is."""
    given = point("intensity", params=(("ops", 16), ("reads", 3)), size=2)
    tensor = 2 * 1024 * 4
    eager = given.spec.cost(given)
    assert operations(eager) == [("mul", 2048, 2 * tensor), ("add", 2048, 3 * tensor)] * 8
    assert eager is not None and (eager.bytes_min, eager.working_set_bytes) == (4 * tensor, 5 * tensor)
    for ops in (16, 512):
        fused = point("intensity", params=(("ops", ops), ("reads", 3)), size=2, compile=True)
        assert operations(fused.spec.cost(fused)) == [("fused", ops * 2048, 4 * tensor)]


PRODUCTS = [each for each in POINTS if each.workload not in ("elementwise", "intensity")]


@pytest.mark.parametrize("given", PRODUCTS, ids=lambda each: each.label)
def test_flops_of_products_are_torchs(given: Point) -> None:
    """torch's own counter, which counts products alone, agrees with 2 m n k."""
    cost, tensors = given.spec.cost(given), inputs(given)
    with FlopCounterMode(display=False) as counter:
        given.spec.function(given)(*tensors)
    elements = (given.batch or 1) * (given.size or 0) ** 2
    assert counter.get_total_flops() == sum(flops for _, flops, _ in operations(cost)) - elements


def test_bytes_are_those_of_the_tensors() -> None:
    """bytes_min of a fused step = its inputs and its output, each once."""
    for given in POINTS:
        if given.workload != "matmul_item":
            tensors = inputs(given)
            out = given.spec.function(given)(*tensors)
            cost = given.spec.cost(given)
            assert cost is not None
            moved = sum(each.numel() * each.element_size() for each in (*tensors, out))
            assert cost.bytes_min == moved, given.label


def test_noop_costs_nothing_known() -> None:
    """No cost model, no inputs, no result."""
    given = point("noop")
    assert given.spec.cost(given) is None
    assert given.spec.shapes(given) == ()
    assert given.spec.function(given)() is None


def test_floors_are_smaller_than_any_work() -> None:
    """The floor size of a workload is a size that a point may have."""
    for workload in WORKLOADS.values():
        assert workload.floor_size in (1, 2)
    assert WORKLOADS["matmul_add"].floor_size == 2


def test_costs_are_values() -> None:
    """Equal costs are equal."""
    assert Operation("add", 1, 2) == Operation("add", 1, 2)


# -- the seam ---------------------------------------------------------------------------------------------------------

WITHOUT_TORCH = (
    "point", "workloads", "config", "composition", "errors", "launch", "process", "task", "law", "store", "tables",
    "progress", "rounds", "statistics", "clock", "trace", "window", "condition", "environment", "host", "nvml",
)  # fmt: skip


def loaded_by(code: str) -> set[str]:
    """Top-level packages that a fresh interpreter holds after some code."""
    script = f"{code}\nimport sys; print(*{{name.partition('.')[0] for name in sys.modules}})"
    told = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=ROOT)
    return set(told.stdout.split())


def test_the_parent_imports_no_torch() -> None:
    """A sweep's parent, a point, a verdict and the store need neither torch nor the analysis's libraries."""
    loaded = loaded_by("import runner.__main__, " + ", ".join(f"runner.{name}" for name in WITHOUT_TORCH))
    assert not loaded & {"torch", "duckdb", "altair", "pyarrow", "pandas", "numpy", "analysis"}


def test_the_worker_imports_nothing_of_the_analysis() -> None:
    """What measures imports torch, and neither Hydra nor polars: their threads would share its CPUs."""
    loaded = loaded_by("import runner.worker, runner.measure, runner.roofs, runner.device")
    assert "torch" in loaded
    assert not loaded & {"duckdb", "altair", "pyarrow", "analysis", "hydra", "polars"}


def imports_of(folder: str) -> dict[str, set[str]]:
    """File -> top-level packages that it imports anywhere, functions included."""
    found: dict[str, set[str]] = {}
    for path in (ROOT / folder).rglob("*.py"):
        nodes = list(ast.walk(ast.parse(path.read_text())))
        plain = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
        of = {node.module for node in nodes if isinstance(node, ast.ImportFrom) and node.module and not node.level}
        found[str(path)] = {name.partition(".")[0] for name in plain | of}
    return found


@pytest.mark.parametrize(
    ("folder", "forbidden"),
    [
        ("runner", {"analysis", "duckdb", "altair", "pyarrow", "numpy", "pandas"}),
        ("analysis", {"runner", "torch", "pyarrow", "numpy", "pandas"}),
    ],
)
def test_runner_and_analysis_never_import_each_other(folder: str, forbidden: set[str]) -> None:
    """Parquet is the only seam, also for imports inside of functions."""
    wrong = {path: names & forbidden for path, names in imports_of(folder).items() if names & forbidden}
    assert wrong == {}
    assert len(imports_of(folder)) > 5
