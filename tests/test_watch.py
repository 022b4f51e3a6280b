"""Measuring inside somebody's own program: what is written, and that the program does not notice."""

from __future__ import annotations

import copy
import json
import os
import pickle
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import torch

from runner import phase, watch
from runner.task import Found
from runner.trace import Event
from runner.watching import Watch
from runner.watching.meter import Meter, Plan
from runner.watching.program import kind_of
from runner.watching.rows import Watched, between_of, of_steps, rows_of
from runner.watching.stamps import Timed

EXAMPLES = Path(__file__).parents[1] / "docs" / "examples"
SHORT = {"skip": 2, "steps": 3, "profiled": 2}


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Small products on several threads wait for each other for milliseconds where the machine is busy."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def model() -> torch.nn.Module:
    """A small module with the same weights every time."""
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Dropout(0.5), torch.nn.Linear(8, 8))


def rows(store: Path) -> list[dict[str, Any]]:
    """The runs of a store with their facts and params unfolded, in the order written."""
    files = sorted((store / "runs").glob("*/*.parquet"), key=lambda file: file.stem)
    found = [pl.read_parquet(file).row(0, named=True) for file in files]
    return [{**row, "facts": json.loads(row["facts"]), "params": json.loads(row["params"])} for row in found]


def events(store: Path, run_id: str) -> pl.DataFrame:
    """The events of a run."""
    return pl.read_parquet(next((store / "events").glob(f"*/{run_id}.parquet")))


def train(steps: Callable[[], Any], count: int = 14) -> tuple[list[float], list[torch.Tensor], torch.Tensor]:
    """Losses, weights and random state of a training loop with dropout, each pass of it in `steps()`."""
    net = model()
    optimizer = torch.optim.Adam(net.parameters())
    losses = []
    for _ in range(count):
        with steps():
            with phase("forward"):
                loss = net(torch.randn(4, 8)).pow(2).mean()
            with phase("backward"):
                loss.backward()
            with phase("optimizer"):
                optimizer.step()
                optimizer.zero_grad()
        losses.append(loss.item())
    return losses, [each.detach() for each in net.parameters()], torch.get_rng_state()


# -- what is written ---------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any, Any]:
    """The store of a watched loop, and what it has computed watched and not."""
    store = tmp_path_factory.mktemp("trained")
    watched = watch(store=store, name="loop", **SHORT)
    return store, train(watched.step), train(lambda: warnings.catch_warnings())


def test_training_is_the_same_to_the_last_bit(trained: tuple[Path, Any, Any]) -> None:
    """Losses, weights and the random state behind a watched loop are those of the same loop unwatched."""
    store, (losses, weights, state), (plain_losses, plain_weights, plain_state) = trained
    assert len(rows(store)) == 1
    assert losses == plain_losses
    assert all(torch.equal(one, other) for one, other in zip(weights, plain_weights, strict=True))
    assert torch.equal(state, plain_state)


def test_a_loop_is_one_run(trained: tuple[Path, Any, Any]) -> None:
    """Source, axes and times of the row; what is unknown is NULL with its reason."""
    (row,) = rows(trained[0])
    axes = (
        "source",
        "workload",
        "size",
        "dtype",
        "batch",
        "compile",
        "dynamic",
        "warmup",
        "device",
        "params",
        "status",
    )
    assert [row[name] for name in axes] == [
        "watch", "loop", None, None, None, "false", None, "true", "cpu", {}, "ok",
    ]  # fmt: skip
    wall, data = row["wall_us"][0], row["facts"]["data_us"][0]
    assert 0 < data < wall
    assert row["issue_us"] is row["device_us"] is row["floor_us"] is None
    assert set(row["facts"]["reasons"]) == {"issue_us", "device_us", "floor_us"}


def test_it_says_how_it_measured(trained: tuple[Path, Any, Any]) -> None:
    """Estimators, the synchronizes that were added and the steps used stand in the facts."""
    facts = rows(trained[0])[0]["facts"]["watch"]
    assert set(facts["estimators"]) == {"wall_us", "data_us"}
    assert facts["synchronizes"] == 0  # the CPU has nothing to wait for
    assert (facts["skipped_steps"], facts["timed_steps"], facts["profiled_steps"]) == (2, 3, 2)
    assert facts["mark_us"] > 0 and facts["paused_s"] > 0


def test_phases_and_the_wait_lie_in_the_step(trained: tuple[Path, Any, Any]) -> None:
    """The profiled steps hold the ranges of the loop's phases and, behind them, `data`."""
    store = trained[0]
    found = events(store, rows(store)[0]["run_id"]).filter(pl.col("category") == "user_annotation")
    for step in (1, 2):
        ranges = {row["name"]: row for row in found.filter(pl.col("step") == step).iter_rows(named=True)}
        whole = ranges["loop"]
        order = sorted(("forward", "backward", "optimizer", "data"), key=lambda name: ranges[name]["ts_ns"])
        assert order == ["forward", "backward", "optimizer", "data"]
        for name in order:
            inner = ranges[name]
            assert whole["ts_ns"] <= inner["ts_ns"]
            assert inner["ts_ns"] + inner["dur_ns"] <= whole["ts_ns"] + whole["dur_ns"]


