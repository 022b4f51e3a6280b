"""Layers as workloads: what they compute, what they cost, what they refuse, and how they run compiled."""

from __future__ import annotations

import copy
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from configured import values
from torch.nn import functional
from torch.utils.flop_counter import FlopCounterMode

from runner import compiling
from runner.device import Cpu
from runner.doubling import doubled_step
from runner.measure import measure_times
from runner.point import Point, PointError
from runner.rounds import Target
from runner.task import Measurement, Recorder, Task
from runner.workloads import WORKLOADS, Built, Cost, Operation
from runner.workloads.layers import rounded_hidden

ROOT = Path(__file__).parent.parent
CPU = torch.device("cpu")
SMALL = {
    "linear": {"features": 24}, "mlp": {"width": 24, "hidden": 40}, "norm": {"features": 24},
    "attention": {"heads": 3, "head_dim": 8}, "transformer_block": {"heads": 3, "head_dim": 8},
}  # fmt: skip


def point(workload: str, size: int = 6, own: dict[str, Any] | None = None, **changes: Any) -> Point:
    """A small point on the CPU, checked as the command line's is."""
    group = {"name": workload, **SMALL[workload], **(own or {})}
    return Point.checked(values(workload=group, size=size, device="cpu", **{"dtype": "fp32", **changes}))


def built(given: Point, compile: Callable[..., Any] = lambda function: function) -> Built:
    """The point's step and its arguments."""
    return given.spec.build(given, CPU, torch.Generator().manual_seed(given.seed), compile)


def result(given: Point) -> torch.Tensor:
    """What one step returns."""
    made = built(given)
    done: torch.Tensor = made.function(*made.arguments)
    return done


def cost(given: Point) -> Cost:
    """The cost of a point of a workload that has a model of it."""
    found = given.spec.cost(given)
    assert found is not None
    return found


def named(given: Point) -> dict[str, tuple[int, int]]:
    """FLOPs and bytes of the operations by name."""
    return {each.name: (each.flops, each.bytes) for each in cost(given).operations}


ATTENTIONS = [
    point("attention", own={"impl": impl, "causal": causal})
    for impl in ("naive", "inplace", "sdpa")
    for causal in (False, True)
]
POINTS = [
    point("linear"), point("linear", own={"bias": False}, batch=2), point("mlp"), point("mlp", batch=2), point("norm"),
    point("norm", own={"kind": "rms"}, batch=2), *ATTENTIONS, *(replace(each, batch=2) for each in ATTENTIONS),
    point("transformer_block"), point("transformer_block", own={"causal": False}, batch=2),
]  # fmt: skip
EACH = pytest.mark.parametrize("given", POINTS, ids=lambda each: each.label)


# -- what they compute ------------------------------------------------------------------------------------------------


@EACH
def test_a_step_repeats_itself_and_leaves_its_arguments_alone(given: Point) -> None:
    """Two calls give the same finite numbers, of the input's shape, without a graph for gradients."""
    made = built(given)
    before = copy.deepcopy(made.arguments)
    one, other = made.function(*made.arguments), made.function(*made.arguments)
    assert torch.equal(one, other) and one.isfinite().all() and not one.requires_grad
    assert tuple(one.shape) == given.spec.shapes(given)[0]
    for now, then in zip(made.arguments, before, strict=True):
        if isinstance(now, torch.Tensor):
            assert torch.equal(now, then)


@EACH
def test_a_copy_of_the_arguments_is_another_step(given: Point) -> None:
    """Called with a deep copy a step returns the same: nothing that it reads is kept elsewhere."""
    made = built(given)
    torch.testing.assert_close(made.function(*copy.deepcopy(made.arguments)), made.function(*made.arguments))


@EACH
def test_the_same_seed_draws_the_same_weights(given: Point) -> None:
    """The seed decides inputs and weights; another one gives other numbers."""
    assert torch.equal(result(given), result(given))
    assert not torch.equal(result(given), result(replace(given, seed=1)))


@EACH
def test_the_reference_computes_the_same(given: Point) -> None:
    """The plain form, from the same arguments."""
    made = built(given)
    plain = given.spec.reference(given, made)
    torch.testing.assert_close(plain(*made.arguments), made.function(*made.arguments))


