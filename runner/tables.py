"""Measurement -> rows of the store (docs/store.md). Pure: no file, no clock, no torch."""

from __future__ import annotations

import hashlib
import json
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any

import polars as pl

from runner.condition import cpu_contended, host_contended
from runner.law import BROKEN, Run, Times, Verdict, decide
from runner.point import Point
from runner.rounds import AGREEMENT, LEADING, Sample, paired_ratios
from runner.statistics import Estimate, estimate, spread, widened
from runner.task import Measurement
from runner.trace import Event
from runner.window import Window

QUANTITIES = ("wall", "issue", "device", "replay", "single", "blocked", "floor")
QUEUE_LAUNCHES = 500
"""A device takes about a thousand launches ahead of its work; half of that surely fits."""
NO_DEVICE_EVENTS = "the profiler saw nothing of the device (CUPTI); see `python -m runner doctor`"

_TIMES = [f"{name}_us" for name in (*QUANTITIES, "busy")]
RUNS = pl.Schema(
    dict.fromkeys(("run_id", "point_id", "sweep_id", "environment_id", "source", "workload"), pl.String)
    | {"size": pl.Int64, "dtype": pl.String, "batch": pl.Int64}
    | dict.fromkeys(("compile", "dynamic", "warmup", "device", "params", "status", "reason"), pl.String)
    | {"started_at": pl.Datetime("us", "UTC")}
    | dict.fromkeys((*_TIMES, "host_slope", "device_slope", "margin"), pl.List(pl.Float64))
    | {
        "samples": pl.List(
            pl.Struct({"quantity": pl.String, "round": pl.Int32, "position": pl.Int32, "value": pl.Float64})
        ),
        "facts": pl.String,
    }
)
_INTEGERS = (
    "event_id", "ts_ns", "dur_ns", "device", "stream", "step", "parent_id", "depth", "correlation", "launch_id",
    "registers_per_thread", "shared_memory_bytes", "bytes",
)  # fmt: skip
EVENTS = pl.Schema(
    {"run_id": pl.String}
    | {each.name: pl.String for each in fields(Event)}
    | dict.fromkeys(_INTEGERS, pl.Int64)
    | {"is_device": pl.Boolean, "grid": pl.List(pl.Int64), "block": pl.List(pl.Int64)}
)


@dataclass(frozen=True, slots=True)
class Identity:
    """Where a run belongs: given when its point is handed out. position: its place in the sweep, from 0; order: what
    decided the places."""

    run_id: str
    sweep_id: str
    environment_id: str
    started_at: datetime
    position: int
    order: str


def run_row(
    point: Point, identity: Identity, done: Measurement, window: Window | None, streams: int, attributes: dict[str, Any]
) -> dict[str, Any]:
    """One row of `runs`. window: figures of the profile, None without one; streams: how many the step works on."""
    facts = {**done.facts, **attributes, "position": identity.position, "order": identity.order}
    facts["reasons"] = dict(facts.get("reasons", {}))
    status, reason = _checked_status(point, done, window)
    samples = _with_profile(done.samples, window)
    contended = _contended(point, samples, facts)
    times = _times(samples, facts, window, streams, contended is True)
    margin = _margin(samples, times, facts, contended is True)
    facts["host_contended"] = contended
    facts["cost"] = _cost(point) or facts.get("cost")
    facts |= _checks(samples, times, facts, contended is True)
    if window is not None:
        facts["profile"] = {**_profile_facts(point, window, times), **facts.get("profile", {})}
    elif times["wall"] is not None:
        facts["profile"] = {"reason": "the profiler left no trace", **facts.get("profile", {})}
    if window is not None and point.compile is not False:
        facts.setdefault("compile", {})["region_ran"] = window.region_ran
    slopes = {name: estimate(values) for name, values in done.slopes.items()}
    return {
        "run_id": identity.run_id, "point_id": point.point_id, "sweep_id": identity.sweep_id,
        "environment_id": identity.environment_id, "source": "sweep", **point.axes,
        "params": json.dumps(point.axes["params"], sort_keys=True), "status": status, "reason": reason,
        "started_at": identity.started_at,
        **{f"{name}_us": _listed(times.get(name)) for name in (*QUANTITIES, "busy")},
        "host_slope": _listed(slopes.get("host_slope")), "device_slope": _listed(slopes.get("device_slope")),
        "margin": _listed(margin),
        "samples": [_plain(sample) for sample in samples],
        "facts": json.dumps({key: value for key, value in facts.items() if value is not None}, sort_keys=True),
    }  # fmt: skip


