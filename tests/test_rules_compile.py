"""Rules on torch.compile: each with a case where it fires, and a near miss.

A compiled step takes 100 us on the host: 10 us of cache lookup, then a region of 80 us with a wrapper of 5 us and a
graph of 40 us, in which one operation of 30 us launches a kernel.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rule_given import Trace, outcome

STEPS = 4
COMPILED = {"compile": "true"}


def compiled(
    regions: tuple[str, ...] = ("0/0",) * STEPS, hashes: tuple[str, ...] = ("fabc",) * STEPS, lookup_us: float = 10,
    graph_us: float = 40,
) -> Trace:  # fmt: skip
    """Four compiled steps: the region and the hash of the graph in each."""
    trace = Trace()
    for step, (region, hash) in enumerate(zip(regions, hashes, strict=True)):
        at = 200.0 * step
        trace.step(step, at, 100)
        trace.host("TorchDynamo Cache Lookup", at + 1, lookup_us, step)
        trace.host(f"Torch-Compiled Region: {region}", at + 15, 80, step)
        trace.host("AOTDispatcher Runtime Wrapper Prologue", at + 20, 5, step)
        trace.host(f"## Call CompiledFxGraph {hash} ##", at + 30, graph_us, step, "user_annotation")
        trace.host("aten::addmm", at + 32, 30, step)
        trace.launched("gemm", at + 40, at + 60, 10, step)
    return trace


def eager() -> Trace:
    """Four steps of one operation, without anything compiled."""
    trace = Trace()
    for step in range(STEPS):
        at = 200.0 * step
        trace.step(step, at, 50)
        trace.host("aten::mm", at + 5, 20, step)
        trace.launched("gemm", at + 10, at + 20, 10, step)
    return trace


def replayed(copied: bool, inside: bool = False) -> Trace:
    """Four steps that launch a graph; with copies of its inputs before it, or with a copy that is part of the graph."""
    trace = Trace()
    for step in range(STEPS):
        at = 200.0 * step
        trace.step(step, at, 100)
        trace.host("Torch-Compiled Region: 0/0", at + 5, 90, step)
        trace.host("## Call CompiledFxGraph fabc ##", at + 10, 80, step, "user_annotation")
        if copied:
            trace.host("aten::_foreach_copy_", at + 15, 25, step)
            trace.launched("multi_tensor_apply_kernel", at + 20, at + 30, 5, step)
        launch = trace.call("cudaGraphLaunch", at + 50, 10, step)
        trace.work("gemm", at + 70, 20, step, launch)
        if inside:
            trace.work("Memcpy DtoD (Device -> Device)", at + 65, 4, step, launch, "gpu_memcpy")
    return trace


def times(issue_us: Any, device_us: float = 5, wall_us: Any = None, **more: Any) -> dict[str, Any]:
    """Columns of a run that the law holds for; issue_us as a number or with its interval."""
    middle = issue_us[0] if isinstance(issue_us, tuple) else issue_us
    return {"issue_us": issue_us, "device_us": device_us, "wall_us": wall_us or max(middle, device_us), **more}


def compiling(**facts: Any) -> dict[str, Any]:
    """A compiled run with these facts of its compilation."""
    mode = facts.pop("mode", "true")
    return {"compile": mode, "facts": {"compile": facts}}


def say(folder: Path, rule: str, trace: Trace, run: Mapping[str, Any], *others: Mapping[str, Any]) -> dict[str, Any]:
    """What the rule says of the run; the other runs are of the same work and have no traces."""
    return outcome(folder, rule, [trace, *(Trace() for _ in others)], [run, *others])


# -- what ran ----------------------------------------------------------------------------------------------------------


def test_compiled_region_fires(tmp_path: Path) -> None:
    """K/M is read as a function and how often it was compiled again."""
    found = say(tmp_path, "compiled_region", compiled(("2/3",) * STEPS), COMPILED)
    assert "1 call of compiled code (2/3), of 1 function, compiled again up to 3 times" in found["sentence"]


def test_compiled_region_near_miss(tmp_path: Path) -> None:
    """An eager step has no region."""
    found = say(tmp_path, "compiled_region", eager(), {})
    assert (found["outcome"], found["reason"]) == ("not applicable", "nothing in it was compiled by torch.compile")


def test_compiled_ran_eager_fires(tmp_path: Path) -> None:
    """A point that asks for torch.compile and whose trace has no region."""
    found = say(tmp_path, "compiled_ran_eager", eager(), COMPILED)
    assert "compile=true, but no Torch-Compiled Region" in found["sentence"]


def test_compiled_ran_eager_near_miss(tmp_path: Path) -> None:
    """The same with a region in each step."""
    found = say(tmp_path, "compiled_ran_eager", compiled(), COMPILED)
    assert (found["outcome"], found["reason"]) == ("clear", "4 calls of a compiled region in the trace")


def test_same_graph_fires(tmp_path: Path) -> None:
    """One hash in all steps."""
    found = say(tmp_path, "same_graph", compiled(), COMPILED)
    assert found["sentence"] == "All 4 steps call the same graph, fabc: nothing was compiled meanwhile."


def test_same_graph_near_miss(tmp_path: Path) -> None:
    """Another hash in one step."""
    found = say(tmp_path, "same_graph", compiled(hashes=("fabc", "fabc", "fdef", "fabc")), COMPILED)
    assert found["outcome"] == "clear"


def test_graph_changes_fires(tmp_path: Path) -> None:
    """Another hash in one step, which is named."""
    found = say(tmp_path, "graph_changes", compiled(hashes=("fabc", "fabc", "fdef", "fabc")), COMPILED)
    assert "4 steps call 2 different sets of compiled graphs" in found["sentence"]
    assert "(fabc) in 3 of them, another one first in step 2" in found["sentence"]


def test_graph_changes_near_miss(tmp_path: Path) -> None:
    """One hash in all steps."""
    assert say(tmp_path, "graph_changes", compiled(), COMPILED)["outcome"] == "clear"


# -- what a call costs -------------------------------------------------------------------------------------------------


def test_compiled_call_cost_fires(tmp_path: Path) -> None:
    """10 us of lookup, 35 of the region's own, 5 of the wrapper and 10 of the graph's own are 60 of 100 us."""
    found = say(tmp_path, "compiled_call_cost", compiled(), {**COMPILED, **times(60)})
    assert "takes 60.0 us of the step's 100 us" in found["sentence"]
    assert (
        "10.0 us cache lookup and guards, 35.0 us the region, 5.00 us wrapper, 10.0 us generated" in found["sentence"]
    )


def test_compiled_call_cost_near_miss(tmp_path: Path) -> None:
    """The same calls where the device binds: the host's time is hidden."""
    found = say(tmp_path, "compiled_call_cost", compiled(), {**COMPILED, **times(60, 500)})
    assert found["outcome"] == "clear" and found["reason"].endswith("but the device binds")


