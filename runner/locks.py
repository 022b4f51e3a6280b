"""One sweep a device: a lock on this host, which its holder and the holder's workers keep until the last of them ends.

The kernel drops the lock with the last process that holds it, however that one ends; nothing is ever stale.
"""

from __future__ import annotations

import asyncio
import errno
import fcntl
import os
import shlex
import stat
import sys
import time
from collections.abc import Callable
from pathlib import Path

VARIABLE = "CROSSOVER_LOCKS"
POLL_S = 0.5


class DeviceBusy(Exception):
    """Another sweep holds the device: says which."""


class DeviceLock:
    """The lock of one device. `handle` may be handed to other processes, which then hold it as well.

    waited: whether another sweep held it before.
    """

    def __init__(self, device: str, handle: int, waited: bool) -> None:
        self.device, self.handle, self.waited = device, handle, waited

    def release(self) -> None:
        """Let go of it; processes that were handed the lock still hold it."""
        os.close(self.handle)


async def lock_device(device: str, wait: bool, tell: Callable[[str], object]) -> DeviceLock:
    """The lock of a device (its UUID, or `cpu`). `tell` is told once whom it waits for. Raises DeviceBusy, OSError."""
    handle = _open(_folder() / f"{device}.lock")
    told = False
    try:
        while not _taken(handle):
            if not wait:
                raise DeviceBusy(f"{device} is in use by {_holder(handle)}; wait for its end, or leave out wait=false.")
            if not told:
                tell(f"Waiting for {device}, in use by {_holder(handle)}.")
                told = True
            await asyncio.sleep(POLL_S)
        _sign(handle)
    except BaseException:
        os.close(handle)
        raise
    return DeviceLock(device, handle, told)


def _folder() -> Path:
    """Of this host, and the same for all of its users."""
    folder = Path(os.environ.get(VARIABLE) or "/tmp/crossover-locks")
    if not folder.is_dir():
        folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(0o1777)
    return folder


def _open(path: Path) -> int:
    """The lock's file; whoever made it, everybody may sign in it. A link is followed nowhere."""
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW)
        os.fchmod(handle, 0o666)
    except FileExistsError:
        handle = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError(errno.EINVAL, "is no file, so that it cannot be a lock", str(path))
    return handle


def _taken(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _sign(handle: int) -> None:
    """Who holds it, for those who wait."""
    command = shlex.join(["python", "-m", "runner", *sys.argv[1:]])
    since = time.strftime("%H:%M:%S")
    os.ftruncate(handle, 0)
    os.pwrite(handle, f"process {os.getpid()} since {since}: {command[:300]}".encode(), 0)


def _holder(handle: int) -> str:
    return os.pread(handle, 1000, 0).decode(errors="replace") or "another process"