def runs_frame(rows: Sequence[dict[str, Any]]) -> pl.DataFrame:
    """Rows of `runs` as a table with its full schema."""
    return pl.DataFrame(rows, schema=RUNS)


def events_frame(run_id: str, events: Sequence[Event]) -> pl.DataFrame:
    """Events of one run as a table with its full schema."""
    names = [each.name for each in fields(Event)]
    columns = {name: [getattr(event, name) for event in events] for name in names}
    return pl.DataFrame({"run_id": [run_id] * len(events), **columns}, schema=EVENTS)


def environment_frame(columns: dict[str, Any]) -> pl.DataFrame:
    """The one row of an environment."""
    return pl.DataFrame([columns], schema=ENVIRONMENTS)


def roofs_frame(environment_id: str, rows: Sequence[dict[str, Any]]) -> pl.DataFrame:
    """Rows of `roofs` with their environment."""
    return pl.DataFrame([{"environment_id": environment_id, **row} for row in rows], schema=ROOFS)


def code_frame(file: Mapping[str, Any]) -> pl.DataFrame:
    """The one row of a generated file, named by all that it says."""
    row = {name: file[name] for name in ("source_text", "file_name", "graph_hash")}
    text = json.dumps(row, sort_keys=True)
    return pl.DataFrame([{"code_id": hashlib.sha256(text.encode()).hexdigest()[:12], **row}], schema=CODE)


ENVIRONMENTS = pl.Schema(
    {"environment_id": pl.String, "measure_version": pl.Int64}
    | dict.fromkeys(
        ("torch", "python", "device", "device_name", "driver", "cuda_runtime", "compute_capability"), pl.String
    )
    | {"mig": pl.Boolean}
    | dict.fromkeys(("host_cpu", "affinity", "numa", "governor"), pl.String)
    | {"cgroup_cpus": pl.Float64}
    | dict.fromkeys(
        ("cores", "threads", "multiprocessors", "threads_per_multiprocessor", "registers_per_multiprocessor",
         "shared_memory_per_multiprocessor_bytes", "l2_bytes", "memory_bytes"), pl.Int64,
    )
    | {"sm_clock_max_mhz": pl.Float64, "power_limit_w": pl.Float64, "versions": pl.String, "variables": pl.String}
)  # fmt: skip
ROOFS = pl.Schema(
    {"environment_id": pl.String, "roof": pl.String, "dtype": pl.String}
    | dict.fromkeys(("value_per_s", "low_per_s", "high_per_s"), pl.Float64)
    | {"method": pl.String, "reason": pl.String}
)
CODE = pl.Schema(dict.fromkeys(("code_id", "source_text", "file_name", "graph_hash"), pl.String))


def verdict(row: dict[str, Any]) -> Verdict:
    """The live verdict of a run's row."""
    if row["status"] != "ok":
        return Verdict("unknown", None, f"{row['status']}: {row['reason']}")
    if row["warmup"] == "false":
        return Verdict("unknown", None, "cold: a first call has no steady state")
    return decide(_row_times(row))


def run_of(row: dict[str, Any], place: float) -> Run | None:
    """A run's row as a run of a series; None where it has no times of a steady state."""
    if row["status"] != "ok" or row["warmup"] == "false" or row["wall_us"] is None:
        return None
    sequence = json.loads(row["facts"]).get("profile", {}).get("launch_sequence")
    return Run(place, _row_times(row), sequence, row["sweep_id"])


def _row_times(row: dict[str, Any]) -> Times:
    facts = json.loads(row["facts"])
    given = {name: _unlisted(row[f"{name}_us"]) for name in ("wall", "issue", "device", "floor", "blocked")}
    return Times(
        **given, margin=_unlisted(row["margin"]), blocks=bool(facts.get("blocking_calls")),
        data=_unlisted(facts.get("data_us")), synchronous=row["device"] == "cpu",
    )  # fmt: skip


# -- pieces ------------------------------------------------------------------------------------------------------------


def _checked_status(point: Point, done: Measurement, window: Window | None) -> tuple[str, str | None]:
    """A compiled point in whose trace no compiled region ran did not measure what its name says."""
    ran = window is None or not window.steps or window.region_ran
    if done.status == "ok" and point.compile is not False and not ran:
        return "failed", "no compiled region ran: torch.compile fell back to eager"
    return done.status, done.reason