def test_calls_of_other_shapes_are_other_steps(tmp_path: Path) -> None:
    """Every call of a module is a step; two shapes of input are two runs, each with its own events alone."""
    net = model()
    watched = watch(net, store=tmp_path, **SHORT)
    for number in range(40):
        net(torch.randn(16 if number % 5 == 0 else 1, 8))
    found = {row["params"]["inputs"]: row for row in rows(tmp_path)}
    assert set(found) == {"16x8 float32", "1x8 float32"}
    assert watched.closed and {row["run_id"] for row in found.values()} == set(watched.runs)
    for row in found.values():
        assert (row["workload"], row["dtype"]) == ("Sequential", "fp32")
        steps = events(tmp_path, row["run_id"]).filter(pl.col("name") == "Sequential").height
        assert steps == row["facts"]["watch"]["profiled_steps"] > 0
    ids = [set(events(tmp_path, row["run_id"])["step"]) for row in found.values()]
    assert not ids[0] & ids[1]


def test_work_between_two_calls_is_no_wait(tmp_path: Path) -> None:
    """Operators between the calls of a module (sampling, a backward pass) are work, so no wait is told."""
    net = model()
    watch(net, store=tmp_path, **SHORT)
    for _ in range(12):
        net(torch.randn(4, 8)).sum().backward()
    (row,) = rows(tmp_path)
    assert "data_us" not in row["facts"]
    assert "operators run between" in row["facts"]["reasons"]["data_us"]


def test_a_slow_loader_is_the_wait(tmp_path: Path) -> None:
    """A loader of 20 ms a batch before a step of next to nothing is nearly all of wall."""

    def batches() -> Iterator[int]:
        for number in range(12):
            time.sleep(0.02)
            yield number

    assert list(watch(store=tmp_path, **SHORT).steps(batches())) == list(range(12))
    (row,) = rows(tmp_path)
    assert row["facts"]["data_us"][0] > 20_000
    assert row["facts"]["data_us"][0] > 0.5 * row["wall_us"][0]


def test_every_measures_again(tmp_path: Path) -> None:
    """With `every` the same point gets one run after the other until the watch is closed."""
    with watch(store=tmp_path, skip=0, steps=3, profiled=0, every=5) as watched:
        for _ in range(24):
            with watched.step():
                pass
    found = rows(tmp_path)
    assert len(found) == 3
    assert len({row["point_id"] for row in found}) == len({row["sweep_id"] for row in found}) == 1
    assert found[0]["facts"]["profile"]["reason"] == "profiled=0: no steps were to be profiled"


def test_memory_of_a_step_by_phase_and_holder(tmp_path: Path) -> None:
    """With the model and its optimizer named, two more steps tell who holds memory; Adam's two states are twice the
    weights."""
    net = model()
    optimizer = torch.optim.Adam(net.parameters())
    watched = watch(store=tmp_path, memory=[net, optimizer], **SHORT)
    for _ in range(14):
        with watched.step():
            with phase("forward"):
                loss = net(torch.randn(4, 8)).sum()
            with phase("backward"):
                loss.backward()
            with phase("optimizer"):
                optimizer.step()
                optimizer.zero_grad()
    assert watched.closed
    (row,) = rows(tmp_path)
    phases = {each["phase"]: each for each in row["facts"]["phase_memory"]}
    assert set(phases) == {"step", "forward", "backward", "optimizer"}
    held = phases["step"]["holders_at_end"]
    assert held["parameters"] == 2 * (8 * 8 + 8) * 4
    assert 2 * held["parameters"] <= held["optimizer_state"] < 2.2 * held["parameters"]
    assert row["facts"]["watch"]["profiled_steps"] == 2


def test_kinds_by_hand(tmp_path: Path) -> None:
    """Steps that are marked with a kind are a run each."""
    with watch(store=tmp_path, skip=0, steps=3, profiled=0) as watched:
        for number in range(60):
            with watched.step("odd" if number % 2 else "even"):
                pass
    assert sorted(row["params"]["step"] for row in rows(tmp_path)) == ["even", "odd"]


def test_kind_is_the_first_tensor() -> None:
    """What grows with every token (a mask) does not make a new kind."""
    ids, mask = torch.zeros(1, 1, dtype=torch.long), torch.zeros(1, 77)
    assert kind_of((), {"input_ids": ids, "attention_mask": mask}) == "1x1 int64"
    assert kind_of((3,), {}) == ""
    assert kind_of((torch.tensor(1.0),), {}) == "scalar float32"


