"""runner.process and runner.worker: answers, errors, deaths, and that no worker outlives its parent."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from runner.point import Point
from runner.process import WorkerDied, WorkerError, WorkerProcess

ROOT = Path(__file__).parent.parent
NOOP = Point.checked(
    {
        "workload": {"name": "noop"}, "size": 1, "dtype": "auto", "batch": None, "compile": False, "dynamic": False,
        "warmup": True, "device": "auto", "schedule": None, "l2": "warm", "threads": None, "seed": 0,
    }
)  # fmt: skip


@pytest.fixture
def worker() -> Iterator[WorkerProcess]:
    """A worker that has opened nothing."""
    process = WorkerProcess()
    yield process
    process.close()


def gone(pid: int, seconds: float = 10) -> bool:
    """Whether a process ends within some seconds (a zombie has ended)."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except FileNotFoundError:
            return True
        time.sleep(0.02)
    return False


def test_a_worker_answers_in_turn(worker: WorkerProcess) -> None:
    """Describing the host and calling nothing need no device."""
    opened = worker.ask("open_nothing")
    assert (opened.kind, opened.kinds) == ("none", ())
    assert len(opened.columns["environment_id"]) > 4
    assert worker.ask("call", NOOP) is None


def test_a_noop_point_imports_no_torch(worker: WorkerProcess) -> None:
    """The process that calls it has mapped none of torch's libraries."""
    worker.ask("open_nothing")
    worker.ask("call", NOOP)
    assert "libtorch" not in Path(f"/proc/{worker.process.pid}/maps").read_text()


def test_what_cannot_be_answered_is_told_and_the_worker_goes_on(worker: WorkerProcess) -> None:
    """An exception in the worker is an error here, with its type, and no death."""
    with pytest.raises(WorkerError, match=r"AttributeError: .*do_dance"):
        worker.ask("dance")
    assert worker.ask("call", NOOP) is None


def test_a_missing_device_is_one_sentence(worker: WorkerProcess) -> None:
    """The kinds that there are, and where to look."""
    with pytest.raises(WorkerError, match=r"^device=tpu: torch can use cpu.* here; see `python -m runner doctor`\.$"):
        worker.ask("open", ("tpu", False))


def test_waiting_calls_meanwhile(worker: WorkerProcess) -> None:
    """While there is no answer the parent may sample the card."""
    calls: list[int] = []
    worker.send("open", ("cpu", False))
    assert worker.wait(lambda: calls.append(1)).kind == "cpu"
    assert calls


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV])
def test_a_killed_worker_is_told_by_its_signal(worker: WorkerProcess, number: signal.Signals) -> None:
    """The wait ends at once, and names the signal."""
    worker.ask("open_nothing")
    os.kill(worker.process.pid, number)
    with pytest.raises(WorkerDied, match=f"the worker ended with signal {number.name}"):
        worker.wait()
    with pytest.raises(WorkerDied):
        worker.ask("call", NOOP)


def test_a_worker_that_dies_while_it_measures_is_noticed(worker: WorkerProcess) -> None:
    """Killed in the middle of an answer, here the import of torch, it is dead and does not hang its parent."""
    worker.send("open", ("cpu", False))
    time.sleep(0.3)
    worker.process.kill()
    with pytest.raises(WorkerDied, match="SIGKILL"):
        worker.wait(lambda: None)


def test_ctrl_c_is_the_parents_to_answer(worker: WorkerProcess) -> None:
    """The terminal sends SIGINT to both; the worker finishes what it measures."""
    worker.ask("open_nothing")
    os.kill(worker.process.pid, signal.SIGINT)
    assert worker.ask("call", NOOP) is None


def test_closing_ends_the_process() -> None:
    """close() leaves no process, and may come after a death."""
    process = WorkerProcess()
    process.ask("open_nothing")
    process.close()
    assert process.process.returncode == 0
    dead = WorkerProcess()
    dead.process.kill()
    dead.close()
    assert dead.process.returncode == -signal.SIGKILL


def test_a_worker_ends_with_its_parent() -> None:
    """A parent that is killed closes the socket, and the worker ends by itself."""
    code = (
        "import os, sys; from runner.process import WorkerProcess;"
        "worker = WorkerProcess(); worker.ask('open_nothing'); print(worker.process.pid, flush=True);"
        "sys.stdin.read()"
    )
    parent = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stdin=subprocess.PIPE, text=True, cwd=ROOT
    )
    assert parent.stdout is not None and parent.stdin is not None
    pid = int(parent.stdout.readline())
    parent.kill()
    parent.wait()
    parent.stdout.close()
    parent.stdin.close()
    assert gone(pid)
