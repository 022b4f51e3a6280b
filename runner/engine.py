"""The engine: hands points to stations, survives whatever happens to them, and writes each as it comes.

Everything waits in one event loop, one task a station. On a device that works beside the host a point is written while
the next one is measured; on the CPU nothing else may work while a point is measured, so it is written before.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

from runner.config import Job, Settings
from runner.process import WorkerDied, WorkerError
from runner.progress import Progress
from runner.recording import Handed, Recording
from runner.resume import Fates, Measured, is_failure
from runner.station import Station
from runner.store import new_id
from runner.task import Found, Measurement, Task

ATTEMPTS = 2
"""How often a worker is opened for one point: a card may need a moment after what it has gone through."""
GIVE_UP = 3
"""At how many points in a row no worker may open on the last device of a sweep before it is given up as well."""


class DeviceLost(WorkerError):
    """No worker opens on a device any more: says why."""


class Source(Protocol):
    """Where points come from. It may wait for results before it knows the next ones."""

    def take(self) -> Sequence[Job] | None:
        """The next jobs, for one device one after another; None = none until a result comes, or none any more."""

    def learn(self, job: Job, rows: Sequence[Mapping[str, Any]]) -> None:
        """A job that was taken has these rows of `runs`: the one just made, or all that the store holds of its point
        (its ok runs, the earliest first; without one the latest that makes measuring needless)."""


class Engine:
    """One command's points on their way from a source to the store, over all stations of one kind at a time."""

    def __init__(
        self, settings: Settings, recording: Recording, measured: Measured, progress: Progress, scratch: Path
    ) -> None:
        self._settings, self._recording = settings, recording
        self._progress, self._scratch = progress, scratch
        self.fates = Fates(settings, measured)
        self._writer = ThreadPoolExecutor(1, "writer")
        self._writing: dict[Station, asyncio.Task[None]] = {}
        self._failures: Counter[Station] = Counter()
        self._returned: deque[Sequence[Job]] = deque()
        self._position = progress.counts.total()
        self._serving = 0
        self._out = 0
        self._news = asyncio.Event()
        self.stopping = False

    async def run(self, source: Source, stations: Sequence[Station]) -> None:
        """Measure all that the source has and the store lacks; what has been measured is written whatever happens.

        Raises StoreError, and DeviceLost once no station is left.
        """
        tasks = [asyncio.create_task(self._serve(station, source)) for station in stations]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
            for task in done:
                task.result()
            lost = [error for error in (task.result() for task in tasks) if error is not None]
            if len(lost) == len(tasks):
                raise lost[0]
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await self._finish()

    async def _finish(self) -> None:
        """Write what is in hand, also while the command is being stopped."""
        pending = list(self._writing.values())
        self._writing.clear()
        for result in await asyncio.gather(*pending, return_exceptions=True):
            if isinstance(result, BaseException):
                raise result

    # -- one station ---------------------------------------------------------------------------------------------------

    async def _serve(self, station: Station, source: Source) -> DeviceLost | None:
        """Measure until nothing is left; why the station was given up, if it was."""
        lost = None
        self._serving += 1
        while lost is None and (batch := await self._next(station, source)) is not None:
            lost = await self._batch(station, source, batch)
        self._serving -= 1
        await self._written(station)
        return lost

    async def _batch(self, station: Station, source: Source, batch: Sequence[Job]) -> DeviceLost | None:
        """The points of a batch in turn; those that a lost device leaves are for another one."""
        try:
            for place, job in enumerate(batch):
                if self.stopping:
                    break
                try:
                    await self._point(station, source, job)
                except DeviceLost as lost:
                    self._progress.note(f"{station.name} is given up: {lost}")
                    self._returned.append(batch[place:])
                    return lost
        finally:
            self._out -= 1
            self._tell_news()
        return None

    async def _next(self, station: Station, source: Source) -> Sequence[Job] | None:
        while not self.stopping:
            if (batch := self._returned.popleft() if self._returned else source.take()) is not None:
                self._out += 1
                return batch
            if station in self._writing:
                await self._written(station)
            elif self._out or self._writing:
                await self._news.wait()
            else:
                return None
        return None

    def _tell_news(self) -> None:
        self._news.set()
        self._news = asyncio.Event()

    async def _point(self, station: Station, source: Source, job: Job) -> None:
        """One point; whatever happens to it becomes a row. Raises DeviceLost."""
        found = await self._found(station, job)
        if not job.point.spec.idle:
            job = replace(job, point=job.point.resolved(station.kind))
        if job.repeat:
            await station.dismiss_who_measured(job.point.point_id, job.interpreter)
        elif (stored := self.fates.stands(job, found.environment_id)) is not None:
            self._progress.stands(job, stored.status)
            source.learn(job, self.fates.rows(job, found.environment_id))
            return
        error = await self._opened(station, job)
        handed = self._handed(station, job)
        self._progress.begin(job, station.name)
        start = time.monotonic()
        done = _unopened(error) if error else self._impossible(handed) or await self._measured_at(station, handed)
        done.facts["taken_s"] = time.monotonic() - start
        done.facts["limits"] = _limits(job, self._settings)
        await self._write(station, source, handed, done)

    def _handed(self, station: Station, job: Job) -> Handed:
        folder = Path(tempfile.mkdtemp(dir=self._scratch))
        self._position += 1
        return Handed(
            job, new_id(), datetime.now(UTC), self._position - 1, station.found(job.interpreter), folder
        )  # fmt: skip

    async def _found(self, station: Station, job: Job) -> Found:
        """What the job's interpreter finds of the device; where it has looked before, that is enough. DeviceLost."""
        try:
            return (await station.seat(job.interpreter)).found
        except (WorkerDied, WorkerError) as error:
            if not station.has_found(job.interpreter):
                raise DeviceLost(str(error)) from error
            return station.found(job.interpreter)

    async def _opened(self, station: Station, job: Job) -> Exception | None:
        """Open a worker; why none opens. Raises DeviceLost where another device serves, or at the third point."""
        failure: Exception | None = None
        for attempt in range(ATTEMPTS):
            try:
                await station.ready(job.interpreter)
                self._failures[station] = 0
                return None
            except (WorkerDied, WorkerError) as error:
                failure = error
                await asyncio.sleep(attempt)
        self._failures[station] += 1
        if self._serving > 1 or self._failures[station] >= GIVE_UP:
            raise DeviceLost(str(failure)) from failure
        return failure

    # -- one measurement -----------------------------------------------------------------------------------------------

    def _impossible(self, handed: Handed) -> Measurement | None:
        """A point that need not be tried: one alike but smaller has not fitted into memory."""
        smaller = self.fates.smaller(handed.job, handed.found.environment_id)
        if smaller is None:
            return None
        return Measurement("skipped", f"{smaller.label} ran out of memory already", facts={"after_oom": True})

    async def _measured_at(self, station: Station, handed: Handed) -> Measurement:
        """The worker's answer; a worker that gives none any more is replaced."""
        job = handed.job
        try:
            done = await self._answer(station, handed)
        except WorkerDied as death:
            done = Measurement(death.status, str(death), facts={"signal": death.signal}, lost=not job.point.cold)
        except WorkerError as error:
            done = Measurement("failed", str(error))
        if done.lost:
            await station.dismiss(job.interpreter)
        if done.status == "oom":
            self.fates.oom.learn(handed.found.environment_id, job.point)
        return done

    async def _answer(self, station: Station, handed: Handed) -> Measurement:
        job = handed.job
        seat = await station.ready(job.interpreter)
        task = Task(
            job.point, job.target, job.max_step_s, job.slopes, job.recorder, job.artifacts, seat.roofs or {},
            str(handed.folder),
        )  # fmt: skip
        if job.point.cold and not job.point.spec.idle:
            return await self._cold(station, task, job)
        way = "idle" if job.point.spec.idle else "warm"
        done = await station.measure(seat.worker, (way, task), job.timeout_s)
        done.facts["waited_s"] = seat.worker.waited_s
        seat.measured.append(job.point.point_id)
        if len(seat.measured) >= self._settings.recycle_after:
            await station.dismiss(job.interpreter)
        return done

    async def _cold(self, station: Station, task: Task, job: Job) -> Measurement:
        """Two fresh processes: the first steps unprofiled, and the same profiled."""
        await self._written(station)
        async with station.fresh(job.interpreter) as worker:
            times = await station.measure(worker, ("first_steps", task), job.timeout_s)
        if times.status != "ok":
            return times
        async with station.fresh(job.interpreter) as worker:
            profiled = await station.measure(worker, ("cold_profile", task), job.timeout_s)
        if profiled.status != "ok":
            times.facts["profile"] = {"reason": profiled.reason}
        else:
            times.facts["profile"] = profiled.facts.get("profile", {})
        facts = {**times.facts, "profiled_elapsed_s": profiled.facts.get("elapsed_s")}
        return Measurement("ok", None, times.samples, {}, facts, profiled.traces, profiled.table)

    # -- one row -------------------------------------------------------------------------------------------------------

    async def _write(self, station: Station, source: Source, handed: Handed, done: Measurement) -> None:
        await self._written(station)
        self._writing[station] = asyncio.create_task(self._record(station, source, handed, done))
        if station.quiet or self._settings.on_error == "stop":
            await self._written(station)

    async def _written(self, station: Station) -> None:
        """Wait until the station's last point is in the store. Raises StoreError."""
        if (writing := self._writing.get(station)) is not None:
            await asyncio.shield(writing)
            self._writing.pop(station, None)
            self._tell_news()  # who waits for the last result must not wait for one that is written

    async def _record(self, station: Station, source: Source, handed: Handed, done: Measurement) -> None:
        loop = asyncio.get_running_loop()
        row = await loop.run_in_executor(self._writer, self._recording.write, handed, done)
        self._progress.end(handed.job, station.name, row)
        if is_failure(row["status"]) and self._settings.on_error == "stop":
            self.stopping = True
        source.learn(handed.job, [row])
        self._tell_news()


def _unopened(error: Exception) -> Measurement:
    return Measurement("crashed", f"no worker could be opened: {error}", facts={"unopened": True})


def _limits(job: Job, settings: Settings) -> dict[str, float | None]:
    """What a worker may take for the point, told with every row."""
    return {"point_timeout_s": job.timeout_s, "memory_limit_bytes": settings.memory_limit_bytes}
