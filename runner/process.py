"""Worker processes, as their parent sees them."""

from __future__ import annotations

import asyncio
import os
import pickle
import signal
import socket
import struct
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from runner.task import PROTOCOL, Interpreter

LAST_LINES = 3
END_S = 5.0
POLL_S = 0.005
OWN = Interpreter()

PACKAGE = """
import sys
from importlib import util
root = sys.argv[1]
spec = util.spec_from_file_location("runner", root + "/__init__.py", submodule_search_locations=[root])
sys.modules["runner"] = package = util.module_from_spec(spec)
spec.loader.exec_module(package)
"""
"""How any Python finds the package `runner`, by the path in its first argument alone: its own packages stay its own."""
_START = f"""{PACKAGE}
from runner.worker import main
main(int(sys.argv[2]), int(sys.argv[3]))
"""


class WorkerDied(Exception):
    """The worker ended before it answered: says how, with the last lines of its stderr. signal: None = an exit code.

    status: what becomes of the point it was at.
    """

    status = "crashed"

    def __init__(self, how: str, signal: str | None = None) -> None:
        super().__init__(how)
        self.signal = signal


class WorkerHangs(WorkerDied):
    """The worker has not answered in time and is ended."""

    status = "timeout"


class WorkerError(Exception):
    """The worker could not answer a request, and goes on."""


class WorkerProcess:
    """One worker: `ask` a request, await its answer. Its stderr is kept for the day it dies.

    waited_s: how long the worker was without work before the latest request.
    """

    def __init__(self, interpreter: Interpreter = OWN, memory_limit_bytes: int | None = None) -> None:
        self.interpreter = interpreter
        self.waited_s: float | None = None
        self._busy = False
        self._said = 0
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115 -- lives as long as the worker
        self._socket, theirs = socket.socketpair()
        with theirs:
            self.process = subprocess.Popen(
                [
                    interpreter.python or sys.executable, "-c", _START, str(Path(__file__).parent),
                    str(theirs.fileno()), str(memory_limit_bytes or 0),
                ],
                pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL, stdout=self._stderr, stderr=self._stderr,
                env=environment_of(interpreter), process_group=0,
            )  # fmt: skip
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    @property
    def ended(self) -> bool:
        """Whether the process is no more."""
        return self.process.poll() is not None

    async def ask(self, what: str, argument: Any = None, handles: Sequence[int] = ()) -> Any:
        """The answer to a request. handles: open files that the worker shall hold as well.

        Raises WorkerDied and WorkerError. A cancelled one leaves the worker busy: all it can do then is end.
        """
        self._busy = True
        try:
            reader = await self._send((what, argument, len(handles)), handles)
            verdict, answer, self.waited_s = pickle.loads(await _read(reader))
        except (asyncio.IncompleteReadError, OSError) as error:
            raise await self._death() from error
        self._busy = False
        self._said = os.fstat(self._stderr.fileno()).st_size
        if verdict == "error":
            raise WorkerError(answer)
        return answer

    async def _send(self, request: object, handles: Sequence[int]) -> asyncio.StreamReader:
        if self._streams is None:
            self._streams = await asyncio.open_unix_connection(sock=self._socket)
        reader, writer = self._streams
        content = pickle.dumps(request, PROTOCOL)
        writer.write(struct.pack("!i", len(content)) + content)
        await writer.drain()
        if handles:
            with socket.socket(fileno=os.dup(self._socket.fileno())) as plain:  # asyncio's own cannot send handles
                socket.send_fds(plain, [b"h"], list(handles))
        return reader

    async def close(self) -> None:
        """Let the worker end; one that does not, or that is at work for nobody, is killed with all it has started."""
        if self._streams is not None:
            self._streams[1].close()
        else:
            self._socket.close()
        if self._busy or not await self._ends(END_S):
            self.kill()
            await self._ends(END_S)
        self._stderr.close()

    def kill(self) -> None:
        """End the worker and the processes that it has started, now."""
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            self.process.kill()

    async def _ends(self, seconds: float) -> bool:
        deadline = asyncio.get_running_loop().time() + seconds
        while self.process.poll() is None:
            if asyncio.get_running_loop().time() > deadline:
                return False
            await asyncio.sleep(POLL_S)
        return True

    async def _death(self) -> WorkerDied:
        if not await self._ends(END_S):  # it has closed its end and does not go
            self.kill()
            await self._ends(END_S)
        code = self.process.returncode
        name = signal.Signals(-code).name if code is not None and code < 0 else None
        how = f"signal {name}" if name else f"exit code {code}"
        return WorkerDied(f"the worker ended with {how}{self.last_words()}", name)

    def last_words(self) -> str:
        """The last lines of what it has said since its latest answer, behind a colon; empty if there are none."""
        self._stderr.seek(self._said)
        lines = self._stderr.read().decode(errors="replace").strip().splitlines()
        told = [
            line for line in lines if line.strip() and not line.startswith("USDT:")
        ]  # torch's profiler, each session
        return f": {' | '.join(told[-LAST_LINES:])[:1000]}" if told else ""


async def _read(reader: asyncio.StreamReader) -> bytes:
    """One message, framed as multiprocessing's Connection frames it."""
    (size,) = struct.unpack("!i", await reader.readexactly(4))
    if size == -1:
        (size,) = struct.unpack("!Q", await reader.readexactly(8))
    return await reader.readexactly(size)


def environment_of(interpreter: Interpreter) -> dict[str, str]:
    """The parent's variables with the point's; another Python does not get the path of this one's packages."""
    environment = dict(os.environ)
    if interpreter.python is not None:
        environment.pop("PYTHONPATH", None)
    for name, value in interpreter.env:
        environment.pop(name, None)
        if value is not None:
            environment[name] = value
    return environment
