"""runner.workloads.train: what a training step does, that it stays what it is, and what it costs."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from configured import values
from omegaconf import OmegaConf
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode

from runner import counting, numerics
from runner.device import Cpu
from runner.phases import heard
from runner.point import WARM_SCHEDULE, Point, PointError, Schedule
from runner.profiling import record
from runner.task import Recorder
from runner.workloads import WORKLOADS, Built
from runner.workloads.optimizers import PlainAdam8bit

ROOT = Path(__file__).parent.parent
CPU = torch.device("cpu")
OPTIMIZERS = ("sgd", "momentum", "adam", "adamw")
BLOCKS = {"model": "transformer", "tokens": 8, "width": 128}


def point(size: int = 4, dtype: str = "fp32", compile: bool = False, **own: Any) -> Point:
    """A small training step on the CPU: two layers, 16 wide."""
    params = {**WORKLOADS["train_step"].defaults, "layers": 2, "width": 16, **own}
    return Point(
        "train_step", tuple(sorted(params.items())), size, dtype, None, compile, False, True, "cpu", WARM_SCHEDULE,
        "warm", None, 0,
    )  # fmt: skip


def build(given: Point, compile: Any = lambda function: function) -> Built:
    """Its step, never called yet."""
    return given.spec.build(given, CPU, torch.Generator().manual_seed(0), compile)


def weights_after(built: Built, steps: int = 3) -> list[torch.Tensor]:
    """All weights behind so many steps."""
    for _ in range(steps):
        built.function(*built.arguments)
    return [each.detach().clone() for each in built.arguments[0].parameters()]


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Steps this small wait for threads longer than they work."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


# -- the step ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["fp32", "bf16", "fp16"])
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_a_step_is_stationary(optimizer: str, dtype: str) -> None:
    """After 200 steps the loss is what it was, every gradient finite, and no weight far from its place."""
    built = build(point(dtype=dtype, optimizer=optimizer, impl="fused"))
    first, before = built.function(*built.arguments).item(), weights_after(built, 1)
    after = weights_after(built, 200)
    model, *_ = built.arguments
    assert built.function(*built.arguments).item() == pytest.approx(first, rel=0.01)
    assert all(bool(torch.isfinite(each.grad).all()) for each in model.parameters())
    for one, other in zip(before, after, strict=True):
        torch.testing.assert_close(one, other, rtol=0.01, atol=0.01)


def test_a_step_learns() -> None:
    """The update is real: in fp32 the loss falls and every weight moves."""
    built = build(point(optimizer="adam"))
    losses = [built.function(*built.arguments).item() for _ in range(50)]
    assert losses[-1] < losses[0]
    before, after = weights_after(build(point()), 0), weights_after(build(point()), 50)
    assert all(not torch.equal(one, other) for one, other in zip(before, after, strict=True))


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_every_implementation_computes_the_same(optimizer: str) -> None:
    """loop, foreach, fused and torch's own choice leave equal weights behind."""
    loop, *others = (
        weights_after(build(point(optimizer=optimizer, impl=impl))) for impl in ("loop", "foreach", "fused", "default")
    )
    for other in others:
        torch.testing.assert_close(other, loop, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("model", [{}, BLOCKS], ids=["mlp", "transformer"])
def test_checkpointing_changes_no_gradient(model: dict[str, Any]) -> None:
    """Layers that are computed again give the same gradients."""
    gradients = []
    for checkpoint in (False, True):
        built = build(point(checkpoint=checkpoint, **model))
        built.function(*built.arguments)
        gradients.append([each.grad for each in built.arguments[0].parameters()])
    torch.testing.assert_close(*gradients)


@pytest.mark.parametrize(
    "own", [{}, {"checkpoint": True}, {"autocast": "bf16"}, BLOCKS], ids=["plain", "checkpoint", "autocast", "blocks"]
)
def test_forward_and_loss_are_compiled_whole(own: dict[str, Any]) -> None:
    """No graph breaks between model and loss, and the weights become those of the eager step."""
    torch._dynamo.reset()
    compiled = build(point(**own), lambda function: torch.compile(function, backend="aot_eager", fullgraph=True))
    torch.testing.assert_close(weights_after(compiled), weights_after(build(point(**own))), rtol=1e-5, atol=1e-6)


def test_gradients_stay_or_go() -> None:
    """set_to_none=false keeps each gradient's memory from step to step."""
    built = build(point(set_to_none=False))
    places = []
    for _ in range(2):
        built.function(*built.arguments)
        places.append([each.grad.data_ptr() for each in built.arguments[0].parameters()])
    assert places[0] == places[1]


@pytest.mark.parametrize("impl", ["default", "fused"])
def test_a_scaler_leaves_no_step_out(impl: str) -> None:
    """With fp16 autocast and a scaler weights move by what they would move without, and the scale stays."""
    scaled = build(point(autocast="fp16", scaler=True, impl=impl, optimizer="sgd"))
    plain = build(point(autocast="fp16", impl=impl, optimizer="sgd"))
    torch.testing.assert_close(weights_after(scaled), weights_after(plain), rtol=1e-3, atol=1e-8)
    assert scaled.arguments[2].get_scale() == 1024.0


def test_autocast_leaves_weights_alone() -> None:
    """Weights and gradients are fp32, the loss is near that of fp32 and not the same."""
    cast, plain = build(point(autocast="bf16")), build(point())
    loss, exact = cast.function(*cast.arguments), plain.function(*plain.arguments)
    assert {each.grad.dtype for each in cast.arguments[0].parameters()} == {torch.float32}
    assert loss.item() == pytest.approx(exact.item(), rel=0.05) and loss.item() != exact.item()


# -- its phases --------------------------------------------------------------------------------------------------------


def test_phases_come_in_their_order() -> None:
    """zero_grad, forward, backward, optimizer: one after the other."""
    heard_of: list[str] = []

    @contextmanager
    def listener(name: str) -> Iterator[None]:
        heard_of.append(f"{name} begins")
        yield
        heard_of.append(f"{name} ends")

    built = build(point())
    with heard(listener):
        built.function(*built.arguments)
    names = ("zero_grad", "forward", "backward", "optimizer")
    assert heard_of == [f"{name} {word}" for name in names for word in ("begins", "ends")]


def test_phases_are_ranges_of_the_profile(tmp_path: Path) -> None:
    """In the profiled window every step holds each phase once, inside its own range."""
    built = build(point())
    done = record(
        lambda: built.function(*built.arguments), "train_step", Schedule(0, 1, 3), Recorder(), Cpu(), tmp_path, False
    )
    events = json.loads(done.traces[0].read_text())["traceEvents"]
    ranges = [each for each in events if each.get("cat") == "user_annotation"]
    steps = [each for each in ranges if each["name"] == "train_step"]
    assert len(steps) == 3
    for step in steps:
        inside = [
            each["name"]
            for each in sorted(ranges, key=lambda each: each["ts"])
            if step["ts"] < each["ts"] and each["ts"] + each["dur"] <= step["ts"] + step["dur"]
        ]
        assert [name for name in inside if "#" not in name] == ["zero_grad", "forward", "backward", "optimizer"]


# -- what it costs -----------------------------------------------------------------------------------------------------

PRODUCTS = ("linear", "qkv", "out", "up", "down", "attention")


@pytest.mark.parametrize("checkpoint", [False, True])
@pytest.mark.parametrize("model", [{}, BLOCKS], ids=["mlp", "transformer"])
def test_flops_of_products_are_torchs(model: dict[str, Any], checkpoint: bool) -> None:
    """torch's counter agrees to the FLOP; attention's plain form does not make the scores again, the formula's does."""
    given = point(checkpoint=checkpoint, **model)
    built, cost = build(given), given.spec.cost(given)
    assert cost is not None
    built.function(*built.arguments)
    with FlopCounterMode(display=False) as counter, sdpa_kernel(SDPBackend.MATH):
        built.function(*built.arguments)
    by_name = {each.name: each.flops for each in cost.operations if each.name.split()[0] in PRODUCTS}
    scores_again = by_name.get("attention backward", 0) // 5
    assert counter.get_total_flops() == sum(by_name.values()) - scores_again


def updates(**own: Any) -> dict[str, int]:
    """Bytes a weight that each pass of the optimizer moves."""
    given = point(**own)
    cost = given.spec.cost(given)
    assert cost is not None
    weights = 2 * (16 * 16 + 16)
    return {
        each.name: each.bytes // weights
        for each in cost.operations
        if each.name.split()[0] in (*OPTIMIZERS, "adam8bit")
    }


def test_bytes_of_an_update() -> None:
    """Weights of 4 bytes: 3, 5, 7 values a weight where one kernel does it all, more passes where it does not."""
    assert updates(optimizer="sgd") == updates(optimizer="sgd", impl="fused") == {"sgd": 12}
    assert updates(optimizer="momentum", impl="fused") == {"momentum": 20}
    assert sum(updates(optimizer="momentum", impl="foreach").values()) == 8 * 4
    assert updates(optimizer="adam", impl="fused") == {"adam": 28}
    assert updates(optimizer="adamw", impl="fused") == {"adamw": 28}
    assert sum(updates(optimizer="adam", impl="foreach").values()) == 18 * 4
    assert sum(updates(optimizer="adamw", impl="loop").values()) == 20 * 4
    assert updates(optimizer="adam8bit") == {"adam8bit": 12 + 4}


def test_costs_follow_the_settings() -> None:
    """Kept gradients are filled and added to; checkpointing computes forward's products again."""
    plain, kept, again = (each.spec.cost(each) for each in (point(), point(set_to_none=False), point(checkpoint=True)))
    assert plain is not None and kept is not None and again is not None
    weights = 2 * (16 * 16 + 16) * 4
    moved = [sum(each.bytes for each in cost.operations) for cost in (plain, kept)]
    assert moved[1] - moved[0] == 4 * weights
    flops = [sum(each.flops for each in cost.operations) for cost in (plain, again)]
    assert flops[1] - flops[0] == 2 * (2 * 4 * 16 * 16)
    assert plain.bytes_min == 2 * 4 * 16 * 4 + 2 * weights + 2 * 2 * weights


CASTS: list[dict[str, Any]] = [
    {"autocast": "bf16"}, {"autocast": "bf16", "checkpoint": True}, {**BLOCKS, "autocast": "bf16"},
    {**BLOCKS, "autocast": "bf16", "checkpoint": True}, {"autocast": "fp16", "scaler": True, "impl": "fused"},
    {"autocast": "fp16", "scaler": True, "impl": "foreach"},
]  # fmt: skip


@pytest.mark.parametrize("own", CASTS, ids=lambda own: " ".join(map(str, own.values())))
def test_costs_under_autocast_are_what_is_counted(own: dict[str, Any]) -> None:
    """Products compute in autocast's dtype to the FLOP, all bytes, casts with them, agree within 2 %."""
    given = point(size=16, **own)
    cost, built = given.spec.cost(given), build(given)
    assert cost is not None
    built.function(*built.arguments)
    seen = counting.counted(built, False, "fp32")["operations"]
    lower = [each for each in cost.operations if each.dtype == own["autocast"]]
    products = [each for each in lower if each.name.split()[0] in PRODUCTS]
    told = [each for each in seen if each.get("dtype") == own["autocast"] and "mm" in each["name"]]
    attention = [each.flops for each in products if "attention" in each.name]
    assert sum(each["flops"] for each in told) == sum(each.flops for each in products) - sum(attention)
    assert {each.get("dtype") for each in seen} <= {None, own["autocast"]}
    moved = sum(each["bytes"] for each in seen)
    assert sum(each.bytes for each in cost.operations) == pytest.approx(moved, rel=0.02)
    assert {each.name.split()[0] for each in lower} <= {*PRODUCTS, "gelu", "bias"}


def test_a_compiled_step_casts_activations_on_the_way() -> None:
    """Casts of weights and gradients are passes still; those of activations and the loss are saved."""
    own: dict[str, Any] = {"autocast": "bf16", **BLOCKS}
    eager, compiled = (point(compile=each, **own) for each in (False, True))
    passes = [
        {each.name: each.bytes for each in given.spec.cost(given).operations if "cast" in each.name}  # type: ignore[union-attr]
        for given in (eager, compiled)
    ]
    weights = 2 * 12 * 128**2 * (4 + 2)
    assert passes[0]["weights cast"] == passes[1]["weights cast"] == passes[1]["gradients cast"] == weights
    assert passes[0]["norm cast"] == 4 * 4 * 8 * 128 * (4 + 2) and passes[1]["norm cast"] == 0


class Counted(TorchDispatchMode):
    """Counts operators."""

    count = 0

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.count += 1
        return function(*args, **(kwargs or {}))


@pytest.mark.parametrize("own", [{}, {"optimizer": "sgd"}, BLOCKS], ids=["adamw", "sgd", "blocks"])
def test_the_floor_makes_the_same_calls(own: dict[str, Any]) -> None:
    """The step at its floor calls as many operators as the step itself, on next to nothing."""
    counts = []
    given = point(**own)
    floor = given.spec.at_floor(given)
    assert floor is not None
    for each in (given, floor):
        built = build(each)
        built.function(*built.arguments)
        with Counted() as mode:
            built.function(*built.arguments)
        counts.append(mode.count)
    assert counts[0] == counts[1]
    assert sum(each.numel() for each in build(floor).arguments[0].parameters()) < 150


def test_a_point_is_another_for_each_setting() -> None:
    """Every setting is part of a point's identity."""
    ids = {point(**own).point_id for own in ({}, {"impl": "fused"}, {"checkpoint": True}, {"layers": 3}, BLOCKS)}
    assert len(ids) == 5


# -- 8-bit states ------------------------------------------------------------------------------------------------------


def test_eight_bit_states_need_torchao(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without it the point fails with the command that installs it."""
    monkeypatch.setitem(sys.modules, "torchao.optim", None)
    with pytest.raises(ImportError, match=r"pip install 'crossover\[eight_bit\]'"):
        build(point(optimizer="adam8bit"))


def test_eight_bit_states_are_as_small_as_predicted() -> None:
    """Codes, scales and tables of a weight of 4,096 values or more; a small one's states stay in fp32."""
    torchao = pytest.importorskip("torchao.optim", reason="needs the extra eight_bit")
    given = point(optimizer="adam8bit", width=64)
    model = build(given).arguments[0]
    optimizer = torchao.Adam8bit(model.parameters())
    held = 0
    for weight in model.parameters():
        for signed in (True, False):
            state = optimizer._new_buffer(weight, signed)
            parts = [getattr(state, name) for name in getattr(state, "tensor_attrs", ())] or [state]
            held += sum(each.numel() * each.element_size() for each in parts)
    predicted = given.spec.predicted(given)  # type: ignore[attr-defined]
    assert predicted["optimizer_state_bytes_8bit_predicted"] == held
    assert held < predicted["optimizer_state_bytes_predicted"] / 3


def test_the_plain_update_of_eight_bit_states_is_adams() -> None:
    """From states that no one has rounded, in float64: torch's own step to 13 digits."""
    weights = [torch.nn.Parameter(torch.randn(8, 8, dtype=torch.float64)) for _ in range(2)]
    weights[1].data.copy_(weights[0].data)
    adams = [torch.optim.Adam([each], lr=torch.tensor(1e-3, dtype=torch.float64), eps=1e-4) for each in weights]
    for _ in range(3):
        gradient = torch.randn(8, 8, dtype=torch.float64)
        for weight, adam in zip(weights, adams, strict=True):
            weight.grad = gradient.clone()
            adam.step()
    PlainAdam8bit(adams[0]).step()
    adams[1].step()
    torch.testing.assert_close(weights[0], weights[1], rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize(("dtype", "error"), [("fp32", 1e-5), ("bf16", 0.02)])
def test_numerics_of_eight_bit_states_are_checked(dtype: str, error: float) -> None:
    """They pass with the error of the dtype, an update a hundredth too large does not in fp32; states stay as made."""
    pytest.importorskip("torchao.optim", reason="needs the extra eight_bit")
    given = point(optimizer="adam8bit", width=64, dtype=dtype)

    def larger(model: Any, optimizer: Any, *rest: Any) -> Any:
        (group,) = optimizer.param_groups
        group["lr"].mul_(1.01)
        result = built.function(model, optimizer, *rest)
        group["lr"].div_(1.01)
        return result

    with torch.compiler.set_stance("force_eager"):  # its update compiles itself, which takes 10 s
        built = build(given)
        for _ in range(5):
            built.function(*built.arguments)
        states = built.arguments[1].state.values()
        steps = {float(each["step"]) for each in states}
        for function, passed in ((built.function, True), (larger, dtype != "fp32")):
            numerics.forget()
            found = numerics.check(given, replace(built, function=function), 10.0, None, Cpu())
            assert found.passed is passed, found
            assert found.allowed is not None and 0 < found.allowed < 2 * error
    assert steps == {5.0} and {float(each["step"]) for each in states} == {7.0}
    assert {type(each["exp_avg"]).__name__ for each in states} == {"OptimState8bit", "Tensor"}
    numerics.forget()


# -- the door ----------------------------------------------------------------------------------------------------------


def test_the_file_holds_the_defaults() -> None:
    """conf/workload/train_step.yaml and the workload's own defaults are the same."""
    group = OmegaConf.to_container(OmegaConf.load(ROOT / "conf" / "workload" / "train_step.yaml"))
    assert group == {"name": "train_step", **WORKLOADS["train_step"].defaults}


REFUSED = [
    ({"batch": 8}, {}, "write size=8"),
    ({}, {"model": "transformer", "width": 100}, "for example workload.width=128"),
    ({}, {"optimizer": "adam8bit", "impl": "fused"}, "allowed is default with adam8bit"),
    ({}, {"optimizer": "sgd", "capturable": True}, "allowed is false with sgd"),
    ({}, {"optimizer": "adam8bit", "capturable": True}, "allowed is false with adam8bit"),
    ({"device": "cpu"}, {"capturable": True}, "allowed is false on the CPU"),
    ({"dtype": "bf16"}, {"autocast": "bf16"}, "write dtype=fp32"),
    ({"dtype": "auto"}, {"autocast": "fp16"}, "write dtype=fp32"),
    ({"dtype": "fp32"}, {"autocast": "bf16", "scaler": True}, "write workload.autocast=fp16"),
    ({}, {"scaler": True}, "write workload.autocast=fp16"),
    ({"l2": "cold"}, {}, "train_step makes its inputs itself"),
    ({}, {"optimizer": "lion"}, "sgd, momentum, adam, adamw, adam8bit"),
    ({}, {"layers": 0}, "a whole number from 1"),
]


@pytest.mark.parametrize(("axes", "own", "told"), REFUSED, ids=[told for *_, told in REFUSED])
def test_what_does_not_go_together_is_refused(axes: dict[str, Any], own: dict[str, Any], told: str) -> None:
    """One sentence with what is allowed and the cure, before anything is measured."""
    with pytest.raises(PointError, match="allowed is") as refused:
        Point.checked(values(workload={"name": "train_step", **own}, **axes))
    assert told in str(refused.value)


def test_a_graph_of_adam_is_for_cuda() -> None:
    """Where device=auto turns out to be the CPU, the point fails with the same sentence."""
    with pytest.raises(ValueError, match="allowed is false on the CPU"):
        build(point(capturable=True))
