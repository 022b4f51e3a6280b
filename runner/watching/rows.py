"""What was seen of a program's steps -> rows of the store, one a kind of step. No clock and no device."""

from __future__ import annotations

import hashlib
import json
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import pairwise
from typing import Any

import polars as pl

from runner import tables
from runner.condition import cpu_contended, host_contended
from runner.phases import DATA
from runner.rounds import Sample
from runner.statistics import Estimate, estimate, spread, widened
from runner.store import new_id
from runner.task import Found
from runner.trace import RUNTIME, Event
from runner.watching.meter import BETWEEN, OTHER, Seen
from runner.watching.stamps import Stamps, Timed
from runner.window import Window, blocking, launching, summarize

QUEUE_LAUNCHES = 1000
"""CUDA's queue holds 1,024 launches; from so many on the host may have waited for room in it."""
LEAST_TIMED = 3
"""Of fewer steps there is no interval."""
LEAST_QUEUED = 3
"""So many steps must have been queued as a whole for their spans on the device to be the device's time."""
INFLATION = (1.75, 3.2, 1.0)
"""Host time under the profiler over host time without: usual, most, least; from where is said in _macros.sql."""
QUEUE_FULL = "queue-full: the launch queue fills within a step"


@dataclass(frozen=True, slots=True)
class Watched:
    """What is watched. name: the workload's; dtype: of the module's weights, None = unknown; waits: whether all that
    lies between two steps is the wait for the next input, as in a loop that is marked by hand."""

    name: str
    dtype: str | None
    waits: bool
    skip: int
    sweep_id: str
    started_at: datetime


@dataclass(frozen=True, slots=True)
class Between:
    """What the profile says of the host, one value a profiled step: waits for the device inside the step and behind it,
    time in which a launch waited for room in the queue, and operators called behind the step; microseconds, numbers."""

    blocked_us: list[float]
    blocked_behind_us: list[float]
    queued_us: list[float]
    operators_behind: list[int]
    behind_us: list[float]


def rows_of(
    seen: Seen, events: Sequence[Event], stamps: Stamps, watched: Watched, found: Found
) -> list[tuple[pl.DataFrame, pl.DataFrame | None]]:
    """A run and its events for every kind of step that was timed at least LEAST_TIMED times."""
    kinds = dict.fromkeys(each.kind for each in seen.timed if each.kind != OTHER)
    frames = []
    for position, kind in enumerate(kinds):
        steps = {number for number, each in enumerate(seen.profiled_kinds, 1) if each == kind}
        own = of_steps(events, steps) if len(set(seen.profiled_kinds)) > 1 else list(events) if steps else []
        kind_run = _Kind(seen, kind, own, stamps, watched, found)
        if (row := kind_run.row(position)) is not None:
            frame = tables.events_frame(row["run_id"], own) if own else None
            frames.append((tables.runs_frame([row]), frame))
    return frames


def of_steps(events: Sequence[Event], steps: set[int]) -> list[Event]:
    """The events of these steps alone; what they refer to elsewhere is forgotten."""
    kept = [event for event in events if event.step in steps]
    ids = {event.event_id for event in kept}
    return [
        replace(
            event,
            parent_id=event.parent_id if event.parent_id in ids else None,
            launch_id=event.launch_id if event.launch_id in ids else None,
        )
        for event in kept
    ]