@pytest.mark.parametrize("example", ["watch_training", "watch_generate"])
def test_the_examples_of_the_docs_run(tmp_path: Path, example: str) -> None:
    """Both worked examples end well and leave their runs; the analysis reads them."""
    store = tmp_path / "store"
    told = _python(EXAMPLES / f"{example}.py", store)
    assert told.returncode == 0, told.stderr
    found = rows(store)
    assert len(found) == {"watch_training": 1, "watch_generate": 2}[example]
    for command in (["crossovers"], ["report", "-o", str(tmp_path / "report.html")], ["sql", "SELECT 1 FROM bounds"]):
        analysed = _python("-m", "analysis", *command, "--store", store)
        assert analysed.returncode == 0, analysed.stderr


# -- the program does not notice ---------------------------------------------------------------------------------------


class Failing(torch.nn.Module):
    """Raises at some calls."""

    def __init__(self, calls: set[int]) -> None:
        super().__init__()
        self.weight, self.calls, self.count = torch.nn.Parameter(torch.ones(4)), calls, 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x times the weight, or a KeyError."""
        self.count += 1
        if self.count in self.calls:
            raise KeyError("mine")
        return x * self.weight


def test_an_exception_of_the_program_passes(tmp_path: Path) -> None:
    """It reaches the program as it was raised; the step is not counted, and watching goes on."""
    net = Failing({4, 8})
    watched = watch(net, store=tmp_path, **SHORT)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for number in range(1, 16):
            if number in net.calls:
                with pytest.raises(KeyError, match="mine"):
                    net(torch.ones(4))
            else:
                net(torch.ones(4))
    (row,) = rows(tmp_path)
    assert watched.closed and row["facts"]["watch"]["broken_steps"] >= 1


def test_an_exception_in_a_marked_step_passes(tmp_path: Path) -> None:
    """The same for steps by hand, in a loop over a loader as well, which may also be left early."""
    watched = watch(store=tmp_path, skip=0, steps=3, profiled=0)
    with pytest.raises(KeyError, match="mine"), watched.step():
        raise KeyError("mine")
    for number in watched.steps(range(10)):
        if number == 1:
            break
    with pytest.raises(KeyError, match="mine"):
        for _ in watched.steps(range(3)):
            raise KeyError("mine")
    watched.close()


@pytest.mark.parametrize("as_errors", [False, True])
def test_a_store_that_cannot_be_written_is_one_warning(tmp_path: Path, as_errors: bool) -> None:
    """Nothing of it reaches the program, not even where warnings are errors, and the module is left as it was."""
    (tmp_path / "file").write_text("no folder")
    net = model()
    watched = watch(net, store=tmp_path / "file", **SHORT)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("error" if as_errors else "always")
        for _ in range(20):
            net(torch.randn(4, 8))
    assert [str(each.message)[:40] for each in caught] == (
        [] if as_errors else ["crossover: watching Sequential has ended"]
    )
    assert watched.closed and not net._forward_hooks and not net._forward_pre_hooks


def test_the_programs_own_profiler_comes_first(tmp_path: Path) -> None:
    """Where the program profiles itself the watch does not, and says why; the program's trace is whole."""
    watched = watch(store=tmp_path, **SHORT)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profiler:
        for _ in range(8):
            with watched.step():
                torch.ones(4) + 1
    (row,) = rows(tmp_path)
    assert row["facts"]["profile"]["reason"].startswith("the program profiles itself")
    assert sum(event.count for event in profiler.key_averages() if event.key == "aten::add") == 8


def test_a_profiler_that_may_start_at_any_step_is_left_alone(tmp_path: Path) -> None:
    """A scheduled profiler of the program, waiting at the moment, is told by its steps."""
    watched = watch(store=tmp_path, skip=1, steps=3, profiled=2)
    schedule = torch.profiler.schedule(wait=100, warmup=1, active=1)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], schedule=schedule) as profiler:
        for _ in range(8):
            with watched.step():
                torch.ones(4) + 1
            profiler.step()
    (row,) = rows(tmp_path)
    assert row["facts"]["profile"]["reason"].startswith("the program has a profiler of its own")


def test_under_nsight_systems_it_marks_and_leaves_profiling_to_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that nsys records is timed as ever; torch.profiler stays off, with that reason."""
    monkeypatch.setenv("NSYS_PROFILING_SESSION_ID", "1")
    watched = watch(store=tmp_path, **SHORT)
    for _ in range(14):
        with watched.step(), phase("forward"):
            pass
    (row,) = rows(tmp_path)
    assert watched.closed and row["wall_us"] is not None
    assert row["facts"]["profile"]["reason"] == "Nsight Systems records this process"


def test_a_fork_writes_nothing(tmp_path: Path) -> None:
    """A child process that makes steps and ends has no part in the watch."""
    program = f"""
import os
from runner import watch
watched = watch(store={str(tmp_path)!r}, skip=0, steps=3, profiled=0)
with watched.step():
    pass
if os.fork() == 0:
    for _ in range(10):
        with watched.step():
            pass
    watched.close()
    os._exit(0)
