"""runner.holders: who holds memory in each phase, to the byte on the CPU."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional

from runner import holders
from runner.device import Cpu
from runner.holders import HOLDERS, Change, PhaseMemory, Span, _Story, holds_module, owned, watched
from runner.measure import measure
from runner.phases import heard, phase
from runner.point import Point, Schedule
from runner.rounds import Target
from runner.task import Recorder, Task
from runner.workloads import WORKLOADS, Built

CPU = torch.device("cpu")
BLOCKS = {"model": "transformer", "tokens": 8, "width": 128}


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Steps this small wait for threads longer than they work."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def train_point(size: int = 8, **own: Any) -> Point:
    """A training step of two layers, 64 wide, in fp32."""
    params = {**WORKLOADS["train_step"].defaults, "layers": 2, "width": 64, **own}
    return Point(
        "train_step", tuple(sorted(params.items())), size, "fp32", None, False, False, 2, "cpu", Schedule(0, 0, 1),
        "warm", None, 0,
    )  # fmt: skip


def built_of(given: Point) -> Built:
    """Its step, called twice: optimizers make their states in the first call."""
    built = given.spec.build(given, CPU, torch.Generator().manual_seed(0), lambda function: function)
    for _ in range(2):
        built.function(*built.arguments)
    return built


def facts_of(built: Built) -> dict[str, Any]:
    """What the pass says of a step."""
    found = watched(partial(built.function, *built.arguments), (built.function, *built.arguments), Cpu())
    assert found["memory_sums"]["reason"] is None
    return found


def phases_of(size: int = 8, **own: Any) -> dict[str, dict[str, Any]]:
    """Phases of a training step by name."""
    return {each["phase"]: each for each in facts_of(built_of(train_point(size, **own)))["phase_memory"]}


WEIGHTS = 2 * (64 * 64 + 64)
COUNTERS = 4 * 4
ROW = 8 * 64 * 4


# -- a training step ---------------------------------------------------------------------------------------------------


def test_holders_of_a_training_step_to_the_byte() -> None:
    """Weights, as many gradients, twice as much for Adam, the data; 4 sums and results of layers and the loss's."""
    phases = phases_of(optimizer="adam")
    assert list(phases) == ["step", "zero_grad", "forward", "backward", "optimizer"]
    assert [each["parent"] for each in phases.values()] == [None, "step", "step", "step", "step"]
    assert phases["forward"]["holders_at_end"] == {
        "parameters": 4 * WEIGHTS, "optimizer_state": 8 * WEIGHTS + COUNTERS, "inputs": 2 * ROW, "activations": 5 * ROW,
    }  # fmt: skip
    assert phases["optimizer"]["holders_at_end"] == {
        "parameters": 4 * WEIGHTS, "gradients": 4 * WEIGHTS, "optimizer_state": 8 * WEIGHTS + COUNTERS,
        "inputs": 2 * ROW, "activations": ROW,
    }  # fmt: skip
    assert phases["zero_grad"]["start_bytes"] - phases["zero_grad"]["end_bytes"] == 4 * WEIGHTS


@pytest.mark.parametrize(("optimizer", "states"), [("sgd", 0), ("momentum", 1), ("adam", 2), ("adamw", 2)])
def test_states_of_optimizers(optimizer: str, states: int) -> None:
    """So many states a weight, and with Adam a counter of 4 bytes for each weight tensor."""
    held = phases_of(optimizer=optimizer)["step"]["holders_at_end"].get("optimizer_state", 0)
    assert held == states * 4 * WEIGHTS + (COUNTERS if states == 2 else 0)


def test_activations_grow_with_the_batch_and_nothing_else_does() -> None:
    """Eight times the examples: eight times the activations and inputs when backward begins."""
    few, many = (phases_of(size, optimizer="adam")["forward"]["holders_at_end"] for size in (8, 64))
    assert {holder: many[holder] / few[holder] for holder in few} == {
        "parameters": 1, "optimizer_state": 1, "inputs": 8, "activations": 8,
    }  # fmt: skip