def test_linear_is_a_product_with_the_transposed_weights() -> None:
    """x W^T + b."""
    made = built(point("linear"))
    module, x = made.arguments
    torch.testing.assert_close(made.function(module, x), x @ module.weight.T + module.bias)


def test_mlp_is_the_gated_one() -> None:
    """down(silu(gate x) * up x)."""
    made = built(point("mlp"))
    module, x = made.arguments
    gate, up, down = (weights.weight.T for weights in (module.gate, module.up, module.down))
    torch.testing.assert_close(made.function(module, x), (functional.silu(x @ gate) * (x @ up)) @ down)


@pytest.mark.parametrize("kind", ["layer", "rms"])
def test_norms_scale_every_row(kind: str) -> None:
    """Mean 0 (layer) and mean square 1 of each row, times the weights."""
    made = built(point("norm", own={"kind": kind}))
    module, x = made.arguments
    centred = x - x.mean(-1, keepdim=True) if kind == "layer" else x
    expected = centred / centred.square().mean(-1, keepdim=True).sqrt() * module.weight
    expected = expected + module.bias if kind == "layer" else expected
    torch.testing.assert_close(made.function(module, x), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("given", ATTENTIONS, ids=lambda each: each.label)
def test_attention_is_torchs_own(given: Point) -> None:
    """All three forms agree with scaled_dot_product_attention, with and without a mask."""
    q, k, v, *_ = built(given).arguments
    expected = functional.scaled_dot_product_attention(q, k, v, is_causal=dict(given.params)["causal"])
    torch.testing.assert_close(result(given), expected)


def test_in_place_attention_holds_one_matrix_of_scores() -> None:
    """Of 16 heads and 128 positions: at its peak the naive form holds two matrices or more, the other one alone."""
    matrix = 16 * 128 * 128 * 4
    peaks = {}
    for impl in ("naive", "inplace"):
        made = built(point("attention", 128, {"impl": impl, "heads": 16}))
        with torch.profiler.profile(profile_memory=True) as profiled:
            made.function(*made.arguments)
        peaks[impl] = _peak_bytes(profiled)
    assert peaks["naive"] > 1.9 * matrix
    assert peaks["inplace"] < 1.5 * matrix


def _peak_bytes(profiled: torch.profiler.profile) -> int:
    """Most bytes held at once, of what was allocated under a profiler."""
    recorded: Any = profiled.profiler
    changes = [each for each in recorded.kineto_results.events() if each.name() == "[memory]"]
    now = peak = 0
    for each in sorted(changes, key=lambda each: each.start_ns()):
        now += each.nbytes()
        peak = max(peak, now)
    return peak


def test_a_causal_block_does_not_see_later_tokens() -> None:
    """Another last token changes the last result alone; without the mask it changes all."""
    for causal in (True, False):
        made = built(point("transformer_block", own={"causal": causal}))
        module, x = made.arguments
        changed = x.clone()
        changed[:, -1] += 1
        same = torch.isclose(made.function(module, x), made.function(module, changed)).all(-1)[0]
        assert same.tolist() == [causal] * 5 + [False]


def test_values_of_a_wide_mlp_fit_into_float16() -> None:
    """Matrices of unit gain: nothing overflows at the default width."""
    given = point("mlp", 2, {"width": 1024, "hidden": None}, dtype="fp16")
    assert result(given).isfinite().all() and result(given).abs().max() < 100


def test_hidden_features_follow_the_width() -> None:
    """8/3 of it, rounded up to a multiple of 64; a number of one's own is taken as it is."""
    assert [rounded_hidden(width) for width in (1, 24, 96, 1024)] == [64, 64, 256, 2752]
    assert built(point("mlp", own={"hidden": None})).arguments[0].up.out_features == 64
    assert built(point("mlp", own={"hidden": 40})).arguments[0].up.out_features == 40


# -- what they cost ---------------------------------------------------------------------------------------------------


PRODUCTS = ("linear", "gate", "up", "down", "qkv", "out", "scores", "values", "attention")


def product_flops(given: Point) -> int:
    """FLOPs of the products alone, by the workload's own model: what torch's counter counts."""
    own, rows = dict(given.params), (given.batch or 1) * (given.size or 0)
    extra = {
        "linear": rows * own.get("features", 0) * own.get("bias", 0),
        "attention": 6 * (given.batch or 1) * own.get("heads", 0) * (given.size or 0) ** 2,
    }
    return sum(each.flops - extra.get(each.name, 0) for each in cost(given).operations if each.name in PRODUCTS)


COUNTED = [
    each
    for each in POINTS
    if each.workload in ("linear", "mlp") or dict(each.params).get("impl") in ("naive", "inplace")
]
COUNTED += [
    point("attention", 6, {"backend": "math", "causal": causal}, batch=batch)
    for causal in (False, True)
    for batch in (None, 2)
]


@pytest.mark.parametrize("given", COUNTED, ids=lambda each: each.label)
def test_flops_of_products_are_torchs(given: Point) -> None:
    """torch's own counter, which knows products alone, agrees with ours to the last one."""
    made = built(given)
    settings: Callable[[Point], Any] = getattr(given.spec, "settings", lambda _: nullcontext())
    with settings(given), FlopCounterMode(display=False) as counter:
        made.function(*made.arguments)
    assert counter.get_total_flops() == product_flops(given)


def test_flops_of_fused_attention_are_torchs_and_half_of_it_with_a_mask() -> None:
    """Counted where torch decomposes it; causal, s (s + 1) / 2 pairs in place of s^2."""
    q = torch.ones(2, 3, 6, 8)
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH), FlopCounterMode(display=False) as counter:
        functional.scaled_dot_product_attention(q, q, q)
    full, causal = (point("attention", own={"causal": each}, batch=2) for each in (False, True))
    assert product_flops(full) == counter.get_total_flops() == 4 * 6 * 6 * 6 * 8
    assert named(causal)["attention"][0] * 36 == named(full)["attention"][0] * 21