os.wait()
print(os.path.exists({str(tmp_path / "runs")!r}), len(watched.runs))
"""
    told = _python("-c", program)
    assert told.stdout == "False 0\n", told.stderr


def test_of_watched_modules_the_outermost_counts(tmp_path: Path) -> None:
    """A call inside a watched call is no step of either."""
    net = model()
    outer, inner = (
        watch(net, store=tmp_path, name="outer", **SHORT),
        watch(net[0], store=tmp_path, name="inner", **SHORT),
    )
    for _ in range(7):
        net(torch.randn(4, 8))
    assert not outer.closed
    for _ in range(3):
        net(torch.randn(4, 8))
    assert outer.closed and not inner.closed
    inner.close()
    assert [row["workload"] for row in rows(tmp_path)] == ["outer"]


class Recursive(torch.nn.Module):
    """Calls itself."""

    def forward(self, x: torch.Tensor, depth: int = 3) -> torch.Tensor:
        """x + 1, as often as it is deep."""
        return x + 1 if depth == 0 else self(x + 1, depth - 1)


def test_a_module_inside_itself_is_one_step(tmp_path: Path) -> None:
    """A call that calls the module again is one step, from its begin to its end."""
    net = Recursive()
    watched = watch(net, store=tmp_path, skip=0, steps=3, profiled=0)
    for _ in range(5):
        net(torch.ones(2))
    assert watched.closed
    assert rows(tmp_path)[0]["facts"]["watch"]["timed_steps"] == 3


def test_other_threads_are_not_measured(tmp_path: Path) -> None:
    """Only the thread that stepped first is; calls of others go through unmeasured."""
    net = model()
    watched = watch(net, store=tmp_path, skip=0, steps=3, profiled=0)
    net(torch.randn(4, 8))
    others = [threading.Thread(target=lambda: net(torch.randn(32, 8))) for _ in range(6)]
    for each in others:
        each.start()
    for each in others:
        each.join()
    for _ in range(5):
        net(torch.randn(4, 8))
    assert watched.closed
    assert [row["params"]["inputs"] for row in rows(tmp_path)] == ["4x8 float32"]


def test_copies_are_not_watched(tmp_path: Path) -> None:
    """A copied or unpickled module computes the same and has no part in the watch."""
    net = model().eval()
    watched = watch(net, store=tmp_path, skip=0, steps=3, profiled=0)
    for other in (copy.deepcopy(net), pickle.loads(pickle.dumps(net))):
        for _ in range(10):
            assert torch.equal(other(torch.ones(1, 8)), net[2](net[0](torch.ones(1, 8))))
    assert watched._meter is None
    watched.close()
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize("of_wrapper", [True, False])
def test_compiled_modules(tmp_path: Path, of_wrapper: bool) -> None:
    """A compiled module is watched by its wrapper; a watch inside the compiled region sees nothing, breaks no graph."""
    net = model().eval()
    wrapper = torch.compile(net, backend="eager", fullgraph=True)
    expected = net(torch.ones(2, 8))
    watched = watch(wrapper if of_wrapper else net[0], store=tmp_path, **SHORT)
    for _ in range(12):
        assert torch.equal(wrapper(torch.ones(2, 8)), expected)
    assert watched.closed is of_wrapper
    watched.close()
    if of_wrapper:
        assert [(row["workload"], row["compile"]) for row in rows(tmp_path)] == [("Sequential", "true")]


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode, torch.enable_grad])
def test_modes_of_autograd_are_left_alone(tmp_path: Path, mode: Callable[[], Any]) -> None:
    """Inside and behind every step the program's own mode holds."""
    net = model()
    modes = []
    net[0].register_forward_hook(lambda *_: modes.append((torch.is_grad_enabled(), torch.is_inference_mode_enabled())))
    watch(net, store=tmp_path, **SHORT)
    with mode():
        here = (torch.is_grad_enabled(), torch.is_inference_mode_enabled())
        for _ in range(12):
            net(torch.ones(2, 8))
            modes.append((torch.is_grad_enabled(), torch.is_inference_mode_enabled()))
    assert set(modes) == {here}


def test_an_early_end_writes_what_there_is(tmp_path: Path) -> None:
    """A program that ends without close leaves the steps timed so far, and why they were not profiled."""
    program = f"""
import torch
from runner import watch
watched = watch(store={str(tmp_path)!r}, skip=1, steps=50)
for _ in range(20):
    with watched.step():
        torch.ones(2) + 1
raise SystemExit(3)
"""
    assert _python("-c", program).returncode == 3
    (row,) = rows(tmp_path)
    assert row["facts"]["watch"]["timed_steps"] == 18
    assert row["facts"]["profile"]["reason"] == "the program ended before its steps were profiled"


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"steps": 2}, "steps=2: allowed is a whole number from 3 on; for example steps=20."),
        ({"every": 0}, "every=0: allowed is a whole number from 1 on or None; for example every=20."),
        ({"skip": True}, "skip=True: allowed is a whole number from 0 on; for example skip=20."),
        ({"name": "data"}, "name='data': allowed is any other word; for example name='train'."),
    ],
)
def test_bad_values_are_refused(given: dict[str, Any], told: str) -> None:
    """One sentence: what came, what is allowed, an example."""
    with pytest.raises(ValueError) as refused:
        watch(**given)
    assert str(refused.value) == told