def test_compiled_host_above_eager_fires(tmp_path: Path) -> None:
    """60 us against 20 us for two launches: it pays in place of six launches."""
    beside = times((20, 19, 21), facts={"profile": {"launches": 2}})
    found = say(tmp_path, "compiled_host_above_eager", compiled(), {**COMPILED, **times((60, 58, 62))}, beside)
    assert "60.0 us to issue a compiled step, 3.00 times the 20.0 us of eager" in found["sentence"]
    assert "in place of 6 launches or more, and an eager step makes 2" in found["sentence"]
    assert found["gain"] == 3


def test_compiled_host_above_eager_near_miss(tmp_path: Path) -> None:
    """Intervals that touch decide nothing."""
    run = {**COMPILED, **times((60, 20, 90))}
    assert say(tmp_path, "compiled_host_above_eager", compiled(), run, times((20, 19, 21)))["outcome"] == "clear"


def test_compiled_host_above_eager_needs_the_same_work(tmp_path: Path) -> None:
    """An eager point of another size is no measure."""
    run = {**COMPILED, **times((60, 58, 62))}
    found = say(tmp_path, "compiled_host_above_eager", compiled(), run, times((20, 19, 21), size=128))
    assert found["outcome"] == "not applicable" and "not measured eager" in found["reason"]


