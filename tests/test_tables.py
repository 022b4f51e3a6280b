"""runner.tables: from a measurement to the rows of the store, exactly as docs/store.md words them."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from runner import tables
from runner.point import WARM_SCHEDULE, Point
from runner.rounds import Sample
from runner.task import Measurement
from runner.trace import Event
from runner.window import Window

STORE_DOC = Path(__file__).parent.parent / "docs" / "store.md"
POINT = Point("matmul_add", (), 64, "bf16", None, False, False, True, "cuda", WARM_SCHEDULE, "warm", None, 0)
IDENTITY = tables.Identity("r1", "s1", "e1", datetime(2026, 1, 2, tzinfo=UTC), 3, "shuffled:0")
WINDOW = Window(
    steps=[2, 3], host_us=[40.0, 44.0], busy_us=[4.0, 6.0], blocked_us=[0.0, 0.0],
    launches=[2, 2], kernels=[2, 2], blocking_calls={}, trace_incomplete=False, unattributed_frac=0.0,
    underfilled_frac=1.0, launch_sequence="abc", region_ran=False,
)  # fmt: skip


def measurement(rounds: int = 10, facts: dict[str, Any] | None = None, **values: Any) -> Measurement:
    """So many rounds of samples; a value is a number, or a function of the round."""
    samples: list[Sample] = []
    for number in range(rounds):
        for name, value in values.items():
            taken = value(number) if callable(value) else value
            samples.append(Sample(name, number, len(samples), float(taken)))
    return Measurement("ok", None, tuple(samples), {}, dict(facts or {}))


ASYNC = {"wall": 20, "issue": 20, "issue_half": 20, "device": 5, "replay": 4, "single": 30}


def row(done: Measurement, window: Window | None = None, streams: int = 1, point: Point = POINT) -> dict[str, Any]:
    """The row of a measurement."""
    return tables.run_row(point, IDENTITY, done, window, streams, {"host": "h", "device_uuid": None})


def facts(found: dict[str, Any]) -> dict[str, Any]:
    """Its facts."""
    return json.loads(found["facts"])


# -- the contract -----------------------------------------------------------------------------------------------------

TYPES = {
    "VARCHAR": pl.String, "BIGINT": pl.Int64, "BOOLEAN": pl.Boolean, "LIST(BIGINT)": pl.List(pl.Int64),
    "LIST(DOUBLE)": pl.List(pl.Float64), "TIMESTAMP (UTC, microseconds)": pl.Datetime("us", "UTC"),
    "LIST(STRUCT(quantity VARCHAR, round INTEGER, position INTEGER, value DOUBLE))": pl.List(
        pl.Struct({"quantity": pl.String, "round": pl.Int32, "position": pl.Int32, "value": pl.Float64})
    ),
}  # fmt: skip


def documented(table: str) -> dict[str, Any]:
    """Columns and types of one of the two tables in docs/store.md."""
    section = STORE_DOC.read_text().split(f"\n## {table} ")[1].split("\n## ")[0].split("\n### ")[0]
    rows = re.findall(r"^\| ([a-z_, ]+) \| ([^|]+) \|", section, re.MULTILINE)
    return {name: TYPES[kind.strip()] for names, kind in rows if names != "column" for name in names.split(", ")}


def test_the_schemas_are_the_documented_ones() -> None:
    """Every column of runs and events has docs/store.md's name and type, and there is no other."""
    assert dict(tables.RUNS) == documented("runs")
    assert dict(tables.EVENTS) == documented("events")


def test_environments_and_roofs_hold_the_documented_columns() -> None:
    """The two small tables are described in prose: every column is named there."""
    text = STORE_DOC.read_text()
    for title, schema in (("environments", tables.ENVIRONMENTS), ("roofs", tables.ROOFS)):
        section = text.split(f"\n## {title} ")[1].split("\n## ")[0]
        assert set(schema) <= set(re.findall(r"\w+", section))


