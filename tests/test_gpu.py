"""What a CUDA device alone can show. Needs pytest and the runner's packages, nothing of the analysis."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import torch

from runner import tables, timing
from runner.blocking import BlockingCalls
from runner.clock import host_clock
from runner.device import Cuda, open_device
from runner.measure import measure, rehearse
from runner.point import WARM_SCHEDULE, Point
from runner.rounds import Target
from runner.task import Recorder, Task

pytestmark = pytest.mark.gpu
ROOT = Path(__file__).parent.parent

GRIDS = [
    {"size": 64},
    {"size": 4096},
    {"size": 4096, "workload": "matmul_item"},
    {"size": 512, "compile": "true"},
    {"size": 512, "dtype": "tf32"},
    {"size": 64, "warmup": "false", "schedule": "0/0/5"},
    {"size": 128, "l2": "cold"},
]
SMALL, LARGE, WAITING, COMPILED, TF32, COLD, COLD_CACHE = range(len(GRIDS))


@dataclass(frozen=True)
class Done:
    """A finished sweep: exit code, output, rows by position, and its store."""

    code: int
    said: str
    rows: list[dict[str, Any]]
    store: Path

    def facts(self, position: int) -> dict[str, Any]:
        """Facts of one row."""
        return json.loads(self.rows[position]["facts"])

    def value(self, position: int, name: str) -> float:
        """Median of one quantity."""
        return self.rows[position][name][0]

    def events(self, position: int) -> pl.DataFrame:
        """Events of one run."""
        row = self.rows[position]
        return pl.read_parquet(self.store / "events" / row["sweep_id"] / f"{row['run_id']}.parquet")


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Done]:
    """One small sweep on CUDA through the command line, with slopes at every point."""
    store = tmp_path_factory.mktemp("gpu") / "store"
    grids = ",".join("{" + ",".join(f'{key}:"{value}"' for key, value in grid.items()) + "}" for grid in GRIDS)
    told = subprocess.run(
        [sys.executable, "-m", "runner", "-m", f"store={store}", "device=cuda", "measure.slopes_every=1", "order=given",
         f"hydra.sweeper.grids=[{grids}]"],
        capture_output=True, text=True, cwd=ROOT, timeout=480, env=dict(os.environ),
    )  # fmt: skip
    rows = [pl.read_parquet(path).to_dicts()[0] for path in store.glob("runs/*/*.parquet")]
    rows.sort(key=lambda row: json.loads(row["facts"])["position"])
    yield Done(told.returncode, told.stdout + told.stderr, rows, store)


@pytest.fixture(scope="module")
def device() -> Cuda:
    """The first CUDA device, awake."""
    opened = open_device("cuda")
    assert isinstance(opened, Cuda)
    rehearse(opened)
    return opened


# -- a sweep ----------------------------------------------------------------------------------------------------------


def test_every_point_is_measured(done: Done) -> None:
    """All ok, exit code 0, one environment; auto is bf16."""
    assert [row["status"] for row in done.rows] == ["ok"] * len(GRIDS), done.said
    assert done.code == 0
    assert {row["device"] for row in done.rows} == {"cuda"}
    assert done.rows[SMALL]["dtype"] == "bf16"
    assert len({row["environment_id"] for row in done.rows}) == 1


def test_an_error_that_spoils_the_device_costs_one_point(tmp_path: Path) -> None:
    """An index out of range leaves the card unusable in its process: the point behind it gets a new one."""
    grids = "[{size:64},{workload:fault,workload.how:assert,size:8},{size:64,seed:1}]"
    told = subprocess.run(
        [sys.executable, "-m", "runner", "-m", f"store={tmp_path / 'store'}", "device=cuda", "measure=quick",
         "order=given", f"hydra.sweeper.grids={grids}"],
        capture_output=True, text=True, cwd=ROOT, timeout=480,
    )  # fmt: skip
    rows = [pl.read_parquet(path).to_dicts()[0] for path in sorted((tmp_path / "store").glob("runs/*/*.parquet"))]
    assert [row["status"] for row in rows] == ["ok", "failed", "ok"], told.stdout + told.stderr
    assert "assert" in rows[1]["reason"] and told.returncode == 2


@pytest.mark.parametrize("position", [SMALL, LARGE])
def test_wall_is_the_larger_term(done: Done, position: int) -> None:
    """The step law within 10 %, on both sides of the crossing."""
    larger = max(done.value(position, "issue_us"), done.value(position, "device_us"))
    assert done.value(position, "wall_us") == pytest.approx(larger, rel=0.10)


def test_the_bound_changes_between_64_and_4096(done: Done) -> None:
    """A small product is bound by launching, a large one by the device; the margins are far from 1."""
    assert tables.verdict(done.rows[SMALL]).bound == "overhead-bound"
    assert tables.verdict(done.rows[LARGE]).bound == "device-bound"
    assert done.value(SMALL, "margin") > 1.5 and done.value(LARGE, "margin") < 0.7


def test_slopes_agree_with_the_bound(done: Done) -> None:
    """Host time counts at 64, device time at 4096."""
    assert done.value(SMALL, "host_slope") > 0.6 > 0.4 > done.value(SMALL, "device_slope")
    assert done.value(LARGE, "device_slope") > 0.6 > 0.4 > done.value(LARGE, "host_slope")


@pytest.mark.parametrize("position", [SMALL, LARGE])
def test_device_time_is_held_and_replay_is_no_longer(done: Done, position: int) -> None:
    """A held stream gave the device time; a graph replays the step without its launches."""
    assert done.facts(position)["device_method"] == "held"
    assert done.value(position, "replay_us") <= 1.15 * done.value(position, "device_us")
    assert done.value(position, "single_us") > done.value(position, "wall_us")


def test_a_waiting_step_is_serialized(done: Done) -> None:
    """matmul_item at 4096: the call is named, its wait is apart from the issue time, and no graph can hold it."""
    facts = done.facts(WAITING)
    assert facts["blocking_calls"] == {"Tensor.item": 1.0}
    assert facts["blocked_method"] == "timed calls"
    assert done.value(WAITING, "blocked_us") > 0.5 * done.value(LARGE, "device_us")
    assert done.value(WAITING, "issue_us") < 0.6 * done.value(WAITING, "wall_us")
    assert done.rows[WAITING]["replay_us"] is None and "wait" in facts["reasons"]["replay_us"]
    assert facts["device_method"] == "profile"
    assert tables.verdict(done.rows[WAITING]).bound in ("serialized", "device-bound")
    assert done.value(WAITING, "wall_us") > 1.02 * done.value(WAITING, "device_us")


@pytest.mark.parametrize("position", [SMALL, LARGE, COMPILED])
def test_the_trace_is_complete(done: Done, position: int) -> None:
    """Every launch of a step has its kernel, none is without a step, and the profiler slowed the host."""
    profile = done.facts(position)["profile"]
    assert profile["trace_incomplete"] is False
    assert profile["launches"] >= 1 and profile["kernels"] >= 1
    assert profile["unattributed_frac"] < 0.05
    assert profile["perturbation"] > 1


def test_the_window_holds_its_own_work_alone(done: Done) -> None:
    """20 steps of a product each, linked to their launches; no kernel of the steps before the fence."""
    kernels = done.events(LARGE).filter(pl.col("category") == "kernel")
    assert set(kernels["step"].to_list()) == set(range(2, 22))
    assert kernels["launch_id"].null_count() == 0
    counts = kernels.group_by("step").len()["len"].unique().to_list()
    assert counts == [2]
    assert done.value(LARGE, "busy_us") == pytest.approx(done.value(LARGE, "device_us"), rel=0.3)
    assert kernels["registers_per_thread"].null_count() == 0 and kernels["grid"].null_count() == 0


def test_a_compiled_point_ran_compiled(done: Done) -> None:
    """A compiled region in its trace, compiled once, without graph breaks."""
    facts = done.facts(COMPILED)["compile"]
    assert facts["region_ran"] is True
    assert (facts["compilations"], facts["graph_breaks"]) == (1, 0)


def test_a_cold_point_has_its_first_steps(done: Done) -> None:
    """Five first steps, the very first by far the longest, and the profile of another process."""
    first = [each["value"] for each in done.rows[COLD]["samples"] if each["quantity"] == "first"]
    assert len(first) == 5 and first[0] > 5 * min(first[1:])
    assert done.rows[COLD]["wall_us"] is None
    assert set(done.events(COLD)["step"].drop_nulls().to_list()) == set(range(5))


def test_the_card_was_watched(done: Done) -> None:
    """The environment names the card; roofs exist for every dtype, DRAM and L2."""
    (environment,) = pl.concat([pl.read_parquet(path) for path in done.store.glob("environments/*.parquet")]).to_dicts()
    assert environment["device"] == "cuda" and environment["device_name"]
    assert environment["multiprocessors"] > 0 and environment["compute_capability"]
    (path,) = done.store.glob("roofs/*.parquet")
    roofs = {(row["roof"], row["dtype"]): row["value_per_s"] for row in pl.read_parquet(path).to_dicts()}
    assert roofs["flops", "bf16"] > 1e12 and roofs["dram", None] > 1e10
    assert roofs["flops", "bf16"] > roofs["flops", "fp32"]


def test_shares_of_the_roofs_are_possible(done: Done) -> None:
    """The large product reaches at most 115 % of the FLOP/s roof, and at least a third of it."""
    (path,) = done.store.glob("roofs/*.parquet")
    roof = next(row["value_per_s"] for row in pl.read_parquet(path).to_dicts() if row["dtype"] == "bf16")
    share = 2 * 4096**3 / (done.value(LARGE, "device_us") / 1e6) / roof
    assert 1 / 3 < share < 1.15


# -- one device in this process ---------------------------------------------------------------------------------------


def numerics() -> tuple[bool, ...]:
    """Every setting that a point may change."""
    matmul, cudnn = torch.backends.cuda.matmul, torch.backends.cudnn
    return (
        matmul.allow_tf32, cudnn.allow_tf32, cudnn.benchmark,
        bool(matmul.allow_bf16_reduced_precision_reduction), bool(matmul.allow_fp16_reduced_precision_reduction),
    )  # fmt: skip


def task(folder: Path, **changes: Any) -> Task:
    """A quick measurement of a point."""
    axes: dict[str, Any] = {
        "workload": "matmul_add", "params": (), "size": 256, "dtype": "fp32", "batch": None, "compile": False,
        "dynamic": False, "warmup": True, "device": "cuda", "schedule": WARM_SCHEDULE, "l2": "warm", "threads": None,
        "seed": 0, **changes,
    }  # fmt: skip
    return Task(Point(**axes), Target("quick", 0.1, 0.2), math.inf, False, Recorder(), False, {}, str(folder))


def test_numerics_come_back_after_a_tf32_point(device: Cuda, tmp_path: Path) -> None:
    """tf32 is on while its point is measured, changes results, and is off again afterwards."""
    before = numerics()
    left, right = (torch.randn(512, 512, device="cuda") for _ in range(2))
    with device.numerics("fp32"):
        exact = left @ right
    with device.numerics("tf32"):
        assert torch.backends.cuda.matmul.allow_tf32 and torch.backends.cudnn.allow_tf32
        rounded = left @ right
    with device.numerics("fp32"):
        again = left @ right
    assert torch.equal(exact, again)
    assert device.capability < (8, 0) or not torch.equal(exact, rounded)
    assert measure(task(tmp_path, dtype="tf32"), device).status == "ok"
    assert numerics() == before


def test_numerics_come_back_after_a_failure(device: Cuda) -> None:
    """A step that raises leaves no setting behind."""
    before = numerics()
    with pytest.raises(RuntimeError), device.numerics("tf32"):
        raise RuntimeError
    assert numerics() == before


def test_memory_that_is_not_there_is_told(device: Cuda, tmp_path: Path) -> None:
    """Inputs beyond any card: status oom, and the next point is measured."""
    done = measure(task(tmp_path, size=2**20), device)
    assert done.status == "oom" and not done.lost
    assert done.reason is not None and done.reason.startswith("OutOfMemoryError")
    assert measure(task(tmp_path), device).status == "ok"
    assert torch.cuda.memory_allocated() < 2**28


def test_a_sleep_lasts_about_as_long_as_told(device: Cuda) -> None:
    """Calibrated on an awake card; a lower clock makes it longer."""
    device.sleep(100)
    first = device.mark()
    device.sleep(2000)
    last = device.mark()
    device.synchronize()
    assert 0.7 * 2000 < device.between_us(first, last) < 2.5 * 2000


def test_held_time_is_unknown_when_the_host_was_late(device: Cuda) -> None:
    """A hold far too short for the steps gives none; one that is long enough gives a time above zero."""
    x = torch.randn(64, 64, device="cuda")
    step = lambda: x @ x  # noqa: E731
    timing.repeat(step, 20)
    assert timing.held_us(step, 400, 0.001, device) is None
    held = timing.held_us(step, 50, 50, device)
    assert held is not None and 0.5 < held < 200


def test_waits_are_seen(device: Cuda) -> None:
    """Tensor.item is a named call; torch's own watch sees a wait without a name, and none where there is none."""
    x = torch.randn(64, 64, device="cuda")
    with BlockingCalls(host_clock).watched() as calls:
        x[0, 0].item()
        bool(x[0, 0] > 0)
    assert calls.counts == {"Tensor.item": 1, "Tensor.__bool__": 1}
    assert device.synchronizes(lambda: x[0, 0].item())
    assert not device.synchronizes(lambda: x @ x)