def _with_profile(samples: tuple[Sample, ...], window: Window | None) -> tuple[Sample, ...]:
    values = window.host_us if window else []
    last = len(samples)
    profiled = tuple(Sample("profiled", number, last + number, value) for number, value in enumerate(values))
    return samples + profiled


def _values(samples: Sequence[Sample], quantity: str) -> list[float]:
    return [sample.value for sample in samples if sample.quantity == quantity]


def _contended(point: Point, samples: Sequence[Sample], facts: dict[str, Any]) -> bool | None:
    if facts.get("host_pace", {}).get("lacking"):
        return True
    condition = facts.get("condition", {})
    spreads = [spread(_values(samples, name)) for name in ("wall", "issue", "floor")]
    told = cpu_contended if point.device == "cpu" else host_contended
    return told(
        max((each for each in spreads if each is not None), default=None),
        condition.get("involuntary_switches"),
        condition.get("cpu_pressure_frac"),
    )


def _estimate(values: list[float], contended: bool) -> Estimate | None:
    narrow = estimate(values)
    return widened(values, narrow) if narrow and contended else narrow


def _times(
    samples: Sequence[Sample], facts: dict[str, Any], window: Window | None, streams: int, contended: bool
) -> dict[str, Estimate | None]:
    """All times of a run; why one is missing goes into facts.reasons."""
    times = {name: _estimate(_values(samples, name), contended) for name in QUANTITIES}
    reasons = facts["reasons"]
    times["busy"] = estimate(window.busy_us) if window and window.busy_us else None
    if window and window.blocked_us and facts.get("blocked_method") == "profile":
        facts["blocking_calls"] = window.blocking_calls or facts["blocking_calls"]
        times["blocked"] = estimate(window.blocked_us)
        times["issue"] = _less(times["issue"], times["blocked"])
    _choose_device_time(times, facts, streams)
    if _grows_with_burst(samples) and not (_host_binds(times, facts) or _fits_queue(facts, window)):
        times["issue"] = None
        reasons["issue_us"] = "queue-full: issuing twice the steps takes more than twice the time"
    return times


def _grows_with_burst(samples: Sequence[Sample]) -> bool:
    """issue(2k) is above issue(k) of the same rounds by more than 5 %: a queue has filled, or the host was uneven."""
    ratios = paired_ratios(samples, "issue", "issue_half")
    return bool(ratios) and statistics.median(ratios) > AGREEMENT


def _host_binds(times: dict[str, Estimate | None], facts: dict[str, Any]) -> bool:
    """By the law: a step takes longer than the device works for it, which then waits for the host, and no queue fills.
    A profile's own device time is no witness, since it lacks what passes between kernels."""
    wall, device = times["wall"], times["device"]
    if wall is None or device is None or facts.get("device_method") == "profile":
        return False
    return wall.low > BROKEN * device.high


def _fits_queue(facts: dict[str, Any], window: Window | None) -> bool:
    """All that a burst and its leading steps launch has room in the queue, even if the device does none of it. A
    step without kernels may launch copies, which are not counted: it tells nothing."""
    if not (window and window.kernels and max(window.kernels) and "burst_steps" in facts):
        return False
    return bool((facts["burst_steps"] + LEADING) * max(window.kernels) <= QUEUE_LAUNCHES)


def _less(whole: Estimate | None, part: Estimate | None) -> Estimate | None:
    if whole is None or part is None:
        return None
    return Estimate(whole.value - part.value, whole.low - part.high, whole.high - part.low)


def _choose_device_time(times: dict[str, Estimate | None], facts: dict[str, Any], streams: int) -> None:
    """Held stream, else replay, else the profile; facts.device_method says which."""
    if times["floor"] is not None or times["wall"] is None:
        return
    if times["device"] is not None and streams > 1:
        facts["reasons"]["device_held"] = f"the step works on {streams} streams, of which one was held"
        times["device"] = None
    for method in ("device", "replay", "busy"):
        if times[method] is not None:
            times["device"] = times[method]
            facts["device_method"] = {"device": "held", "replay": "replay", "busy": "profile"}[method]
            facts["reasons"].pop("device_us", None)
            return
    facts["reasons"].setdefault("device_us", "neither held stream, replay nor profile gave a device time")