def test_what_is_no_module_is_refused() -> None:
    """A function is to be marked by hand."""
    with pytest.raises(TypeError, match="mark other steps by hand"):
        watch(print)  # type: ignore[arg-type]


# -- a device that works asynchronously, simulated ---------------------------------------------------------------------


@dataclass
class Simulated:
    """A host and a device with a queue; all times in nanoseconds. Stamps as those of CUDA."""

    kind: str = "cuda"
    index: int = 0
    activities: list[Any] = field(default_factory=list)
    now: int = 0
    free: int = 0

    def clock(self) -> int:
        """The host's clock."""
        return self.now

    def host(self, us: float) -> None:
        """The host does something."""
        self.now += round(us * 1000)

    def work(self, us: float) -> None:
        """Put work on the device."""
        self.free = max(self.free, self.now) + round(us * 1000)

    def synchronize(self) -> None:
        """The host waits for the device."""
        self.now = max(self.now, self.free)

    def mark(self) -> int:
        """When the device reaches what is queued until now."""
        return max(self.free, self.now)

    def begun(self, step: Timed) -> bool:
        """Whether it has reached the begin of a step."""
        return step.begin <= self.now

    def span_us(self, step: Timed) -> float:
        """Device time from a step's begin to its end."""
        return (step.end - step.begin) / 1000

    def period_us(self, step: Timed, following: Timed) -> float:
        """Device time from a step's begin to the next one's."""
        return (following.begin - step.begin) / 1000


FOUND = Found("cuda", ("cuda",), (None,), {"environment_id": "env", "multiprocessors": 132}, {"host": "here"})
LOOP = Watched("loop", None, True, 0, "sweep", datetime(2025, 1, 1, tzinfo=UTC))


def event(event_id: int, name: str, category: str, start_us: float, dur_us: float, **more: Any) -> Event:
    """An event of one host thread or of the device's stream 7."""
    given = {"is_device": category == "kernel", "pid": "1", "tid": "1", "depth": 0, **more}
    names = ("device", "stream", "step", "parent_id", "correlation", "launch_id", "grid", "block")
    rest = dict.fromkeys((*names, "registers_per_thread", "shared_memory_bytes", "bytes", "shapes", "args"))
    return Event(event_id, name, category, round(start_us * 1000), round(dur_us * 1000), **{**rest, **given})


def profiled_step(
    number: int, host: float, device: float, data: float, launches: int = 1, wait: float = 0, slow: float = 0
) -> list[Event]:
    """One profiled step: launches of 5 us (the last of them `slow` us longer), a wait, and `data` behind it."""
    begin, first = number * 10_000.0, number * 1000
    length = host + wait + data
    found = [
        event(first, "loop", "user_annotation", begin, length, step=number),
        event(first + 1, "data", "user_annotation", begin + host + wait, data, step=number),
    ]
    for launch in range(launches):
        call, last = first + 2 + 2 * launch, launch == launches - 1
        found.append(event(call, "cudaLaunchKernel", "cuda_runtime", begin + 5 * launch, 5 + slow * last, step=number))
        kernel = event(call + 1, "k", "kernel", begin + 20 + 5 * launch, device / launches, step=number, launch_id=call)
        found.append(kernel)
    if wait:
        found.append(event(first + 999, "cudaStreamSynchronize", "cuda_runtime", begin + host, wait, step=number))
    return found


def measured(
    host: float, device: float, data: float, window: list[Event], wait: bool = False, steps: int = 10
) -> dict[str, Any]:
    """The row of a simulated loop whose profiled steps are `window`."""
    machine = Simulated()
    meter = Meter(Plan(skip=0, steps=steps, profiled=0), machine, "loop", "data", machine.clock)  # type: ignore[arg-type]
    while True:
        meter.begin("")
        if meter.done:
            break
        machine.work(device / 2)
        machine.host(host)
        machine.work(device / 2)
        if wait:
            machine.synchronize()
        meter.end()
        machine.host(data)
    seen = meter.finish()
    seen.profiled_kinds = ["" for _ in {each.step for each in window}]
    meter.clean()
    ((run, _),) = rows_of(seen, window, machine, LOOP, FOUND)  # type: ignore[arg-type]
    row = run.row(0, named=True)
    return {**row, "facts": json.loads(row["facts"])}


def times(row: dict[str, Any]) -> dict[str, float | None]:
    """Rounded values of a row's times."""
    found = {name: row[f"{name}_us"] for name in ("wall", "issue", "device", "busy", "blocked")}
    found["data"] = row["facts"].get("data_us")
    return {name: None if value is None else round(value[0], 1) for name, value in found.items()}


