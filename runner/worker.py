"""The worker: a process with torch and nothing else, which measures what its parent hands it, one task at a time.

It talks over an inherited socket: (what, argument, number of handles) in, (verdict, answer, seconds waited) out. It
ends when the socket closes, and with its parent.
"""

from __future__ import annotations

import gc
import os
import pickle
import signal
import sys
import time
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, Any

from runner.task import PROTOCOL, Found, Measurement, NoDevice, Task

if TYPE_CHECKING:
    from runner.device import Device


class Worker:
    """Answers one request after the other; the device stays open between them."""

    device: Device | None = None

    def answer(self, what: str, argument: Any) -> Any:
        """The answer to one request. Raises what cannot be answered."""
        return getattr(self, f"do_{what}")(argument)

    def do_look(self, request: tuple[str, int, tuple[str, ...]]) -> Found:
        """Describe a device without using it: nothing is put on a card that another sweep may hold."""
        from runner.device import look

        return look(*request)

    def do_look_at_host(self, names: tuple[str, ...]) -> Found:
        """Describe the host alone, without torch: for points that do nothing."""
        from runner.environment import describe_host

        described = describe_host(names)
        return Found("none", (), (None,), dict(described.columns), dict(described.attributes))

    def do_hold(self, _: None) -> None:
        """Keep the handles that came along: a lock lasts until all who hold it have ended."""

    def do_open(self, request: tuple[str, int]) -> None:
        """Open a device."""
        from runner.device import open_device

        self.device = open_device(*request)

    def do_rehearse(self, _: None) -> None:
        """Spend now the seconds that a process's first measurements take."""
        from runner.measure import rehearse

        assert self.device is not None
        rehearse(self.device)
        gc.collect()
        gc.freeze()  # torch's own objects are many: looking through them at every point would take longer than it

    def do_roofs(self, _: None) -> tuple[list[dict[str, Any]], float | None]:
        """Measure the device's ceilings; and the share of the time in which tasks waited for a CPU meanwhile."""
        from runner.condition import HostCounters
        from runner.roofs import measure_roofs

        assert self.device is not None
        counters = HostCounters()
        counters.start()
        return measure_roofs(self.device), counters.finish()["cpu_pressure_frac"]

    def do_measure(self, request: tuple[str, Task]) -> Measurement:
        """Measure a point in one of runner.measure's ways; `idle` calls a step that does nothing, without torch."""
        way, task = request
        if way == "idle":
            task.point.spec.function(task.point)()
            return Measurement("ok", facts={"reasons": {"wall_us": "the workload does nothing"}})
        from runner.measure import WAYS

        assert self.device is not None
        done = WAYS[way](task, self.device)
        if task.recorder.tool == "nsys":  # the process that records the window needs the memory
            gc.collect()
            self.device.empty_cache()
        return done


def serve(connection: Connection) -> None:
    """Answer until the parent closes the socket; what cannot be answered is answered with the exception's text."""
    worker, handles = Worker(), []
    while True:
        idle_since = time.monotonic()
        try:
            what, argument, handed = connection.recv()
        except EOFError:
            return
        waited_s = time.monotonic() - idle_since
        if handed:
            handles += _receive_handles(connection, handed)
        verdict, answer = _answered(worker, what, argument)
        connection.send_bytes(pickle.dumps((verdict, answer, waited_s), PROTOCOL))


def _answered(worker: Worker, what: str, argument: Any) -> tuple[str, Any]:
    try:
        return "done", worker.answer(what, argument)
    except NoDevice as refusal:
        return "error", str(refusal)
    except Exception as error:
        return "error", f"{type(error).__name__}: {error}"


def _receive_handles(connection: Connection, count: int) -> list[int]:
    import socket

    with socket.socket(fileno=os.dup(connection.fileno())) as plain:
        return socket.recv_fds(plain, 1, count)[1]


def end_with_parent() -> None:
    """Let the kernel kill this process when its parent is gone, also in the middle of a point that never ends."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


def _limit_memory(limit_bytes: int) -> None:
    """A limit on the memory that this process allocates for itself; address space that it only reserves is free."""
    import resource

    resource.setrlimit(resource.RLIMIT_DATA, (limit_bytes, limit_bytes))


def main(handle: int, memory_limit_bytes: int) -> None:
    """Serve the parent at the other end of the socket `handle`. memory_limit_bytes: 0 = none."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to answer
    end_with_parent()
    if memory_limit_bytes:
        _limit_memory(memory_limit_bytes)
    serve(Connection(handle))
