"""What a store already holds of the points of a command, and whether that will do."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

from runner.config import Job
from runner.point import Point
from runner.store import Store

COLUMNS = (
    "run_id", "point_id", "environment_id", "source", "workload", "size", "batch", "compile", "warmup", "device",
    "params", "status", "reason", "host_slope", "facts",
)  # fmt: skip
ENDED_BY_OTHERS = ("SIGKILL", "SIGTERM", "SIGHUP", "SIGINT")
"""Signals that somebody sends, or the kernel when memory runs out: the next time may be another one."""


@dataclass(frozen=True, slots=True)
class Stored:
    """One run of the store, as far as it decides whether a point must be measured again."""

    run_id: str
    status: str
    reason: str | None
    slopes: bool
    facts: Mapping[str, Any]

    def will_do(self, job: Job) -> bool:
        """Whether measuring again, as the job wants it, could tell nothing more."""
        return _ANSWERS[self.status](self, job)

    def _strict_enough(self, job: Job) -> bool:
        measure = self.facts.get("measure")
        if measure is None:  # cold points and those that do nothing have no target
            return job.point.cold or job.point.spec.idle
        within = measure["target_frac"] <= job.target.target_frac
        long_enough = self.facts.get("stopped") == "target" or measure["limit_s"] >= job.target.limit_s
        return within and long_enough and (self.slopes or not job.slopes or not self._slopes_were_left_out())

    def _slopes_were_left_out(self) -> bool:
        return "slopes_every" in self.facts.get("reasons", {}).get("host_slope", "")

    def _still_skipped(self, job: Job) -> bool:
        if self.facts.get("after_oom"):
            return True
        return (self.facts.get("estimate_s") or 0.0) > job.max_step_s

    def _timeout_was_as_long(self, job: Job) -> bool:
        return self.facts.get("limits", {}).get("point_timeout_s", 0.0) >= job.timeout_s

    def _memory_was_its_own(self, _: Job) -> bool:
        return not self.facts.get("condition", {}).get("other_processes")

    def _crashed_by_itself(self, _: Job) -> bool:
        return self.facts.get("signal") not in ENDED_BY_OTHERS

    def _failed(self, _: Job) -> bool:
        return True


_ANSWERS = {
    "ok": Stored._strict_enough, "skipped": Stored._still_skipped, "timeout": Stored._timeout_was_as_long,
    "oom": Stored._memory_was_its_own, "crashed": Stored._crashed_by_itself, "failed": Stored._failed,
}  # fmt: skip


class Measured:
    """The runs of a store by point and environment, read once when a command starts."""

    def __init__(self, runs: pl.DataFrame) -> None:
        self._runs = runs.filter(pl.col("source") == "sweep").sort("run_id")
        self._known: dict[str, dict[str, list[Stored]]] = {}

    @classmethod
    def load(cls, store: Store) -> Measured:
        """Everything that is live in the store."""
        return cls(store.live_runs(COLUMNS))

    def run(self, job: Job, environment_id: str) -> Stored | None:
        """The latest run of a job's point that will do, ok ones first; None = it must be measured. Device resolved."""
        runs = self._of(environment_id).get(job.point.point_id, [])
        good = [run for run in runs if run.will_do(job)]
        return next((run for run in reversed(good) if run.status == "ok"), good[-1] if good else None)

    def _of(self, environment_id: str) -> dict[str, list[Stored]]:
        if environment_id not in self._known:
            rows = self._runs.filter(pl.col("environment_id") == environment_id)
            self._known[environment_id] = _by_point(rows.iter_rows(named=True))
        return self._known[environment_id]

    def before(self, environment_id: str, device: str) -> str | None:
        """The environment of the latest run on this kind of device, if none was made in this one yet."""
        runs = self._runs.filter((pl.col("device") == device) & (pl.col("workload") != "noop"))
        if runs.is_empty() or not runs.filter(pl.col("environment_id") == environment_id).is_empty():
            return None
        return str(runs["environment_id"][-1])

    def seconds(self, environment_id: str) -> dict[str, float]:
        """Median seconds of a point by its kind of pace, of the ok runs in an environment."""
        kind = (
            pl.when(pl.col("workload") == "noop").then(pl.lit("idle"))
            .when(pl.col("warmup") == "false").then(pl.lit("cold"))
            .when(pl.col("compile") == "false").then(pl.lit("eager"))
            .otherwise(pl.lit("compiled"))
        )  # fmt: skip
        taken = pl.col("facts").str.json_path_match("$.taken_s").cast(pl.Float64, strict=False)
        runs = self._runs.filter((pl.col("environment_id") == environment_id) & (pl.col("status") == "ok"))
        rows = runs.group_by(kind.alias("kind")).agg(taken.median().alias("s")).drop_nulls().iter_rows()
        return dict(rows)


def _by_point(rows: Iterable[dict[str, Any]]) -> dict[str, list[Stored]]:
    found: dict[str, list[Stored]] = defaultdict(list)
    for row in rows:
        if row["status"] in _ANSWERS:
            facts = json.loads(row["facts"] or "{}")
            slopes = row["host_slope"] is not None
            found[row["point_id"]].append(Stored(row["run_id"], row["status"], row["reason"], slopes, facts))
    return found


def differences(before: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """What sets two environments apart, in words: `torch 2.12.0 -> 2.13.0`."""
    names = [name for name in now if name not in ("environment_id", "memory_bytes", "versions", "variables")]
    told = [f"{name} {before.get(name)} -> {now[name]}" for name in names if before.get(name) != now[name]]
    for name in ("versions", "variables"):
        old, new = (json.loads(each.get(name) or "{}") for each in (before, now))
        keys = sorted(key for key in {*old, *new} if old.get(key) != new.get(key) and key != "torch")
        told += [f"{key} {old.get(key)} -> {new.get(key)}" for key in keys]
    return ", ".join(told)


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


def _series(environment_id: str, point: Point) -> tuple[Any, ...]:
    axes = {name: value for name, value in point.axes.items() if name not in ("size", "batch")}
    return (environment_id, json.dumps(axes, sort_keys=True))


def _at_most(one: Point, other: Point) -> bool:
    return (one.size or 0) <= (other.size or 0) and (one.batch or 1) <= (other.batch or 1)


def is_failure(status: str) -> bool:
    """Whether a status makes a command end with exit code 2."""
    return status not in ("ok", "skipped")