def test_a_row_becomes_a_table_of_the_full_schema() -> None:
    """Whatever is missing is null, not absent."""
    frame = tables.runs_frame([row(measurement(**ASYNC)), row(Measurement("failed", "why"))])
    assert frame.schema == tables.RUNS
    assert frame["wall_us"].to_list() == [[20.0, 20.0, 20.0], None]
    assert frame["started_at"].to_list()[0] == IDENTITY.started_at


def test_events_become_a_table_of_the_full_schema() -> None:
    """An event's fields are columns, with the run in front."""
    event = Event(
        0, "k", "kernel", 2**60, 5, True, 0, 7, "0", "stream 7", 2, None, 0, 9, 1,
        [1, 1, 1], [64, 1, 1], 32, 0, None, None, "{}",
    )  # fmt: skip
    frame = tables.events_frame("r1", [event, replace(event, event_id=1, grid=None)])
    assert frame.schema == tables.EVENTS
    assert frame.row(0, named=True) | {"run_id": "r1", "ts_ns": 2**60, "grid": [1, 1, 1]} == frame.row(0, named=True)
    assert frame["grid"].to_list() == [[1, 1, 1], None]


def test_a_row_says_where_it_belongs() -> None:
    """Identity, resolved axes, params as JSON, position and the machine among the facts; null facts are left out."""
    found = row(measurement(**ASYNC))
    assert (found["run_id"], found["sweep_id"], found["environment_id"]) == ("r1", "s1", "e1")
    assert (found["point_id"], found["source"]) == (POINT.point_id, "sweep")
    assert json.loads(found["params"]) == {"l2": "warm", "schedule": "1/1/20/1", "seed": 0, "threads": None}
    assert facts(found)["position"] == 3 and facts(found)["host"] == "h"
    assert "device_uuid" not in facts(found)
    assert facts(found)["cost"]["operations"][0] == {"name": "matmul", "flops": 2 * 64**3, "bytes": 3 * 64 * 64 * 2}


def test_samples_are_kept_raw_and_in_order() -> None:
    """All samples, then the profiled host times behind them."""
    found = row(measurement(2, **ASYNC), WINDOW)["samples"]
    assert [each["position"] for each in found] == list(range(2 * len(ASYNC) + 2))
    assert [each["quantity"] for each in found[-3:]] == ["single", "profiled", "profiled"]
    assert [each["value"] for each in found[-2:]] == [40.0, 44.0]


# -- times ------------------------------------------------------------------------------------------------------------


def test_the_margin_is_formed_within_each_round() -> None:
    """Drift that touches both terms leaves the ratio, and its interval, alone."""
    done = measurement(
        12, **ASYNC | {"issue": lambda n: 20 + n, "issue_half": lambda n: 20 + n, "device": lambda n: 5 + n / 4}
    )
    found = row(done)
    assert found["margin"] == [4.0, 4.0, 4.0]
    assert found["issue_us"][2] - found["issue_us"][1] > 2


def test_issue_that_grows_with_the_burst_is_unknown() -> None:
    """issue(2k) beyond 5 % of issue(k): the queue was full; within it, or below it, the time stands."""
    busy = ASYNC | {"device": 20, "replay": 20}
    full = row(measurement(**busy | {"issue_half": 18.9}))
    assert full["issue_us"] is None and full["margin"] is None
    assert facts(full)["reasons"]["issue_us"].startswith("queue-full")
    assert row(measurement(**busy | {"issue_half": 19.2}))["issue_us"] == [20.0, 20.0, 20.0]
    assert row(measurement(**busy | {"issue_half": 24}))["issue_us"] == [20.0, 20.0, 20.0]


@pytest.mark.parametrize(
    ("device", "kernels", "burst_steps", "is_known"),
    [(18, 900, 2, True), (19, 900, 2, False), (20, 125, 2, True), (20, 126, 2, False), (20, 125, 4, False)],
)
def test_no_queue_fills_where_the_device_waits_or_the_launches_fit(
    device: float, kernels: int, burst_steps: int, is_known: bool
) -> None:
    """An issue time that grows with the burst stands where the law says that the device waits for the host, and where
    all launches of the burst have room: the host was uneven."""
    uneven = ASYNC | {"issue_half": 15, "device": device, "replay": device}
    window = replace(WINDOW, kernels=[kernels - 1, kernels])
    found = row(measurement(facts={"burst_steps": burst_steps}, **uneven), window)
    assert (found["issue_us"] is not None) == is_known
    assert ("issue_us" in facts(found)["reasons"]) != is_known


