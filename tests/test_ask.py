"""`python -m runner ask`: its five lines for every kind of step, and what it refuses."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from configured import job
from simulated import Simulated

from runner import ask, measure, tables
from runner.law import DEVICE, OVERHEAD, SERIAL
from runner.point import Point, PointError
from runner.rounds import Target
from runner.statistics import Estimate
from runner.task import Found, Measurement, Recorder, Task

ROOT = Path(__file__).parent.parent
FOUND = Found("cuda", (), (None,), {"device_name": "NVIDIA H200", "torch": "2.11.0", "environment_id": "e"}, {})


def row_of(given: Any, done: Measurement) -> dict[str, Any]:
    """The row of a measurement, as the command makes it."""
    identity = tables.Identity("run", "sweep", "environment", datetime(2026, 1, 1, tzinfo=UTC), 0, "given")
    return tables.run_row(given.point, identity, done, None, 0, {})


def answered(row: dict[str, Any], given: Any, found: Found = FOUND) -> dict[str, str]:
    """The five lines by their first word."""
    told = ask.lines(ask.Answer(given, row, found, 8.4))
    assert len(told) == 5
    return dict(line.split(None, 1) for line in told)


def simulated(
    monkeypatch: pytest.MonkeyPatch, step_of: Callable[[Simulated], Callable[[], None]], noise: float = 0.0
) -> dict[str, str]:
    """What is told of a step of the simulated device, slopes included."""
    device = Simulated(noise=noise).installed(monkeypatch)
    given = replace(job(), point=job(dtype="bf16", size=64).point.resolved("cuda"))
    return answered(row_of(given, taken(monkeypatch, device, step_of(device), given.point)), given)


def taken(monkeypatch: pytest.MonkeyPatch, device: Simulated, step: Callable[[], None], point: Point) -> Measurement:
    """Times and slopes of a step of the simulated device, which has no profiler: it says where one was asked for."""
    monkeypatch.setattr(measure, "build_step", lambda *_: step)
    monkeypatch.setattr(measure, "_profiled", lambda *_: (("profiled",), None))
    task = Task(point, Target("default", 0.02, 1.0), 5.0, True, Recorder(), False, {}, "")
    return measure._times_alone(task, device, device.clock, {}, [])  # type: ignore[arg-type]


# -- the five lines ---------------------------------------------------------------------------------------------------


def test_an_overhead_bound_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """Issued in 20 us, done in 5: the host binds, the slopes agree, a graph would take a quarter of the time."""
    told = simulated(monkeypatch, lambda device: device.step(20, 5))
    assert [each.split()[0] for each in told["times"].split(", ")] == ["wall", "issue", "device", "replay", "single"]
    assert told["bound"].startswith("overhead-bound: the host needs 20 us to issue what the device does in 5 us")
    assert "(issue / device = 4" in told["bound"]
    assert told["slopes"].startswith("1 us more of host work adds 1.0") and told["slopes"].endswith(
        ": both say the same"
    )
    assert told["graph"].startswith("replayed from a CUDA graph a step takes 5 us, 4")
    assert told["where"].startswith("matmul_add size=64 bf16 eager on NVIDIA H200, torch 2.11.0; ")
    assert told["where"].endswith(" s, 8.4 s in all")


def test_a_device_bound_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """Issued in 20 us, done in 200: nothing to gain from a graph."""
    told = simulated(monkeypatch, lambda device: device.step(20, 200))
    assert told["bound"].startswith("device-bound: the device needs 200 us for what the host issues in 20 us")
    assert told["slopes"].endswith(": both say the same")
    assert told["graph"] == "replayed from a CUDA graph a step takes 200 us: nothing to gain"


def test_a_balanced_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """Issued in 20 us, done in 20: too alike to tell."""
    told = simulated(monkeypatch, lambda device: device.step(20, 20), noise=0.05)
    assert told["bound"].startswith("balanced: the host issues a step in ")
    assert "too alike to tell which binds (issue / device = " in told["bound"]


def test_a_step_that_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """No graph, with the reason; without a profile no device time, so that the slopes alone tell the bound."""
    told = simulated(monkeypatch, lambda device: device.waiting_step(20, 200))
    assert told["bound"].startswith("unknown: ")
    assert told["slopes"].endswith(": serialized")
    assert told["graph"] == "none: the step waits for the device, which a graph cannot capture"


def test_a_step_that_launches_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Inputs left on the host are the usual cause."""
    told = simulated(monkeypatch, lambda device: device.host_work(30))
    assert "the device has nothing to do; make the inputs with device=point.device" in told["bound"]
    assert told["graph"] == "none: the step launches nothing that it could hold"


