"""Rules by holder of memory, and of the optimizer's launches: each with a case where it fires, and a near miss."""

from pathlib import Path
from typing import Any

from rule_given import Trace, outcome


def held(phase: str = "backward", settings: dict[str, Any] | None = None, **holders: int) -> dict[str, Any]:
    """A run whose step is at its peak in this phase, with these bytes by holder; settings: its workload's own."""
    entry = {"order": 1, "phase": phase, "parent": "step", "peak_bytes": sum(holders.values())}
    facts = {"phase_memory": [entry | {"holders_at_peak": holders, "holders_at_end": {}}]}
    return {"workload": "train_step", "params": settings or {}, "facts": facts, "wall_us": 100}


MIB = 2**20


def memory(
    folder: Path, rule: str, *runs: dict[str, Any], trace: Trace | None = None, dtype: str = "fp32"
) -> dict[str, Any]:
    """What the rule says of the first run."""
    return outcome(folder, rule, trace or Trace(), [run | {"dtype": dtype} for run in runs])


# -- activations -------------------------------------------------------------------------------------------------------

ACTIVATIONS = {"parameters": 10 * MIB, "optimizer_state": 20 * MIB, "activations": 60 * MIB}


def test_activations_dominate_fires(tmp_path: Path) -> None:
    """60 of 90 MiB; of 4 layers, one at a time has its activations with checkpoints."""
    found = memory(tmp_path, "activations_dominate", held(settings={"layers": 4}, **ACTIVATIONS))
    assert found["outcome"] == "fired"
    assert (
        "Activations hold 60.0 MiB of the 90.0 MiB at the peak of the step, in backward, 66.7 % of it."
        in found["sentence"]
    )
    assert "saves at most 45.0 MiB (predicted: of 4 layers one at a time" in found["cure"]
    assert '"basis":"predicted"' in found["evidence"]


def test_activations_dominate_tells_what_was_measured(tmp_path: Path) -> None:
    """Where the store holds the same with checkpoints, what they saved, and what they cost."""
    now = held(settings={"layers": 4, "checkpoint": False}, **ACTIVATIONS)
    fewer = ACTIVATIONS | {"activations": 20 * MIB}
    then = held(settings={"layers": 4, "checkpoint": True}, **fewer) | {"wall_us": 130}
    found = memory(tmp_path, "activations_dominate", now, then)
    assert found["cure"] == (
        "Activation checkpointing saves 40.0 MiB of the peak, and a step takes 1.30 times as long "
        "(measured: checkpoint=true is in the store)."
    )


def test_activations_dominate_guesses_nothing(tmp_path: Path) -> None:
    """Without the number of layers no bytes are promised."""
    cure = memory(tmp_path, "activations_dominate", held(**ACTIVATIONS))["cure"]
    assert cure.startswith("Activation checkpointing: keep the inputs") and "MiB" not in cure


def test_activations_dominate_near_miss(tmp_path: Path) -> None:
    """Less than the states of the optimizer; with checkpoints already; not watched."""
    rule = "activations_dominate"
    less = held(**ACTIVATIONS | {"optimizer_state": 61 * MIB})
    assert memory(tmp_path / "less", rule, less)["outcome"] == "clear"
    already = memory(tmp_path / "done", rule, held(settings={"checkpoint": True}, **ACTIVATIONS))
    assert (already["outcome"], already["reason"][:22]) == ("clear", "checkpointed already: ")
    assert memory(tmp_path / "none", rule, {"workload": "train_step"})["outcome"] == "not applicable"


# -- the optimizer's states --------------------------------------------------------------------------------------------

STATES = {"parameters": 100 * MIB, "gradients": 50 * MIB, "optimizer_state": 200 * MIB, "activations": 10 * MIB}


def test_optimizer_state_dominates_fires(tmp_path: Path) -> None:
    """Two states of 4 bytes become two of one byte with 4 bytes of scale for every 256: 200 x (1 - 1.015625 / 4)."""
    found = memory(tmp_path, "optimizer_state_dominates", held(settings={"optimizer": "adam"}, **STATES))
    assert found["outcome"] == "fired"
    assert "The states of the optimizer (adam) hold 200 MiB of the 360 MiB" in found["sentence"]
    assert "2.00 bytes for each byte of the parameters" in found["sentence"]
    assert "States of 8 bits save about 149 MiB (predicted: a byte for each of 4" in found["cure"]


def test_optimizer_state_dominates_knows_half_precision(tmp_path: Path) -> None:
    """States of 2 bytes are halved: 200 x (1 - 1.015625 / 2)."""
    cure = memory(tmp_path, "optimizer_state_dominates", held(**STATES), dtype="bf16")["cure"]
    assert "save about 98.4 MiB (predicted: a byte for each of 2" in cure