@pytest.mark.parametrize("kernels", [None, [], [0, 0]])
def test_a_step_without_kernels_tells_nothing_of_the_queue(kernels: list[int] | None) -> None:
    """The profiler saw nothing of the device, or only copies, which fill it as well."""
    full = ASYNC | {"issue_half": 15, "device": 40, "replay": 40}
    found = row(measurement(facts={"burst_steps": 2}, **full), replace(WINDOW, kernels=kernels))
    assert facts(found)["reasons"]["issue_us"].startswith("queue-full")


def test_a_profile_is_no_witness_that_the_queue_was_not_full() -> None:
    """Its device time lacks what passes between kernels."""
    only_profiled = {name: value for name, value in ASYNC.items() if name not in ("device", "replay")}
    found = row(measurement(**only_profiled | {"issue_half": 15}), replace(WINDOW, kernels=[900, 900]))
    assert facts(found)["device_method"] == "profile" and found["issue_us"] is None


@pytest.mark.parametrize(
    ("missing", "streams", "device_us", "method"),
    [
        ((), 1, 5.0, "held"),
        (("device",), 1, 4.0, "replay"),
        ((), 2, 4.0, "replay"),
        (("replay",), 3, 5.0, "profile"),
        (("device", "replay"), 1, 5.0, "profile"),
    ],
)
def test_device_time_is_held_else_replayed_else_profiled(
    missing: tuple[str, ...], streams: int, device_us: float, method: str
) -> None:
    """A hold of one stream tells nothing of several; the profile's busy time (here 4 and 6) is the last resort."""
    done = measurement(**{name: value for name, value in ASYNC.items() if name not in missing})
    found = row(done, WINDOW, streams)
    assert found["device_us"][0] == device_us
    assert facts(found)["device_method"] == method
    assert (found["margin"] is None) == (method == "profile")


def test_no_device_time_has_a_reason() -> None:
    """Neither held nor replayed, and no trace: NULL, and why."""
    found = row(measurement(wall=20, issue=20, issue_half=20))
    assert found["device_us"] is None
    assert "neither" in facts(found)["reasons"]["device_us"]
    assert tables.verdict(found).bound == "unknown"


def test_a_wait_seen_in_the_profile_leaves_the_issue_time() -> None:
    """Where no Python call showed the wait, the profiled time in synchronizing calls is taken off."""
    done = measurement(facts={"blocked_method": "profile", "blocking_calls": {"unnamed": 1.0}}, wall=220, issue=220)
    found = row(done, replace(WINDOW, blocked_us=[190.0, 200.0], busy_us=[200.0, 200.0]))
    assert found["blocked_us"] == [195.0, 190.0, 200.0]
    assert found["issue_us"] == [25.0, 20.0, 30.0]
    assert facts(found)["device_method"] == "profile"


def test_wall_and_floor_of_a_cpu() -> None:
    """margin = floor / (wall - floor) of each round; device and issue stay NULL."""
    cpu = replace(POINT, device="cpu", dtype="fp32")
    found = row(measurement(wall=lambda n: 12 + n % 2, floor=lambda n: 4 + n % 2), point=cpu)
    assert found["margin"] is not None and found["margin"][0] == pytest.approx((4 / 8 + 5 / 8) / 2)
    assert found["device_us"] is None and found["issue_us"] is None
    assert tables.verdict(found).bound == "device-bound"


def test_a_floor_above_the_wall_has_no_margin() -> None:
    """Work that is not above zero in every round is within the noise: overhead binds, and no ratio is told."""
    cpu = replace(POINT, device="cpu", dtype="fp32")
    found = row(measurement(wall=lambda n: 4 + 0.1 * (n % 2), floor=4.05), point=cpu)
    assert found["margin"] is None
    assert tables.verdict(found).bound == "overhead-bound"


