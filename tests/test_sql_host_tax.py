"""The view host_tax: issue time split by the profile's self times."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from given import write_store
from rule_given import Trace

from analysis.store import add, open_store

Parts = dict[str, tuple[float | None, float | None, str]]


def tax(folder: Path, trace: Trace, run: Mapping[str, Any]) -> Parts:
    """Part -> profiled time, scaled time and what they rest on."""
    store = write_store(folder, runs=[run], events=trace.events())
    with open_store(store) as connection:
        add(connection, "host_tax")
        rows = connection.execute("SELECT part, profiled_us, us, basis FROM host_tax").fetchall()
    return {part: tuple(more) for part, *more in rows}


def a_step(trace: Trace, step: int = 0, longer_us: float = 0) -> None:
    """100 us: 10 of guards, 30 of an operation's own with 5 of allocation and 10 of launch inside, 20 of waiting."""
    at = 1000.0 * step
    trace.step(step, at, 100 + longer_us)
    trace.host("TorchDynamo Cache Lookup", at, 10, step)
    trace.host("aten::mm", at + 10, 45, step)
    trace.host("aten::empty", at + 15, 5, step)
    trace.launched("gemm", at + 30, at + 60, 30, step)
    trace.call("cudaLaunchKernel", at + 40, 8, step)
    trace.call("cudaStreamSynchronize", at + 60, 20, step)


def one_step() -> Trace:
    """A trace of that step alone."""
    trace = Trace()
    a_step(trace)
    return trace


def test_parts_are_self_times_by_kind(tmp_path: Path) -> None:
    """Waiting is no part; the profiler's own annotation around the step is none either."""
    parts = tax(tmp_path, one_step(), {"issue_us": 40, "wall_us": 60})
    assert {part: profiled for part, (profiled, _, _) in parts.items()} == {
        "python": 25, "guards": 10, "dispatch": 30, "allocation": 5, "autograd": 0, "launch": 10, "other": 0,
    }  # fmt: skip


def test_parts_add_up_to_the_issue_time(tmp_path: Path) -> None:
    """80 us of the profile stand for 40: each part is halved, and the basis says so."""
    parts = tax(tmp_path, one_step(), {"issue_us": 40, "wall_us": 60})
    assert sum(us or 0 for _, us, _ in parts.values()) == pytest.approx(40)
    assert parts["dispatch"][1] == pytest.approx(15)
    assert "80.0 us under the profiler, times 0.5 to make the 40.0 us" in parts["python"][2]
    assert "lengthens short events most" in parts["python"][2]


def test_the_typical_step_stands_for_all(tmp_path: Path) -> None:
    """Of a wide first step and three others, it is the second longest of the others."""
    trace = Trace()
    for step, longer_us in enumerate((900.0, 30.0, 0.0, 10.0)):
        a_step(trace, step, longer_us)
    assert tax(tmp_path, trace, {"issue_us": 40})["python"][0] == 35


def test_wrappers_of_compiled_code_are_other(tmp_path: Path) -> None:
    """Region, prologue and graph on the host are neither Python of the step nor operations."""
    trace = Trace()
    trace.step(0, 0, 100)
    trace.host("Torch-Compiled Region: 0/0", 10, 80, 0)
    trace.host("AOTDispatcher Runtime Wrapper Prologue", 20, 5, 0)
    trace.host("## Call CompiledFxGraph fabc ##", 30, 50, 0, "user_annotation")
    trace.host("aten::addmm", 40, 20, 0)
    parts = tax(tmp_path, trace, {"issue_us": 40, "compile": "true"})
    assert (parts["other"][0], parts["dispatch"][0], parts["python"][0]) == (60, 20, 20)


def test_what_another_thread_does_counts_once(tmp_path: Path) -> None:
    """The step waits in Python while autograd's thread works."""
    trace = Trace()
    trace.step(0, 0, 100)
    trace.host("autograd::engine::evaluate_function: MmBackward0", 20, 60, 0, tid="2")
    trace.host("aten::mm", 30, 40, 0, tid="2")
    parts = tax(tmp_path, trace, {"issue_us": 50})
    assert (parts["python"][0], parts["autograd"][0], parts["dispatch"][0]) == (40, 20, 40)


@pytest.mark.parametrize(
    ("run", "why"),
    [
        ({"source": "import", "facts": {"steps": {"method": "profiler"}}}, "nothing was timed without it"),
        ({"device": "cpu", "wall_us": 60, "floor_us": 3}, "on the CPU the host does the work itself"),
        ({"wall_us": 60, "facts": {"reasons": {"issue_us": "queue-full"}}}, "is unknown (queue-full)"),
    ],
)
def test_what_was_not_timed_is_not_scaled(tmp_path: Path, run: dict[str, Any], why: str) -> None:
    """Profiled times stand alone, and the reason is said."""
    profiled, us, basis = tax(tmp_path, one_step(), run)["dispatch"]
    assert profiled is not None and us is None and why in basis


def test_without_a_trace_the_parts_are_unknown(tmp_path: Path) -> None:
    """Not zero."""
    parts = tax(tmp_path, Trace(), {"issue_us": 40, "facts": {"profile": {"reason": "not asked for"}}})
    assert {each[:2] for each in parts.values()} == {(None, None)}
    assert parts["python"][2] == "Unknown: there is no trace: not asked for."
