"""What a CUDA device alone can show of the ladder of workloads. Needs pytest and the runner's packages alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from runner.device import Device, open_device
from runner.measure import measure_times, rehearse
from runner.point import WARM_SCHEDULE, Point
from runner.rounds import Target
from runner.task import Measurement, Recorder, Task
from runner.workloads import WORKLOADS
from runner.workloads.shapes import ShapeSequence
from runner.workloads.train import TrainStep

pytestmark = pytest.mark.gpu


@pytest.fixture(scope="module")
def card() -> Device:
    """The card, its libraries loaded."""
    device = open_device("cuda")
    rehearse(device)
    return device


# -- varying shapes ---------------------------------------------------------------------------------------------------


def shape_facts(card: Device, folder: Path, compile: bool = False, **own: Any) -> dict[str, Any]:
    """Facts of a quick measurement of shape_sequence; lengths of 8 MB a tensor on average."""
    params = tuple(sorted({**ShapeSequence.defaults, **own}.items()))
    dynamic = "mark" if compile else False
    point = Point(
        "shape_sequence", params, 4096, "bf16", None, compile, dynamic, True, "cuda", WARM_SCHEDULE, "warm", None, 0
    )
    roofs: dict[tuple[str, str | None], float] = {}
    task = Task(point, Target("quick", 0.2, 0.1), 60, False, Recorder(), False, roofs, str(folder))
    done = measure_times(task, card)
    assert done.status == "ok", done.reason
    return done.facts


def test_varying_shapes_miss_the_cache_and_a_block_for_the_peak_serves_them(card: Device, tmp_path: Path) -> None:
    """Without a pool the first cycle and one behind empty_cache() call cudaMalloc; with a preallocated one, neither."""
    none, pooled = (shape_facts(card, tmp_path, pool=pool)["allocator"] for pool in ("none", "preallocated"))
    assert none["first_device_allocs"][0] > 0 and none["cold_device_allocs"] > 0
    assert none["cold_us"] > none["warm_us"]
    assert sum(pooled["first_device_allocs"]) == 0 and pooled["cold_device_allocs"] == 0
    assert 0 < none["largest_free_bytes"] <= none["free_bytes"]
    assert "reason" not in none and "reason" not in pooled


def test_a_cap_gains_nothing_and_ends_with_its_point(card: Device, tmp_path: Path) -> None:
    """pool=fraction misses as often as none; the next point may use the whole device again."""
    import torch

    none, capped = (shape_facts(card, tmp_path, pool=pool)["allocator"] for pool in ("none", "fraction"))
    assert capped["first_device_allocs"] == none["first_device_allocs"]
    shape_facts(card, tmp_path)
    assert torch.cuda.get_per_process_memory_fraction() == pytest.approx(1)


def test_a_marked_length_is_compiled_once(card: Device, tmp_path: Path) -> None:
    """One code for all lengths, made in the first cycle, which holds its seconds."""
    facts = shape_facts(card, tmp_path, compile=True)
    (frame,) = facts["compile"]["frames"]
    assert (frame["cycle"], frame["phase"]) == (1, "length 2048")
    assert facts["first_cycles_us"][0] > 0.9e6 * frame["seconds"] > facts["first_cycles_us"][1]


# -- the training step ------------------------------------------------------------------------------------------------


def train_done(card: Device, folder: Path, compile: bool | str = False, **own: Any) -> Measurement:
    """A quick measurement of train_step: 4 layers of 1,024, 512 examples, weights in fp32."""
    params = tuple(sorted({**TrainStep.defaults, **own}.items()))
    point = Point(
        "train_step", params, 512, "fp32", None, compile, False, True, "cuda", WARM_SCHEDULE, "warm", None, 0
    )  # fmt: skip
    task = Task(point, Target("quick", 0.2, 0.1), 60, False, Recorder(), False, {}, str(folder))
    done = measure_times(task, card)
    assert done.status == "ok", done.reason
    return done


TRAINED = [
    {}, {"impl": "fused", "capturable": True}, {"checkpoint": True}, {"set_to_none": False}, {"autocast": "bf16"},
    {"optimizer": "sgd", "impl": "foreach"}, {"model": "transformer", "tokens": 64, "width": 256},
]  # fmt: skip


@pytest.mark.parametrize("own", TRAINED, ids=str)
def test_holders_add_up_to_what_cuda_counts(card: Device, tmp_path: Path, own: dict[str, Any]) -> None:
    """In every phase the sum over holders is within 1 % of the allocator's own counters."""
    facts = train_done(card, tmp_path, **own).facts
    assert facts["memory_sums"]["reason"] is None
    assert facts["memory_sums"]["off_frac"] <= 0.01
    phases = {each["phase"]: each for each in facts["phase_memory"]}
    assert list(phases) == ["step", "zero_grad", "forward", "backward", "optimizer"]
    if "autocast" not in own and "model" not in own:
        word = "_checkpointed" if own.get("checkpoint") else ""
        predicted = facts["train"][f"activation_bytes{word}_predicted"]
        assert phases["forward"]["holders_at_end"]["activations"] == pytest.approx(predicted, rel=0.05)
        states = phases["step"]["holders_at_end"].get("optimizer_state", 0)
        assert states == pytest.approx(facts["train"]["optimizer_state_bytes_predicted"], rel=0.05)


