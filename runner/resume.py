"""What a store already holds of the points of a command, and whether that will do."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

from runner.config import Job, Settings
from runner.point import Point
from runner.store import Store
from runner.workloads import WORKLOADS

COLUMNS = (
    "run_id", "point_id", "sweep_id", "environment_id", "source", "workload", "size", "batch", "compile", "warmup",
    "device", "params", "status", "reason", "host_slope", "facts", "wall_us", "issue_us", "device_us", "floor_us",
    "blocked_us", "margin",
)  # fmt: skip
IDLE = [name for name, workload in WORKLOADS.items() if workload.idle]
ENDED_BY_OTHERS = ("SIGKILL", "SIGTERM", "SIGHUP", "SIGINT")
"""Signals that somebody sends, or the kernel when memory runs out: the next time may be another one."""


@dataclass(frozen=True, slots=True)
class Stored:
    """One run of the store, as far as it decides whether a point must be measured again. place: its row's number."""

    place: int
    run_id: str
    status: str
    reason: str | None
    slopes: bool
    facts: Mapping[str, Any]

    def will_do(self, job: Job, memory_limit_bytes: int | None = None) -> bool:
        """Whether measuring again, as the job wants it and under this limit, could tell nothing more."""
        limited = self.status in ("oom", "crashed") and self._limit_was_lower(memory_limit_bytes)
        return not limited and _ANSWERS[self.status](self, job)

    @property
    def after_oom(self) -> bool:
        """Whether it was skipped because one alike but smaller had run out of memory."""
        return bool(self.facts.get("after_oom"))

    def _limit_was_lower(self, memory_limit_bytes: int | None) -> bool:
        then = self.facts.get("limits", {}).get("memory_limit_bytes")
        return then is not None and (memory_limit_bytes is None or memory_limit_bytes > then)

    def _strict_enough(self, job: Job) -> bool:
        measure = self.facts.get("measure")
        if measure is None:  # cold points and those that do nothing have no target
            return job.point.cold or job.point.spec.idle
        within = measure["target_frac"] <= job.target.target_frac
        long_enough = self.facts.get("stopped") == "target" or measure["limit_s"] >= job.target.limit_s
        return within and long_enough and (self.slopes or not job.slopes or not self._slopes_were_left_out())

    def _slopes_were_left_out(self) -> bool:
        reasons = self.facts.get("reasons") or {}
        return any("slopes_every" in (reasons.get(name) or "") for name in ("host_slope", "doubled_us"))

    def _still_skipped(self, job: Job) -> bool:
        return self.after_oom or (self.facts.get("estimate_s") or 0.0) > job.max_step_s

    def _timeout_was_as_long(self, job: Job) -> bool:
        return self.facts.get("limits", {}).get("point_timeout_s", 0.0) >= job.timeout_s

    def _memory_was_its_own(self, _: Job) -> bool:
        return not self.facts.get("condition", {}).get("other_processes")

    def _crashed_by_itself(self, _: Job) -> bool:
        return self.facts.get("signal") not in ENDED_BY_OTHERS and not self.facts.get("unopened")

    def _failed(self, _: Job) -> bool:
        return True


_ANSWERS = {
    "ok": Stored._strict_enough, "skipped": Stored._still_skipped, "timeout": Stored._timeout_was_as_long,
    "oom": Stored._memory_was_its_own, "crashed": Stored._crashed_by_itself, "failed": Stored._failed,
}  # fmt: skip


class Measured:
    """The runs of a store by point and environment, read once when a command starts."""

    def __init__(self, runs: pl.DataFrame) -> None:
        self._runs = runs.filter(pl.col("source") == "sweep").sort("run_id").with_row_index("place")
        self._known: dict[str, dict[str, list[Stored]]] = {}
        self.short_of_memory = frozenset(self._runs.filter(pl.col("status") == "oom")["environment_id"])
        """Environments in which a point has run out of memory."""

    @classmethod
    def load(cls, store: Store) -> Measured:
        """Everything that is live in the store."""
        return cls(store.live_runs(COLUMNS))

    def run(self, job: Job, environment_id: str, memory_limit_bytes: int | None = None) -> Stored | None:
        """The latest run of a job's point that will do, ok ones first; None = it must be measured. Device resolved."""
        good = self._good(job, environment_id, memory_limit_bytes)
        return next((run for run in reversed(good) if run.status == "ok"), good[-1] if good else None)

    def rows(self, job: Job, environment_id: str, memory_limit_bytes: int | None = None) -> list[dict[str, Any]]:
        """All ok runs of a job's point that will do, the earliest first; without one the latest other that will do."""
        good = self._good(job, environment_id, memory_limit_bytes)
        ok = [run for run in good if run.status == "ok"]
        return [self._runs.row(run.place, named=True) for run in ok or good[-1:]]

    def _good(self, job: Job, environment_id: str, memory_limit_bytes: int | None) -> list[Stored]:
        runs = self._of(environment_id).get(job.point.point_id, [])
        return [run for run in runs if run.will_do(job, memory_limit_bytes)]

    def _of(self, environment_id: str) -> dict[str, list[Stored]]:
        if environment_id not in self._known:
            rows = self._runs.filter(pl.col("environment_id") == environment_id)
            self._known[environment_id] = _by_point(rows.iter_rows(named=True))
        return self._known[environment_id]

    def before(self, environment_id: str, device: str) -> str | None:
        """The environment of the latest run on this kind of device, if none was made in this one yet."""
        runs = self._runs.filter((pl.col("device") == device) & ~pl.col("workload").is_in(IDLE))
        if runs.is_empty() or not runs.filter(pl.col("environment_id") == environment_id).is_empty():
            return None
        return str(runs["environment_id"][-1])

    def seconds(self, environment_id: str, target_frac: float) -> dict[str, float]:
        """Median seconds of a point by its kind of pace, of the ok runs in an environment that had the same target."""
        kind = (
            pl.when(pl.col("workload").is_in(IDLE)).then(pl.lit("idle"))
            .when(pl.col("warmup") == "false").then(pl.lit("cold"))
            .when(pl.col("compile") == "false").then(pl.lit("eager"))
            .otherwise(pl.lit("compiled"))
        )  # fmt: skip
        taken = pl.col("facts").str.json_path_match("$.taken_s").cast(pl.Float64, strict=False)
        target = pl.col("facts").str.json_path_match("$.measure.target_frac").cast(pl.Float64, strict=False)
        alike = (target == target_frac) | target.is_null()  # cold points have no target
        runs = self._runs.filter((pl.col("environment_id") == environment_id) & (pl.col("status") == "ok") & alike)
        rows = runs.group_by(kind.alias("kind")).agg(taken.median().alias("s")).drop_nulls().iter_rows()
        return dict(rows)


