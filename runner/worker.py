"""The worker: a process with torch and nothing else, which measures what its parent hands it, one task at a time.

`python -m runner.worker FD` talks over the inherited socket FD: (what, argument) in, an answer out. It ends when the
socket closes.
"""

from __future__ import annotations

import gc
import signal
import sys
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, Any

from runner.task import Measurement, NoDevice, Opened, Task

if TYPE_CHECKING:
    from runner.device import Device


class Worker:
    """Answers one request after the other; the device stays open between them."""

    device: Device | None = None

    def answer(self, what: str, argument: Any) -> Any:
        """The answer to one request. Raises what cannot be answered."""
        return getattr(self, f"do_{what}")(argument)

    def do_open(self, request: tuple[str, bool]) -> Opened:
        """Open a device (`auto` chooses); if asked, spend now the seconds that a process's first measurement takes."""
        from runner.device import open_device

        kind, warm = request
        self.device = open_device(kind)
        if warm:
            from runner.measure import rehearse

            rehearse(self.device)
            gc.collect()
            gc.freeze()  # torch's own objects are many: looking through them at every point would take longer than it
        return self._opened()

    def do_open_nothing(self, _: None) -> Opened:
        """Describe the host alone, without torch: for points that do nothing."""
        from runner.environment import describe_host

        described = describe_host()
        return Opened("none", (), dict(described.columns), dict(described.attributes))

    def _opened(self) -> Opened:
        import torch

        from runner.device import usable_kinds
        from runner.environment import describe

        assert self.device is not None
        described = describe(self.device.kind, self.device.index, torch.get_num_threads())
        return Opened(self.device.kind, usable_kinds(), dict(described.columns), dict(described.attributes))

    def do_roofs(self, _: None) -> tuple[list[dict[str, Any]], float | None]:
        """Measure the device's ceilings; and the share of the time in which tasks waited for a CPU meanwhile."""
        from runner.condition import HostCounters
        from runner.roofs import measure_roofs

        assert self.device is not None
        counters = HostCounters()
        counters.start()
        return measure_roofs(self.device), counters.finish()["cpu_pressure_frac"]

    def do_measure(self, request: tuple[str, Task]) -> Measurement:
        """Measure a point in one of runner.measure's ways."""
        from runner.measure import WAYS

        way, task = request
        assert self.device is not None
        return WAYS[way](task, self.device)

    def do_call(self, point: Any) -> None:
        """Call a step that does nothing, once."""
        point.spec.function(point)()


def serve(socket: Connection) -> None:
    """Answer until the parent closes the socket; what cannot be answered is answered with the exception's text."""
    worker = Worker()
    while True:
        try:
            what, argument = socket.recv()
        except EOFError:
            return
        try:
            socket.send(("done", worker.answer(what, argument)))
        except NoDevice as refusal:
            socket.send(("error", str(refusal)))
        except Exception as error:
            socket.send(("error", f"{type(error).__name__}: {error}"))


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to answer
    serve(Connection(int(sys.argv[1])))
