"""The process that Nsight Systems watches: one point's window, and nothing else. Started by runner/nsys.py."""

from __future__ import annotations

import os
import pickle
import signal
import threading
import time
from pathlib import Path

from runner.nsys import ANSWER, TASK, Watched
from runner.task import PROTOCOL, Measurement
from runner.worker import end_with_parent


def main(folder: str) -> None:
    """Read the task in `folder`, record its window, write the answer beside it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    end_with_parent()
    watched = pickle.loads((Path(folder) / TASK).read_bytes())
    threading.Thread(target=_end_with, args=(watched.parent,), daemon=True).start()
    partial = Path(folder) / f"{ANSWER}.tmp"
    partial.write_bytes(pickle.dumps(_measured(watched), PROTOCOL))
    partial.rename(Path(folder) / ANSWER)


def _measured(watched: Watched) -> Measurement:
    try:
        from runner.device import open_device
        from runner.measure import measure_under_nsys

        return measure_under_nsys(watched.task, open_device(watched.kind, watched.index), watched.way)
    except Exception as error:
        return Measurement("failed", f"{type(error).__name__}: {' '.join(str(error).split())[:500]}")


def _end_with(parent: int) -> None:
    """nsys stands between this process and the one that asked for it: when that is gone, nobody reads the answer."""
    while True:
        try:
            os.kill(parent, 0)
        except ProcessLookupError:
            os._exit(1)
        time.sleep(1.0)