def test_adam_is_replayed_where_it_is_capturable(card: Device, tmp_path: Path) -> None:
    """SGD as it is, Adam with capturable=true; without, torch's own reason is told."""
    for own in ({"optimizer": "sgd"}, {"optimizer": "momentum", "impl": "fused"}, {"capturable": True}):
        assert "replay" in {each.quantity for each in train_done(card, tmp_path, **own).samples}, own
    plain = train_done(card, tmp_path)
    assert "replay" not in {each.quantity for each in plain.samples}
    assert "capturable" in plain.facts["reasons"]["replay_us"]


def test_a_scaler_waits_but_for_a_fused_optimizer(card: Device, tmp_path: Path) -> None:
    """GradScaler reads back whether anything overflowed, unless the optimizer looks at it itself."""
    scaled = {"autocast": "fp16", "scaler": True, "optimizer": "adam"}
    assert "blocking_calls" in train_done(card, tmp_path, impl="foreach", **scaled).facts
    assert "blocking_calls" not in train_done(card, tmp_path, impl="fused", **scaled).facts


@pytest.mark.parametrize("mode", [True, "reduce-overhead"])
def test_a_compiled_training_step_is_right(card: Device, tmp_path: Path, mode: bool | str) -> None:
    """Loss, weights and gradients agree with float64 as closely as eager's do."""
    facts = train_done(card, tmp_path, mode, optimizer="sgd").facts
    assert facts["numerics"]["passed"] is True, facts["numerics"]
    if mode is True:  # what CUDA graphs hold lies in pools of their own, which the sums then tell
        assert facts["memory_sums"]["reason"] is None


# -- a program that is watched ----------------------------------------------------------------------------------------


def watched_rows(store: Path) -> list[dict[str, Any]]:
    """The runs of a store by the time they were written, facts unfolded."""
    import json

    import polars as pl

    files = sorted((store / "runs").glob("*/*.parquet"), key=lambda file: file.stem)
    rows = [pl.read_parquet(file).row(0, named=True) for file in files]
    return [{**row, "facts": json.loads(row["facts"])} for row in rows]