def row_of_the_cpu(low: float = 103.0, high: float = 105.0, **facts: Any) -> dict[str, Any]:
    """A row of the CPU: of 104 us a step (low to high) 4 are the floor."""
    row = row_of(job(size=64), Measurement("failed"))
    times = {"wall_us": [104.0, low, high], "floor_us": [4.0, 3.9, 4.1]}
    more = {"rounds": 8, "measured_s": 0.2, "reasons": {"doubled_us": "its rows are not known"}, **facts}
    return {**row, **times, "status": "ok", "facts": json.dumps(more)}


def on_the_cpu(**facts: Any) -> dict[str, str]:
    """What is told of a row of the CPU."""
    return answered(row_of_the_cpu(**facts), job(size=64))


def test_a_step_on_the_cpu() -> None:
    """Floor and work in place of issue and device, twice the work in place of slopes, and no graph."""
    told = on_the_cpu(work_share=[0.96, 0.95, 0.97])
    assert told["times"] == "wall 104 us ±1.0%, floor 4 us ±2.5%"
    assert told["bound"].startswith("device-bound: of 104 us a step 4 us are overhead (floor / work = 0.04")
    assert told["slopes"] == "none on the CPU; twice the work makes a step 96% longer (95% to 97%): both say the same"
    assert told["graph"] == "none: a CUDA graph needs a CUDA device"
    assert on_the_cpu()["slopes"] == "none on the CPU, and its rows are not known"
    assert on_the_cpu(work_share=[0.2, 0.1, 0.3])["slopes"].endswith(
        "they say overhead-bound, so do not trust the bound"
    )


def test_twice_the_work_says_nothing_where_its_interval_leaves_it_open() -> None:
    """6 % longer, or 24 % shorter, or 91 % longer: no reason to distrust the bound."""
    assert on_the_cpu(work_share=[0.06, -0.24, 0.91])["slopes"] == (
        "none on the CPU; twice the work makes a step 6% longer (-24% to 91%): too wide an interval to tell which binds"
    )


def test_work_that_noise_hides_is_told_by_the_reason_of_the_law() -> None:
    """A wall time whose interval reaches below the floor: no split of the step into floor and work."""
    row = row_of_the_cpu(low=3.0, high=300.0)
    verdict = tables.verdict(row)
    assert verdict.reason and answered(row, job(size=64))["bound"].startswith(f"{verdict.bound}: {verdict.reason}")


def test_a_host_that_was_not_alone_is_told() -> None:
    """Behind the times, which it has spoiled."""
    assert on_the_cpu(host_contended=True)["times"].endswith("; something else used the host meanwhile")


@pytest.mark.parametrize(
    ("host", "device", "margin", "blocks", "told"),
    [
        ((0.9, 1.1), (-0.1, 0.1), 4.0, False, OVERHEAD),
        ((-0.1, 0.1), (0.9, 1.1), 0.25, False, DEVICE),
        ((0.8, 1.0), (0.7, 0.9), 0.5, False, SERIAL),
        ((0.1, 0.3), (0.2, 0.4), 4.0, False, ask.NEITHER),
        ((-0.2, 0.9), (0.1, 0.4), 4.0, False, None),
        ((0.9, 1.1), (0.6, 0.8), 1.05, False, OVERHEAD),
        ((0.9, 1.1), (0.6, 0.8), 1.05, True, SERIAL),
        ((0.1, 0.2), (0.3, 0.4), 0.95, False, DEVICE),
        ((0.9, 1.1), (0.6, 0.8), None, False, SERIAL),
    ],
)
def test_slopes_alone_say_a_bound(
    host: tuple[float, float], device: tuple[float, float], margin: float | None, blocks: bool, told: str | None
) -> None:
    """Which of the two lengthens the step, by their intervals; near the crossing the larger one, as in law.sql."""
    slopes = [Estimate(sum(each) / 2, *each) for each in (host, device)]
    near = None if margin is None else Estimate(margin, margin, margin)
    assert ask.slopes_verdict(slopes[0], slopes[1], near, blocks) == told


# -- the way `times` --------------------------------------------------------------------------------------------------


