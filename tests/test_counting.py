"""FLOPs and bytes that torch counts, beside formulas and by hand."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from configured import values

from runner import counting
from runner.point import Point
from runner.workloads import Built

ROOT = Path(__file__).parents[1]


def of(function: Callable[..., Any], *arguments: Any, compiled: bool = False) -> dict[str, Any]:
    """What is counted of a step."""
    return counting.cost_of(Built(function, arguments, function), compiled)


def total(cost: dict[str, Any], what: str) -> int:
    """Of all operations of a step."""
    return sum(each[what] for each in cost["operations"])


@pytest.mark.parametrize("compile", [False, True])
@pytest.mark.parametrize(
    ("workload", "size", "bias"),
    [
        ({"name": "matmul_add"}, 64, 0),
        ({"name": "addmm", "bias": 1}, 64, 64 * 64),  # the sum inside of addmm, which torch does not count
        ({"name": "addmm", "bias": 2}, 64, 64 * 64),
        ({"name": "elementwise", "ops": 4}, 8, 0),
        ({"name": "intensity", "ops": 16, "reads": 2}, 8, 0),
    ],
)
def test_what_is_counted_is_what_the_formulas_say(
    workload: dict[str, Any], size: int, bias: int, compile: bool
) -> None:
    """FLOPs and bytes to the last one, eager and compiled; bias: FLOPs that are left out."""
    point = Point.checked(values(workload=workload, size=size, dtype="fp32", device="cpu", compile=compile))
    built = point.spec.build(point, torch.device("cpu"), torch.Generator(), lambda function: function)
    cost, seen = point.spec.cost(point), counting.counted(built, compile)
    assert cost is not None
    assert total(seen, "flops") + bias == sum(each.flops for each in cost.operations)
    assert total(seen, "bytes") == sum(each.bytes for each in cost.operations)
    assert seen["bytes_min"] == cost.bytes_min


def test_a_step_is_called_once_as_it_is() -> None:
    """On its own arguments, and its result is as ever."""
    calls = []
    of(lambda x: calls.append(float(x.sum())), torch.ones(3))
    assert calls == [3.0]


def test_views_move_nothing() -> None:
    """Slices, transposes, reshapes: no operation at all."""
    cost = of(lambda x: x.t()[1:].reshape(-1, 2).detach(), torch.ones(4, 2).t().contiguous())
    assert [each["name"] for each in cost["operations"]] in ([], ["clone"])
    assert of(lambda x: x.view(2, 4)[0], torch.ones(8))["operations"] == []


def test_a_tensor_that_is_named_twice_is_read_once() -> None:
    """x * x reads x, and writes as much."""
    assert total(of(lambda x: x * x, torch.ones(8)), "bytes") == 2 * 8 * 4


def test_an_expanded_tensor_moves_what_it_holds() -> None:
    """One row stands for many."""
    assert total(of(lambda x, y: x + y, torch.ones(1, 4).expand(8, 4), torch.ones(8, 4)), "bytes") == (4 + 32 + 32) * 4


def test_what_is_changed_in_place_is_read_and_written() -> None:
    """add_ reads both and writes one; copy_ reads one and writes the other."""
    assert total(of(lambda x, y: x.add_(y), torch.ones(8), torch.ones(8)), "bytes") == 3 * 8 * 4
    assert total(of(lambda x, y: x.copy_(y), torch.ones(8), torch.ones(8)), "bytes") == 2 * 8 * 4


def test_an_index_touches_what_it_chooses() -> None:
    """Two rows of a long table are read, one row of another is written."""
    table, rows = torch.ones(1000, 4), torch.tensor([3, 5])
    assert total(of(lambda t, i: t[i], table, rows), "bytes") == 2 * (2 * 4 * 4) + 2 * 8
    placed = of(lambda t, i, x: t.index_copy_(0, i, x), table, rows[:1], torch.ones(1, 4))
    assert total(placed, "bytes") == 2 * (4 * 4) + 8


def test_a_backward_pass_is_counted_with_the_forward_one() -> None:
    """Two further products, and the gradients that they write."""

    def step(x: torch.Tensor, w: torch.Tensor) -> None:
        (gradient,) = torch.autograd.grad((x @ w).sum(), w)
        assert gradient.shape == w.shape

    cost = of(step, torch.ones(8, 16), torch.ones(16, 4, requires_grad=True))
    products = [each for each in cost["operations"] if each["name"].startswith("mm")]
    assert sum(each["flops"] for each in products) == 2 * (2 * 8 * 16 * 4)


def test_attention_of_the_cpu_is_counted() -> None:
    """4 x batch x heads x queries x keys x head_dim."""
    query = torch.ones(2, 3, 8, 4)
    cost = of(torch.nn.functional.scaled_dot_product_attention, query, query, query)
    assert total(cost, "flops") == 4 * 2 * 3 * 8 * 8 * 4


@pytest.mark.parametrize(
    ("function", "arguments", "flops"),
    [
        (torch.mv, (torch.ones(3, 5), torch.ones(5)), 30),
        (torch.addmv, (torch.ones(3), torch.ones(3, 5), torch.ones(5)), 30),
        (torch.dot, (torch.ones(5), torch.ones(5)), 10),
        (torch.vdot, (torch.ones(5), torch.ones(5)), 10),
        (torch._int_mm, (torch.ones(32, 16, dtype=torch.int8), torch.ones(16, 8, dtype=torch.int8)), 2 * 32 * 16 * 8),
    ],
)
@pytest.mark.parametrize("compiled", [False, True])
def test_products_that_torch_counts_as_nothing_are_counted(
    function: Callable[..., Any], arguments: tuple[Any, ...], flops: int, compiled: bool
) -> None:
    """2 for each multiplication with its addition."""
    assert total(of(function, *arguments, compiled=compiled), "flops") == flops


@pytest.mark.parametrize(
    ("tensor", "kind"),
    [
        (torch.eye(4).to_sparse(), "sparse_coo"),
        (torch.nested.nested_tensor([torch.ones(2), torch.ones(3)], layout=torch.jagged), "nested"),
    ],
)
def test_what_a_shape_does_not_tell_is_not_counted(tensor: torch.Tensor, kind: str) -> None:
    """Not as nothing, and not as the dense tensor of that shape."""
    with pytest.raises(NotImplementedError, match=f"its shape does not tell what a tensor holds .{kind}"):
        of(lambda x: x * 2, tensor)


def formats(cost: dict[str, Any]) -> dict[str, str]:
    """Number formats by the name of what does not compute in the point's."""
    return {each["name"].split()[0]: each["dtype"] for each in cost["operations"] if "dtype" in each}