def test_a_late_host_is_timed_by_the_profile() -> None:
    """Where the device waits for the host its time is the profile's, and the span of a step an upper bound only."""
    row = measured(100, 20, 10, profiled_step(1, 170, 20, 10))
    assert times(row) == {"wall": 110, "issue": 100, "device": 20, "busy": 20, "blocked": None, "data": 10}
    assert row["facts"]["device_method"] == "profile"
    spans = [each["value"] for each in row["samples"] if each["quantity"] == "span"]
    assert spans and min(spans) == 110  # the device's half, its wait for the host, and the other half


def test_a_late_device_is_timed_by_its_own_steps() -> None:
    """Where the host is ahead, steps whose work all lay ready are timed by their events; the first ones are not."""
    row = measured(20, 100, 10, profiled_step(1, 35, 90, 10))
    assert times(row) == {"wall": 100, "issue": 20, "device": 100, "busy": 90, "blocked": None, "data": 10}
    assert row["facts"]["device_method"] == "queued"


def test_a_full_queue_bounds_the_issue_time_from_the_profile() -> None:
    """With 1,100 launches a step the queue is always full: host time without waits over a profiler's cost, bounded."""
    window = profiled_step(1, 5600, 9000, 10, launches=1100, slow=100)
    row = measured(500, 9000, 10, window)
    value, low, high = row["issue_us"]
    assert (round(value * 1.75), round(low * 3.2), round(high)) == (5500, 5500, 5500)
    assert row["facts"]["watch"]["estimators"]["issue_us"].startswith("queue-full")
    assert row["facts"]["profile"].get("perturbation") is None


def test_waits_are_no_issue_time() -> None:
    """A step that synchronizes: the wait as profiled is taken from its host time and named."""
    row = measured(20, 100, 10, profiled_step(1, 20, 100, 10, wait=80), wait=True)
    assert times(row) == {"wall": 110, "issue": 20, "device": 100, "busy": 100, "blocked": 80, "data": 10}
    assert row["facts"]["blocking_calls"] == {"cudaStreamSynchronize": 1.0}
    assert row["facts"]["blocked_method"] == "profile"


def test_the_synchronizes_it_adds_are_counted() -> None:
    """One before the timed steps, one behind them; the profile adds one more."""
    assert measured(100, 20, 10, profiled_step(1, 170, 20, 10))["facts"]["watch"]["synchronizes"] == 2


def test_without_a_profile_nothing_is_guessed() -> None:
    """The device's time of a late host and its issue time are NULL with the reason."""
    row = measured(100, 20, 10, [])
    assert times(row) == {"wall": 110, "issue": None, "device": None, "busy": None, "blocked": None, "data": 10}
    assert "profiled=0" in row["facts"]["reasons"]["issue_us"]
    assert "profiled=0" in row["facts"]["reasons"]["device_us"]


def test_the_time_behind_a_step_is_read_from_its_last_range() -> None:
    """Waits inside and behind a step are told apart, and so are operators behind it."""
    window = profiled_step(1, 50, 30, 40, wait=10)
    window.append(event(77, "aten::cat", "cpu_op", 10_000 + 70, 5, step=1))
    window.append(event(78, "cudaStreamSynchronize", "cuda_runtime", 10_000 + 80, 6, step=1))
    found = between_of(window, "loop", "data")
    assert found is not None
    assert (found.blocked_us, found.blocked_behind_us, found.operators_behind, found.behind_us) == (
        [10],
        [6],
        [2],
        [40],
    )


def test_events_of_some_steps_refer_to_nothing_else() -> None:
    """What a step of another kind has launched is not looked for."""
    window = [*profiled_step(1, 50, 30, 40), event(2002, "k", "kernel", 5, 5, step=2, launch_id=2)]
    (kept,) = of_steps(window, {2})
    assert kept.launch_id is None


def _python(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *map(str, arguments)], capture_output=True, text=True, timeout=240,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )  # fmt: skip


def test_a_watch_is_made_by_the_package() -> None:
    """`from runner import watch` is the function, also behind an import of its package."""
    import runner
    import runner.watching

    assert callable(runner.watch)
    with runner.watch() as made:
        assert isinstance(made, Watch)


# -- threads, forks and devices ----------------------------------------------------------------------------------------


OTHER_THREADS = {
    "ended by another thread": """
thread = threading.Thread(target=some)
held.clear(); thread.start(); ready.wait()
seen.close()
held.set(); thread.join()
""",
    "the thread ends first": """
held.set()
thread = threading.Thread(target=some)
thread.start(); thread.join()
with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]):
    x @ x
""",
    "the program ends first": """
threading.Thread(target=some, daemon=True).start()
ready.wait()
""",
}
"""A thread takes some steps, is then held up, and takes a last one."""


