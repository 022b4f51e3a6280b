"""`dry_run=true`: the points of a command, which are there already, which will be skipped, how long it will take."""

from __future__ import annotations

from collections import Counter

from runner.config import Job
from runner.machine import Machine
from runner.pace import Pace, kind_of
from runner.plan import Plan, Searches
from runner.progress import clock, say
from runner.resume import Fates, Measured
from runner.seeking import Seeking, answered
from runner.station import as_roofs
from runner.store import Store
from runner.workloads import predicted_step_s

START_S = 10.0
"""Seconds until the first point: a worker starts, opens its device, rehearses, measures roofs once."""


def print_series(plan: Searches, measured: Measured, machine: Machine) -> None:
    """Of a search: a line a series, what the store says of it already or what it may take; then the sum."""
    lines: dict[int, str] = {}
    fates, search = Fates(plan.settings, measured), plan.search
    for job in machine.jobs():
        source = Seeking(plan, [job.index], machine.resolved, lines.__setitem__)
        answered(source, fates, lambda job: machine.found(job).environment_id)
        say(lines.get(job.index, f"{plan.name(job)}: to search from {search.low:g} to {search.high:g}"))
    left = len(plan) - len(lines)
    most = f"; at most {search.most_points} points in {search.most_runs} runs each, {left * search.most_runs} in all"
    say(f"{left} series to search{most if left else ''}.")


class Preview:
    """What would become of each point."""

    def __init__(self, plan: Plan, store: Store, measured: Measured, machine: Machine) -> None:
        self.plan, self.store, self.measured, self.machine = plan, store, measured, machine
        self.fates = Fates(plan.settings, measured)
        self.fates.learn((job, machine.found(job).environment_id) for job in machine.jobs())
        self.roofs: dict[str, dict[tuple[str, str | None], float]] = {}
        self.left: Counter[tuple[str, str, str]] = Counter()

    def print(self) -> None:
        """A line a point, then the sum."""
        counts: Counter[str] = Counter()
        for position, job in enumerate(self.machine.jobs(), 1):
            fate = self.fate(job)
            counts[fate.partition(":")[0]] += 1
            say(f"[{position:{len(str(len(self.plan)))}}/{len(self.plan)}] {job.label:{self.plan.width}}  {fate}")
        about = f"; about {clock(self.seconds())}, {self.basis()}" if self.left else ""
        say(", ".join(f"{count} {fate}" for fate, count in counts.items()) + about + ".")

    def fate(self, job: Job) -> str:
        """`to measure`, `measured before`, or `to skip`, with the reason."""
        environment_id = self.machine.found(job).environment_id
        if (stored := self.fates.stands(job, environment_id)) is not None:
            told = stored.status if stored.status == "ok" else f"{stored.status}, {stored.reason}"
            return f"measured before: {told}"
        if (smaller := self.fates.smaller(job, environment_id)) is not None:
            return f"to skip: {smaller.label} ran out of memory already"
        predicted_s = self._predicted_s(job, environment_id)
        if predicted_s is not None and predicted_s > job.max_step_s:
            return f"to skip: a step is predicted to take {predicted_s:.3g} s, above max_step_s={job.max_step_s:g}"
        self.left[self.machine.kind(job), environment_id, kind_of(job.point)] += 1
        return "to measure"

    def seconds(self) -> float:
        """How long the points that are left will take, by those of the store, the start included."""
        total = 0.0
        for (kind, environment_id, pace), count in self.left.items():
            devices = len(self.machine.indices(kind))
            total += Pace(self._history(environment_id)).seconds({pace: count}, devices)
        return total + START_S * len({kind for kind, *_ in self.left if kind != "none"})

    def basis(self) -> str:
        """What the estimate rests on."""
        known = {pace for _, environment_id, pace in self.left if pace in self._history(environment_id)}
        return "by points measured here before" if known == {pace for *_, pace in self.left} else "by rule of thumb"

    def _history(self, environment_id: str) -> dict[str, float]:
        return self.measured.seconds(environment_id, self.plan[0].target.target_frac)

    def _predicted_s(self, job: Job, environment_id: str) -> float | None:
        if environment_id not in self.roofs:
            frame = self.store.roofs(environment_id)
            self.roofs[environment_id] = {} if frame is None else as_roofs(frame)
        cost = None if job.point.spec.idle else job.point.spec.cost(job.point)
        return predicted_step_s(cost.operations, job.point.dtype, self.roofs[environment_id]) if cost else None