def test_the_activations_peak_is_where_backward_begins() -> None:
    """With a large batch the step's peak is where forward ends and backward begins, and activations are most of it."""
    phases = phases_of(512, optimizer="sgd")
    assert phases["backward"]["start_bytes"] == phases["forward"]["end_bytes"]
    assert phases["step"]["peak_bytes"] == pytest.approx(phases["backward"]["peak_bytes"], rel=1e-4)
    assert phases["step"]["holders_at_peak"]["activations"] > phases["step"]["peak_bytes"] / 2
    held = [phases[name]["holders_at_end"].get("activations", 0) for name in ("zero_grad", "forward", "backward")]
    assert held == [0, 5 * 64 * ROW, 64 * ROW]


@pytest.mark.parametrize("autocast", [None, "bf16"])
@pytest.mark.parametrize("checkpoint", [False, True])
@pytest.mark.parametrize("model", [{}, BLOCKS], ids=["mlp", "transformer"])
def test_predictions_are_what_is_measured(model: dict[str, Any], checkpoint: bool, autocast: str | None) -> None:
    """Activations with and without checkpointing, and states, by arithmetic and by the pass: the same bytes."""
    own = {"checkpoint": checkpoint, "optimizer": "momentum", "autocast": autocast, **model}
    given = train_point(**own)
    predicted = given.spec.predicted(given)  # type: ignore[attr-defined]
    held = phases_of(**own)["forward"]["holders_at_end"]
    word = "_checkpointed" if checkpoint else ""
    assert held["activations"] == predicted[f"activation_bytes{word}_predicted"]
    assert held["optimizer_state"] == predicted["optimizer_state_bytes_predicted"]


def test_sums_are_what_the_phases_say() -> None:
    """Holders at a peak add up to it, no phase's peak is above the step's, and each begins where the last one ended."""
    found = facts_of(built_of(train_point()))
    step, *phases = found["phase_memory"]
    for each in (step, *phases):
        assert sum(each["holders_at_peak"].values()) == each["peak_bytes"]
        assert sum(each["holders_at_end"].values()) == each["end_bytes"]
        assert max(each["start_bytes"], each["end_bytes"]) <= each["peak_bytes"] <= step["peak_bytes"]
        assert set(each["holders_at_peak"]) <= set(HOLDERS)
    assert [each["start_bytes"] for each in phases[1:]] == [each["end_bytes"] for each in phases[:-1]]
    assert found["memory_sums"]["allocated_bytes"] == found["memory_sums"]["held_bytes"] == step["peak_bytes"]
    assert found["memory_sums"]["off_frac"] == 0


def test_the_pass_changes_no_result() -> None:
    """Two watched steps leave the weights that two others leave."""
    watched_one, plain = (built_of(train_point(optimizer="adam")) for _ in range(2))
    facts_of(watched_one)
    for _ in range(2):
        plain.function(*plain.arguments)
    for one, other in zip(*(each.arguments[0].parameters() for each in (watched_one, plain)), strict=True):
        assert torch.equal(one, other)


# -- steps of all kinds ------------------------------------------------------------------------------------------------


def test_activations_are_known_without_phases() -> None:
    """Where no phase is marked, backward begins with the first function that autograd evaluates."""
    model, x = nn.Sequential(nn.Linear(64, 64), nn.GELU()), torch.randn(512, 64)

    def step() -> None:
        model.zero_grad()
        model(x).sum().backward()

    step()
    (told,) = facts_of(Built(step, (), step))["phase_memory"]
    at_peak, at_end = told["holders_at_peak"], told["holders_at_end"]
    assert at_end == {"parameters": 4160 * 4, "gradients": 4160 * 4, "inputs": 64 * ROW}
    assert at_peak["activations"] >= 64 * ROW


def test_a_step_without_backward_has_temporaries() -> None:
    """The score matrix of plain attention is a temporary, and it is the peak."""
    q, k, v = (torch.randn(128, 64) for _ in range(3))

    def attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return torch.softmax(q @ k.T, -1) @ v

    (told,) = facts_of(Built(attention, (q, k, v), attention))["phase_memory"]
    assert told["holders_at_peak"] == {"inputs": 3 * 128 * 64 * 4, "temporaries": 2 * 128 * 128 * 4}