def test_flops_of_a_block_are_torchs() -> None:
    """The products of its five matrices, and attention's."""
    given = point("transformer_block", own={"causal": False}, batch=2)
    made = built(given)
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH), FlopCounterMode(display=False) as counter:
        made.function(*made.arguments)
    assert counter.get_total_flops() == product_flops(given)


@EACH
def test_least_bytes_are_those_of_arguments_and_result(given: Point) -> None:
    """Each read or written once; no operation moves less than that alone, and none is free of bytes."""
    made = built(given)
    held = [each for each in made.arguments if isinstance(each, torch.Tensor)]
    held += [weight for each in made.arguments if isinstance(each, torch.nn.Module) for weight in each.parameters()]
    held.append(made.function(*made.arguments))
    assert cost(given).bytes_min == sum(each.numel() * each.element_size() for each in held)
    assert cost(given).working_set_bytes >= cost(given).bytes_min
    assert all(each.bytes > 0 for each in cost(given).operations)


def test_costs_of_linear() -> None:
    """6 rows of 24 features: 2 m f^2 and m f for the bias; x, result, matrix and bias once. Compiled the same."""
    assert named(point("linear")) == {"linear": (2 * 6 * 576 + 144, (2 * 144 + 576 + 24) * 4)}
    assert named(point("linear", own={"bias": False})) == {"linear": (2 * 6 * 576, (2 * 144 + 576) * 4)}
    assert cost(point("linear", compile=True)) == cost(point("linear"))


def test_costs_of_mlp() -> None:
    """Compiled, activation and product are one pass that moves three tensors in place of five."""
    eager, compiled = named(point("mlp")), named(point("mlp", compile=True))
    between = 6 * 40
    assert (eager["silu"], eager["mul"]) == ((4 * between, 8 * between), (between, 12 * between))
    assert compiled["silu_mul"] == (5 * between, 12 * between)
    assert list(eager) == ["gate", "up", "silu", "mul", "down"] and list(compiled) == ["gate", "up", "silu_mul", "down"]


def test_costs_of_norm() -> None:
    """One pass of 7 or 4 FLOPs an element; RMSNorm eager on the CPU is four passes, with float32 in between."""
    assert named(point("norm")) == {"layer": (7 * 144, (2 * 144 + 48) * 4)}
    rms = point("norm", own={"kind": "rms"}, dtype="bf16")
    assert named(replace(rms, compile=True)) == named(replace(rms, device="cuda")) == {"rms": (4 * 144, (288 + 24) * 2)}
    assert [each.bytes for each in cost(rms).operations] == [6 * 144, 4 * 144, 6 * 144, 6 * 144 + 24 * 2]
    assert sum(each.flops for each in cost(rms).operations) == 4 * 144


