"""Chunks decoded on several cores: by this process, and by others that it starts."""

from __future__ import annotations

import multiprocessing
import os
import tempfile
import threading
import zlib
from concurrent.futures import Future, ProcessPoolExecutor
from pathlib import Path
from types import TracebackType

from runner.trace.cutting import Chunk
from runner.trace.pieces import Piece, in_file, of_file

QUEUED = 2
"""Chunks a helper has before it, so that it never waits; what comes beyond is decoded here."""


class Pool:
    """A decoder that writes the rows of each chunk into a temporary folder, which goes with the pool.

    Processes are started, not forked: polars has threads. Until they are up, all chunks are decoded here. text_file:
    the file whose bytes are the text of the chunks, where there is one: helpers read it themselves.
    """

    text_file: Path | None = None

    def __init__(self, helpers: int) -> None:
        self.ahead = 1 + (QUEUED + 2) * helpers
        self._queued = QUEUED * helpers
        self._folder = tempfile.TemporaryDirectory(prefix="crossover-")
        self._executor = _executor(helpers) if helpers else None
        self._started = [self._executor.submit(_ready) for _ in range(helpers)] if self._executor else []
        self._futures: list[Future[Piece]] = []
        self._chunks = 0

    def submit(self, chunk: Chunk) -> Future[Piece]:
        """The rows of a chunk: to come from a helper, or made here where all have enough to do."""
        self._chunks += 1
        path = Path(self._folder.name) / f"{self._chunks}.arrow"
        self._futures = [future for future in self._futures if not future.done()]
        has_time = len(self._futures) < self._queued and all(each.done() for each in self._started)
        if self._executor and has_time:
            self._futures.append(self._hand_out(self._executor, chunk, path))
            return self._futures[-1]
        future: Future[Piece] = Future()
        future.set_result(in_file(chunk.text, chunk.final, path))
        return future

    def _hand_out(self, executor: ProcessPoolExecutor, chunk: Chunk, path: Path) -> Future[Piece]:
        if self.text_file is None:
            return executor.submit(in_file, chunk.text, chunk.final, path)
        place = self.text_file, chunk.offset, len(chunk.text), zlib.crc32(chunk.text)
        return executor.submit(of_file, *place, chunk.final, path)

    def stop(self) -> None:
        """End the helpers; what they have written stays. One that still starts is not waited for."""
        if self._executor:
            self._executor.shutdown(wait=all(each.done() for each in self._started), cancel_futures=True)

    def __enter__(self) -> Pool:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
        self._folder.cleanup()


def _executor(helpers: int) -> ProcessPoolExecutor:
    return ProcessPoolExecutor(helpers, multiprocessing.get_context("spawn"), initializer=_start)


def _start() -> None:
    """One thread a helper, set before polars counts the cores; and no helper outlives its parent."""
    os.environ["POLARS_MAX_THREADS"] = "1"
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _ready() -> None:
    """Done when the helper has imported what it needs."""
