"""A source of points that searches: every series in turn, so that every device stays busy. Imports no torch."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from runner import tables
from runner.config import Job
from runner.engine import Source
from runner.plan import Searches
from runner.resume import Fates
from runner.search import SeriesSearch


class Seeking:
    """Some series of a search. resolved: settles a job's device; told: is given the number of a series, once it is
    decided, and its line."""

    def __init__(
        self, plan: Searches, indices: Iterable[int], resolved: Callable[[Job], Job], told: Callable[[int, str], object]
    ) -> None:
        self._plan, self._resolved, self._told = plan, resolved, told
        self._series = {index: SeriesSearch(plan.search) for index in indices}
        self._turns = deque(self._series)

    @property
    def finished(self) -> bool:
        """Whether every series is decided."""
        return all(series.outcome is not None for series in self._series.values())

    def take(self) -> Sequence[Job] | None:
        """What the next series asks for. Further runs wait until no series asks for a new place: they need a new
        worker, which then serves them all."""
        asks = {index: ask for index in self._turns if (ask := self._series[index].ask()) is not None}
        if not asks:
            return None
        index = min(asks, key=lambda each: asks[each].repeat)
        self._turns.remove(index)
        self._turns.append(index)
        self._series[index].take()
        jobs = [self._resolved(self._plan.at(index, place)) for place in asks[index].places]
        return [job.repeated(asks[index].repeat) for job in jobs] if asks[index].repeat else jobs

    def learn(self, job: Job, rows: Sequence[Mapping[str, Any]]) -> None:
        """The runs of a place, or why it has none."""
        series, place = self._series[job.index], self._plan.search.place(job.point)
        runs = [run for row in rows if (run := tables.run_of(dict(row), place)) is not None]
        if runs:
            series.learn(place, runs)
        else:
            series.fail(place, _why(rows[-1]))
        if (outcome := series.outcome) is not None:
            self._told(job.index, f"{self._plan.name(job)}: {outcome.told}")


def answered(source: Source, fates: Fates, environment_of: Callable[[Job], str]) -> bool:
    """Whether the store alone answers all that a source asks; it is asked until there is something to measure."""
    while (batch := source.take()) is not None:
        for job in batch:
            environment_id = environment_of(job)
            if job.repeat or fates.stands(job, environment_id) is None:
                return False
            source.learn(job, fates.rows(job, environment_id))
    return True


def _why(row: Mapping[str, Any]) -> str:
    return f"{row['status']}: {row['reason']}" if row["status"] != "ok" else "it has no times of a steady state"