def watched_loop(store: Path, size: int, wait_s: float = 0.0) -> dict[str, Any]:
    """The run of a loop of 30 products of this size a step, behind a wait for each batch."""
    import time

    import torch

    from runner import watch

    a = torch.randn(size, size, device="cuda", dtype=torch.bfloat16)

    def batches() -> Any:
        for number in range(60):
            time.sleep(wait_s)
            yield number

    with watch(store=store, name="products") as watched:
        for _ in watched.steps(batches()):
            for _ in range(30):
                a @ a
    (row,) = watched_rows(store)
    assert row["device"] == "cuda" and row["facts"]["watch"]["synchronizes"] == 3
    assert row["facts"]["profile"]["kernels"] >= 30, row["facts"]["profile"]
    return row


def test_a_watched_loop_that_the_device_binds(tmp_path: Path) -> None:
    """Its steps lie queued before they begin, so their events tell the device's time, and wall is that time."""
    row = watched_loop(tmp_path, 4096)
    wall, issue, device = (row[f"{name}_us"][0] for name in ("wall", "issue", "device"))
    assert row["facts"]["device_method"] == "queued"
    assert wall == pytest.approx(device, rel=0.1) and issue < device / 2


def test_a_watched_loop_that_the_host_binds(tmp_path: Path) -> None:
    """Its device time is the profile's, far below the wall time, which is the issue time and what marking costs."""
    row = watched_loop(tmp_path, 64)
    wall, issue, device = (row[f"{name}_us"][0] for name in ("wall", "issue", "device"))
    assert row["facts"]["device_method"] == "profile" and device < issue
    assert issue < wall < issue + row["facts"]["data_us"][0] + 2 * row["facts"]["watch"]["mark_us"] + 0.2 * issue


def test_a_watched_loop_that_its_loader_binds(tmp_path: Path) -> None:
    """A wait of 20 ms a batch explains the wall time, by the runner's own verdict as well."""
    from runner.law import INPUT
    from runner.tables import verdict

    row = watched_loop(tmp_path, 1024, wait_s=0.02)
    assert row["facts"]["data_us"][0] > 20_000
    import json

    assert verdict({**row, "facts": json.dumps(row["facts"])}).bound == INPUT


def test_a_watched_module_is_the_same_under_cuda_graphs_of_its_program(tmp_path: Path) -> None:
    """A call that is recorded into a graph is left out, and the replay is right."""
    import torch

    from runner import watch

    layer = torch.nn.Linear(64, 64, device="cuda")
    x = torch.randn(8, 64, device="cuda")
    with torch.no_grad(), watch(layer, store=tmp_path, skip=0, steps=3, profiled=2):
        for _ in range(2):
            expected = layer(x)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            replayed = layer(x)
        graph.replay()
        for _ in range(10):
            layer(x)
    assert torch.equal(replayed, expected)
    assert len(watched_rows(tmp_path)) == 1


# -- layers, and whether their numbers are right ----------------------------------------------------------------------


def layer_point(workload: str, dtype: str, compile: bool | str = False, size: int = 256, **own: Any) -> Point:
    """A point of a layer, its further axes the defaults."""
    params = tuple(sorted({**WORKLOADS[workload].defaults, **own}.items()))
    return Point(workload, params, size, dtype, None, compile, False, True, "cuda", WARM_SCHEDULE, "warm", None, 0)


def layer_measured(card: Device, folder: Path, point: Point) -> Measurement:
    """A quick measurement of a layer."""
    roofs: dict[tuple[str, str | None], float] = {}
    return measure_times(Task(point, Target("quick", 0.2, 0.1), 60, False, Recorder(), False, roofs, str(folder)), card)


LAYERS: list[tuple[str, dict[str, Any]]] = [
    ("linear", {}), ("mlp", {}), ("norm", {"kind": "layer"}), ("norm", {"kind": "rms"}), ("transformer_block", {}),
    ("attention", {"impl": "naive", "causal": True}), ("attention", {"impl": "inplace", "causal": True}),
    ("attention", {"impl": "sdpa"}), ("attention", {"impl": "sdpa", "causal": True}),
]  # fmt: skip


