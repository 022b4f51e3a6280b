"""runner.process and runner.worker: answers, errors, deaths, limits, and that no worker outlives its parent."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import venv
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sweeps import ROOT, children, gone

from runner.point import WARM_SCHEDULE, Point
from runner.process import WorkerDied, WorkerError, WorkerProcess
from runner.rounds import Target
from runner.task import Interpreter, Recorder, Task

NOOP = Point("noop", (), None, "fp32", None, False, False, True, "cpu", WARM_SCHEDULE, "warm", None, 0)


IDLE = ("idle", Task(NOOP, Target("quick", 0.1, 0.1), 5.0, False, Recorder(), False, {}, ""))
"""A request to measure a point that does nothing."""


@asynccontextmanager
async def a_worker(*arguments: Any) -> AsyncIterator[WorkerProcess]:
    """A worker that has opened nothing, ended afterwards."""
    worker = WorkerProcess(*arguments)
    try:
        yield worker
    finally:
        await worker.close()


def with_a_worker(work: Callable[[WorkerProcess], Coroutine[Any, Any, Any]], *arguments: Any) -> Any:
    """What some work with a worker gives."""

    async def whole() -> Any:
        async with a_worker(*arguments) as worker:
            return await work(worker)

    return asyncio.run(whole())


def fault(how: str, folder: Path) -> tuple[str, Task]:
    """A request to measure a point that fails in some way."""
    point = replace(NOOP, workload="fault", params=(("how", how),), size=8)
    return "warm", Task(point, Target("quick", 0.1, 0.1), 5.0, False, Recorder(), False, {}, str(folder))


# -- answers -----------------------------------------------------------------------------------------------------------


def test_a_worker_answers_in_turn() -> None:
    """Describing the host and calling nothing need no device; how long it was without work is told."""

    async def work(worker: WorkerProcess) -> None:
        found = await worker.ask("look_at_host", ())
        assert (found.kind, found.kinds, found.uuids) == ("none", (), (None,))
        assert len(found.environment_id) > 4
        await asyncio.sleep(0.2)
        assert (await worker.ask("measure", IDLE)).status == "ok"
        assert worker.waited_s is not None and worker.waited_s >= 0.19

    with_a_worker(work)


def test_a_noop_point_imports_no_torch() -> None:
    """The process that calls it has mapped none of torch's libraries."""

    async def work(worker: WorkerProcess) -> str:
        await worker.ask("look_at_host", ())
        await worker.ask("measure", IDLE)
        return Path(f"/proc/{worker.process.pid}/maps").read_text()

    assert "libtorch" not in with_a_worker(work)


def test_what_cannot_be_answered_is_told_and_the_worker_goes_on() -> None:
    """An exception in the worker is an error here, with its type, and no death."""

    async def work(worker: WorkerProcess) -> None:
        with pytest.raises(WorkerError, match=r"AttributeError: .*do_dance"):
            await worker.ask("dance")
        assert (await worker.ask("measure", IDLE)).status == "ok"

    with_a_worker(work)


def test_a_missing_device_is_one_sentence() -> None:
    """The kinds that there are, and where to look."""

    async def work(worker: WorkerProcess) -> None:
        told = r"^device=tpu: torch can use cpu.* here; see `python -m runner doctor`\.$"
        with pytest.raises(WorkerError, match=told):
            await worker.ask("look", ("tpu", 0, ()))

    with_a_worker(work)


@pytest.mark.parametrize("length", [1, 2**16 - 1, 2**16, 2**20 + 1, 2**24])
def test_messages_of_any_length_arrive_whole(length: int) -> None:
    """Requests and answers longer than any buffer of a socket: here an error's text that holds the request's name."""

    async def work(worker: WorkerProcess) -> str:
        with pytest.raises(WorkerError) as told:
            await worker.ask("x" * length)
        assert (await worker.ask("measure", IDLE)).status == "ok"
        return str(told.value)

    assert "do_" + "x" * length in with_a_worker(work)


