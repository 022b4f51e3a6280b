"""The workload shape_sequence, the first cycles of a point, and pools of the allocator, here on the CPU."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from configured import job, values
from torch.utils.flop_counter import FlopCounterMode

from runner import allocating, compiling, measure
from runner.clock import host_clock
from runner.device import Cpu
from runner.dynamics import MOST_CYCLES, FirstCycles
from runner.point import Point, PointError
from runner.rounds import Target
from runner.task import Measurement, Recorder, Task
from runner.workloads.base import ITEM_BYTES
from runner.workloads.shapes import WORKSPACE_BYTES, ShapeSequence

ROOT = Path(__file__).parent.parent
CPU = torch.device("cpu")


@pytest.fixture(autouse=True)
def nothing_compiled() -> Iterator[None]:
    """Every test begins and ends with empty caches, as every point does."""
    compiling.forget()
    yield
    compiling.forget()


def point(size: int = 8, **changes: Any) -> Point:
    """A point of few short lengths; `shapes`, `op` and the like are the workload's own."""
    own = {key: changes.pop(key) for key in list(changes) if key in ShapeSequence.params}
    workload = {"name": "shape_sequence", "shapes": 3, "features": 8, **own}
    return job(workload=workload, size=size, **changes).point


def built(given: Point) -> Any:
    """Step and inputs of a point."""
    return measure.build(given, Cpu())


def measured(given: Point, folder: Path) -> Measurement:
    """The point, measured quickly."""
    roofs: dict[tuple[str, str | None], float] = {}
    target = Target("quick", 0.1, 0.05)
    return measure.measure_times(Task(given, target, 60, False, Recorder(), False, roofs, str(folder)), Cpu())


# -- what a step is ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "lengths"),
    [
        ({"size": 8, "spread": 50}, (4, 8, 12)),
        ({"size": 8, "spread": 0}, (8, 8, 8)),
        ({"size": 8, "shapes": 1}, (8,)),
        ({"size": 100, "shapes": 5, "spread": 10}, (90, 95, 100, 105, 110)),
    ],
)
def test_lengths_lie_evenly_about_their_mean(changes: dict[str, Any], lengths: tuple[int, ...]) -> None:
    """`size` is the mean of the lengths of a cycle, `spread` how far they reach from it."""
    assert ShapeSequence().lengths(point(**changes)) == lengths


def test_a_random_order_is_fixed_by_the_seed() -> None:
    """pattern=random: the same lengths in another order, the same at each call, another one with another seed."""
    orders = [ShapeSequence().lengths(point(size=64, shapes=16, pattern="random", seed=seed)) for seed in (0, 0, 1)]
    assert orders[0] == orders[1] != orders[2]
    assert sorted(orders[0]) == list(ShapeSequence().lengths(point(size=64, shapes=16)))


def test_lengths_that_cannot_be_all_different_are_refused() -> None:
    """8 lengths about 4 do not exist; the sentence says what helps."""
    with pytest.raises(PointError, match="no 8 different lengths from 2 on; take a larger size or"):
        point(size=4, shapes=8)


@pytest.mark.parametrize("op", ["mlp", "norm"])
@pytest.mark.parametrize("batch", [None, 2])
def test_a_step_gives_a_row_for_each_length(op: str, batch: int | None) -> None:
    """The result of each length is that of the formula, and a step leaves its inputs as they are."""
    given = point(op=op, batch=batch)
    step = built(given)
    copies = [each.clone() for each in step.arguments]
    results = step.function(*step.arguments)
    *xs, bias = step.arguments if op == "norm" else (*step.arguments[:3], step.arguments[-1])
    for x, result in zip(xs, results, strict=True):
        y = x @ step.arguments[3].T + bias if op == "mlp" else x + bias
        y = torch.nn.functional.gelu(y)
        y = (y - y.mean(-1, keepdim=True)) / (y.var(-1, keepdim=True, correction=0) + 1e-5).sqrt()
        torch.testing.assert_close(result, y.mean(-2), rtol=1e-4, atol=1e-5)
    assert all(torch.equal(one, other) for one, other in zip(copies, step.arguments, strict=True))
    assert len(results) == 3 and results[0].shape == ((8,) if batch is None else (batch, 8))


@pytest.mark.parametrize("batch", [None, 2])
def test_the_cost_is_the_sum_over_the_cycle(batch: int | None) -> None:
    """Products as torch counts them, with the bias; the fewest bytes are those of inputs, parameters and results."""
    given = point(batch=batch)
    step = built(given)
    with FlopCounterMode(display=False) as counter:
        results = step.function(*step.arguments)
    cost = given.spec.cost(given)
    assert cost is not None
    linear = [each for each in cost.operations if each.name == "linear"]
    outputs = (batch or 1) * (4 + 8 + 12) * 8
    assert sum(each.flops for each in linear) == counter.get_total_flops() + outputs
    tensors = (*step.arguments, *results)
    assert cost.bytes_min == ITEM_BYTES["fp32"] * sum(each.numel() for each in tensors)
    fused = given.spec.cost(replace(given, compile=True))
    assert fused is not None and [each.name for each in fused.operations] == ["linear", "fused"] * 3
    assert sum(each.flops for each in fused.operations) == sum(each.flops for each in cost.operations)


def test_the_floor_is_as_many_calls_with_nothing_to_do() -> None:
    """The floor calls the same block as often, on rows of one length, so that it is compiled once."""
    floor = ShapeSequence().at_floor(point(size=512, shapes=5, features=64))
    assert ShapeSequence().shapes(floor) == ((2, 8),) * 5 + ((8, 8), (8,))