class _Kind:
    """The run of one kind of step."""

    def __init__(
        self, seen: Seen, kind: str, events: list[Event], stamps: Stamps, watched: Watched, found: Found
    ) -> None:
        self.seen, self.kind, self.events, self.stamps = seen, kind, events, stamps
        self.watched, self.found = watched, found
        self.steps = [(step, after) for step, after in pairwise(seen.timed) if step.kind == kind and _is_whole(step)]
        self.window: Window | None = None
        self.between: Between | None = None
        if events:
            self.window = summarize(events, watched.name, found.columns.get("multiprocessors"))
            self.between = between_of(events, watched.name, DATA if watched.waits else BETWEEN)
        self.reasons: dict[str, str] = {}
        self.estimators: dict[str, str] = {}
        self.samples: list[Sample] = []
        self.queue_was_full = False

    def row(self, position: int) -> dict[str, Any] | None:
        """The run's row; None where too few steps of the kind were timed from their begin to that of the next."""
        if len(self.steps) < LEAST_TIMED:
            return None
        times = self._times()
        run_id, params = new_id(), {"inputs" if not self.watched.waits else "step": self.kind} if self.kind else {}
        compiled = None if self.window is None else "true" if self.window.region_ran else "false"
        axes = {
            "workload": self.watched.name, "size": None, "dtype": self.watched.dtype, "batch": None,
            "compile": compiled, "dynamic": None, "warmup": "true", "device": self.stamps.kind,
            "params": json.dumps(params, sort_keys=True),
        }  # fmt: skip
        facts = self._facts(times, position)
        return {
            "run_id": run_id, "point_id": _identity(axes), "sweep_id": self.watched.sweep_id,
            "environment_id": self.found.environment_id, "source": "watch", **axes, "status": "ok", "reason": None,
            "started_at": self.watched.started_at,
            **{f"{name}_us": _listed(times.get(name)) for name in (*tables.QUANTITIES, "busy")},
            "host_slope": None, "device_slope": None, "margin": None,
            "samples": [_plain(each) for each in self.samples],
            "facts": json.dumps({key: value for key, value in facts.items() if value is not None}, sort_keys=True),
        }  # fmt: skip

    # -- times --------------------------------------------------------------------------------------------------------

    def _times(self) -> dict[str, Estimate | None]:
        wall = self._sampled("wall", [self.stamps.period_us(*each) for each in self.steps])
        behind = [_us(step.left_ns, after.asked_ns) for step, after in self.steps]
        data = self._data(behind)
        times = {"wall": wall, "data": data}
        if self.stamps.kind == "cpu":
            self.reasons |= dict.fromkeys(("issue_us", "device_us"), "on the CPU host and device are one")
            self.reasons["floor_us"] = "a program's own step has no size at which it is known to do nothing"
            self.estimators["wall_us"] = "host clock from the begin of a step to that of the next, marking left out"
            return times
        self.estimators["wall_us"] = "events on the device from the begin of a step to that of the next"
        times["blocked"] = self._blocked()
        times["issue"] = self._issue(behind)
        times["busy"] = estimate(self.window.busy_us) if self.window and self.window.busy_us else None
        times["device"] = self._device(times["busy"])
        return times

    def _data(self, behind: list[float]) -> Estimate | None:
        """Time between two steps, where it is a wait for the input: less what the host waits there for the device."""
        if not self.watched.waits:
            if self.between is None:
                self.reasons["data_us"] = f"what is done between two calls is unknown: {self.seen.reason}"
                return None
            if statistics.median(self.between.operators_behind) > 0:
                self.reasons["data_us"] = "operators run between two calls: that time is work, and counts as issue time"
                return None
        blocked = statistics.median(self.between.blocked_behind_us) if self.between else 0.0
        self.estimators["data_us"] = "host clock between two steps, less waits for the device there as profiled"
        return self._sampled("data", [max(0.0, each - blocked) for each in behind])

    def _blocked(self) -> Estimate | None:
        if self.between is None or not self.window or not self.window.blocking_calls:
            self.reasons["blocked_us"] = "no wait for the device was seen" if self.window else "no profile"
            return None
        self.estimators["blocked_us"] = "synchronizing calls of the profiled steps, up to the begin of the next"
        both = zip(self.between.blocked_us, self.between.blocked_behind_us, strict=True)
        return estimate([inside + behind for inside, behind in both])

    def _works_behind(self) -> bool:
        """Whether the time between two steps is work that belongs to the step."""
        return not self.watched.waits and "data_us" in self.reasons and self.between is not None

    def _issue(self, behind: list[float]) -> Estimate | None:
        """Host time of steps behind which the launch queue had room, less waits; else bounds of it from the profile."""
        launches = statistics.median(self.window.launches) if self.window and self.window.launches else None
        if launches is None or self.between is None:
            self.reasons["issue_us"] = f"no profile tells how full the launch queue was: {self.seen.reason}"
            return None
        more = behind if self._works_behind() else [0.0] * len(behind)
        waits = [a + (b if self._works_behind() else 0.0)
                 for a, b in zip(self.between.blocked_us, self.between.blocked_behind_us, strict=True)]  # fmt: skip
        roomy = [
            _us(step.begin_ns, step.end_ns) + extra
            for (step, _), extra in zip(self.steps, more, strict=True)
            if (step.behind + 1) * launches <= QUEUE_LAUNCHES
        ]
        if roomy:
            self.estimators["issue_us"] = "host clock inside the step while the launch queue had room, less its waits"
            blocked = statistics.median(waits)
            return self._sampled("issue", [max(0.0, each - blocked) for each in roomy])
        self.queue_was_full = True
        return self._issue_of_profile(waits)

    def _issue_of_profile(self, waits: list[float]) -> Estimate | None:
        """The profiled host time less all waits over the profiler's usual cost (low: its most, high: its least)."""
        assert self.window is not None and self.between is not None
        left = [
            host - wait - queued - (0.0 if self._works_behind() else behind)
            for host, wait, queued, behind in zip(
                self.window.host_us, waits, self.between.queued_us, self.between.behind_us, strict=True
            )
        ]
        host_us = max(0.0, statistics.median(left))
        self.estimators["issue_us"] = (
            f"{QUEUE_FULL}: host time of the profiled steps without any wait, over the profiler's usual cost"
        )
        return Estimate(*(host_us / each for each in INFLATION))

    def _device(self, busy: Estimate | None) -> Estimate | None:
        """Spans of steps whose work was all queued before the device began them, else the profile's busy time."""
        spans = [(step, self.stamps.span_us(step)) for step, _ in self.steps]
        self._sampled("span", [span for _, span in spans if span is not None])
        queued = [span for step, span in spans if span is not None and step.queued]
        works_behind = self._works_behind()
        if len(queued) >= LEAST_QUEUED and not works_behind:
            self.estimators["device_us"] = "events round steps whose work was all queued before the device began them"
            return self._sampled("device", queued)
        if busy is None:
            self.reasons["device_us"] = (
                f"the host was not ahead of the device, and there is no profile: {self.seen.reason}"
            )
            return None
        self.estimators["device_us"] = "union of the device intervals of the profiled steps"
        return busy

    def _sampled(self, quantity: str, values: Sequence[float]) -> Estimate | None:
        place = len(self.samples)
        self.samples += [Sample(quantity, number, place + number, value) for number, value in enumerate(values)]
        narrow = estimate(values)
        return widened(values, narrow) if narrow and self._contended() else narrow

    def _contended(self) -> bool | None:
        walls = [each.value for each in self.samples if each.quantity == "wall"]
        told = cpu_contended if self.stamps.kind == "cpu" else host_contended
        condition = self.seen.condition
        return told(spread(walls), condition.get("involuntary_switches"), condition.get("cpu_pressure_frac"))

    # -- facts --------------------------------------------------------------------------------------------------------

    def _facts(self, times: dict[str, Estimate | None], position: int) -> dict[str, Any]:
        device = self.estimators.get("device_us", "")
        blocking_calls = (self.window.blocking_calls or None) if self.window and times.get("blocked") else None
        return {
            **self.found.attributes, "position": position, "order": "given", "warmup_steps": self.watched.skip,
            "reasons": self.reasons, "condition": dict(self.seen.condition), "host_contended": self._contended(),
            "data_us": _listed(times["data"]), "memory": self.seen.allocator or None,
            "device_method": None if not device else "queued" if device.startswith("events") else "profile",
            "blocked_method": "profile" if blocking_calls else None, "blocking_calls": blocking_calls,
            "profile": self._profile(times), "watch": self._watch(),
            **(self.seen.held if self.seen.held_kind in (None, self.kind) else {}),
        }  # fmt: skip

    def _profile(self, times: dict[str, Estimate | None]) -> dict[str, Any]:
        if self.window is None or self.between is None:
            return {"reason": self.seen.reason or "no step of this kind was profiled"}
        behind = 0.0 if self._works_behind() else statistics.median(self.between.behind_us)
        host_us = statistics.median(self.window.host_us) - behind if self.window.host_us else None
        return tables.profile_facts(self.window, host_us, self._unprofiled_us(times), self.stamps.kind)

    def _unprofiled_us(self, times: dict[str, Estimate | None]) -> float | None:
        """Host time of a step without the profiler; unknown where it was taken from the profile."""
        if self.stamps.kind == "cpu":
            wall, data = times["wall"], times["data"]
            return None if wall is None else wall.value - (data.value if data else 0.0)
        issue, blocked = times["issue"], times["blocked"]
        known = None if self.queue_was_full else issue
        return known.value + (blocked.value if blocked else 0.0) if known else None

    def _watch(self) -> dict[str, Any]:
        """How it was measured, and what that has cost the program."""
        marks = [_us(s.asked_ns, s.begin_ns) + _us(s.end_ns, s.left_ns) for s, _ in self.steps]
        return {
            "estimators": self.estimators, "synchronizes": self.seen.synchronizes, "timed_steps": len(self.steps),
            "profiled_steps": len(self.window.steps) if self.window else 0, "skipped_steps": self.watched.skip,
            "mark_us": statistics.median(marks), "paused_s": self.seen.paused_ns / 1e9,
            "steps_left_out": sum(each.kind == OTHER for each in self.seen.timed),
            "broken_steps": sum(each.broken for each in self.seen.timed),
        }  # fmt: skip