def test_the_parent_may_work_while_it_waits() -> None:
    """A worker that is busy importing torch holds nobody up."""

    async def work(worker: WorkerProcess) -> int:
        asked = asyncio.ensure_future(worker.ask("look", ("cpu", 0, ())))
        turns = 0
        while not asked.done():
            await asyncio.sleep(0.01)
            turns += 1
        assert (await asked).kind == "cpu"
        return turns

    assert with_a_worker(work) > 5


def test_the_variables_of_a_point_are_its_workers() -> None:
    """Set, taken away, and told in the environment, which they set apart."""

    async def found(worker: WorkerProcess) -> Any:
        return await worker.ask("look_at_host", tuple(name for name, _ in worker.interpreter.env))

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OMP_DYNAMIC", "true")
        plain = with_a_worker(found)
        changed = with_a_worker(found, Interpreter(None, (("MY_OWN", "a b"), ("OMP_DYNAMIC", None))))
    assert '"OMP_DYNAMIC":"true"' in plain.columns["variables"]
    assert '"MY_OWN":"a b"' in changed.columns["variables"] and "OMP_DYNAMIC" not in changed.columns["variables"]
    assert plain.environment_id != changed.environment_id


# -- deaths ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV])
def test_a_killed_worker_is_told_by_its_signal(number: signal.Signals) -> None:
    """The wait ends at once, and names the signal; nor is there an answer to any further request."""

    async def work(worker: WorkerProcess) -> None:
        await worker.ask("look_at_host", ())
        os.kill(worker.process.pid, number)
        for _ in range(2):
            with pytest.raises(WorkerDied, match=f"the worker ended with signal {number.name}") as death:
                await worker.ask("measure", IDLE)
            assert (death.value.signal, death.value.status) == (number.name, "crashed")

    with_a_worker(work)


def test_a_worker_that_dies_while_it_works_is_noticed() -> None:
    """Killed in the middle of an answer, here the import of torch, it is dead and does not hang its parent."""

    async def work(worker: WorkerProcess) -> None:
        asked = asyncio.ensure_future(worker.ask("look", ("cpu", 0, ())))
        await asyncio.sleep(0.3)
        worker.process.kill()
        with pytest.raises(WorkerDied, match="SIGKILL"):
            await asked

    with_a_worker(work)


def test_last_words_are_those_of_the_latest_request(tmp_path: Path) -> None:
    """What a worker says before it aborts is told; what it said at an earlier request is not."""

    async def work(worker: WorkerProcess) -> str:
        await worker.ask("open", ("cpu", 0))
        with pytest.raises(WorkerDied) as death:
            await worker.ask("measure", fault("abort", tmp_path))
        return str(death.value)

    assert with_a_worker(work).startswith("the worker ended with signal SIGABRT: about to abort")


def test_a_memory_limit_is_the_workers_own(tmp_path: Path) -> None:
    """Allocating without end runs out at the limit, as an answer; the worker goes on."""

    async def work(worker: WorkerProcess) -> None:
        await worker.ask("open", ("cpu", 0))
        done = await worker.ask("measure", fault("allocate", tmp_path))
        assert done.status == "oom" and not done.lost, done
        assert (await worker.ask("measure", IDLE)).status == "ok"

    with_a_worker(work, Interpreter(), 2 * 10**9)


def test_ctrl_c_is_the_parents_to_answer() -> None:
    """Whoever sends SIGINT to the worker too, it finishes what it measures."""

    async def work(worker: WorkerProcess) -> None:
        await worker.ask("look_at_host", ())
        os.kill(worker.process.pid, signal.SIGINT)
        assert (await worker.ask("measure", IDLE)).status == "ok"

    with_a_worker(work)


