"""`dry_run=true`: the points of a command, which are there already, which will be skipped, how long it will take."""

from __future__ import annotations

from collections import Counter

from runner.config import Job
from runner.machine import Machine
from runner.pace import Pace, kind_of
from runner.plan import Plan
from runner.progress import clock
from runner.resume import Measured, OutOfMemory
from runner.station import as_roofs
from runner.store import Store
from runner.workloads import predicted_step_s


class Preview:
    """What would become of each point."""

    def __init__(self, plan: Plan, store: Store, measured: Measured, machine: Machine) -> None:
        self.plan, self.store, self.measured, self.machine = plan, store, measured, machine
        self.roofs: dict[str, dict[tuple[str, str | None], float]] = {}
        self.oom = OutOfMemory()
        self.left: Counter[tuple[str, str]] = Counter()

    def print(self) -> None:
        """A line a point, then the sum."""
        counts: Counter[str] = Counter()
        for position, job in enumerate(self.machine.jobs(), 1):
            fate = self.fate(job)
            counts[fate.partition(":")[0]] += 1
            print(f"[{position:{len(str(len(self.plan)))}}/{len(self.plan)}] {job.label:{self.plan.width}}  {fate}")
        print(", ".join(f"{count} {fate}" for fate, count in counts.items()) + f"; about {clock(self.seconds())}.")

    def fate(self, job: Job) -> str:
        """`to measure`, `measured before`, or `to skip`, with the reason."""
        environment_id = self.machine.found(job).environment_id
        stored = None if self.plan.settings.rerun else self.measured.run(job, environment_id)
        if stored is not None:
            if stored.status == "oom":
                self.oom.learn(environment_id, job.point)
            return "measured before: " + (
                stored.status if stored.status == "ok" else f"{stored.status}, {stored.reason}"
            )
        smaller = self.oom.smaller(environment_id, job.point) if self.plan.settings.skip_after_oom else None
        if smaller is not None:
            return f"to skip: {smaller.label} ran out of memory already"
        predicted_s = self._predicted_s(job, environment_id)
        if predicted_s is not None and predicted_s > job.max_step_s:
            return f"to skip: a step is predicted to take {predicted_s:.3g} s, above max_step_s={job.max_step_s:g}"
        self.left[environment_id, kind_of(job.point)] += 1
        return "to measure"

    def seconds(self) -> float:
        """How long the points that are left will take, by those of the store."""
        total = 0.0
        for (environment_id, kind), count in self.left.items():
            total += Pace(self.measured.seconds(environment_id)).seconds({kind: count})
        return total

    def _predicted_s(self, job: Job, environment_id: str) -> float | None:
        if environment_id not in self.roofs:
            frame = self.store.roofs(environment_id)
            self.roofs[environment_id] = {} if frame is None else as_roofs(frame)
        cost = None if job.point.spec.idle else job.point.spec.cost(job.point)
        return predicted_step_s(cost.operations, job.point.dtype, self.roofs[environment_id]) if cost else None