def _by_point(rows: Iterable[dict[str, Any]]) -> dict[str, list[Stored]]:
    found: dict[str, list[Stored]] = defaultdict(list)
    for row in rows:
        if row["status"] in _ANSWERS:
            facts = _facts(row["facts"])
            if facts is None:
                continue
            slopes = row["host_slope"] is not None
            run = Stored(row["place"], row["run_id"], row["status"], row["reason"], slopes, facts)
            found[row["point_id"]].append(run)
    return found


def _facts(text: str | None) -> dict[str, Any] | None:
    """The facts of a run; None where another program has written something else there: then it is no run of ours."""
    try:
        facts = json.loads(text or "{}")
    except ValueError:
        return None
    shaped = ("measure", "limits", "condition", "reasons")
    if not isinstance(facts, dict) or not all(isinstance(facts.get(name), dict | None) for name in shaped):
        return None
    measure = facts.get("measure")
    told = measure is None or all(isinstance(measure.get(name), int | float) for name in ("target_frac", "limit_s"))
    return facts if told else None


def differences(before: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """What sets two environments apart, in words: `torch 2.12.0 -> 2.13.0`."""
    names = [name for name in now if name not in ("environment_id", "memory_bytes", "versions", "variables")]
    told = [_turned(name, before.get(name), now[name]) for name in names if before.get(name) != now[name]]
    for name in ("versions", "variables"):
        old, new = (json.loads(each.get(name) or "{}") for each in (before, now))
        keys = sorted(key for key in {*old, *new} if old.get(key) != new.get(key) and key != "torch")
        told += [_turned(key, old.get(key), new.get(key)) for key in keys]
    return ", ".join(told)


def _turned(name: str, before: object, now: object) -> str:
    old, new = ("unset" if each is None else each for each in (before, now))
    return f"{name} {old} -> {new}"


class OutOfMemory:
    """Points that did not fit: those alike but larger will not fit either."""

    def __init__(self) -> None:
        self._points: dict[tuple[Any, ...], list[Point]] = defaultdict(list)

    def learn(self, environment_id: str, point: Point) -> None:
        """A point ran out of memory."""
        self._points[_series(environment_id, point)].append(point)

    def smaller(self, environment_id: str, point: Point) -> Point | None:
        """A point that is alike, no larger in size or batch, and did not fit."""
        seen = self._points.get(_series(environment_id, point), [])
        return next((each for each in seen if each != point and _at_most(each, point)), None)


class Fates:
    """What becomes of a point: it stands in the store, it need not be tried, or it is measured."""

    def __init__(self, settings: Settings, measured: Measured) -> None:
        self._settings, self._measured = settings, measured
        self.oom = OutOfMemory()

    def stands(self, job: Job, environment_id: str) -> Stored | None:
        """The run in the store that makes measuring needless. The job's device is resolved."""
        if self._settings.rerun:
            return None
        stored = self._measured.run(job, environment_id, self._settings.memory_limit_bytes)
        if stored is not None and stored.after_oom and self.smaller(job, environment_id) is None:
            return None  # what kept it from being tried is over
        return stored

    def rows(self, job: Job, environment_id: str) -> list[dict[str, Any]]:
        """Rows of all runs in the store that count for a job's point, where one of them `stands`."""
        return self._measured.rows(job, environment_id, self._settings.memory_limit_bytes)

    def smaller(self, job: Job, environment_id: str) -> Point | None:
        """A point that is alike but smaller and has not fitted into memory, if that is reason enough."""
        return self.oom.smaller(environment_id, job.point) if self._settings.skip_after_oom else None

    def learn(self, jobs: Iterable[tuple[Job, str]]) -> None:
        """Which points of the store have run out of memory, and would again: jobs with their environment."""
        if not self._measured.short_of_memory:
            return  # the usual case, in which thousands of points need not be looked through
        for job, environment_id in jobs:
            if environment_id in self._measured.short_of_memory:
                stored = self.stands(job, environment_id)
                if stored is not None and stored.status == "oom":
                    self.oom.learn(environment_id, job.point)


def _series(environment_id: str, point: Point) -> tuple[Any, ...]:
    axes = {name: value for name, value in point.axes.items() if name not in ("size", "batch")}
    return (environment_id, json.dumps(axes, sort_keys=True))


def _at_most(one: Point, other: Point) -> bool:
    return (one.size or 0) <= (other.size or 0) and (one.batch or 1) <= (other.batch or 1)


def is_failure(status: str) -> bool:
    """Whether a status makes a command end with exit code 2."""
    return status not in ("ok", "skipped")
