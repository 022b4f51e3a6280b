"""runner.numerics: a step against itself in float64, what fails, what is not known, and what a check leaves behind."""

from __future__ import annotations

import json
import math
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import torch
from configured import values
from torch.testing._internal.two_tensor import TwoTensor

from runner import compiling, numerics, tables
from runner.device import Cpu
from runner.measure import measure, measure_times, rehearse
from runner.numerics import EPSILON, Finding, check
from runner.point import Point
from runner.rounds import Target
from runner.task import Measurement, Recorder, Task
from runner.workloads import WORKLOADS, Built

PLENTY = 2**33


@pytest.fixture(autouse=True)
def nothing_known(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Every test begins without findings, on a host whose memory is no matter."""
    monkeypatch.setattr(numerics, "_free_bytes", lambda _: PLENTY)
    numerics.forget()
    yield
    numerics.forget()


def point(size: int = 8, **changes: Any) -> Point:
    """A point of matmul_add on the CPU."""
    return Point.checked(values(size=size, device="cpu", **{"dtype": "fp32", **changes}))


def step(
    function: Callable[..., Any], *arguments: Any, eager: Callable[..., Any] | None = None, **changes: Any
) -> Finding:
    """The finding of a step, whose plain form is `eager` or itself."""
    return check(point(**changes), Built(function, arguments, eager or function), 10.0, None, Cpu())


def normal(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """Normal numbers, the same ones every time."""
    return torch.randn(*shape, generator=torch.Generator().manual_seed(0)).to(dtype)


def product(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """x y."""
    return x @ y


# -- what passes and what fails ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["fp32", "bf16", "fp16"])
def test_a_right_step_passes(dtype: str) -> None:
    """Its error is eager's own, some roundings of the dtype, and below what is allowed."""
    numbers = normal(32, 32, dtype={"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}[dtype])
    found = step(product, numbers, numbers, dtype=dtype, size=32)
    assert found.passed is True and found.reason is None and found.size == 32
    assert found.error is not None and found.eager_error is not None
    assert 0 < found.error == found.eager_error < 4 * EPSILON[dtype]
    assert found.allowed == 2 * found.eager_error + EPSILON[dtype]


def test_the_error_is_the_relative_norm_of_the_difference() -> None:
    """A result that is 1 % too large is 1 % wrong."""
    found = step(lambda x: x * 2.02, normal(64), eager=lambda x: x * 2)
    assert found.error == pytest.approx(0.01, rel=1e-4)
    assert found.passed is False
    assert found.reason is not None and found.reason.startswith("error 0.01 above ") and "(result, " in found.reason


def test_the_worst_tensor_decides_and_is_named() -> None:
    """Results may be containers; the one that is wrong is told by its place."""
    found = step(
        lambda x: {"right": x + 1, "wrong": [x, x * 3]}, normal(4), eager=lambda x: {"right": x + 1, "wrong": [x, x]}
    )
    assert found.error == pytest.approx(2) and "result[wrong][1]" in str(found.reason)


def test_another_order_of_additions_passes() -> None:
    """A sum by blocks is another rounding, and no mistake."""
    x = normal(1000, 8)
    found = step(lambda x: x.view(10, 100, 8).sum(1).sum(0), x, eager=lambda x: sum(x, torch.zeros(8)))
    assert found.passed is True and found.error != found.eager_error


@pytest.mark.parametrize("wrong", [math.nan, math.inf])
def test_what_is_not_finite_fails(wrong: float) -> None:
    """One element suffices, and the errors stay numbers that JSON knows."""

    def spoiled(x: torch.Tensor) -> torch.Tensor:
        y = x.clone()
        y[0] = wrong
        return y

    found = step(spoiled, normal(4), eager=torch.clone)
    assert found.passed is False and found.error is None and "not finite" in str(found.reason)
    json.loads(json.dumps(found.reason), parse_constant=lambda word: pytest.fail(word))


def test_an_overflow_of_the_dtype_fails() -> None:
    """What float64 can hold and float16 cannot is a wrong result of the plain step as well."""
    found = step(lambda x: x * 1000 * 1000, torch.ones(4, dtype=torch.float16), dtype="fp16")
    assert found.passed is False and found.eager_error is None and found.allowed is None


def test_what_is_infinite_in_float64_too_is_left_out() -> None:
    """log(0) is no mistake; the other elements are compared."""
    assert step(torch.log, torch.tensor([0.0, 2.0])).passed is True


@pytest.mark.parametrize("step_of", [lambda x: x * math.nan, lambda x: x / 0, lambda x: x[:0]])
def test_where_nothing_is_finite_there_is_no_truth(step_of: Callable[..., Any]) -> None:
    """Nothing was compared, so that nothing has passed."""
    found = step(step_of, normal(4))
    assert found.passed is None and found.reason == (
        "no finite number is in the result of the step in float64: there is no truth"
    )


def test_another_shape_fails() -> None:
    """A result that lacks rows, or tensors, is wrong whatever it holds."""
    assert step(lambda x: x[:2], normal(4), eager=torch.clone).passed is False
    numerics.forget()
    assert step(lambda x: [x], normal(4), eager=lambda x: [x, x]).passed is False


def test_zeros_are_compared_by_their_difference() -> None:
    """Without a norm to divide by, the error is absolute."""
    assert step(torch.zeros_like, normal(4)).passed is True
    numerics.forget()
    assert step(lambda x: torch.zeros_like(x) + 0.5, normal(4), eager=torch.zeros_like).error == 1.0


# -- what a step reads and changes ------------------------------------------------------------------------------------


def test_a_step_that_works_in_place_is_compared_from_the_same_state() -> None:
    """Copies come first; the point's own arguments are those of one more step, the others are gone."""
    x = normal(4)
    before = x.clone()
    found = step(lambda x: x.mul_(3), x)
    assert found.passed is True
    assert torch.equal(x, before * 3) and x.dtype == torch.float32


class Learning(torch.nn.Module):
    """A layer, what it was built with left where modules keep it."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(4, 4)
        self.scale = torch.nn.Parameter(torch.tensor(2.0))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = self.layer(x) * self.scale
        return result


def train(module: torch.nn.Module, optimizer: torch.optim.Optimizer, x: torch.Tensor) -> torch.Tensor:
    """One step of training; its loss."""
    optimizer.zero_grad()
    loss: torch.Tensor = module(x).square().mean()
    loss.backward()
    optimizer.step()
    return loss


def learning(rate: float = 0.01) -> tuple[torch.nn.Module, torch.optim.Optimizer, torch.Tensor]:
    """A module, its optimizer with a state, and an input."""
    torch.manual_seed(0)
    module = Learning()
    arguments = module, torch.optim.Adam(module.parameters(), lr=rate), normal(16, 4)
    train(*arguments)
    return arguments


def test_a_step_of_training_is_compared_with_its_gradients() -> None:
    """Loss, parameters and gradients agree; optimizers know their parameters in the copies as well."""
    assert step(train, *learning()).passed is True


def test_a_wrong_gradient_fails_however_right_the_loss_is() -> None:
    """Gradients that are twice as large: Adam's update hardly tells, and the loss does not at all."""

    def doubled(module: torch.nn.Module, optimizer: torch.optim.Optimizer, x: torch.Tensor) -> torch.Tensor:
        loss = train(module, optimizer, x)
        for weight in module.parameters():
            assert weight.grad is not None
            weight.grad *= 2
        return loss

    found = step(doubled, *learning(), eager=train)
    assert found.passed is False and found.error == pytest.approx(1, abs=1e-3)
    assert "gradient of argument[0][layer][weight]" in str(found.reason) or "gradient of" in str(found.reason)


def test_a_wrong_update_fails() -> None:
    """An optimizer that does not step: the parameters are what they were."""

    def idle(module: torch.nn.Module, optimizer: torch.optim.Optimizer, x: torch.Tensor) -> torch.Tensor:
        before = [weight.detach().clone() for weight in module.parameters()]
        loss = train(module, optimizer, x)
        with torch.no_grad():
            for weight, old in zip(module.parameters(), before, strict=True):
                weight.copy_(old)
        return loss

    found = step(idle, *learning(rate=0.1), eager=train)
    assert found.passed is False and "argument[0]" in str(found.reason)


class Cache:
    """Keys of earlier tokens, and a list of them that the step writes to."""

    def __init__(self) -> None:
        self.layers = [torch.zeros(4, 4)]
        self.named = OrderedDict(last=self.layers[0])


def test_caches_are_copied_and_cast_with_all_their_aliases() -> None:
    """An object's tensors are float64 in the truth's copy, one that is reached twice stays one."""

    def write(cache: Cache, x: torch.Tensor) -> torch.Tensor:
        cache.layers[0][1] = x
        return cache.named["last"].sum(0) / 3

    assert step(write, Cache(), normal(4)).passed is True


def test_tensors_made_of_others_are_copied_part_by_part() -> None:
    """What torch cannot copy is neither lost nor shared, stays one where it is reached twice, and is not cast."""

    class Coded(TwoTensor):
        """Two tensors under one appearance; deepcopy refuses it, as it does torchao's states."""

        def __deepcopy__(self, memo: Any) -> Any:
            raise NotImplementedError("no copies")

    state = Coded(torch.ones(4), torch.zeros(4))
    one, two, x = numerics._copied((state, {"again": state}, torch.ones(4)))
    assert one is two["again"] and one is not state and isinstance(one, TwoTensor)
    assert torch.equal(one.a, state.a) and one.a.data_ptr() != state.a.data_ptr()
    assert numerics._to_float64((one, x)) == 1
    assert (one.a.dtype, x.dtype) == (torch.float32, torch.float64)


def test_every_tensor_of_an_optimizer_is_found() -> None:
    """Two states a weight, whatever the parameters that are their keys look like as text."""
    module, optimizer, x = learning()
    found = numerics._distinct((module, optimizer, x)).values()
    assert len(found) == len({id(each) for each in found})
    states = [each for state in optimizer.state.values() for each in state.values()]
    assert len(states) == 9 and all(any(each is one for one in found) for each in states)


# -- what is not known ------------------------------------------------------------------------------------------------


def test_a_random_step_is_not_compared() -> None:
    """Two plain runs that differ say nothing of the third."""
    found = step(torch.nn.functional.dropout, normal(64))
    assert found.passed is None and str(found.reason).startswith("random: ")


def test_a_step_without_tensors_among_its_arguments_is_not_compared() -> None:
    """float64 would change nothing that it reads."""
    x = normal(4)
    assert "no floating tensor" in str(step(lambda: x + 1).reason)


def test_a_step_without_a_floating_result_is_not_compared() -> None:
    """Whole numbers are chosen by comparing; the choice of near equals is no mistake."""
    assert "no floating tensor" in str(step(lambda x: x.argmax(), normal(4)).reason)


def test_one_number_passes_or_says_nothing() -> None:
    """It may be small by chance, beside what it was added up from; yet it must be a number."""
    x = normal(16)
    assert step(lambda x: x.sum().item(), x).passed is True
    numerics.forget()
    assert step(lambda x: x.sum().item() + 1, x, eager=lambda x: x.sum().item()).passed is None
    numerics.forget()
    assert step(lambda x: math.nan, x, eager=lambda x: x.sum().item()).passed is False


def test_an_exception_inside_the_check_costs_nothing() -> None:
    """The plain form that raises, and arguments that cannot be copied: a reason, once for all of the kind."""

    def raises(x: torch.Tensor) -> torch.Tensor:
        raise KeyError("no such thing")

    found = step(torch.clone, normal(4), eager=raises)
    assert found.passed is None and found.reason == "could not be checked: KeyError: 'no such thing'"
    numerics.forget()
    assert "could not be checked" in str(step(torch.clone, normal(4).requires_grad_() * 2).reason)


def test_a_costly_point_leaves_the_check_to_a_smaller_one() -> None:
    """A step of a second, or of more memory than there is, is not checked; the next of its kind stands for it."""
    x = normal(8)
    made = Built(torch.clone, (x,), torch.clone)
    for wall_us, peak_bytes in ((1e6, None), (10.0, PLENTY)):
        found = check(point(4096), made, wall_us, peak_bytes, Cpu())
        assert found.passed is None and str(found.reason).startswith("not checked yet: the check would take about ")
    assert check(point(64), made, 10.0, None, Cpu()).size == 64
    assert check(point(4096), made, 1e6, None, Cpu()) == check(point(64), made, 10.0, None, Cpu())


def test_memory_that_is_lacking_leaves_the_check_to_a_smaller_one() -> None:
    """The kind is not given up."""

    def exhausts(x: torch.Tensor) -> torch.Tensor:
        raise torch.OutOfMemoryError("no memory")

    assert "OutOfMemoryError" in str(step(exhausts, normal(4), size=4096).reason)
    assert step(torch.clone, normal(4)).passed is True


# -- once a kind ------------------------------------------------------------------------------------------------------


def test_a_kind_is_checked_once() -> None:
    """Another size and batch is the same kind; another dtype, mode, or value of an own axis is another."""
    calls: list[int] = []

    def counted(x: torch.Tensor) -> torch.Tensor:
        calls.append(1)
        return x + 1

    own = {"name": "elementwise", "ops": 2}
    step(counted, normal(4), eager=torch.clone, workload=own)
    step(counted, normal(4), workload=own, size=16)
    step(counted, normal(4), workload=own, batch=2)
    assert len(calls) == 1
    for changes in (
        {"dtype": "bf16"},
        {"compile": True},
        {"compile": "reduce-overhead"},
        {"compile": True, "dynamic": True},
        {"workload": {"name": "elementwise", "ops": 3}},
    ):
        before = len(calls)
        step(counted, normal(4), eager=torch.clone, **{"workload": own, **changes})
        assert len(calls) == before + 1, changes


# -- in a sweep -------------------------------------------------------------------------------------------------------


def measured(given: Point, folder: Path, way: Callable[..., Measurement] = measure_times) -> Measurement:
    """What a worker answers."""
    return way(Task(given, Target("test", 1.0, 0.01), 5.0, False, Recorder(), False, {}, str(folder)), Cpu())


def wrongly_compiled(function: Callable[..., Any], mode: bool | str, dynamic: bool | None) -> Callable[..., Any]:
    """A compiler that is fast and forgets the bias."""
    return function if mode is False else lambda x, w, b: x @ w


def test_a_fast_wrong_answer_is_a_failed_row(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The row keeps its times and says by how much it is wrong; so does the next point of its kind, eager does not."""
    monkeypatch.setattr(compiling, "compiled", wrongly_compiled)
    monkeypatch.setattr(compiling, "separate", lambda function: function)
    identity = tables.Identity("run", "sweep", "environment", datetime.now(UTC), 0, "given")
    for size in (16, 32):
        given = point(size, compile=True)
        done = measured(given, tmp_path)
        row = tables.run_row(given, identity, done, None, 0, {})
        assert row["status"] == "failed" and row["reason"].startswith("numerics: error 0.")
        assert row["wall_us"] is not None
        facts = json.loads(row["facts"])["numerics"]
        assert facts["passed"] is False and facts["size"] == 16 and facts["error"] > facts["allowed"]
        assert row["reason"] == f"numerics: {facts['reason']}"
    assert measured(point(16), tmp_path).status == "ok"


def test_the_seconds_of_the_check_are_part_of_the_point(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """elapsed_s is what the point took in its worker, with all that comes behind its times."""

    def slow(*_: Any) -> Finding:
        time.sleep(0.5)
        return Finding(True)

    monkeypatch.setattr(numerics, "check", slow)
    start = time.monotonic()
    elapsed_s = measured(point(), tmp_path).facts["elapsed_s"]
    assert time.monotonic() - start - 0.4 < elapsed_s <= time.monotonic() - start


def test_a_compiled_point_is_checked_behind_its_times_and_profile(tmp_path: Path) -> None:
    """It passes; eager's error is stated beside its own, and memory was read before."""
    done = measured(point(16, compile=True, dtype="bf16"), tmp_path, measure)
    found = done.facts["numerics"]
    assert done.status == "ok" and found["passed"] is True
    assert 0 < found["eager_error"] < EPSILON["bf16"] and found["size"] == 16
    assert done.facts["compile"]["compilations"] == 1 and done.traces


def test_a_rehearsal_is_no_check() -> None:
    """What a worker does to get warm stands for no point."""
    rehearse(Cpu())
    assert numerics._found == {}


WRONG_FORMS = {"shape_sequence", "custom", "fault", "noop", "train_step", "llm_prefill", "llm_decode"}
"""Workloads that others check, or that have nothing to check."""


@pytest.mark.parametrize("name", sorted(set(WORKLOADS) - WRONG_FORMS))
@pytest.mark.parametrize("dtype", ["fp32", "bf16", "fp16"])
def test_every_workload_agrees_with_float64(name: str, dtype: str, tmp_path: Path) -> None:
    """Eager, in every dtype of the CPU: checked and passed, but for one number, which may say nothing."""
    own = {"elementwise": {"ops": 3}, "intensity": {"ops": 16, "reads": 2}, "addmm": {"bias": 1}}.get(name, {})
    given = replace(point(12, workload={"name": name, **own}, dtype=dtype), threads=1)
    found = measured(given, tmp_path).facts["numerics"]
    assert found["passed"] is True or (name == "matmul_item" and found["passed"] is None), found