def test_a_contended_host_widens_the_intervals() -> None:
    """One sample in five twice as long, and lost CPUs: intervals reach the 90th percentile, and it is said."""
    values = ASYNC | {"wall": lambda n: 40 if n % 5 == 4 else 20}
    calm = row(measurement(30, {"condition": {"involuntary_switches": 0, "cpu_pressure_frac": 0.0}}, **values))
    lost = row(measurement(30, {"condition": {"involuntary_switches": 9, "cpu_pressure_frac": 0.0}}, **values))
    blind = row(measurement(30, {}, **values))
    assert (facts(calm)["host_contended"], facts(lost)["host_contended"]) == (False, True)
    assert "host_contended" not in facts(blind)
    assert calm["wall_us"] == [20.0, 20.0, 20.0]
    assert lost["wall_us"][2] == 40.0


def test_times_that_only_a_disturbed_host_gave_are_contended() -> None:
    """Where the watch over the host's pace found few quiet moments, the intervals say so whatever the counters do."""
    pace = {"best_us": 30.0, "disturbed_frac": 0.9, "lacking": ["issue"]}
    values = ASYNC | {"wall": lambda n: 40 if n % 5 == 4 else 20}
    found = row(measurement(30, {"host_pace": pace}, **values))
    assert facts(found)["host_contended"] is True and found["wall_us"][2] == 40.0
    assert "host_contended" not in facts(row(measurement(30, {"host_pace": {**pace, "lacking": []}}, **values)))


# -- profile and status -----------------------------------------------------------------------------------------------


def test_the_profiles_figures() -> None:
    """Perturbation is profiled host time over the unprofiled one; launches and kernels a step."""
    found = facts(row(measurement(**ASYNC), WINDOW))["profile"]
    assert found["perturbation"] == pytest.approx(42 / 20)
    assert found["profiled_host_us"] == 42.0
    assert (found["launches"], found["kernels"], found["trace_incomplete"]) == (2, 2, False)
    assert found["launch_sequence"] == "abc"
    assert "reason" not in found or found["reason"] is None


def test_a_missing_trace_has_a_reason_and_the_times_stand() -> None:
    """No window: events and busy time are unknown, everything else is told."""
    found = row(measurement(**ASYNC))
    assert facts(found)["profile"] == {"reason": "the profiler left no trace"}
    assert found["busy_us"] is None
    assert tables.verdict(found).bound == "overhead-bound"
    kept = row(measurement(facts={"profile": {"reason": "no CUPTI"}}, **ASYNC))
    assert facts(kept)["profile"] == {"reason": "no CUPTI"}


def test_a_compiled_point_must_have_run_compiled() -> None:
    """A trace without a compiled region: the point failed, whatever it took; without a trace nothing is known."""
    compiled = replace(POINT, compile=True)
    eager = row(measurement(**ASYNC), WINDOW, point=compiled)
    assert (eager["status"], eager["reason"]) == (
        "failed", "no compiled region ran: torch.compile fell back to eager",
    )  # fmt: skip
    assert facts(eager)["compile"]["region_ran"] is False
    ran = row(
        measurement(facts={"compile": {"seconds": 2.0}}, **ASYNC), replace(WINDOW, region_ran=True), point=compiled
    )
    assert ran["status"] == "ok"
    assert facts(ran)["compile"] == {"seconds": 2.0, "region_ran": True}
    assert row(measurement(**ASYNC), None, point=compiled)["status"] == "ok"


@pytest.mark.parametrize("status", ["failed", "oom", "crashed", "skipped"])
def test_a_point_without_times_is_a_row(status: str) -> None:
    """Status and reason, its axes, and no verdict."""
    found = row(Measurement(status, "why", facts={"estimate_s": 9.0}))
    assert (found["status"], found["reason"], found["size"]) == (status, "why", 64)
    assert all(found[f"{name}_us"] is None for name in (*tables.QUANTITIES, "busy"))
    assert facts(found)["estimate_s"] == 9.0
    assert tables.verdict(found).bound == "unknown"
    assert tables.verdict(found).reason == f"{status}: why"