def test_an_operation_tells_the_dtype_that_is_not_the_points() -> None:
    """Autocast's product is one of bf16, the sum behind it is fp32 as the point; casts compute nothing."""

    def step(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        with torch.autocast("cpu", torch.bfloat16):
            return x @ x + y

    given = torch.ones(4, 4), torch.ones(4, 4)
    assert formats(of(step, *given)) == {"mm": "bf16"}
    lower = counting.cost_of(Built(step, given, step), False, "bf16")
    assert formats(lower) == {"add": "fp32"}
    assert formats(counting.cost_of(Built(step, given, step), False, "tf32")) == {"mm": "bf16"}


def test_formats_without_a_name_of_ours_have_torchs() -> None:
    """float64 is fp64; products of whole numbers are told, their sums and single numbers are not."""
    assert formats(of(lambda x: x * x, torch.ones(4, dtype=torch.float64))) == {"mul": "fp64"}
    assert formats(of(lambda x: x * x, torch.ones((), dtype=torch.float64))) == {}
    whole = torch.ones(4, 4, dtype=torch.int32)
    assert formats(of(lambda x: x @ x + x, whole)) == {"mm": "int32"}


def test_what_is_fused_computes_as_most_of_it_does() -> None:
    """Of three operations two are float64."""
    cost = of(lambda x: ((x + 1).double() * 2) * 3, torch.ones(8), compiled=True)
    assert [(each["name"], each["flops"], each["dtype"]) for each in cost["operations"]] == [("fused", 24, "fp64")]


def test_what_is_told_wins() -> None:
    """Both told: nothing is called. One told: the other is counted."""

    def step(x: torch.Tensor) -> torch.Tensor:
        assert not told
        return x + 1

    told = True
    step.flops, step.bytes = 7, 9
    assert of(step, torch.ones(4)) == {
        "operations": [{"name": "step", "flops": 7, "bytes": 9}], "bytes_min": 9, "working_set_bytes": 9,
        "source": "given",
    }  # fmt: skip
    told, step.bytes = False, None
    assert of(step, torch.ones(4))["operations"] == [{"name": "step", "flops": 7, "bytes": 32}]


def test_a_compiled_step_moves_no_more_than_it_must() -> None:
    """A chain that could be one kernel is taken as one; a product stays what it is."""
    chain = of(lambda x: ((x * 2 + 1) * 2).relu(), torch.ones(8), compiled=True)
    assert chain["operations"] == [{"name": "fused", "flops": 32, "bytes": 64}]
    product = of(lambda x: (x @ x).relu(), torch.ones(4, 4), compiled=True)
    assert [(each["name"], each["flops"], each["bytes"]) for each in product["operations"]] == [
        ("mm", 128, 128),
        ("fused", 16, 0),
    ]


def test_counting_imports_no_compiler() -> None:
    """An eager point never waits for the seconds that torch's compiler takes to be imported."""
    program = """
import sys, torch
from runner import counting, numerics
from runner.workloads import Built
counting.cost_of(Built(torch.exp, (torch.ones(4),), torch.exp), False)
print([each for each in sys.modules if each in ("torch._dynamo", "torch._inductor")])
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=ROOT, timeout=120)
    assert done.stdout == "[]\n", done.stderr