@pytest.mark.parametrize("steps", [8, 11])  # in the middle of the profile, and of the steps whose memory is watched
@pytest.mark.parametrize("how", OTHER_THREADS)
def test_a_profiler_is_ended_by_its_own_thread_alone(tmp_path: Path, how: str, steps: int) -> None:
    """torch ends the process where another thread ends it: what was timed is written all the same."""
    program = f"""
import sys, threading, torch
from runner import watch
torch.set_num_threads(1)
x, held, ready = torch.ones(4, 4), threading.Event(), threading.Event()
seen = watch(store={str(tmp_path)!r}, skip=2, steps=3, profiled=2, memory=[x])
def some():
    for _ in range({steps}):
        with seen.step():
            x @ x
    ready.set(); held.wait()
    with seen.step():
        x @ x
{OTHER_THREADS[how]}
print("whole")
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout.split()[-1]) == (0, "whole"), done.stderr
    (row,) = rows(tmp_path)
    assert row["status"] == "ok"


def test_a_fork_leaves_the_trace_alone(tmp_path: Path) -> None:
    """A child that closes its copy in the middle of the profile takes nothing from the parent's."""
    with watch(store=tmp_path, **SHORT) as seen:
        for number in range(12):
            with seen.step():
                torch.ones(4, 4) @ torch.ones(4, 4)
            if number == 7:
                if (child := os.fork()) == 0:
                    seen.close()
                    os._exit(0)
                os.waitpid(child, 0)
    (row,) = rows(tmp_path)
    assert len(events(tmp_path, row["run_id"])) > 0


def test_a_device_whose_work_ends_unseen_is_not_measured(tmp_path: Path) -> None:
    """The host's clock says nothing of it; the program goes on, with one warning."""
    net = torch.nn.Linear(4, 4, device="meta")
    with warnings.catch_warnings(record=True) as told, watch(net, store=tmp_path, **SHORT):
        warnings.simplefilter("always")
        for _ in range(12):
            net(torch.ones(4, 4, device="meta"))
    assert [str(each.message) for each in told] == [
        "crossover: watching Linear has ended: ValueError: device=meta: allowed is cpu or cuda"
    ]
    assert not (tmp_path / "runs").exists()


def test_device_and_dtype_are_those_of_the_steps(tmp_path: Path) -> None:
    """A module may be watched before it is moved."""
    net = torch.nn.Linear(4, 4, device="meta")
    with watch(net, store=tmp_path, **SHORT):
        net.to_empty(device="cpu").to(torch.bfloat16)
        for _ in range(12):
            net(torch.ones(4, 4, dtype=torch.bfloat16))
    assert [(each["device"], each["dtype"]) for each in rows(tmp_path)] == [("cpu", "bf16")]


@pytest.mark.parametrize("name", [5, None, "", "\ud800", '"; DROP', "\0"])
def test_phases_of_any_name_pass(tmp_path: Path, name: Any) -> None:
    """A program that runs while nobody listens runs while its steps are measured."""
    with watch(store=tmp_path, memory=[torch.ones(1)], **SHORT) as seen:
        for _ in range(12):
            with seen.step(), phase(name):
                torch.ones(4, 4) @ torch.ones(4, 4)
    assert len(rows(tmp_path)) == 1


@pytest.mark.parametrize(
    ("given", "kind", "told"),
    [
        ({"name": 5}, ValueError, "name=5"),
        ({"store": ""}, ValueError, "store='': allowed is the path of a folder"),
        ({"name": "\ud800"}, ValueError, "name='\\\\ud800'"),
        ({"memory": torch.nn.Linear(2, 2)}, TypeError, "memory=Linear: allowed is a list"),
        ({"memory": None}, TypeError, "memory=NoneType: allowed is a list"),
    ],
)
def test_what_no_measuring_could_use_is_refused_at_once(given: dict[str, Any], kind: type, told: str) -> None:
    """And not in the middle of the program."""
    with pytest.raises(kind, match=told):
        watch(**given)


def test_a_trace_that_cannot_be_written_costs_no_timed_step(tmp_path: Path) -> None:
    """The times are stored with the reason, where a file may hold no more than what a run's row needs."""
    program = """
import resource, signal, sys
import torch
from runner import watch
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
layer = torch.nn.Linear(8, 8)
with watch(layer, store=sys.argv[1], skip=0, steps=6, profiled=4):
    for number in range(40):
        if number == 7:
            resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
        layer(torch.ones(4, 8))
"""
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path)],
        capture_output=True, text=True, cwd=Path(__file__).parents[1], timeout=300,
    )  # fmt: skip
    (row,) = rows(tmp_path)
    assert row["wall_us"] is not None, done.stderr
    assert "the trace is not there to be read" in row["facts"]["profile"]["reason"]


# -- a watch that has written nothing ----------------------------------------------------------------------------------

LONGER = "run more steps, or leave out fewer: watch(..., skip=0)"


def silence(told: str) -> str:
    """The one line on stderr that a watch without runs says, behind its beginning."""
    (line,) = told.strip().splitlines()
    start = "crossover: watching "
    assert line.startswith(start) and " has written nothing: " in line
    return line.split(" has written nothing: ")[1]