def test_describing_it_needs_no_torch() -> None:
    """The parent checks points of it, and works out their cost, where there is no torch."""
    given = values(workload={"name": "shape_sequence"})
    code = (
        f"import sys; from runner.config import Job; point = Job.checked({given!r}).point.resolved('cpu'); "
        "point.spec.cost(point); sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT).returncode == 0


# -- what torch compiles of it ----------------------------------------------------------------------------------------


def compilations(cycles: FirstCycles) -> list[tuple[int | None, str | None]]:
    """Cycle and phase of each compilation so far."""
    frames = cycles.placed(compiling.facts())["frames"]
    return [(frame["cycle"], frame["phase"]) for frame in frames]


def traced(given: Point) -> FirstCycles:
    """Two cycles of a compiled point whose graphs are run as they are, without generating code."""
    dynamic = None if isinstance(given.dynamic, str) else given.dynamic
    made = given.spec.build(
        given, CPU, torch.Generator().manual_seed(0), lambda each: torch.compile(each, dynamic=dynamic, backend="eager")
    )
    cycles = FirstCycles(given, lambda: made.function(*made.arguments), Cpu(), host_clock)
    cycles.take()
    cycles.take()
    return cycles


@pytest.mark.parametrize(("dynamic", "lengths"), [(False, [4, 8, 12]), (None, [4, 8]), (True, [4]), ("mark", [4])])
def test_what_is_compiled_for_which_length(dynamic: Any, lengths: list[int]) -> None:
    """false: each length; null: the first, then all others at once; true and mark: once. All in the first cycle."""
    cycles = traced(point(op="norm", compile=True, dynamic=dynamic))
    assert compilations(cycles) == [(1, f"length {length}") for length in lengths]


def test_lengths_that_are_alike_are_compiled_once() -> None:
    """spread=0 is the stream to compare with: nothing varies."""
    assert compilations(traced(point(op="norm", spread=0, compile=True, dynamic=False))) == [(1, "length 8")]


def test_a_mixture_of_compiled_and_eager_calls_fails(tmp_path: Path) -> None:
    """More lengths than torch compiles: the point fails and says so, with what was compiled until then."""
    with torch._dynamo.config.patch(recompile_limit=1):
        done = measured(point(op="norm", shapes=2, compile=True, dynamic=False), tmp_path)
    assert done.status == "failed" and done.samples == ()
    assert done.reason is not None and "gave up compiling a function again after 1 compilations" in done.reason
    assert done.facts["compile"]["limit_reached"] and len(done.facts["compile"]["frames"]) == 1


def test_a_compiled_point_tells_its_first_cycles(tmp_path: Path) -> None:
    """The first cycle holds the compilation; at least one more is there to compare with."""
    done = measured(point(op="norm", shapes=2, compile=True, dynamic="mark"), tmp_path)
    assert done.status == "ok", done.reason
    first, *later = done.facts["first_cycles_us"]
    (frame,) = done.facts["compile"]["frames"]
    assert first == done.facts["first_call_us"] > frame["seconds"] * 1e6 * 0.9
    assert 1 <= len(later) < MOST_CYCLES
    assert (frame["cycle"], frame["phase"]) == (1, "length 4")
    assert "allocator" not in done.facts


def test_first_cycles_are_no_more_than_the_warm_up() -> None:
    """warmup=3: three steps come before the times, the first cycles among them."""
    calls: list[int] = []
    cycles = FirstCycles(replace(point(), warmup=3), lambda: calls.append(1), Cpu(), host_clock)
    cycles.take()
    cycles.take_more()
    assert len(calls) == len(cycles.times_us) == 3


# -- the allocator ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("pool", allocating.POOLS)
def test_on_the_cpu_a_pool_changes_nothing(pool: str) -> None:
    """The workload runs with every pool; there is no allocator to prepare."""
    one, other = built(point(pool=pool)), built(point())
    results = zip(one.function(*one.arguments), other.function(*other.arguments), strict=True)
    assert all(torch.equal(mine, theirs) for mine, theirs in results)
    allocating.restore()


def test_a_pool_is_as_large_as_what_it_is_for() -> None:
    """warmup: all that lives on; preallocated: three results of the longest call and workspaces as well."""
    given = point(dtype="bf16")
    sizes = ShapeSequence()._pool_bytes(given)
    living = 2 * ((4 + 8 + 12) * 8 + 64 + 8)
    assert sizes == {"warmup": living, "preallocated": living + 3 * 2 * 12 * 8 + WORKSPACE_BYTES}


def test_free_memory_is_told_by_its_pieces() -> None:
    """Free blocks of all segments, those between tensors as well; what is in use or on its way does not count."""
    segments = [
        {"blocks": [{"size": 10, "state": "active_allocated"}, {"size": 30, "state": "inactive"}]},
        {"blocks": [{"size": 20, "state": "inactive"}, {"size": 5, "state": "active_pending_free"}]},
        {"blocks": [{"size": 7, "state": "inactive"}]},
    ]
    assert allocating.layout(segments) == {"segments": 3, "free_bytes": 57, "largest_free_bytes": 30}
    assert allocating.layout([]) == {"segments": 0, "free_bytes": 0, "largest_free_bytes": 0}


def test_calls_of_the_driver_are_told_for_each_cycle() -> None:
    """Differences of neighbouring counters; unknown where one is missing."""
    counters = [
        {"num_device_alloc": 3},
        {"num_device_alloc": 7},
        {"num_device_alloc": 7},
        None,
        {"num_device_alloc": 9},
    ]
    assert allocating._differences(counters, "num_device_alloc") == [4, 0, None, None]
