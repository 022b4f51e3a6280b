"""A plan -> its points in the store: look at the machine, take its devices, feed them, stop well. Imports no torch."""

from __future__ import annotations

import asyncio
import signal
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from runner import nsys
from runner.config import Job
from runner.engine import Engine, Source
from runner.errors import plainly
from runner.machine import Machine
from runner.pace import Pace
from runner.plan import Plan, Searches
from runner.preview import Preview, print_series
from runner.progress import Progress, SearchProgress, say
from runner.recording import Recording
from runner.resume import Fates, Measured, differences
from runner.seeking import Seeking, answered
from runner.station import Shop, Station
from runner.store import Store, StoreError, new_id, tidy
from runner.task import Found

NOTHING_DONE, FAILED = 1, 2
STOPPED = {signal.SIGINT: 130, signal.SIGTERM: 143}


def launch(plan: Plan) -> int:
    """Measure what the store lacks of a plan. The exit code: 0, FAILED if a point failed, 130 or 143 if stopped,
    NOTHING_DONE where the profiler that is asked for is not there.

    Raises StoreError, WorkerDied, WorkerError, DeviceBusy and DeviceLost where nothing could be measured.
    """
    if why := nsys.refusal(job.recorder for job in plan):
        print(f"error: {why}", file=sys.stderr)
        return NOTHING_DONE
    store = Store(plan.settings.store)
    if plan.settings.dry_run:
        return asyncio.run(_previewed(plan, store))
    store.check()
    progress = _progress(plan, store)
    _tidy(store, progress)
    try:
        return asyncio.run(_launched(plan, store, progress))
    except Exception as error:
        told = plainly(error)
        if told is None or not progress.counts:
            raise
        print(f"error: {told}", file=sys.stderr)
        progress.stopped("Stopped by an error", progress.done)
        return FAILED
    finally:
        progress.close()


def _progress(plan: Plan, store: Store) -> Progress:
    if isinstance(plan, Searches):
        return SearchProgress(len(plan), plan.width, store.folder)
    return Progress(plan.paces, plan.width, store.folder)


def _tidy(store: Store, progress: Progress) -> None:
    """Leftovers of others go; one that may not be removed is no reason not to measure."""
    try:
        tidy(store)
    except StoreError as error:
        progress.note(str(error))


async def _previewed(plan: Plan, store: Store) -> int:
    machine = Machine(plan, Shop(store, plan.settings, say))
    try:
        await machine.look()
        measured = Measured.load(store)
        if isinstance(plan, Searches):
            print_series(plan, measured, machine)
        else:
            Preview(plan, store, measured, machine).print()
    finally:
        await machine.close()
    return 0


async def _launched(plan: Plan, store: Store, progress: Progress) -> int:
    with _signals_cancel() as received:
        sweep = _sweep(plan, store, progress)
        try:
            await sweep.run()
        except asyncio.CancelledError:
            if not received:
                raise
            progress.stopped(f"Interrupted by {received[0].name}", sweep.done())
            return STOPPED[received[0]]
    if not sweep.finished:
        why = "Stopped after a point that failed" if sweep.stopping else "Stopped because devices were given up"
        progress.stopped(why, progress.done)
        return FAILED
    progress.summary()
    return FAILED if progress.failed else 0


def _sweep(plan: Plan, store: Store, progress: Progress) -> Sweep:
    if isinstance(plan, Searches) and isinstance(progress, SearchProgress):
        return SearchSweep(plan, store, progress)
    return Sweep(plan, store, progress)