def test_shapes_that_never_repeat_are_told_once(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Every call of another length: how many steps of how many kinds, and what to do; closing again says no more."""
    net = model()
    with watch(net, store=tmp_path, skip=2, steps=3, profiled=0) as watched:
        for length in range(1, 15):
            net(torch.randn(length, 8))
    watched.close()
    assert silence(capfd.readouterr().err) == (
        "it has timed 12 steps of 12 kinds, none of which was seen at least 3 times with another step behind it; let "
        "shapes repeat (pad the inputs, or sort them into a few lengths), or mark the steps by hand, which makes them "
        "one kind: `w = watch()` and `with w.step():`."
    )
    assert watched.runs == [] and not (tmp_path / "runs").exists()


def test_more_kinds_than_are_told_apart(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """A program that goes on for long: the watch ends by itself and says so then, in the middle of the program."""
    watched = watch(store=tmp_path, skip=0, steps=3, profiled=0)
    for number in range(80):
        with watched.step(f"{number}"):
            pass
    assert watched.closed
    told = silence(capfd.readouterr().err)
    assert "61 steps of more than 16 kinds (the first 16 are told apart), none of which" in told
    assert told.endswith("; tell fewer kinds apart in w.step(kind).")


@pytest.mark.parametrize(
    ("steps", "told"),
    [
        (0, "no step was marked; put each one in `with w.step():`, or loop over `w.steps(loader)`."),
        (1, f"it has seen 1 step, and the first 2 are left out; {LONGER}."),
        (2, f"it has seen 2 steps, and the first 2 are left out; {LONGER}."),
        (
            5,
            "it has timed 3 steps of one kind, which was not seen at least 3 times with another step behind it; "
            f"{LONGER}.",
        ),
    ],
)
def test_too_few_steps_are_told(tmp_path: Path, capfd: pytest.CaptureFixture[str], steps: int, told: str) -> None:
    """None at all, none behind those left out, and fewer than a time can be made of."""
    with watch(store=tmp_path, skip=2, steps=3, profiled=0) as watched:
        for _ in range(steps):
            with watched.step():
                pass
    assert silence(capfd.readouterr().err) == told


def test_a_module_whose_forward_is_called_past_its_hooks(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """No call is seen, and the sentence names the usual reasons."""
    net = model()
    with watch(net, store=tmp_path, **SHORT):
        for _ in range(12):
            net.forward(torch.randn(4, 8))
    told = silence(capfd.readouterr().err)
    assert told.startswith("no call of the module was seen; call the module itself, not its forward()")


def test_steps_inside_those_of_another_watch(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """The inner one has steps, and none of them is timed."""
    net = model()
    with watch(net, store=tmp_path, **SHORT), watch(net[0], store=tmp_path, **SHORT):
        for _ in range(4):
            net(torch.randn(4, 8))
    inner, outer = capfd.readouterr().err.strip().splitlines()
    assert inner.startswith("crossover: watching Linear has written nothing: none of its 4 steps could be timed: ")
    assert outer.startswith("crossover: watching Sequential has written nothing: it has timed 2 steps of one kind")


def test_steps_that_all_break_are_told(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """They are timed, and none of them counts."""
    with watch(store=tmp_path, skip=0, steps=3, profiled=0) as watched:
        for _ in range(4):
            with pytest.raises(KeyError), watched.step():
                raise KeyError
    assert silence(capfd.readouterr().err) == "an exception has ended every one of the 4 steps that it has timed."


def test_a_watch_that_measures_again_and_again_is_silent_once(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """With `every` one sentence at the end, of the last measurement."""
    with watch(store=tmp_path, skip=0, steps=3, profiled=0, every=5) as watched:
        for number in range(200):
            with watched.step(f"{number}"):
                pass
        assert not watched.closed and capfd.readouterr().err == ""
    assert "kinds" in silence(capfd.readouterr().err)


def test_a_watch_with_runs_says_nothing(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Also where some kinds were left out: the run's facts tell those."""
    with watch(store=tmp_path, skip=0, steps=3, profiled=0) as watched:
        for number in range(8):
            with watched.step("rare" if number == 2 else ""):
                pass
    assert len(watched.runs) == 1 and capfd.readouterr().err == ""


def test_the_end_of_a_program_tells_it_and_is_not_disturbed(tmp_path: Path) -> None:
    """Nobody closes the watch: the exit code is the program's, a fork is silent, and a closed stderr is no failure."""
    program = """
import os, sys
from runner import watch
watched = watch(store=sys.argv[1])
if (child := os.fork()) == 0:
    sys.exit(0)
os.waitpid(child, 0)
if sys.argv[2] == "closed":
    sys.stderr.close()
if sys.argv[2] == "none":
    sys.stderr = None
sys.exit(7)
"""
    for how, lines in (("open", 1), ("closed", 0), ("none", 0)):
        done = _python("-c", program, tmp_path, how)
        assert (done.returncode, done.stdout) == (7, "")
        assert done.stderr.count("has written nothing: no step was marked") == len(done.stderr.splitlines()) == lines