def test_skippable_guards_fires(tmp_path: Path) -> None:
    """10 of 100 us: without them a step that the host binds takes at most 1.11 times less."""
    run = {**times(60), **compiling(frames=[], guards={"TENSOR_MATCH": 3, "GLOBAL_STATE": 1})}
    found = say(tmp_path, "skippable_guards", compiled(), run)
    assert "takes 10.0 us, 10.0 % of the step's 100 us" in found["sentence"]
    assert abs(found["gain"] - 1 / 0.9) < 1e-9


def test_skippable_guards_near_miss(tmp_path: Path) -> None:
    """4 of 100 us."""
    run = {**COMPILED, **times(60)}
    assert say(tmp_path, "skippable_guards", compiled(lookup_us=4), run)["outcome"] == "clear"


def test_compile_payback_fires(tmp_path: Path) -> None:
    """A compiled step that is slower never pays."""
    run = {**times(60, wall_us=(60, 58, 62)), **compiling(seconds=1.0)}
    found = say(tmp_path, "compile_payback", compiled(), run, times(20, wall_us=(20, 19, 21)))
    assert found["sentence"] == "Compiling took 1.00 s, and a step takes 60.0 us against 20.0 us eager: it never pays."


def test_compile_payback_near_miss(tmp_path: Path) -> None:
    """A second over 1 ms a step: a thousand steps."""
    run = {**times(100, wall_us=1000), **compiling(seconds=1.0)}
    found = say(tmp_path, "compile_payback", compiled(), run, times(100, wall_us=2000))
    assert found["outcome"] == "clear" and "it has paid after 1000 steps" in found["reason"]


def test_mode_helps_fires(tmp_path: Path) -> None:
    """Of eager and reduce-overhead, eager has the least issue time."""
    others = times((20, 19, 21)), {"compile": "reduce-overhead", **times((40, 39, 41))}
    found = say(tmp_path, "mode_helps", compiled(), {**COMPILED, **times((60, 58, 62))}, *others)
    assert "Of 2 other modes measured, eager has the least host time" in found["sentence"]
    assert "in 20.0 us in place of 60.0 us" in found["sentence"] and found["cure"].startswith("Take eager;")
    assert found["gain"] == 3


def test_mode_helps_near_miss(tmp_path: Path) -> None:
    """Where the device binds, less host time gains nothing."""
    run = {**COMPILED, **times((60, 58, 62), 500)}
    found = say(tmp_path, "mode_helps", compiled(), run, times((20, 19, 21), 500))
    assert found["outcome"] == "clear" and "device-bound" in found["reason"]


# -- what compiling did ------------------------------------------------------------------------------------------------


def test_recompiles_fires(tmp_path: Path) -> None:
    """A new size: the reason, the seconds, and dynamic shapes as the cure."""
    frames = [
        {"frame": "0/0", "name": "f", "seconds": 2.0, "reason": None},
        {"frame": "0/1", "name": "f", "seconds": 0.5, "reason": "tensor 'x' size mismatch at index 0"},
    ]
    facts = {"compilations": 2, "seconds": 2.5, "reasons": ["tensor 'x' size mismatch at index 0"], "frames": frames}
    found = say(tmp_path, "recompiles", compiled(), compiling(**facts))
    assert found["sentence"].startswith("Of 2 compilations, 2.50 s in all, 1 was made again, 500 ms: tensor 'x' size")
    assert "dynamic=true" in found["cure"]


def test_recompiles_is_read_off_a_region(tmp_path: Path) -> None:
    """An imported trace tells of no reasons, but 0/2 is the third code of its function."""
    imported = {"source": "import", "compile": None, "facts": {"steps": {"method": "profiler"}}}
    found = say(tmp_path, "recompiles", compiled(("0/2",) * STEPS), imported)
    assert "had been compiled again 2 times before" in found["sentence"]