def between_of(events: Sequence[Event], name: str, between: str) -> Between | None:
    """The host's side of the profiled steps: ranges called `name`, in each of which a range `between` is the time
    behind the step. None where there are no such ranges."""
    marks = {e.step: e for e in events if e.category == "user_annotation" and e.name == name and e.step is not None}
    ranges = [e for e in events if e.category == "user_annotation" and e.name == between]
    gaps = {e.step: e for e in sorted(ranges, key=lambda e: e.ts_ns)}  # the last one: the program may have others
    if not marks:
        return None
    waits, launches = blocking(events), launching(events)
    usual_ns = statistics.median([call.dur_ns for call in launches]) if launches else 0
    operators = [event for event in events if event.category == "cpu_op" or event.category in RUNTIME]
    told = Between([], [], [], [], [])
    for step, mark in marks.items():
        gap = gaps.get(step)
        begins_ns = mark.end_ns if gap is None else gap.ts_ns
        own = [call for call in waits if call.step == step and _on_thread(call, mark)]
        told.blocked_us.append(sum(call.dur_ns for call in own if call.ts_ns < begins_ns) / 1000)
        told.blocked_behind_us.append(sum(call.dur_ns for call in own if call.ts_ns >= begins_ns) / 1000)
        queued = (max(0, call.dur_ns - usual_ns) for call in launches if call.step == step)
        told.queued_us.append(sum(queued) / 1000)
        told.operators_behind.append(
            sum(begins_ns <= event.ts_ns < mark.end_ns for event in operators if event.step == step)
        )
        told.behind_us.append((mark.end_ns - begins_ns) / 1000)
    return told


def _on_thread(call: Event, mark: Event) -> bool:
    return (call.pid, call.tid) == (mark.pid, mark.tid)


def _is_whole(step: Timed) -> bool:
    return step.left_ns is not None and not step.broken


def _us(begin_ns: int | None, end_ns: int | None) -> float:
    assert begin_ns is not None and end_ns is not None
    return (end_ns - begin_ns) / 1000


def _identity(axes: dict[str, Any]) -> str:
    """point_id: of what is known of a step with and without a profile. The program's code is not part of it."""
    axes = {name: value for name, value in axes.items() if name != "compile"}
    return hashlib.sha256(json.dumps(["watch", axes], sort_keys=True).encode()).hexdigest()[:12]


def _listed(value: Estimate | None) -> list[float] | None:
    return None if value is None else value.as_list()


def _plain(sample: Sample) -> dict[str, Any]:
    return {
        "quantity": sample.quantity, "round": sample.round, "position": sample.position, "value": sample.value,
    }  # fmt: skip