@pytest.mark.parametrize("compile", [False, True, "reduce-overhead"])
@pytest.mark.parametrize("dtype", ["fp32", "tf32", "bf16", "fp16"])
@pytest.mark.parametrize(("workload", "own"), LAYERS)
def test_layers_agree_with_float64(
    card: Device, tmp_path: Path, workload: str, own: dict[str, Any], dtype: str, compile: bool | str
) -> None:
    """Eager, compiled and from CUDA graphs, in every dtype: measured, checked and passed."""
    done = layer_measured(card, tmp_path, layer_point(workload, dtype, compile, **own))
    assert done.status == "ok", done.reason
    assert done.facts["numerics"]["passed"] is True, done.facts["numerics"]


@pytest.mark.parametrize("backend", ["math", "flash", "efficient", "cudnn"])
def test_every_backend_of_attention_runs_in_bf16_and_agrees_with_float64(
    card: Device, tmp_path: Path, backend: str
) -> None:
    """On a card that has them all."""
    done = layer_measured(card, tmp_path, layer_point("attention", "bf16", backend=backend))
    assert done.status == "ok", done.reason
    assert done.facts["numerics"]["passed"] is True, done.facts["numerics"]


def test_flash_attention_in_float32_fails_with_torchs_reason(card: Device, tmp_path: Path) -> None:
    """No other backend takes its place, and what torch warned of is told."""
    done = layer_measured(card, tmp_path, layer_point("attention", "fp32", backend="flash"))
    assert done.status == "failed"
    assert done.reason is not None and "backend=flash: " in done.reason and "dtype" in done.reason.lower()


def test_flops_of_fused_attention_are_those_of_torchs_counter(card: Device) -> None:
    """Without a mask: 4 s^2 d a head, beside the 6 s^2 of scaling and softmax that torch does not count."""
    import torch
    from torch.utils.flop_counter import FlopCounterMode

    point = layer_point("attention", "bf16")
    built = point.spec.build(point, card.torch, torch.Generator("cuda"), lambda function: function)
    with FlopCounterMode(display=False) as counter:
        built.function(*built.arguments)
    cost = point.spec.cost(point)
    assert cost is not None
    assert counter.get_total_flops() == sum(each.flops for each in cost.operations) - 6 * 16 * 256**2


def test_the_check_leaves_no_memory_behind_and_no_trace_in_the_facts(card: Device, tmp_path: Path) -> None:
    """What it takes is given back; the point's peak is that of its step, far below that of scores in float64."""
    import gc

    import torch

    from runner import numerics

    point = layer_point("attention", "bf16", size=2048, causal=True)
    layer_measured(card, tmp_path, point)
    gc.collect()
    before = torch.cuda.memory_allocated()
    numerics.forget()
    done = layer_measured(card, tmp_path, point)
    gc.collect()
    assert done.facts["numerics"]["size"] == 2048, done.facts["numerics"]
    assert torch.cuda.memory_allocated() <= before
    assert torch.cuda.max_memory_allocated() > 16 * 2048**2 * 8 > 2 * done.facts["peak_bytes"]
    assert done.facts["memory"]["ooms"] == 0


# -- Nsight Systems ---------------------------------------------------------------------------------------------------


def test_nsys_records_the_active_steps_alone(card: Device, tmp_path: Path) -> None:
    """Between cudaProfilerStart and Stop lie the schedule's active steps; every kernel is linked and in its step."""
    import asyncio

    from runner import nsys, nsys_program
    from runner.point import Schedule
    from runner.process import OWN
    from runner.task import Measurement
    from runner.trace import read_export

    if nsys_program.find() is None:
        pytest.skip("Nsight Systems is not installed here")
    point = Point("matmul_add", (), 512, "bf16", None, False, False, 3, "cuda", Schedule(1, 1, 5), "warm", None, 0)
    recorder = Recorder(record_shapes=False, tool="nsys")
    task = Task(point, Target("quick", 0.2, 0.1), 60, False, recorder, False, {}, str(tmp_path))
    done = asyncio.run(nsys.recorded(Measurement("ok"), "warm", task, "cuda", 0, OWN, 200))
    assert done.facts["profile"].get("reason") is None
    events = read_export(Path(*done.traces))
    assert [event.step for event in events if event.name.startswith("ProfilerStep#")] == [2, 3, 4, 5, 6]
    kernels = [event for event in events if event.category == "kernel"]
    assert len(kernels) >= 5 and all(kernel.launch_id is not None and kernel.grid for kernel in kernels)
    assert {kernel.step for kernel in kernels} == {2, 3, 4, 5, 6}