def test_a_graph_replays_the_steps(device: Cuda) -> None:
    """A captured step runs as often as it was captured, with each replay."""
    counter = torch.zeros(1, device="cuda")
    replay = device.captured(lambda: counter.add_(1), 10)
    counter.zero_()
    replay()
    replay()
    device.synchronize()
    assert counter.item() == 20


def test_a_step_that_cannot_be_captured_leaves_the_device_well(device: Cuda) -> None:
    """Capturing a wait raises, and work goes on."""
    x = torch.ones(4, device="cuda")
    with pytest.raises(RuntimeError):
        device.captured(lambda: x.sum().item(), 1)
    device.synchronize()
    assert (x + 1).sum().item() == 8


def copies(device: Cuda, folder: Path, **changes: Any) -> tuple[int | None, int | None]:
    """Inputs of a compiled step that are copied at every call, and their bytes."""
    done = measure(task(folder, compile="reduce-overhead", size=512, **changes), device)
    assert done.status == "ok", done.reason
    compiled = done.facts["compile"]
    assert compiled["cudagraph_skips"] == 0 and compiled["code"] and compiled["guards"]["TENSOR_MATCH"] == 3
    return compiled["cudagraph_copies"], compiled["cudagraph_copied_bytes"]


def test_a_cuda_graph_copies_inputs_that_may_move(device: Cuda, tmp_path: Path) -> None:
    """Three matrices of 512 x 512 float32 at every call; with static_inputs none."""
    assert copies(device, tmp_path) == (3, 3 * 512 * 512 * 4)
    assert copies(device, tmp_path, static_inputs=True) == (0, 0)


def test_memory_and_window_of_a_point_are_told(device: Cuda, tmp_path: Path) -> None:
    """The inputs are allocated, a steady step asks the driver for nothing, and clocks stand around the window."""
    facts = measure(task(tmp_path, size=512), device).facts
    found = facts["memory"]
    assert (
        3 * 512 * 512 * 4 <= found["allocated_bytes"] <= found["allocated_peak_bytes"] <= found["reserved_peak_bytes"]
    )
    assert (found["alloc_retries"], found["ooms"], found["device_allocs"], found["device_frees"]) == (0, 0, 0, 0)
    for edge in ("before", "behind"):
        assert facts["profile"]["window"][edge]["sm_clock_mhz"] > 0
