"""Every point of a command, or every series of a search: checked before the first one is measured, and put in order.

Imports no torch.
"""

from __future__ import annotations

import random
from array import array
from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence

from runner.composition import Values
from runner.config import OF_A_COMMAND, Job, Search, Settings, command_values
from runner.pace import kind_of
from runner.point import PointError
from runner.task import Interpreter


class Plan(Sequence[Job]):
    """The jobs of a command. Each is made anew when it is asked for, so that ten thousand take no more memory than one.

    settings: of the command; kinds: how many points each device word of theirs (`auto`, `cpu`, ..., `none`) has;
    paces: how many of each kind of pace; width: characters of the longest label; interpreters: all that are asked for.
    """

    def __init__(self, points: Sequence[Values]) -> None:
        """Check all. Raises PointError for the first value that is not allowed."""
        self._points = points
        first = points[0]
        Job.checked(first)
        self.settings = Settings.checked(first)
        self.kinds: Counter[str] = Counter()
        self.paces: Counter[str] = Counter()
        self.width = 0
        self.interpreters: list[Interpreter] = []
        self._leaders = array("L")  # index of the first point of each batch, and those that go with it
        self._followers: dict[int, list[int]] = {}
        self._turns = array("L")  # of each index, which of the points it is
        self._check(command_values(first))

    def __len__(self) -> int:
        return len(self._points)

    def __getitem__(self, index):  # type: ignore[no-untyped-def]
        if isinstance(index, slice):
            return [self[each] for each in range(*index.indices(len(self)))]
        return self._job(self._points[index], index, self._turns[index])

    def __iter__(self) -> Iterator[Job]:
        return (self[index] for index in range(len(self)))

    def _job(self, values: Values, index: int, turn: int = 0) -> Job:
        return Job.checked(values, index, turn)

    def _check(self, command: tuple[object, ...]) -> None:
        """Every point; those are together that differ in nothing but their interpreter."""
        turns: dict[int, int] = {}
        for index, values in enumerate(self._points):
            if (here := command_values(values)) != command:
                raise _several(command, here)
            job = self._job(values, index)
            self.kinds[device_word(job)] += 1
            self.paces[kind_of(job.point)] += 1
            self.width = max(self.width, len(job.label))
            if job.interpreter not in self.interpreters:
                self.interpreters.append(job.interpreter)
            turn = turns.setdefault(hash(_but_interpreter(job)), len(self._leaders))
            self._turns.append(turn)
            if turn == len(self._leaders):
                self._leaders.append(index)
            else:
                self._followers.setdefault(self._leaders[turn], []).append(index)

    def batches(self) -> Iterator[tuple[int, ...]]:
        """Indices in the order in which they are handed out. Those of a batch belong on one device, one after another.

        A batch is one point, with each of its interpreters: A B, then for the next point B A, so that what drifts
        meets both alike.
        """
        order = self._leaders[:]
        if self.settings.order == "shuffled":
            random.Random(self.settings.order_seed).shuffle(order)
        for turn, leader in enumerate(order):
            batch = (leader, *self._followers.get(leader, ()))
            yield batch[::-1] if turn % 2 else batch


class Searches(Plan):
    """The series of a search, each as the job at the lower end of its range; `at` gives those at other places.

    Slopes are taken where all points have them (measure.slopes_every=1), since which are measured is not known before.
    """

    @property
    def search(self) -> Search:
        """What is looked for in every series."""
        assert self.settings.search is not None
        return self.settings.search

    def at(self, index: int, place: int) -> Job:
        """The job of a series at a place of its axis, in multiples."""
        return Job.checked(self.search.at(self._points[index], place), index, turn=1)

    def name(self, job: Job) -> str:
        """The label of a job's series: its own without the axis."""
        here = f"{self.search.axis}={self.search.value(self.search.place(job.point))}"
        return " ".join(word for word in job.label.split(" ") if word != here)

    def _job(self, values: Values, index: int, turn: int = 0) -> Job:
        """Both ends and a place between them are checked, so that none can be refused later."""
        places = self.search.places
        first, *others = (Job.checked(self.search.at(values, place), index, 1) for place in (*places[:2], places[-1]))
        if first.point == others[-1].point:
            raise PointError(f"search.axis={self.search.axis}: {first.point.workload} has no such axis; leave it out.")
        if first.point.cold:
            raise PointError("warmup=false: a cold point has no bound that could change; write warmup=true.")
        return first


def plan_of(points: Sequence[Values]) -> Plan:
    """The plan of a command's configurations: a search's where they name the axis of one."""
    group = points[0]["search"]
    return Searches(points) if isinstance(group, Mapping) and group.get("axis") is not None else Plan(points)


def device_word(job: Job) -> str:
    """The device that a point asks for; `none` for one that does nothing."""
    return "none" if job.point.spec.idle else job.point.device


def _but_interpreter(job: Job) -> Hashable:
    return (job.point, job.target, job.max_step_s, job.timeout_s, job.recorder, job.artifacts)


def _several(first: tuple[object, ...], other: tuple[object, ...]) -> PointError:
    name, here, there = next(
        (name, here, there) for name, here, there in zip(OF_A_COMMAND, first, other, strict=True) if here != there
    )
    one, two = (str(each).lower() if isinstance(each, bool) else each for each in (here, there))
    return PointError(f"{name}={one},{two}: allowed is one value a sweep; for example {name}={one}.")