def test_closing_ends_the_process() -> None:
    """close() leaves no process, and may come after a death."""

    async def work() -> tuple[int | None, int | None]:
        worker, dead = WorkerProcess(), WorkerProcess()
        await worker.ask("look_at_host", ())
        dead.process.kill()
        await worker.close()
        await dead.close()
        return worker.process.returncode, dead.process.returncode

    assert asyncio.run(work()) == (0, -signal.SIGKILL)


STARTS_A_CHILD = "import subprocess; subprocess.Popen(['sleep', '1000'])\n"


def with_a_child(tmp_path: Path) -> Interpreter:
    """An interpreter whose every process starts another one, as compilers do."""
    (tmp_path / "sitecustomize.py").write_text(STARTS_A_CHILD)
    return Interpreter(None, (("PYTHONPATH", str(tmp_path)),))


def test_a_busy_worker_is_closed_with_all_it_has_started(tmp_path: Path) -> None:
    """A point that never ends is given up: the worker is killed, and so are its children."""

    async def work() -> list[int]:
        async with a_worker(with_a_child(tmp_path)) as worker:
            await worker.ask("look_at_host", ())
            pids = [worker.process.pid, *children(worker.process.pid)]
            await worker.ask("open", ("cpu", 0))
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(worker.ask("measure", fault("hang", tmp_path)), 0.3)
            return pids

    pids = asyncio.run(work())
    assert len(pids) == 2
    assert all(gone(pid) for pid in pids)


# -- parents -----------------------------------------------------------------------------------------------------------

PARENT = """
import asyncio, sys, time
from runner.process import WorkerProcess

class Endless:
    def __reduce__(self):
        return time.sleep, (1000,)

async def main():
    worker = WorkerProcess()
    await worker.ask("look_at_host", ())
    if sys.argv[1] == "hangs":
        asyncio.ensure_future(worker.ask("measure", Endless()))
        await asyncio.sleep(0.5)
    print(worker.process.pid, flush=True)
    await asyncio.sleep(1000)

asyncio.run(main())
"""


def parent(worker: str) -> tuple[subprocess.Popen[str], int]:
    """A process with a worker that has answered once, and the worker's pid."""
    process = subprocess.Popen([sys.executable, "-c", PARENT, worker], stdout=subprocess.PIPE, text=True, cwd=ROOT)
    assert process.stdout is not None
    return process, int(process.stdout.readline())


@pytest.mark.parametrize("state", ["waits", "hangs"])
def test_a_worker_ends_with_its_parent(state: str) -> None:
    """A parent that is killed closes the socket; the kernel ends a worker that reads nothing any more."""
    process, worker = parent(state)
    process.kill()
    process.communicate()
    assert gone(worker)


# -- other interpreters ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def other_python(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Another Python, which finds this one's packages but not the runner."""
    folder = tmp_path_factory.mktemp("other")
    venv.create(folder, system_site_packages=False, symlinks=True)
    return str(folder / "bin" / "python")


def test_another_interpreter_has_the_runner_and_nothing_else_of_ours(other_python: str) -> None:
    """It finds the package `runner` without being told by PYTHONPATH, and no torch where it has none itself."""

    async def work(worker: WorkerProcess) -> Any:
        with pytest.raises(WorkerError, match="No module named 'torch'"):
            await worker.ask("open", ("cpu", 0))
        return await worker.ask("look_at_host", ())

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", f"{ROOT}{os.pathsep}{Path(pytest.__file__).parents[1]}")
        found = with_a_worker(work, Interpreter(other_python))
    assert found.columns["torch"] is None


def test_a_python_that_is_none_dies_with_its_last_words(tmp_path: Path) -> None:
    """What it said is all there is to go by."""
    script = tmp_path / "python"
    script.write_text("#!/bin/sh\necho not a python >&2\nexit 3\n")
    script.chmod(0o755)

    async def work(worker: WorkerProcess) -> None:
        with pytest.raises(WorkerDied, match="the worker ended with exit code 3: not a python") as death:
            await worker.ask("look_at_host", ())
        assert death.value.signal is None

    with_a_worker(work, Interpreter(str(script)))