def test_a_profile_is_taken_only_where_nothing_else_tells_the_device_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not for a step whose stream can be held; for one that waits, which can neither be held nor captured."""
    device, point = Simulated().installed(monkeypatch), job().point.resolved("cuda")
    assert taken(monkeypatch, device, device.step(20, 5), point).traces == ()
    assert taken(monkeypatch, device, device.waiting_step(20, 5), point).traces == ("profiled",)


# -- the command ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["size=64"], "size=64: the first word is what to measure"),
        (["-m", "matmul_add"], "-m: ask takes no option but --help"),
        (["noop"], "noop does nothing, so that nothing binds it"),
        (["matmul_add", "warmup=false"], "warmup=false: a cold point has no steady state"),
        (["matmul_add", "size=x"], "size=x: allowed is a whole number"),
        (["nowhere.py:build"], "workload.target=nowhere.py:build: there is no such file"),
    ],
)
def test_what_cannot_be_asked_is_refused(
    arguments: list[str], told: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One sentence, and the command line as it was."""
    monkeypatch.setattr(sys, "argv", ["runner", "ask", *arguments])
    with pytest.raises(PointError) as refused:
        ask.planned(arguments)
    assert told in str(refused.value)
    assert sys.argv == ["runner", "ask", *arguments]
    assert capsys.readouterr().out == ""


def test_keys_are_those_of_a_sweep(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A target in a folder of an odd name, any key; slopes are taken unless they are declined."""
    folder = tmp_path / 'a "b" c'
    folder.mkdir()
    (folder / "bench.py").write_text("def build(point): ...\n")
    monkeypatch.setattr(sys, "argv", ["runner"])
    asked = [f"{folder}/bench.py:build", "size=8", "dtype=fp32", "compile=true", "measure=quick"]
    (given,) = ask.planned(asked)
    assert (given.point.workload, given.point.params) == ("custom", (("target", f"{folder}/bench.py:build"),))
    assert (given.point.size, given.point.dtype, given.point.compile) == (8, "fp32", True)
    assert (given.slopes, given.target.name) == (True, "quick")
    (workload,) = ask.planned(["elementwise", "workload.ops=7", "measure.slopes_every=0"])
    assert (workload.point.params, workload.slopes) == ((("ops", 7),), False)


def asked(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The command, in a folder of its own."""
    return subprocess.run(
        [sys.executable, "-m", "runner", "ask", *arguments], capture_output=True, text=True, cwd=folder, timeout=120,
        env={**os.environ, "PYTHONPATH": str(ROOT), "CUDA_VISIBLE_DEVICES": "", "TMPDIR": str(folder)},
    )  # fmt: skip


def test_a_question_is_answered_in_five_lines_and_nothing_is_stored(tmp_path: Path) -> None:
    """Exit code 0, nothing on stderr, no file left."""
    (tmp_path / "bench.py").write_text(
        "import torch\ndef build(point):\n    return torch.exp, (torch.ones(point.size),)\n"
    )
    done = asked(tmp_path, "bench.py:build", "size=16")
    assert (done.returncode, done.stderr) == (0, "")
    assert [line.split()[0] for line in done.stdout.splitlines()] == ["times", "bound", "slopes", "graph", "where"]
    assert "custom target=bench.py:build size=16 fp32 eager" in done.stdout
    assert [path.name for path in tmp_path.iterdir() if path.name != "__pycache__"] == ["bench.py"]


def test_an_error_in_the_users_file_is_one_sentence(tmp_path: Path) -> None:
    """File, line, exception; exit code 1, no traceback."""
    (tmp_path / "bench.py").write_text("def build(point):\n    return point.shape\n")
    done = asked(tmp_path, "bench.py:build")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "error: bench.py:2: AttributeError: 'Setting' object has no attribute 'shape'\n"


def test_a_step_that_takes_its_process_down_ends_with_two(tmp_path: Path) -> None:
    """The step failed; the command says how."""
    done = asked(tmp_path, "fault", "workload.how=segfault", "size=16")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: the worker ended with signal SIGSEGV")


def test_help_needs_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    """With --help on stdout and 0, without a word on stderr and 1."""
    assert ask.main(["--help"]) == 0
    assert "build(point)" in capsys.readouterr().out
    assert ask.main([]) == 1
    captured = capsys.readouterr()
    assert captured.out == "" and "TARGET" in captured.err