def _margin(
    samples: Sequence[Sample], times: dict[str, Estimate | None], facts: dict[str, Any], contended: bool
) -> Estimate | None:
    """Overhead over work, the ratio formed within each round where both were sampled there."""
    if times["floor"] is not None:
        return _estimate(_floor_ratios(samples), contended)
    if times["issue"] is None or times["device"] is None:
        return None
    below = {"held": "device", "replay": "replay"}.get(facts.get("device_method", ""))
    return _estimate(paired_ratios(samples, "issue", below), contended) if below else None


def _floor_ratios(samples: Sequence[Sample]) -> list[float]:
    """floor / (wall - floor) of each round; empty when the work is not above zero in every one of them."""
    walls, floors = _values(samples, "wall"), _values(samples, "floor")
    pairs = list(zip(walls, floors, strict=False))
    return [floor / (wall - floor) for wall, floor in pairs] if all(wall > floor for wall, floor in pairs) else []


def _checks(
    samples: Sequence[Sample], times: dict[str, Estimate | None], facts: dict[str, Any], contended: bool
) -> dict[str, list[float] | None]:
    """What checks the law and a bound, formed within each round: wall / max(issue, device); twice the work, and by what
    share of wall that is longer."""
    device = {"held": "device", "replay": "replay"}.get(facts.get("device_method", ""), "") if times["issue"] else ""
    longer = [ratio - 1 for ratio in paired_ratios(samples, "doubled", "wall")]
    return {
        "law": _listed(_estimate(_law_ratios(samples, device), contended)),
        "doubled_us": _listed(_estimate(_values(samples, "doubled"), contended)),
        "work_share": _listed(_estimate(longer, contended)),
    }


def _law_ratios(samples: Sequence[Sample], device: str) -> list[float]:
    """wall / max(issue, device) of each round in which all three were sampled."""
    taken = {(sample.quantity, sample.round): sample.value for sample in samples}
    rounds = sorted(number for name, number in taken if name == "wall")
    keys = [(("wall", each), ("issue", each), (device, each)) for each in rounds]
    return [taken[wall] / max(taken[a], taken[b]) for wall, a, b in keys if a in taken and b in taken]


def _profile_facts(point: Point, window: Window, times: dict[str, Estimate | None]) -> dict[str, Any]:
    host = statistics.median(window.host_us) if window.host_us else None
    return profile_facts(window, host, _unprofiled_host_us(times), point.device)


def profile_facts(window: Window, host: float | None, unprofiled: float | None, device: str) -> dict[str, Any]:
    """facts.profile of a window. host, unprofiled: host time of a step under the profiler and without, us."""
    return {
        "profiled_host_us": host,
        "perturbation": host / unprofiled if host and unprofiled else None,
        "launches": statistics.median(window.launches) if window.launches else None,
        "kernels": statistics.median(window.kernels) if window.kernels else None,
        "launch_sequence": window.launch_sequence,
        "trace_incomplete": window.trace_incomplete,
        "unattributed_frac": window.unattributed_frac,
        "underfilled_frac": window.underfilled_frac,
        "reason": NO_DEVICE_EVENTS if device != "cpu" and window.busy_us is None else None,
    }


def _unprofiled_host_us(times: dict[str, Estimate | None]) -> float | None:
    """Host time of a step without a profiler: issue and blocked; on the CPU, which does the work itself, wall."""
    wall, issue, blocked = times["wall"], times["issue"], times["blocked"]
    if times["floor"] is not None:
        return wall.value if wall else None
    return issue.value + (blocked.value if blocked else 0.0) if issue else None


def _cost(point: Point) -> dict[str, Any] | None:
    cost = point.spec.cost(point)
    if cost is None:
        return None
    operations = [each.facts() for each in cost.operations]
    return {"operations": operations, "bytes_min": cost.bytes_min, "working_set_bytes": cost.working_set_bytes}


def _listed(value: Estimate | None) -> list[float] | None:
    return None if value is None else value.as_list()


def _unlisted(value: list[float] | None) -> Estimate | None:
    return None if value is None else Estimate(*value)


def _plain(sample: Sample) -> dict[str, Any]:
    return {
        "quantity": sample.quantity, "round": sample.round, "position": sample.position, "value": sample.value,
    }  # fmt: skip
