"""Ranges of the profiled window: phases and modules, nested in the step, and nothing of them outside of it."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import pytest
import torch
import torch._dynamo.testing
from configured import job, values

from runner import profiling
from runner.config import Job
from runner.device import Cpu
from runner.phases import heard, phase
from runner.point import PointError, Schedule
from runner.profiling import record
from runner.ranges import module_names, ranges
from runner.task import Recorder

MODEL = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Sequential(torch.nn.ReLU()))
X = torch.ones(2, 4)


def step() -> None:
    """A forward pass in a phase, which holds another."""
    with phase("forward"), phase("inner"):
        MODEL(X)


def annotations(recorder: Recorder, folder: Path, compiled: bool = False) -> list[tuple[str, float, float]]:
    """(name, begin, end) of what is annotated in one profiled step, in the order of their begins."""
    inside = ranges(recorder, module_names([MODEL, X]), compiled)
    done = record(step, "mine", Schedule(0, 1, 1), recorder, Cpu(), folder, False, inside)
    events = json.loads(done.traces[0].read_text())["traceEvents"]
    mine = [each for each in events if each.get("cat") == "user_annotation" and "Step#" not in each["name"]]
    return sorted(((each["name"], each["ts"], each["ts"] + each["dur"]) for each in mine), key=lambda each: each[1])


def test_phases_are_nested_in_the_step(tmp_path: Path) -> None:
    """step > forward > inner, and nothing of modules where none are asked for."""
    found = [each for each in annotations(Recorder(), tmp_path) if not each[0].startswith("crossover")]
    assert [name for name, _, _ in found] == ["mine", "forward", "inner"]
    assert all(a[1] <= b[1] and b[2] <= a[2] for a, b in itertools.pairwise(found))


def test_modules_are_ranges_by_their_qualified_names(tmp_path: Path) -> None:
    """nvtx=modules: each module of the step, the inner ones inside the outer ones."""
    names = [name for name, _, _ in annotations(Recorder(nvtx="modules"), tmp_path)]
    inside = names[names.index("inner") + 1 :]
    assert inside[:4] == ["Sequential", "0 (Linear)", "1 (Sequential)", "1.0 (ReLU)"]


def test_a_compiled_step_has_no_modules(tmp_path: Path) -> None:
    """A hook would make torch compile again in the middle of the window."""
    names = [name for name, _, _ in annotations(Recorder(nvtx="modules"), tmp_path, compiled=True)]
    assert "inner" in names and not any("Linear" in name for name in names)


def test_no_hook_is_left_behind(tmp_path: Path) -> None:
    """Neither after the window nor after a module that raises in it."""
    with pytest.raises(RuntimeError), ranges(Recorder(nvtx="modules"), {}, False):
        MODEL(torch.ones(2, 5))
    heard_names: list[str] = []

    def listen(name: str) -> torch.profiler.record_function:
        heard_names.append(name)
        return torch.profiler.record_function(name)

    with heard(listen):
        step()
    assert heard_names == ["forward", "inner"]
    assert not torch.nn.modules.module._global_forward_hooks
    assert not torch.nn.modules.module._global_forward_pre_hooks


def test_a_phase_nobody_hears_is_one_and_the_same_object() -> None:
    """Nothing is made, so that the passes that take times pay for a call alone."""
    assert phase("a") is phase("b")


def test_a_compiled_function_that_holds_a_phase_is_compiled_once() -> None:
    """A listener that appears later is no reason to compile again."""
    counter = torch._dynamo.testing.CompileCounter()

    @torch.compile(backend=counter)
    def held(x: torch.Tensor) -> torch.Tensor:
        with phase("forward"):
            return x + 1

    held(X)
    with heard(torch.profiler.record_function):
        held(X)
    assert counter.frame_count == 1


def test_operators_need_another_profiler() -> None:
    """torch.profiler and torch's NVTX ranges of operators exclude each other: told before anything runs."""
    assert job(nvtx="modules").recorder.nvtx == "modules"
    with pytest.raises(PointError, match="nvtx=ops: allowed with profiler=nsys"):
        Job.checked(values(nvtx="ops"))
    nsys = {**values()["profiler"], "tool": "nsys"}
    assert Job.checked(values(nvtx="ops", profiler=nsys)).recorder == Recorder(tool="nsys", nvtx="ops")
    with pytest.raises(PointError, match="nvtx=all: allowed is phases, modules, ops"):
        Job.checked(values(nvtx="all"))


def test_torchs_own_total_is_read_from_its_table() -> None:
    """The device's, not the CPU's; over the steps of all windows; none where the table tells none."""
    cpu, card = "Self CPU time total: 72.038ms", "Self CUDA time total: 4.604ms"
    assert profiling._device_us(f"rows\n{cpu}\n{card}\n", 20) == pytest.approx(230.2)
    assert profiling._device_us(f"{cpu}\n{card}\n\n{cpu}\n{card}", 40) == pytest.approx(230.2)
    assert profiling._device_us("Self CUDA time total: 800.500us", 1) == pytest.approx(800.5)
    assert profiling._device_us(cpu, 20) is None and profiling._device_us(None, 20) is None
