"""A device at which points are measured: its lock, and a worker for each interpreter that its points ask for."""

from __future__ import annotations

import asyncio
import os
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from runner import nsys, nvml, tables
from runner.condition import BUSY_FRAC, CardSampler
from runner.config import Settings
from runner.locks import DeviceLock, lock_device
from runner.process import WorkerError, WorkerHangs, WorkerProcess
from runner.store import Store
from runner.task import Found, Interpreter, Measurement

SAMPLE_S = 0.05
OPEN_S = 120.0
"""Seconds in which a worker must have looked, opened its device, rehearsed, measured roofs: each a few, if it works."""
Roofs = dict[tuple[str, str | None], float]


@dataclass
class Seat:
    """A worker of a station. roofs: of its environment, None until it is ready to measure; measured: the ids of its
    points so far."""

    worker: WorkerProcess
    found: Found
    roofs: Roofs | None = None
    measured: list[str] = field(default_factory=list)


@dataclass
class Shop:
    """What all stations of a command share. tell: says something that concerns the whole command."""

    store: Store
    settings: Settings
    tell: Callable[[str], object]
    roofs: dict[str, Roofs] = field(default_factory=dict)
    locks: defaultdict[str, asyncio.Lock] = field(default_factory=lambda: defaultdict(asyncio.Lock))


class Station:
    """One device. `seat` finds or starts a worker, `ready` lets it use the device, `measure` gives it work."""

    def __init__(self, shop: Shop, word: str, index: int = 0) -> None:
        self.shop, self.word, self.index = shop, word, index
        self.lock: DeviceLock | None = None
        self._seats: dict[Interpreter, Seat] = {}
        self._found: dict[Interpreter, Found] = {}

    # -- what it is ----------------------------------------------------------------------------------------------------

    @property
    def kind(self) -> str:
        """Kind of the device: `auto` is known once a worker has looked."""
        return next((found.kind for found in self._found.values()), self.word)

    @property
    def name(self) -> str:
        """A name for people: `cuda:1`."""
        return f"{self.kind}:{self.index}" if self.kind not in ("cpu", "none") else self.kind

    @property
    def uuid(self) -> str | None:
        """What names the card, None for the host itself."""
        return next((found.attributes.get("device_uuid") for found in self._found.values()), None)

    @property
    def quiet(self) -> bool:
        """Whether nothing else may work while a point is measured, because the device is the host itself."""
        return self.kind == "cpu"

    def found(self, interpreter: Interpreter) -> Found:
        """What a worker of this interpreter has said of the device when it last looked."""
        return self._found[interpreter]

    def has_found(self, interpreter: Interpreter) -> bool:
        """Whether a worker of this interpreter has ever looked."""
        return interpreter in self._found

    # -- workers -------------------------------------------------------------------------------------------------------

    async def seat(self, interpreter: Interpreter) -> Seat:
        """The worker of an interpreter, which has looked at the device. Raises WorkerDied, WorkerError."""
        if interpreter in self._seats and self._seats[interpreter].worker.ended:  # killed while it had nothing to do
            await self.dismiss(interpreter)
        if interpreter not in self._seats:
            worker = self._start(interpreter)
            try:
                names = tuple(name for name, _ in interpreter.env)
                what, argument = (
                    ("look_at_host", names) if self.word == "none" else ("look", (self.word, self.index, names))
                )
                found = await _in_time(worker, what, argument)
            except BaseException:
                await worker.close()
                raise
            if self._found and found.attributes.get("device_uuid") != self.uuid:
                await worker.close()
                raise WorkerError(f"{self.name}: {_told(interpreter)} numbers the cards in another way; use devices=.")
            self._found[interpreter] = found
            self._seats[interpreter] = Seat(worker, found)
        return self._seats[interpreter]

    async def ready(self, interpreter: Interpreter) -> Seat:
        """The worker of an interpreter with its device open, rehearsed, the environment's roofs known."""
        seat = await self.seat(interpreter)
        if seat.roofs is None:
            try:
                seat.roofs = await self._open(seat)
            except BaseException:
                await self.dismiss(interpreter)
                raise
        return seat

    @asynccontextmanager
    async def fresh(self, interpreter: Interpreter) -> AsyncIterator[WorkerProcess]:
        """A new worker with its device open, and nothing else done in it."""
        worker = self._start(interpreter)
        try:
            await self._hold(worker)
            await _in_time(worker, "open", (self.kind, self.index))
            yield worker
        finally:
            await worker.close()

    async def dismiss(self, interpreter: Interpreter) -> None:
        """End a worker, so that the next point gets a new one."""
        seat = self._seats.pop(interpreter, None)
        if seat is not None:
            await seat.worker.close()

    async def dismiss_who_measured(self, point_id: str, interpreter: Interpreter) -> None:
        """End a worker that has measured a point, so that a further run of it comes from another process."""
        seat = self._seats.get(interpreter)
        if seat is not None and point_id in seat.measured:
            await self.dismiss(interpreter)

    async def close(self) -> None:
        """End all workers and let go of the device."""
        for interpreter in list(self._seats):
            await self.dismiss(interpreter)
        if self.lock is not None:
            self.lock.release()
            self.lock = None

    async def take_lock(self) -> None:
        """Hold the device against other sweeps. Raises DeviceBusy."""
        if self.lock is None and self.kind != "none":
            self.lock = await lock_device(self.uuid or self.name, self.shop.settings.wait, self.shop.tell)

    def _start(self, interpreter: Interpreter) -> WorkerProcess:
        return WorkerProcess(interpreter, self.shop.settings.memory_limit_bytes)

    async def _hold(self, worker: WorkerProcess) -> None:
        if self.lock is not None:
            await _in_time(worker, "hold", None, [self.lock.handle])

    async def _open(self, seat: Seat) -> Roofs:
        if self.kind == "none":
            return {}
        await self.take_lock()
        await self._hold(seat.worker)
        await _in_time(seat.worker, "open", (self.kind, self.index))
        await _in_time(seat.worker, "rehearse")
        environment_id, known = seat.found.environment_id, self.shop.roofs
        async with self.shop.locks[environment_id]:  # the first of several equal cards measures for all
            if environment_id not in known:
                known[environment_id] = await self._roofs(seat)
        return known[environment_id]

    async def _roofs(self, seat: Seat) -> Roofs:
        """The environment's roofs, measured where the store does not hold them yet."""
        store, environment_id = self.shop.store, seat.found.environment_id
        frame = store.roofs(environment_id)
        if frame is None:
            rows, pressure = await _in_time(seat.worker, "roofs")
            if self.quiet and (pressure or 0) > BUSY_FRAC:
                self.shop.tell(f"Something else uses the CPU ({pressure:.0%} of the time): no roofs are kept.")
                return {}
            frame = tables.roofs_frame(environment_id, rows)
            store.write_roofs(frame)
        return as_roofs(frame)

    # -- work ----------------------------------------------------------------------------------------------------------

    async def measure(self, worker: WorkerProcess, request: tuple[str, Any], timeout_s: float) -> Measurement:
        """A worker's answer, with the card's condition meanwhile. Raises WorkerDied (WorkerHangs) and WorkerError.

        A window that Nsight Systems is to record comes from a process of its own, behind the answer.
        """
        way, task = request
        if not nsys.is_asked(way, task):
            return await self._answer(worker, request, timeout_s)
        done = Measurement("ok") if way == "cold_profile" else await self._answer(worker, request, timeout_s)
        if done.status != "ok" or done.lost:
            return done
        return await nsys.recorded(done, way, task, self.kind, self.index, worker.interpreter, timeout_s)

    async def _answer(self, worker: WorkerProcess, request: tuple[str, Any], timeout_s: float) -> Measurement:
        pids = (os.getpid(), worker.process.pid, *(seat.worker.process.pid for seat in self._seats.values()))
        sampler = CardSampler(self.uuid, pids)
        asked = asyncio.ensure_future(worker.ask("measure", request))
        try:
            async with asyncio.timeout(timeout_s):
                while self.uuid is not None and not asked.done():  # a CPU is left alone while it is measured
                    await asyncio.wait((asked,), timeout=SAMPLE_S)
                    sampler.sample()
                done: Measurement = await asked
        except TimeoutError:
            raise WorkerHangs(f"no answer within point_timeout={timeout_s:g} s{worker.last_words()}") from None
        finally:
            asked.cancel()
        done.facts.setdefault("condition", {}).update(sampler.finish())
        return done