# -- language models ---------------------------------------------------------------------------------------------------


def decoded(card: Device, folder: Path, compile: bool | str = False, **own: Any) -> Measurement:
    """A quick measurement of llm_decode, tiny unless said otherwise, 4 sequences."""
    params = tuple(sorted({**WORKLOADS["llm_decode"].defaults, **own}.items()))
    point = Point(
        "llm_decode", params, 4, "bf16", None, compile, False, True, "cuda", WARM_SCHEDULE, "warm", None, 0,
        static_inputs=compile == "reduce-overhead",
    )  # fmt: skip
    return measure_times(Task(point, Target("quick", 0.2, 0.1), 60, False, Recorder(), False, {}, str(folder)), card)


@pytest.mark.parametrize("cache", ["static", "dynamic"])
def test_decoding_waits_for_nothing_and_is_replayed_from_a_graph(card: Device, cache: str, tmp_path: Path) -> None:
    """No synchronizing call, a replay time, and numbers as good as they should be."""
    pytest.importorskip("transformers")
    done = decoded(card, tmp_path, cache=cache)
    assert done.status == "ok", done.reason
    assert "blocking_calls" not in done.facts
    assert {"issue", "device", "replay"} <= {sample.quantity for sample in done.samples}, done.facts["reasons"]
    assert done.facts["numerics"]["passed"] is not False


def test_compiled_decoding_with_a_static_cache_uses_cuda_graphs(card: Device, tmp_path: Path) -> None:
    """One graph, nothing broken, no CUDA graph skipped."""
    pytest.importorskip("transformers")
    done = decoded(card, tmp_path, compile="reduce-overhead")
    assert done.status == "ok", done.reason
    assert (done.facts["compile"]["graph_breaks"], done.facts["compile"]["cudagraph_skips"]) == (0, 0)


@pytest.mark.parametrize(
    "own", [{}, {"checkpoint": True}, {"model": "transformer", "tokens": 64, "width": 256}], ids=str
)
def test_costs_under_autocast_are_what_is_counted(card: Device, own: dict[str, Any]) -> None:
    """Every FLOP of a product in bf16, all else in fp32, and all bytes within 5 %, as on the CPU."""
    import torch

    from runner import counting

    params = tuple(sorted({**TrainStep.defaults, "autocast": "bf16", "impl": "foreach", **own}.items()))
    point = Point("train_step", params, 64, "fp32", None, False, False, True, "cuda", WARM_SCHEDULE, "warm", None, 0)
    built = point.spec.build(point, card.torch, torch.Generator("cuda"), lambda function: function)
    built.function(*built.arguments)
    seen, cost = counting.counted(built, False, "fp32")["operations"], point.spec.cost(point)
    assert cost is not None
    products = [each for each in seen if "mm" in each["name"]]
    told = [each for each in cost.operations if each.name.split()[0] in ("linear", "qkv", "out", "up", "down")]
    assert {each.get("dtype") for each in products} == {"bf16"} == {each.dtype for each in told}
    assert sum(each["flops"] for each in products) == sum(each.flops for each in told)
    assert sum(each.bytes for each in cost.operations) == pytest.approx(sum(each["bytes"] for each in seen), rel=0.05)