def test_optimizer_state_dominates_tells_what_was_measured(tmp_path: Path) -> None:
    """Where the store holds the same with 8-bit states."""
    now = held(settings={"optimizer": "adam"}, **STATES)
    then = held(settings={"optimizer": "adam8bit"}, **STATES | {"optimizer_state": 52 * MIB})
    cure = memory(tmp_path, "optimizer_state_dominates", now, then)["cure"]
    assert cure.startswith("adam8bit saves 148 MiB of the peak (measured: it is in the store)")


def test_optimizer_state_dominates_near_miss(tmp_path: Path) -> None:
    """With plain SGD, whose states are none; in 8 bits already."""
    rule = "optimizer_state_dominates"
    assert memory(tmp_path / "sgd", rule, held(**STATES | {"optimizer_state": 0}))["outcome"] == "clear"
    done = held(settings={"optimizer": "adam8bit"}, **STATES)
    assert memory(tmp_path / "done", rule, done)["outcome"] == "clear"


# -- gradients ---------------------------------------------------------------------------------------------------------


def test_gradients_at_peak_fires(tmp_path: Path) -> None:
    """A quarter of the peak in backward; in forward, where none is needed, less is enough."""
    rule = "gradients_at_peak"
    found = memory(tmp_path / "backward", rule, held(parameters=30 * MIB, gradients=10 * MIB))
    assert found["outcome"] == "fired"
    assert "Update each weight as soon as its gradient comes" in found["cure"] and "(predicted)" in found["cure"]
    found = memory(tmp_path / "forward", rule, held("forward", parameters=90 * MIB, gradients=10 * MIB))
    assert "in forward, where none is needed: they are left from the step before." in found["sentence"]
    assert found["cure"].startswith("zero_grad(set_to_none=True) before forward: the peak falls by at most 10.0 MiB")


def test_gradients_at_peak_near_miss(tmp_path: Path) -> None:
    """A tenth of the peak of backward is what training takes."""
    assert memory(tmp_path, "gradients_at_peak", held(parameters=90 * MIB, gradients=10 * MIB))["outcome"] == "clear"


# -- temporaries -------------------------------------------------------------------------------------------------------

TEMPORARIES = {"inputs": 20 * MIB, "temporaries": 80 * MIB}


def naive_attention() -> Trace:
    """Steps of two products with a softmax between them."""
    trace = Trace("train_step")
    for step in range(4):
        at = 1000.0 * step
        trace.step(step, at, 100)
        for place, name in enumerate(("aten::bmm", "aten::_softmax", "aten::bmm")):
            trace.host(name, at + 10 + 20 * place, 10, step)
    return trace


def test_temporaries_dominate_fires(tmp_path: Path) -> None:
    """80 of 100 MiB; the step's operations tell that they are scores of attention."""
    found = memory(tmp_path, "temporaries_dominate", held("step", **TEMPORARIES), trace=naive_attention())
    assert found["outcome"] == "fired"
    assert (
        "Temporaries hold 80.0 MiB of the 100 MiB at the peak of the step, 80.0 % of it: products and a softmax"
        in (found["sentence"])
    )
    assert found["cure"] == "scaled_dot_product_attention keeps the scores on chip: at most 80.0 MiB less (predicted)."


def test_temporaries_dominate_tells_what_was_measured(tmp_path: Path) -> None:
    """Of other implementations in the store the one with the lowest peak, with its speed."""
    now = held(settings={"impl": "naive", "causal": True}, **TEMPORARIES)
    then = held(settings={"impl": "sdpa", "causal": True}, **TEMPORARIES | {"temporaries": 5 * MIB}) | {"wall_us": 50}
    other = held(settings={"impl": "sdpa", "causal": False}, **TEMPORARIES | {"temporaries": 0})
    found = memory(tmp_path, "temporaries_dominate", now, then, other)
    assert found["cure"] == (
        "impl=sdpa saves 75.0 MiB of the peak, and a step is 2.00 times as fast (measured: it is in the store)."
    )
    assert found["gain"] == 2


def test_temporaries_dominate_near_miss(tmp_path: Path) -> None:
    """Below 40 %, or not the most."""
    assert memory(tmp_path, "temporaries_dominate", held(inputs=70 * MIB, temporaries=30 * MIB))["outcome"] == "clear"


# -- sums --------------------------------------------------------------------------------------------------------------