class Sweep:
    """One command: its machine, what it has measured before, its engine."""

    def __init__(self, plan: Plan, store: Store, progress: Progress) -> None:
        self.plan, self.store, self.progress = plan, store, progress
        self.stopping = False
        self.measured = Measured.load(store)
        self.machine = Machine(plan, Shop(store, plan.settings, progress.note))

    async def run(self) -> None:
        """Measure kind by kind of device. Raises what keeps it from measuring."""
        settings = self.plan.settings
        order = settings.order if settings.order == "given" else f"{settings.order}:{settings.order_seed}"
        recording = Recording(self.store, new_id(), order, settings.search)
        with tempfile.TemporaryDirectory(prefix="crossover-") as scratch:
            try:
                await self.machine.look()
                self._prepare()
                for kind in self.machine.kinds():
                    await self._run_kind(kind, recording, Path(scratch))
            finally:
                await self.machine.close()

    @property
    def finished(self) -> bool:
        """Whether nothing is left to measure."""
        return self.progress.done >= len(self.plan)

    def done(self) -> int:
        """How many points are in the store, those that it held when the command started included."""
        fates = self._fates()
        standing = sum(fates.stands(job, found.environment_id) is not None for job, found in self._jobs())
        return self.progress.counts.total() + standing

    async def _run_kind(self, kind: str, recording: Recording, scratch: Path) -> None:
        if self.stopping:
            return
        async with self.machine.stations(kind) as stations:
            self.progress.devices = len(stations)
            if self._is_missing(kind, stations) and await self.machine.lock(stations):
                self.measured = Measured.load(self.store)  # the one that was waited for may have done the same points
            engine = Engine(self.plan.settings, recording, self.measured, self.progress, scratch)
            engine.fates.learn((job, found.environment_id) for job, found in self._jobs())
            await engine.run(self._source(kind), stations)
            self.stopping = engine.stopping

    def _source(self, kind: str) -> Source:
        return Listed(self._batches(kind))

    def _fates(self) -> Fates:
        fates = Fates(self.plan.settings, self.measured)
        fates.learn((job, found.environment_id) for job, found in self._jobs())
        return fates

    def _jobs(self) -> Iterator[tuple[Job, Found]]:
        """All jobs, with what has been found of the first device of their kind."""
        jobs = self.machine.jobs() if self.machine.has_looked else ()
        return ((job, self.machine.found(job)) for job in jobs)

    def _batches(self, kind: str) -> Iterator[list[Job]]:
        """The jobs of a kind of device, those together that belong on one device."""
        for batch in self.plan.batches():
            jobs = [self.machine.resolved(self.plan[index]) for index in batch]
            if self.machine.kind(jobs[0]) == kind:
                yield jobs

    def _is_missing(self, kind: str, stations: Sequence[Station]) -> bool:
        """Whether there may be anything to measure: on cards that are not alike, what one has the other may lack."""
        return self._are_unlike(stations) or self._lacks(kind)

    def _are_unlike(self, stations: Sequence[Station]) -> bool:
        one = self.plan.interpreters[0]
        return len({station.found(one).environment_id for station in stations}) > 1

    def _lacks(self, kind: str) -> bool:
        """Whether the store lacks a point of this kind of device."""
        fates = self._fates()
        jobs = ((job, found) for job, found in self._jobs() if found.kind == kind)
        return any(fates.stands(job, found.environment_id) is None for job, found in jobs)

    def _prepare(self) -> None:
        """What is known of the first point's environment: how long points take; whether it is a new one."""
        first = self.machine.resolved(self.plan[0])
        found = self.machine.found(first)
        self.progress.pace = Pace(self.measured.seconds(found.environment_id, first.target.target_frac))
        before = self.measured.before(found.environment_id, found.kind)
        environment = None if before is None else self.store.environment(before)
        if environment is not None and len(self.plan.interpreters) == 1:
            told = differences(environment, found.columns)
            self.progress.note(f"A new environment: {told}. What was measured in another stays apart from it.")


class SearchSweep(Sweep):
    """A command that searches: its sources find out which points there are."""

    def __init__(self, plan: Searches, store: Store, progress: SearchProgress) -> None:
        super().__init__(plan, store, progress)
        self._searches, self._decide = plan, progress.decide
        self._sources: list[Seeking] = []

    @property
    def finished(self) -> bool:
        """Whether every series is decided."""
        return all(source.finished for source in self._sources)

    def done(self) -> int:
        """How many runs the search has looked at or made."""
        return self.progress.done

    def _source(self, kind: str) -> Source:
        self._sources.append(self._seeking(kind, self._decide))
        return self._sources[-1]

    def _lacks(self, kind: str) -> bool:
        """Whether the store alone decides every series of this kind of device: then nothing is measured."""
        source = self._seeking(kind, lambda index, line: None)
        return not answered(source, self._fates(), lambda job: self.machine.found(job).environment_id)

    def _seeking(self, kind: str, told: Callable[[int, str], object]) -> Seeking:
        indices = [job.index for batch in self._batches(kind) for job in batch]
        return Seeking(self._searches, indices, self.machine.resolved, told)


class Listed:
    """A source that knows all its points, and has nothing to learn."""

    def __init__(self, batches: Iterator[Sequence[Job]]) -> None:
        self._batches = batches

    def take(self) -> Sequence[Job] | None:
        """The next jobs."""
        return next(self._batches, None)

    def learn(self, job: Job, rows: Sequence[Mapping[str, Any]]) -> None:
        """The list is what it is."""


@contextmanager
def _signals_cancel() -> Iterator[list[signal.Signals]]:
    """SIGINT and SIGTERM cancel what is running; which came."""
    received: list[signal.Signals] = []
    task, loop = asyncio.current_task(), asyncio.get_running_loop()
    assert task is not None

    def stop(number: signal.Signals) -> None:
        if not received:  # a second one changes nothing: the first is being answered
            received.append(number)
            task.cancel()

    in_main_thread = threading.current_thread() is threading.main_thread()
    for number in STOPPED if in_main_thread else ():
        loop.add_signal_handler(number, stop, number)
    try:
        yield received
    finally:
        for number in STOPPED if in_main_thread else ():
            loop.remove_signal_handler(number)
            if received:  # the command is ending as it was told to; a further one must not cut that short
                signal.signal(number, signal.SIG_IGN)