def test_costs_of_attention_with_its_scores_in_memory() -> None:
    """3 heads, 6 positions, 8 features: the mask costs bytes and no FLOPs; compiled, one pass over the scores."""
    scores, rows = 3 * 36, 3 * 6 * 8
    eager = named(point("attention", own={"impl": "naive", "causal": True}))
    assert eager == {
        "scores": (2 * scores * 8, (2 * rows + scores) * 4),
        "scale": (scores, 2 * scores * 4),
        "mask": (0, 2 * scores * 4 + 36),
        "softmax": (5 * scores, 2 * scores * 4),
        "values": (2 * scores * 8, (scores + 2 * rows) * 4),
    }
    compiled = named(point("attention", own={"impl": "naive", "causal": True}, compile=True))
    assert compiled["scaled_softmax"] == (6 * scores, 2 * scores * 4 + 36) and len(compiled) == 3


def test_in_place_attention_moves_the_same_and_touches_less() -> None:
    """The same operations; one matrix of scores in place of three or, with a mask, four."""
    for causal, copies in ((False, 3), (True, 4)):
        naive, own = (point("attention", own={"impl": impl, "causal": causal}) for impl in ("naive", "inplace"))
        assert cost(naive).operations == cost(own).operations
        assert cost(naive).working_set_bytes - cost(own).working_set_bytes == (copies - 1) * 3 * 36 * 4


def test_costs_of_a_block_are_those_of_its_parts() -> None:
    """Eager 12 operations on the GPU; compiled the first addition joins the norm behind it."""
    eager = replace(point("transformer_block"), device="cuda")
    names = [each.name for each in cost(eager).operations]
    assert names == [
        "attention_norm", "qkv", "attention", "out", "add", "mlp_norm", "gate", "up", "silu", "mul", "down", "add",
    ]  # fmt: skip
    compiled = replace(eager, compile=True)
    assert [each.name for each in cost(compiled).operations] == [
        "attention_norm", "qkv", "attention", "out", "add_norm", "gate", "up", "silu_mul", "down", "add",
    ]  # fmt: skip
    rows, width = 6, 24
    assert named(compiled)["add_norm"] == (5 * rows * width, (3 * rows * width + width) * 4)
    assert named(compiled)["add"] == (2 * rows * width, 4 * rows * width * 4)
    assert Operation("attention", 3 * 21 * 38, 4 * rows * width * 4) in cost(compiled).operations


@EACH
def test_costs_grow_with_the_batch(given: Point) -> None:
    """A batch of 8 has 8 times the FLOPs of a batch of 1."""
    one, eight = (sum(each.flops for each in cost(replace(given, batch=batch)).operations) for batch in (1, 8))
    assert eight == 8 * one


# -- floors and rows --------------------------------------------------------------------------------------------------


@EACH
def test_the_floor_has_as_good_as_no_work(given: Point) -> None:
    """The same operations of a few numbers, whatever the sizes of the point; its axes stay where they are."""
    floor = given.spec.at_floor(given)
    assert floor is not None
    made = built(floor)
    assert made.function(*made.arguments).isfinite().all()
    assert sum(each.flops for each in cost(floor).operations) < 10_000
    assert [each.name for each in cost(floor).operations] == [each.name for each in cost(given).operations]
    assert (floor.batch is None) == (given.batch is None)


@EACH
def test_rows_can_be_doubled(given: Point) -> None:
    """The result is the step's own, twice: of sequences one after the other, else one row below the other."""
    axis = 0 if given.workload in ("attention", "transformer_block") else -2
    twice = doubled_step(given, Cpu())()
    torch.testing.assert_close(twice, torch.cat((result(given), result(given)), dim=axis))


# -- what they refuse -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("workload", "own", "told"),
    [
        ("linear", {"features": 0}, "workload.features=0: allowed is a whole number from 1"),
        ("linear", {"bias": 1}, "workload.bias=1: allowed is true, false"),
        ("mlp", {"hidden": 2.5}, "workload.hidden=2.5: allowed is null or a whole number from 1"),
        ("mlp", {"hidden": True}, "workload.hidden=true: allowed is null or a whole number from 1"),
        ("norm", {"kind": "batch"}, "workload.kind=batch: allowed is layer, rms"),
        ("attention", {"impl": "fast"}, "workload.impl=fast: allowed is naive, inplace, sdpa"),
        ("attention", {"backend": "triton"}, "workload.backend=triton: allowed is auto, math, flash"),
        ("attention", {"impl": "naive", "backend": "flash"}, "write workload.impl=sdpa"),
        ("transformer_block", {"causal": "yes"}, "workload.causal=yes: allowed is true, false"),
    ],
)
def test_what_cannot_be_measured_is_refused(workload: str, own: dict[str, Any], told: str) -> None:
    """One sentence with what came and what is allowed."""
    with pytest.raises(PointError) as refused:
        point(workload, own=own)
    assert told in str(refused.value)