def test_holders_off_fires(tmp_path: Path) -> None:
    """Two per cent off what the allocator counted: both figures."""
    run = held(**TEMPORARIES)
    run["facts"]["memory_sums"] = {"off_frac": 0.02, "held_bytes": 98 * MIB, "allocated_bytes": 100 * MIB}
    found = memory(tmp_path, "holders_off", run)
    assert found["outcome"] == "fired"
    assert (
        found["sentence"]
        == "The holders have 98.0 MiB where the allocator counted 100 MiB: at worst they are 2.00 % off."
    )


def test_holders_off_near_miss(tmp_path: Path) -> None:
    """Half a per cent; where nothing was counted the rule does not apply."""
    run = held(**TEMPORARIES)
    run["facts"]["memory_sums"] = {"off_frac": 0.005}
    assert memory(tmp_path / "near", "holders_off", run)["outcome"] == "clear"
    assert memory(tmp_path / "none", "holders_off", held(**TEMPORARIES))["outcome"] == "not applicable"


# -- the optimizer's launches ------------------------------------------------------------------------------------------

OVERHEAD_BOUND = {"workload": "train_step", "wall_us": 100, "issue_us": 100, "device_us": 20}
LOOP = {"impl": "loop", "optimizer": "adam"}


def looping(updates: int) -> Trace:
    """Steps of 100 us with four launches, then an optimizer of 40 us with so many, in torch's own range in another."""
    trace = Trace("train_step")
    for step in range(4):
        at = 1000.0 * step
        trace.step(step, at, 100)
        for place in range(4):
            trace.launched("product", at + 5 * place, at + 5 * place + 3, 1, step)
        trace.host("optimizer", at + 55, 40, step, "user_annotation")
        trace.host("Optimizer.step#Adam.step", at + 56, 38, step, "user_annotation")
        for place in range(updates):
            trace.launched("update", at + 57 + 3 * place, at + 60 + 3 * place, 1, step)
    return trace


def test_optimizer_launches_fires(tmp_path: Path) -> None:
    """8 of 12 launches; without the optimizer's 40 % of the host's time a step takes 60 us."""
    found = outcome(tmp_path, "optimizer_launches", looping(8), {**OVERHEAD_BOUND, "params": LOOP})
    assert found["outcome"] == "fired"
    assert found["sentence"].startswith("The optimizer makes 8 of the 12 launches of a step, 66.7 %, and takes 40.0 %")
    assert "a step at most 1.67 times as fast (predicted" in found["cure"]
    assert round(found["gain"], 2) == 1.67


def test_optimizer_launches_tells_what_was_measured(tmp_path: Path) -> None:
    """The best of the other implementations in the store, alike in all else."""
    runs = [
        {**OVERHEAD_BOUND, "params": LOOP},
        {**OVERHEAD_BOUND, "wall_us": 50, "params": LOOP | {"impl": "fused"}},
        {**OVERHEAD_BOUND, "wall_us": 80, "params": LOOP | {"impl": "foreach"}},
        {**OVERHEAD_BOUND, "wall_us": 10, "params": {"impl": "fused", "optimizer": "sgd"}},
    ]
    found = outcome(tmp_path, "optimizer_launches", looping(8), runs)
    assert found["cure"] == "impl=fused makes a step 2.00 times as fast (measured: it is in the store)."
    assert found["gain"] == 2


def test_optimizer_launches_says_where_no_other_is_faster(tmp_path: Path) -> None:
    """A cure that was tried and is worse is not advised."""
    runs = [{**OVERHEAD_BOUND, "params": LOOP}, {**OVERHEAD_BOUND, "wall_us": 125, "params": LOOP | {"impl": "fused"}}]
    found = outcome(tmp_path, "optimizer_launches", looping(8), runs)
    assert found["cure"].startswith("No other implementation in the store is faster: the best, impl=fused, takes 1.25")


def test_optimizer_launches_near_miss(tmp_path: Path) -> None:
    """A fourth of the launches; bound by the device; no optimizer in the step."""
    rule = "optimizer_launches"
    assert outcome(tmp_path / "few", rule, looping(1), OVERHEAD_BOUND)["outcome"] == "clear"
    device_bound = {**OVERHEAD_BOUND, "wall_us": 300, "device_us": 300}
    assert outcome(tmp_path / "device", rule, looping(8), device_bound)["outcome"] == "clear"
    trace = Trace("train_step")
    for step in range(4):
        trace.step(step, 1000.0 * step, 100)
        trace.launched("product", 1000.0 * step + 5, 1000.0 * step + 9, 1, step)
    assert outcome(tmp_path / "none", rule, trace, OVERHEAD_BOUND)["outcome"] == "not applicable"