async def _in_time(worker: WorkerProcess, what: str, argument: Any = None, handles: Sequence[int] = ()) -> Any:
    """A worker's answer to a request that takes seconds. Raises WorkerDied (WorkerHangs) and WorkerError."""
    try:
        async with asyncio.timeout(OPEN_S):
            return await worker.ask(what, argument, handles)
    except TimeoutError:
        raise WorkerHangs(f"no answer to {what} within {OPEN_S:g} s{worker.last_words()}") from None


def _told(interpreter: Interpreter) -> str:
    return " ".join(
        [f"python={interpreter.python or 'null'}", *(f"env.{name}={value}" for name, value in interpreter.env)]
    )


def as_roofs(frame: Any) -> Roofs:
    """Rows of `roofs` -> (roof, dtype) to value per second."""
    return {
        (row["roof"], row["dtype"]): row["value_per_s"] for row in frame.to_dicts() if row["value_per_s"] is not None
    }


def refuse_silent_cpu(found: Found) -> None:
    """A card that NVML sees and torch cannot use is no reason to measure the CPU unasked. Raises WorkerError."""
    hidden = os.environ.get("CUDA_VISIBLE_DEVICES", "unset").strip() in ("", "-1", "NoDevFiles")
    names = [card.name() or "a card" for card in nvml.cards()] if found.kind == "cpu" and not hidden else []
    if names:
        raise WorkerError(
            f"device=auto: there is {', '.join(names)}, which torch {found.columns['torch']} cannot use; install a "
            "torch built for it (see `python -m runner doctor`), or write device=cpu."
        )
