"""Worker processes, as their parent sees them."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

POLL_S = 0.05


class WorkerDied(Exception):
    """The worker ended before it answered: says how, with the last lines of its stderr."""


class WorkerError(Exception):
    """The worker could not answer a request, and goes on."""


class WorkerProcess:
    """One worker: `send` a request, `wait` for its answer. Its stderr is kept for the day it dies."""

    def __init__(self) -> None:
        self.stderr = tempfile.TemporaryFile()  # noqa: SIM115 -- lives as long as the worker
        ours, theirs = socket.socketpair()
        root = str(Path(__file__).parent.parent)
        path = os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH", "")]))
        with theirs:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "runner.worker", str(theirs.fileno())],
                pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL, stdout=self.stderr, stderr=self.stderr,
                env={**os.environ, "PYTHONPATH": path},
            )  # fmt: skip
        self.connection = Connection(ours.detach())
        self.busy = False

    def send(self, what: str, argument: Any = None) -> None:
        """Hand out a request. Raises WorkerDied."""
        self.busy = True
        try:
            self.connection.send((what, argument))
        except OSError as error:
            raise WorkerDied(self._last_words()) from error

    def wait(self, meanwhile: Callable[[], Any] | None = None) -> Any:
        """The answer; `meanwhile` is called every POLL_S while there is none. Raises WorkerDied and WorkerError."""
        try:
            while not self.connection.poll(POLL_S if meanwhile else None):
                if meanwhile:
                    meanwhile()
            verdict, answer = self.connection.recv()
        except (EOFError, OSError) as error:
            raise WorkerDied(self._last_words()) from error
        self.busy = False
        if verdict == "error":
            raise WorkerError(answer)
        return answer

    def ask(self, what: str, argument: Any = None) -> Any:
        """Send and wait."""
        self.send(what, argument)
        return self.wait()

    def close(self) -> None:
        """Let the worker end; one that does not, or whose answer nobody waits for any more, is killed."""
        self.connection.close()
        if self.busy:
            self.process.kill()
        try:
            self.process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.stderr.close()

    def _last_words(self) -> str:
        code = self.process.wait()
        how = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
        self.stderr.seek(0)
        lines = self.stderr.read().decode(errors="replace").strip().splitlines()
        return f"the worker ended with {how}" + (f": {' | '.join(lines[-3:])}" if lines else "")