def test_recompiles_near_miss(tmp_path: Path) -> None:
    """Two functions compiled once each, as behind a graph break."""
    frames = [{"frame": f"{each}/0", "name": "f", "seconds": 1.0, "reason": None} for each in range(2)]
    facts = {"compilations": 2, "seconds": 2.0, "reasons": [], "frames": frames}
    assert say(tmp_path, "recompiles", compiled(), compiling(**facts))["outcome"] == "clear"


def test_recompile_limit_fires(tmp_path: Path) -> None:
    """Torch gave up after eight."""
    found = say(tmp_path, "recompile_limit", compiled(), compiling(limit_reached=True, compilations=8))
    assert found["sentence"].startswith("After 8 compilations torch gave up")


def test_recompile_limit_near_miss(tmp_path: Path) -> None:
    """Eight compilations that did not reach it."""
    found = say(tmp_path, "recompile_limit", compiled(), compiling(limit_reached=False, compilations=8))
    assert found["outcome"] == "clear"


def test_recompile_limit_is_unknown_in_older_stores(tmp_path: Path) -> None:
    """A run that did not record it is not called clear."""
    assert say(tmp_path, "recompile_limit", compiled(), compiling(compilations=8))["outcome"] == "not applicable"


def test_graph_breaks_fires(tmp_path: Path) -> None:
    """The most frequent reason is told."""
    facts = {"graph_breaks": 3, "break_reasons": {"rare": 1, "Tensor.item() call": 2}}
    found = say(tmp_path, "graph_breaks", compiled(), compiling(**facts))
    assert found["sentence"] == (
        "3 graph breaks cut the step into 4 compiled parts: Tensor.item() call, and 1 other reason."
    )


def test_graph_breaks_near_miss(tmp_path: Path) -> None:
    """None."""
    found = say(tmp_path, "graph_breaks", compiled(), compiling(graph_breaks=0, break_reasons={}))
    assert (found["outcome"], found["reason"]) == ("clear", "0 graph breaks")


# -- CUDA graphs -------------------------------------------------------------------------------------------------------


def test_cudagraph_copies_inputs_fires(tmp_path: Path) -> None:
    """Three inputs, 5 us of device time of 25: without them at most 1.25 times less, where the device binds."""
    facts = {"cudagraph_copies": 3, "cudagraph_copied_bytes": 24_000_000, "mode": "reduce-overhead"}
    run = {**times(10, 25), **compiling(**facts)}
    found = say(tmp_path, "cudagraph_copies_inputs", replayed(copied=True), run)
    assert "copies 3 inputs of 22.9 MiB" in found["sentence"]
    assert "5.00 us of device time and 25.0 us of host time" in found["sentence"]
    assert found["gain"] == 1.25


def test_cudagraph_copies_inputs_near_miss(tmp_path: Path) -> None:
    """A copy inside the graph is the step's own, that of a bias for instance."""
    run = {"compile": "reduce-overhead", **times(10, 25)}
    found = say(tmp_path, "cudagraph_copies_inputs", replayed(copied=False, inside=True), run)
    assert found["outcome"] == "clear"


def test_cudagraph_skipped_fires(tmp_path: Path) -> None:
    """The reason is told."""
    facts = {
        "mode": "reduce-overhead",
        "cudagraph_skips": 1,
        "cudagraph_skip_reasons": ["skipping cudagraphs: cpu device"],
    }
    found = say(tmp_path, "cudagraph_skipped", compiled(), compiling(**facts))
    assert "made none for 1 graph: skipping cudagraphs: cpu device." in found["sentence"]


def test_cudagraph_skipped_near_miss(tmp_path: Path) -> None:
    """A mode that asks for none."""
    found = say(tmp_path, "cudagraph_skipped", compiled(), compiling(mode="true", cudagraph_skips=1))
    assert found["outcome"] == "not applicable"