def test_a_cold_point_has_no_verdict() -> None:
    """A first call has no steady state."""
    found = row(measurement(5, first=100.0), point=replace(POINT, warmup=False))
    assert tables.verdict(found).bound == "unknown"
    assert found["wall_us"] is None


def test_slopes_are_stored_with_their_interval() -> None:
    """Median and interval of one value a round."""
    slopes = {"host_slope": [1.0, 0.9, 1.1, 0.95, 1.05], "device_slope": [0.0, 0.1, -0.1, 0.05, -0.05]}
    found = row(replace(measurement(**ASYNC), slopes=slopes))
    assert found["host_slope"] == pytest.approx([1.0, 0.904, 1.1007], abs=1e-3)
    assert found["device_slope"] == pytest.approx([0.0, -0.0982, 0.0982], abs=1e-3)


def test_facts_are_json_for_everyone() -> None:
    """No NaN and no Infinity, which DuckDB would refuse, even where the host's time comes out as nothing."""
    done = measurement(facts={"blocking_calls": {"Tensor.item": 1.0}}, wall=20, issue=0.0, blocked=0.0)
    text = row(done, WINDOW)["facts"]
    assert "NaN" not in text and "Infinity" not in text
    assert facts(row(done, WINDOW))["profile"]["perturbation"] is None


def test_the_profile_names_waits_that_nothing_else_names() -> None:
    """A wait that torch reports without a name gets the name and the time of the runtime call in the trace."""
    window = replace(WINDOW, blocked_us=[5.0, 5.0], blocking_calls={"cudaStreamSynchronize": 1.0})
    given = {"blocking_calls": {"unnamed": 1.0}, "blocked_method": "profile"}
    found = row(measurement(facts=given, **ASYNC), window)
    assert facts(found)["blocking_calls"] == {"cudaStreamSynchronize": 1.0}
    assert found["blocked_us"][0] == 5.0
    unseen = row(measurement(facts=given, **ASYNC), replace(window, blocking_calls={}))
    assert facts(unseen)["blocking_calls"] == {"unnamed": 1.0}


# -- what checks the law and a bound ----------------------------------------------------------------------------------


def stored(rounds: int = 10, **values: Any) -> dict[str, Any]:
    """Facts of a run with these samples."""
    return facts(
        row(
            measurement(rounds, **values),
            point=replace(POINT, device="cpu", dtype="fp32") if "floor" in values else POINT,
        )
    )


def test_the_law_is_formed_within_each_round() -> None:
    """A host that halves its pace midway changes issue and wall alike: every round keeps the law to 2 %."""
    issue, wall = (lambda number, us=us: us if number < 5 else 2 * us for us in (20, 20.4))
    assert stored(**{**ASYNC, "issue": issue, "issue_half": issue, "wall": wall})["law"] == pytest.approx([1.02] * 3)


def test_the_larger_term_is_that_of_the_round() -> None:
    """Issue is larger in half of the rounds, the device in the others."""
    terms = {"issue": lambda number: 20 if number % 2 else 10, "device": lambda number: 10 if number % 2 else 20}
    assert stored(**{**ASYNC, **terms})["law"] == pytest.approx([1.0] * 3)


def test_without_a_term_there_is_no_law() -> None:
    """A full queue has no issue time, and one known from the profile alone no round."""
    assert "law" not in stored(**{**ASYNC, "issue_half": 10, "device": 20, "replay": 20})
    assert "law" not in stored(wall=20, issue=20, issue_half=20)


def test_twice_the_work() -> None:
    """wall = 4 + 16: twice the work takes 36, longer by 80 %, whatever the floor is said to be."""
    found = stored(wall=20, floor=4, doubled=36)
    assert found["doubled_us"] == pytest.approx([36] * 3)
    assert found["work_share"] == pytest.approx([0.8] * 3)


def test_without_twice_the_work_nothing_is_said_of_it() -> None:
    """No sample, no fact."""
    assert not {"doubled_us", "work_share"} & set(stored(wall=20, floor=4))