def test_nested_phases_name_their_parents() -> None:
    """A phase inside another one is told as such, and its peak is the outer one's as well."""
    x = torch.randn(256)

    def step() -> None:
        with phase("outer"):
            y = x + 1
            with phase("inner"):
                z = torch.cat([y] * 8)
            del z

    told = {each["phase"]: each for each in facts_of(Built(step, (), step))["phase_memory"]}
    assert [(name, each["parent"], each["order"]) for name, each in told.items()] == [
        ("step", None, 0), ("outer", "step", 1), ("inner", "outer", 2),
    ]  # fmt: skip
    assert told["outer"]["peak_bytes"] == told["inner"]["peak_bytes"] == 1024 + 1024 + 8 * 1024


def test_what_lives_from_step_to_step_unowned_is_other() -> None:
    """Memory that the step finds and that nothing it is called with owns."""
    x = torch.randn(256)

    def step() -> None:
        globals()["_KEPT"] = x + x

    try:
        (told,) = facts_of(Built(step, (), step))["phase_memory"]
    finally:
        globals().pop("_KEPT", None)
    assert told["start_bytes"] == 2048
    assert told["holders_at_peak"] == {"inputs": 1024, "temporaries": 1024, "other": 1024}


@pytest.mark.parametrize(
    "fail",
    [lambda: 1 / 0, lambda: torch.zeros(2) @ torch.zeros(3), lambda: None],
    ids=["an exception", "one of torch's", "no allocation at all"],
)
def test_what_goes_wrong_is_a_reason(fail: Callable[[], Any]) -> None:
    """The point keeps its times: a pass that fails says why, and nobody listens to phases any more."""
    found = watched(fail, (), Cpu())
    assert "phase_memory" not in found
    assert found["memory_sums"]["reason"].startswith("memory could not be watched: ")
    with phase("nobody listens") as told:
        assert told is None


# -- what is owned -----------------------------------------------------------------------------------------------------


class Cache:
    """An object of a user's, with tensors in its attributes and slots."""

    __slots__ = ("__dict__", "slotted")

    def __init__(self) -> None:
        self.layers = [{"keys": torch.zeros(10)}]
        self.slotted = torch.zeros(20)
        self.itself = self


def test_tensors_are_found_wherever_they_are() -> None:
    """Containers, attributes, slots, closures, partial calls and bound methods; a circle ends."""
    cache, closed = Cache(), torch.zeros(30)

    class Owner:
        def __init__(self) -> None:
            self.tensor = torch.zeros(40)

        def step(self) -> torch.Tensor:
            return self.tensor

    found = owned([cache, lambda: closed, partial(print, torch.zeros(50)), Owner().step], "cpu")
    assert sorted(size for _, size in found.values()) == [40, 80, 120, 160, 200]
    assert {holder for holder, _ in found.values()} == {"inputs"}
    assert owned([cache], "cuda") == {}


def test_a_storage_counts_once() -> None:
    """Tied weights, views and inputs that are weights: the first claim stands."""
    model = nn.Sequential(nn.Linear(8, 8, bias=False), nn.Linear(8, 8, bias=False))
    model[1].weight = model[0].weight
    found = owned([model[0].weight.detach()[0], model, torch.optim.SGD(model.parameters())], "cpu")
    assert list(found.values()) == [("parameters", 256)]


def test_a_compilers_own_objects_are_no_inputs() -> None:
    """Of a compiled function the function itself is looked at."""
    x = torch.zeros(16)

    def step() -> torch.Tensor:
        return x + 1

    assert list(owned([torch.compile(step)], "cpu").values()) == [("inputs", 64)]


def test_modules_are_found_behind_functions() -> None:
    """Whether the pass is worth its time: where a module or an optimizer is held."""
    model = nn.Linear(2, 2)
    assert holds_module([lambda: model(torch.zeros(2))])
    assert holds_module([(torch.optim.SGD(model.parameters()),)])
    assert not holds_module([torch.zeros(2), functional.gelu, {"a": 1}, None])


