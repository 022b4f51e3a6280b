"""runner.locks: one sweep a device, whoever ends in whatever way."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from sweeps import ROOT, gone

from runner.locks import VARIABLE, DeviceBusy, DeviceLock, lock_device
from runner.process import WorkerProcess

HOLDER = """
import asyncio, sys
from runner.locks import lock_device
from runner.process import WorkerProcess

async def main():
    lock = await lock_device("card", True, print)
    pid = 0
    if sys.argv[1] == "with a worker":
        worker = WorkerProcess()
        await worker.ask("hold", None, [lock.handle])
        pid = worker.process.pid
    print(pid, flush=True)
    await asyncio.to_thread(sys.stdin.read)
    lock.release()

asyncio.run(main())
"""


@pytest.fixture(autouse=True)
def empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Locks of the test alone, in a folder that does not exist yet."""
    folder = tmp_path / "locks"
    monkeypatch.setenv(VARIABLE, str(folder))
    return folder


def holder(kind: str = "alone") -> tuple[subprocess.Popen[str], int]:
    """A process that holds the lock of `card` until its stdin closes, and its worker's pid."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, kind],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT,
    )  # fmt: skip
    assert process.stdout is not None
    return process, int(process.stdout.readline())


def taken(device: str = "card", wait: bool = False) -> DeviceLock:
    """The lock, at once or not at all."""
    return asyncio.run(lock_device(device, wait, print))


async def after(process: subprocess.Popen[str], number: int | None, told: list[str]) -> DeviceLock:
    """The lock, once its holder has ended: by a signal, or by itself."""
    waiting = asyncio.ensure_future(lock_device("card", True, told.append))
    while not told:
        await asyncio.sleep(0.01)
    assert not waiting.done()
    if number is None:
        process.communicate("")
    else:
        process.send_signal(number)
        process.communicate()
    return await asyncio.wait_for(waiting, 20)


@pytest.mark.parametrize("number", [None, signal.SIGKILL])
def test_who_comes_second_waits_and_says_for_whom(number: int | None) -> None:
    """It is told once, and gets the device when the first ends, in order or killed."""
    process, _ = holder()
    told: list[str] = []
    asyncio.run(after(process, number, told)).release()
    (only,) = told
    assert only.startswith(f"Waiting for card, in use by process {process.pid} since ")
    assert "python -m runner alone" in only


def test_who_will_not_wait_is_told_at_once() -> None:
    """One sentence with the device, the holder and the cure."""
    process, _ = holder()
    with pytest.raises(DeviceBusy, match=rf"^card is in use by process {process.pid} .*; wait .* leave out wait=false"):
        taken()
    process.communicate("")
    taken().release()


def test_devices_are_locked_apart() -> None:
    """Another card is free."""
    process, _ = holder()
    taken("other card").release()
    process.communicate("")


def test_a_released_lock_is_free_in_the_same_process() -> None:
    """And a second one of the same process is not."""
    first = taken()
    with pytest.raises(DeviceBusy):
        taken()
    first.release()
    taken().release()


def test_a_worker_holds_the_lock_when_its_parent_is_killed() -> None:
    """Its device is in use until it has ended itself, however long that takes after its parent."""
    first = taken()
    worker = asyncio.run(_worker_with(first))
    first.release()
    with pytest.raises(DeviceBusy):
        taken()
    worker.kill()
    assert gone(worker.pid)
    worker.wait()
    taken().release()


async def _worker_with(lock: DeviceLock) -> subprocess.Popen[bytes]:
    worker = WorkerProcess()
    await worker.ask("hold", None, [lock.handle])
    os.kill(worker.process.pid, signal.SIGSTOP)
    return worker.process


def test_a_killed_sweep_leaves_no_lock() -> None:
    """Parent killed, worker ended by the kernel: nothing is stale."""
    process, worker = holder("with a worker")
    with pytest.raises(DeviceBusy):
        taken()
    process.kill()
    process.communicate()
    assert gone(worker)
    taken().release()


def test_everybody_may_lock(empty_folder: Path) -> None:
    """The folder and the files are open to all users of the host, whoever came first."""
    taken().release()
    assert empty_folder.stat().st_mode & 0o7777 == 0o1777
    assert (empty_folder / "card.lock").stat().st_mode & 0o777 == 0o666
