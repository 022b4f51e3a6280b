"""The machine as a command finds it: which device each point means, and the stations at which it is measured."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace

from runner.config import Job
from runner.plan import Plan, device_word
from runner.process import WorkerDied, WorkerError, WorkerHangs
from runner.station import Shop, Station, refuse_silent_cpu
from runner.task import Found, Interpreter

ATTEMPTS = 3
"""How often a worker is started to look, if it dies over it."""


class Machine:
    """The devices of a command. Every interpreter looks at the first one of each kind before a point is measured."""

    def __init__(self, plan: Plan, shop: Shop) -> None:
        self._plan, self._shop = plan, shop
        self._first: dict[str, Station] = {}
        self._kinds: dict[str, str] = {}
        self._found: dict[tuple[str, Interpreter], Found] = {}

    @property
    def has_looked(self) -> bool:
        """Whether it is settled which device each point means."""
        return set(self._kinds) >= set(self._plan.kinds)

    async def look(self) -> None:
        """Settle which kinds of device the points are measured on. Raises WorkerDied and WorkerError."""
        for word in sorted(self._plan.kinds, key=lambda word: word != "auto"):
            if word not in self._first:
                await self._look(word)
            self._kinds.setdefault(word, word)

    async def _look(self, word: str) -> None:
        """With every interpreter, at the first device that is asked for."""
        wanted = self._shop.settings.devices
        station = Station(self._shop, word, wanted[0] if isinstance(wanted, tuple) and word != "none" else 0)
        self._first[word] = station
        for interpreter in self._plan.interpreters:
            found = await self._found_by(station, interpreter)
            if word == "auto":
                refuse_silent_cpu(found)
            if found.kind != station.kind:
                raise WorkerError(f"device={word}: it is {station.kind} for one python and {found.kind} for another.")
            self._found[found.kind, interpreter] = found
            self._refuse_devices(found)
        del self._first[word]
        self._first[station.kind] = station
        self._kinds[word] = self._kinds[station.kind] = station.kind

    def _refuse_devices(self, found: Found) -> None:
        wanted, there = self._shop.settings.devices, len(found.uuids)
        missing = [index for index in wanted if index >= there] if isinstance(wanted, tuple) else []
        if missing and found.kind != "none":
            allowed = "0" if there == 1 else f"0 to {there - 1}"
            raise WorkerError(f"devices={missing[0]}: allowed is {allowed}, the {found.kind} devices of this machine.")

    async def _found_by(self, station: Station, interpreter: Interpreter) -> Found:
        for attempt in range(ATTEMPTS):
            try:
                return (await station.seat(interpreter)).found
            except WorkerHangs:
                raise
            except (WorkerDied, WorkerError) as error:
                killed = isinstance(error, WorkerDied) and error.signal is not None
                if attempt == ATTEMPTS - 1 or not killed:
                    raise type(error)(f"{_whose(interpreter)}{error}") from error
        raise AssertionError("unreachable")

    def kinds(self) -> list[str]:
        """The kinds of device that the points need: those that work beside the host first, then the host itself."""
        return sorted(self._first, key=lambda kind: (kind in ("cpu", "none"), kind))

    def kind(self, job: Job) -> str:
        """The kind of device that a job is measured on."""
        return self._kinds[device_word(job)]

    def found(self, job: Job) -> Found:
        """What the job's interpreter has found of its device."""
        return self._found[self.kind(job), job.interpreter]

    def resolved(self, job: Job) -> Job:
        """The job with its device and dtype settled."""
        return job if job.point.spec.idle else replace(job, point=job.point.resolved(self.kind(job)))

    def jobs(self) -> Iterator[Job]:
        """All jobs of the plan in the order in which they are handed out, device and dtype settled."""
        return (self.resolved(self._plan[index]) for batch in self._plan.batches() for index in batch)

    @asynccontextmanager
    async def stations(self, kind: str) -> AsyncIterator[list[Station]]:
        """The devices of a kind that the command may use. Raises WorkerDied and WorkerError."""
        first = self._first.pop(kind)
        stations = [first, *(Station(self._shop, kind, index) for index in self.indices(kind) if index != first.index)]
        try:
            await asyncio.gather(*(self._found_by(station, self._plan.interpreters[0]) for station in stations))
            yield stations
        finally:
            await asyncio.gather(*(station.close() for station in stations))

    async def lock(self, stations: Sequence[Station]) -> bool:
        """Hold all of them against other sweeps; whether one had to be waited for. Raises DeviceBusy."""
        for station in sorted(stations, key=lambda each: each.uuid or ""):  # in one order: no two wait for each other
            await station.take_lock()
        return any(station.lock is not None and station.lock.waited for station in stations)

    def indices(self, kind: str) -> list[int]:
        """Numbers of the devices to use; one that the machine lacks is refused when a worker looks for it."""
        wanted = self._shop.settings.devices
        if kind == "none" or wanted is None:
            return [0]
        if wanted == "all":
            return list(range(len(self._found[kind, self._plan.interpreters[0]].uuids)))
        assert not isinstance(wanted, str)
        return list(wanted)

    async def close(self) -> None:
        """End the workers that have only looked."""
        for station in self._first.values():
            await station.close()


def _whose(interpreter: Interpreter) -> str:
    """Which interpreter an error is about, and what it must be."""
    if interpreter.python is None:
        return ""
    return f"python={interpreter.python}: it must be a Python from 3.10 on with torch; "
