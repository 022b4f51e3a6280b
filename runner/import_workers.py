"""Trace files -> runs, several at a time: a process each, none of which costs the others its own fate."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

from runner.imports import Imported, import_trace
from runner.store import Store, StoreError, new_id
from runner.trace import TraceError
from runner.trace.pool import Pool
from runner.words import counted

LARGE_BYTES = 2**22
"""A file from here on is read with a helper; starting a process takes longer than reading a smaller one."""
HELPERS = 1
"""Each takes 0.13 GB, and an import is to stay below 0.4 GB on any machine."""
MOST_WORKERS = 16
"""Files read at once: traces of 54 and 87 MB of JSON took 0.2 GB each."""


@dataclass(frozen=True, slots=True)
class Refused:
    """A path that has not become a run, and why."""

    path: Path
    why: str


def import_all(paths: list[Path], store: Path, step: str | None) -> Iterator[Imported | Refused]:
    """Import the files, a single one with a helper, several at a time on a core each; what became of each, in order.

    What stops the caller (a signal, say) ends the processes as well; the files they are at become no runs.
    """
    work = partial(_one, store=store, sweep_id=new_id(), step=step)
    cores = len(os.sched_getaffinity(0))
    bar = Bar(paths)
    if len(paths) == 1:
        helpers = min(HELPERS, cores - 1) if size(paths[0]) >= LARGE_BYTES else 0
        done = work(paths[0], helpers=helpers, progress=bar.draw)
        bar.clear()
        yield done
    elif paths:
        yield from _parallel(paths, work, min(cores, len(paths), MOST_WORKERS), bar)


def unreadable(error: OSError) -> str:
    """Why a file cannot be read, as a clause."""
    return f"it cannot be read: {error.strerror or error}"


def size(path: Path) -> int:
    """Bytes of a file; 0 once it has vanished."""
    try:
        return path.stat().st_size
    except OSError:
        return 0


def stop_once(number: int, frame: FrameType | None) -> None:
    """For a signal that is to end this process: raise SystemExit, and do not disturb the cleaning up by another one."""
    signal.signal(number, signal.SIG_IGN)
    raise SystemExit(128 + number)


class Bar:
    """How much of the files is read: a line on a terminal, once it has taken a second."""

    def __init__(self, paths: list[Path], clock: Callable[[], float] = time.monotonic) -> None:
        self._size = max(1, sum(map(size, paths)))
        self._name, self._clock = counted(len(paths), "file"), clock
        self._next = clock() + 1.0
        self._drawn, self._wanted = False, sys.stderr.isatty()

    def draw(self, read_bytes: int) -> None:
        """Bytes of all files that have been read so far."""
        if self._wanted and self._clock() >= self._next:
            share = min(1.0, read_bytes / self._size)
            what = f"{100 * share:.0f} % read" if share < 1 else "read; linking its events"
            print(f"\r{self._name}: {what}", end="\033[K", file=sys.stderr, flush=True)
            self._drawn, self._next = True, self._clock() + 0.2

    def clear(self) -> None:
        """Leave the line to others."""
        if self._drawn:
            print("\r\033[K", end="", file=sys.stderr, flush=True)
        self._drawn = False


# -- pieces ------------------------------------------------------------------------------------------------------------

Work = Callable[..., Imported | Refused]


def _one(
    path: Path, store: Path, sweep_id: str, step: str | None, helpers: int, progress: Callable[[int], None]
) -> Imported | Refused:
    """Import a file; whatever it holds, it must not cost the others."""
    try:
        with _deaf():
            pool = Pool(helpers)
        with pool, _not_waited_for():
            return import_trace(path, Store(store), sweep_id, step, pool, progress)
    except (TraceError, StoreError) as error:
        return Refused(path, str(error))
    except OSError as error:
        return Refused(path, unreadable(error))
    except Exception as error:
        return Refused(path, f"it cannot be read, which is a fault of this program: {type(error).__name__}: {error}")


def _parallel(paths: list[Path], work: Work, workers: int, bar: Bar) -> Iterator[Imported | Refused]:
    broken = []
    for path, done in _each(paths, work, workers, bar):
        bar.clear()
        if done is None:
            broken.append(path)
        else:
            yield done
    for path in broken:  # one of them took the others' processes with it: now each has its own
        [(_, done)] = _each([path], work, 1, bar)
        yield done or Refused(path, "its reader was killed, most likely for want of memory")


def _each(paths: list[Path], work: Work, workers: int, bar: Bar) -> Iterator[tuple[Path, Imported | Refused | None]]:
    """What became of each file; None where its process died, or another one beside it."""
    context = multiprocessing.get_context("spawn")
    read_bytes = context.Value("q", 0)
    executor = ProcessPoolExecutor(workers, context, initializer=_start, initargs=(read_bytes,))
    with executor, _not_waited_for():
        with _deaf():
            futures = [(path, executor.submit(_in_worker, work, path)) for path in paths]
        for path, future in futures:
            while not wait([future], timeout=0.2).done:
                bar.draw(read_bytes.value)
            yield path, _result(future)


def _result(future: Future[Imported | Refused]) -> Imported | Refused | None:
    try:
        return future.result()
    except BrokenProcessPool:
        return None


@contextmanager
def _not_waited_for() -> Iterator[None]:
    """When this process is stopped, those that it has started are ended, whatever they are at, starting included."""
    try:
        yield
    except Exception:
        raise
    except BaseException:
        for process in multiprocessing.active_children():
            process.terminate()
        raise


@contextmanager
def _deaf() -> Iterator[None]:
    """Processes started here do not hear Ctrl-C: their parent does, and ends them."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


_read_bytes: Any = None
"""In a worker: bytes that all of them have read so far."""


def _start(read_bytes: Any) -> None:
    """A worker has one thread for polars, ends with its parent, and cleans up behind itself when it is told to end."""
    global _read_bytes
    _read_bytes = read_bytes
    os.environ["POLARS_MAX_THREADS"] = "1"
    signal.signal(signal.SIGTERM, stop_once)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """A parent that is killed cannot tell its workers, which would wait for it for ever."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def _in_worker(work: Work, path: Path) -> Imported | Refused:
    before = 0

    def progress(read_bytes: int) -> None:
        nonlocal before
        with _read_bytes.get_lock():
            _read_bytes.value += read_bytes - before
        before = read_bytes

    try:
        return work(path, helpers=0, progress=progress)
    except SystemExit as end:  # it has cleaned up; returned, it would begin with the next file
        os._exit(end.code if isinstance(end.code, int) else 1)