# -- CUDA's counters, given by hand ------------------------------------------------------------------------------------


def test_cudas_blocks_and_counters() -> None:
    """Blocks are as large as the allocator says, what it counts beyond them was there before, and peaks are seen."""
    own = {1000: ("parameters", 600), 3000: ("inputs", 100)}
    later = {**own, 5000: ("gradients", 700)}
    step = Span("step", None, own, later, start=5000, end=6024, peak=8072, begin_us=10, end_us=20)
    backward = Span("backward", 0, own, later, start=7048, end=6024, peak=8072, begin_us=14, end_us=18)
    changes = [
        Change(5, 9000, 512, 5512), Change(6, 9000, -512, 5000),
        Change(11, 4000, 2048, 7048), Change(15, 5000, 1024, 8072), Change(17, 4000, -2048, 6024),
    ]  # fmt: skip
    story = _Story(changes, [step, backward], 14, {1000: 1024})
    told = story.of(step)
    assert (told.start, told.peak, told.end) == (5000, 8072, 6024)
    assert told.holders_at_peak == {
        "parameters": 1024, "gradients": 1024, "inputs": 512, "activations": 2048, "other": 5000 - 1024 - 512,
    }  # fmt: skip
    assert told.holders_at_end == {"parameters": 1024, "gradients": 1024, "inputs": 512, "other": 3464}
    assert story.of(backward).start == 7048


def test_an_address_that_is_given_out_again_is_another_block() -> None:
    """A temporary and, later at the same place, a gradient."""
    step = Span("step", None, {}, {1000: ("gradients", 8)}, begin_us=0, end_us=10)
    changes = [Change(1, 1000, 64, 64), Change(2, 1000, -64, 0), Change(3, 1000, 8, 8)]
    told = _Story(changes, [step], math.inf, {}).of(step)
    assert told.holders_at_peak == {"temporaries": 64}
    assert told.holders_at_end == {"gradients": 8}


def test_sums_that_are_far_off_say_so() -> None:
    """A holder that is missing shows in off_frac and in the reason."""
    built = built_of(train_point())
    memory = PhaseMemory((built.function, *built.arguments), CPU)
    with memory, heard(memory.listener):
        for _ in range(2):
            with memory.listener("step"):
                built.function(*built.arguments)
    assert memory.facts()["memory_sums"]["reason"] is None
    for span in memory._spans:
        span.start = span.end = span.peak = 10**6
    sums = memory.facts()["memory_sums"]
    assert sums["off_frac"] > 0.01 and "off what the allocator counts" in sums["reason"]
    assert holders.CLOSE_FRAC == 0.01


# -- in a sweep --------------------------------------------------------------------------------------------------------


def measured(given: Point, tmp_path: Path, **recorded: Any) -> dict[str, Any]:
    """Facts of a point that is measured in this process."""
    task = Task(given, Target("test", 1.0, 0.01), 10.0, False, Recorder(**recorded), False, {}, str(tmp_path))
    done = measure(task, Cpu())
    assert (done.status, done.reason) == ("ok", None)
    return done.facts


def test_a_training_step_is_watched(tmp_path: Path) -> None:
    """Its facts name phases and holders, and what cures would save."""
    facts = measured(train_point(), tmp_path)
    assert [each["phase"] for each in facts["phase_memory"]][2:4] == ["forward", "backward"]
    assert facts["train"]["optimizer_state_bytes_sharded_predicted"]["2"] == 4 * WEIGHTS


def test_a_step_without_a_module_is_watched_when_asked(tmp_path: Path) -> None:
    """Two matrices and a sum need no second look; profiler.profile_memory=true asks for it."""
    given = Point("matmul_add", (), 8, "fp32", None, False, False, 2, "cpu", Schedule(0, 0, 1), "warm", None, 0)
    assert "phase_memory" not in measured(given, tmp_path)
    (told,) = measured(given, tmp_path, profile_memory=True)["phase_memory"]
    assert told["holders_at_peak"] == {"inputs": 3 * 256, "temporaries": 2 * 256}
