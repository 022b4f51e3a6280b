"""The machine as a command finds it: which device each point means, and the stations at which it is measured."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace

from runner.config import Job
from runner.plan import Plan, device_word
from runner.process import WorkerError
from runner.station import Shop, Station, refuse_silent_cpu
from runner.task import Found


class Machine:
    """The devices of a command. Every interpreter looks at the first one of each kind before a point is measured."""

    def __init__(self, plan: Plan, shop: Shop) -> None:
        self._plan, self._shop = plan, shop
        self._first: dict[str, Station] = {}
        self._kinds: dict[str, str] = {}

    async def look(self) -> None:
        """Settle which kinds of device the points are measured on. Raises WorkerDied and WorkerError."""
        for word in sorted(self._plan.kinds, key=lambda word: word != "auto"):
            if word not in self._first:
                await self._look(word)

    async def _look(self, word: str) -> None:
        station = Station(self._shop, word)
        self._first[word] = station
        for interpreter in self._plan.interpreters:
            found = (await station.seat(interpreter)).found
            if word == "auto":
                refuse_silent_cpu(found)
            if found.kind != station.kind:
                raise WorkerError(f"device={word}: it is {station.kind} for one python and {found.kind} for another.")
        del self._first[word]
        self._first[station.kind] = station
        self._kinds[word] = self._kinds[station.kind] = station.kind

    def kinds(self) -> list[str]:
        """The kinds of device that the points need: those that work beside the host first, then the host itself."""
        return sorted(self._first, key=lambda kind: (kind in ("cpu", "none"), kind))

    def kind(self, job: Job) -> str:
        """The kind of device that a job is measured on."""
        return self._kinds[device_word(job)]

    def found(self, job: Job) -> Found:
        """What the job's interpreter has found of its device."""
        return self._first[self.kind(job)].found(job.interpreter)

    def resolved(self, job: Job) -> Job:
        """The job with its device and dtype settled."""
        return job if job.point.spec.idle else replace(job, point=job.point.resolved(self.kind(job)))

    def jobs(self) -> Iterator[Job]:
        """All jobs of the plan in the order in which they are handed out, device and dtype settled."""
        return (self.resolved(self._plan[index]) for batch in self._plan.batches() for index in batch)

    @asynccontextmanager
    async def stations(self, kind: str, lock: bool) -> AsyncIterator[list[Station]]:
        """The devices of a kind that the command may use, held against other sweeps. Raises DeviceBusy, WorkerError."""
        first = self._first.pop(kind)
        stations = [first]
        try:
            indices = self._indices(first)
            stations += [Station(self._shop, kind, index) for index in indices if index != first.index]
            await asyncio.gather(*(station.seat(self._plan.interpreters[0]) for station in stations))
            if first.index not in indices:
                stations.remove(first)
                await first.close()
            by_name = sorted(stations, key=lambda each: each.uuid or "")
            for station in by_name if lock else ():  # all commands in one order, so that no two wait for each other
                await station.take_lock()
            yield stations
        finally:
            await asyncio.gather(*(station.close() for station in stations))

    def _indices(self, first: Station) -> list[int]:
        """Numbers of the devices to use; one that the machine lacks is refused when a worker looks for it."""
        wanted = self._shop.settings.devices
        if first.kind == "none" or wanted is None:
            return [0]
        if wanted == "all":
            return list(range(len(first.found(self._plan.interpreters[0]).uuids)))
        assert not isinstance(wanted, str)
        return list(wanted)

    async def close(self) -> None:
        """End the workers that have only looked."""
        for station in self._first.values():
            await station.close()