def test_inputs_of_a_module_do_not_rotate() -> None:
    """l2=cold is refused where a module's weights would stay in the cache; attention's inputs may rotate."""
    with pytest.raises(PointError, match="l2=cold: allowed is warm, since linear makes its inputs itself"):
        point("linear", l2="cold")
    assert point("attention", l2="cold").l2 == "cold"


# -- end to end -------------------------------------------------------------------------------------------------------


def measured(given: Point, folder: Path) -> Measurement:
    """What a worker answers when it takes the times alone."""
    return measure_times(Task(given, Target("test", 1.0, 0.01), 5.0, False, Recorder(), False, {}, str(folder)), Cpu())


@EACH
def test_every_layer_is_measured_and_checked(given: Point, tmp_path: Path) -> None:
    """wall and floor in bf16, and numbers that agree with float64."""
    done = measured(replace(given, dtype="bf16", threads=1), tmp_path)
    assert done.status == "ok", done.reason
    assert {"wall", "floor"} <= {sample.quantity for sample in done.samples}
    assert done.facts["numerics"]["passed"] is True


def test_a_backend_that_cannot_run_is_a_failed_point(tmp_path: Path) -> None:
    """No other one takes its place; the reason is torch's, and the next point has all backends again."""
    done = measured(point("attention", own={"backend": "cudnn"}), tmp_path)
    assert done.status == "failed"
    assert done.reason is not None and "backend=cudnn: No viable backend" in done.reason
    assert measured(point("attention"), tmp_path).status == "ok"
    assert measured(point("attention", own={"backend": "math"}), tmp_path).status == "ok"


def compiled(given: Point) -> tuple[torch.Tensor, dict[str, Any]]:
    """Result of a compiled step, and what was compiled for it."""
    compiling.forget()
    made = built(given, partial(compiling.of_point, given))
    return made.function(*made.arguments), compiling.facts()


@pytest.mark.parametrize("workload", ["linear", "norm", "mlp", "transformer_block"])
def test_a_compiled_layer_is_one_graph_that_computes_the_same(workload: str) -> None:
    """No break in it; activation and product, addition and norm are one kernel each, as the cost model says."""
    given = point(workload, compile=True)
    done, facts = compiled(given)
    torch.testing.assert_close(done, result(replace(given, compile=False)))
    assert (facts["compilations"], facts["graph_breaks"]) == (1, 0)
    text = "".join(each["source_text"] for each in facts["code"])
    assert text.count("extern_kernels.") == {"linear": 1, "norm": 0, "mlp": 3, "transformer_block": 5}[workload]
    assert text.count('extern "C"') == {"linear": 0, "norm": 1, "mlp": 1, "transformer_block": 4}[workload]


@pytest.mark.parametrize("impl", ["naive", "inplace"])
def test_torch_puts_fused_attention_in_place_of_what_has_no_mask(impl: str) -> None:
    """As the cost model says: one kernel without a mask, the scores in memory with one."""
    for causal in (False, True):
        given = point("attention", own={"impl": impl, "causal": causal}, compile=True)
        done, facts = compiled(given)
        torch.testing.assert_close(done, result(replace(given, compile=False)), rtol=1e-4, atol=1e-4)
        text = "".join(each["source_text"] for each in facts["code"])
        assert ("torch.ops.aten._scaled_dot_product" in text) is not causal
        assert ("attention" in named(given)) is not causal


def test_every_layer_says_what_its_size_is() -> None:
    """Each has a file in conf/workload, whose comment states the size and whose values are its defaults."""
    from omegaconf import OmegaConf

    for name in SMALL:
        file = ROOT / "conf" / "workload" / f"{name}.yaml"
        assert "size is" in file.read_text().splitlines()[0]
        given = OmegaConf.to_container(OmegaConf.load(file))
        assert given == {"name": name, **WORKLOADS[name].defaults}
