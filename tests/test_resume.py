"""runner.resume: which of the stored runs will do, what sets environments apart, what a lack of memory rules out."""

from __future__ import annotations

import json
from typing import Any

import polars as pl
import pytest
from configured import job, values

from runner import tables
from runner.config import Job, Settings
from runner.point import Point
from runner.resume import Fates, Measured, OutOfMemory, Stored, differences, is_failure

MEASURE = {"name": "default", "target_frac": 0.02, "limit_s": 1.0}
LEFT_OUT = {"host_slope": "taken at every 8th point only (measure.slopes_every)"}


def stored(status: str = "ok", slopes: bool = True, **facts: Any) -> Stored:
    """A run as far as resuming looks at it; an ok one has reached its target by default."""
    measured = {"measure": MEASURE, "stopped": "target"} if status == "ok" else {}
    return Stored(0, "r1", status, None, slopes, {**measured, **facts})


COLD = {"warmup": False}
TABLE: list[tuple[str, Stored, dict[str, Any], bool]] = [
    ("the same", stored(), {}, True),
    ("a looser target asked for", stored(), {"measure": {"target_frac": 0.1}}, True),
    ("a closer target asked for", stored(), {"measure": {"target_frac": 0.005}}, False),
    ("a longer limit, target reached", stored(), {"measure": {"limit_s": 10}}, True),
    ("a longer limit, target missed", stored(stopped="limit"), {"measure": {"limit_s": 10}}, False),
    ("the same limit, target missed", stored(stopped="limit"), {}, True),
    ("a shorter limit, target missed", stored(stopped="limit"), {"measure": {"limit_s": 0.2}}, True),
    ("slopes wanted, left out then", stored(slopes=False, reasons=LEFT_OUT), {}, False),
    (
        "slopes not wanted, left out then",
        stored(slopes=False, reasons=LEFT_OUT),
        {"measure": {"slopes_every": 0}},
        True,
    ),
    ("slopes wanted, impossible here", stored(slopes=False, reasons={"host_slope": "a CPU has none"}), {}, True),
    ("a warm point without a target", stored(measure=None), {}, False),
    ("a cold point", stored(measure=None), COLD, True),
    ("a point that does nothing", stored(measure=None), {"workload": {"name": "noop"}}, True),
    ("failed", stored("failed"), {}, True),
    ("skipped for the same limit", stored("skipped", estimate_s=7.0), {}, True),
    ("skipped, a higher limit now", stored("skipped", estimate_s=7.0), {"max_step_s": 10}, False),
    ("skipped, a lower limit now", stored("skipped", estimate_s=7.0), {"max_step_s": 1}, True),
    ("skipped behind a lack of memory", stored("skipped", after_oom=True), {"max_step_s": 100}, True),
    ("timeout, the same one", stored("timeout", limits={"point_timeout_s": 300.0}), {}, True),
    ("timeout, a longer one now", stored("timeout", limits={"point_timeout_s": 300.0}), {"point_timeout": 301}, False),
    ("timeout, a shorter one now", stored("timeout", limits={"point_timeout_s": 300.0}), {"point_timeout": 9}, True),
    ("timeout of an unknown length", stored("timeout"), {}, False),
    ("out of memory alone", stored("oom", condition={"other_processes": 0}), {}, True),
    ("out of memory, nothing known of others", stored("oom"), {}, True),
    ("out of memory with others on the card", stored("oom", condition={"other_processes": 2}), {}, False),
    ("out of memory under a limit, none now", stored("oom", limits={"memory_limit_bytes": 2_000_000_000}), {}, False),
    ("abort under a limit, none now", stored("crashed", signal="SIGABRT", limits={"memory_limit_bytes": 2}), {}, False),
    ("no worker could be opened", stored("crashed", unopened=True), {}, False),
    ("segmentation fault", stored("crashed", signal="SIGSEGV"), {}, True),
    ("abort", stored("crashed", signal="SIGABRT"), {}, True),
    ("exit code", stored("crashed", signal=None), {}, True),
    ("killed", stored("crashed", signal="SIGKILL"), {}, False),
    ("terminated", stored("crashed", signal="SIGTERM"), {}, False),
]


@pytest.mark.parametrize(("run", "changes", "will_do"), [row[1:] for row in TABLE], ids=[row[0] for row in TABLE])
def test_what_will_do(run: Stored, changes: dict[str, Any], will_do: bool) -> None:
    """Only what could tell more, or failed for a passing reason, is measured again."""
    assert run.will_do(job(**changes)) is will_do


def run_row(given: Job, run_id: str, status: str = "ok", environment_id: str = "e1", **changes: Any) -> dict[str, Any]:
    """A row of `runs` of a job's point, null where nothing matters here."""
    point = given.point
    facts = {"measure": MEASURE, "stopped": "target"} if status == "ok" else {}
    facts |= changes.pop("facts", {})
    row = dict.fromkeys(tables.RUNS) | point.axes | {
        "run_id": run_id, "point_id": point.point_id, "environment_id": environment_id, "source": "sweep",
        "params": json.dumps(point.axes["params"]), "status": status, "host_slope": [1.0, 1.0, 1.0],
        "facts": json.dumps(facts),
    }  # fmt: skip
    return row | changes


def measured(*rows: dict[str, Any]) -> Measured:
    """A store that holds these runs."""
    return Measured(tables.runs_frame(rows))


def test_an_ok_run_comes_before_a_later_failure() -> None:
    """The latest ok run; without one the latest that will do; without that none."""
    wanted = job(size=8)
    runs = [run_row(wanted, "r1"), run_row(wanted, "r2"), run_row(wanted, "r3", "failed")]
    assert measured(*runs).run(wanted, "e1") == measured(*runs[:2]).run(wanted, "e1")
    found = measured(*runs).run(wanted, "e1")
    assert found is not None and (found.run_id, found.status) == ("r2", "ok")
    failed = measured(runs[2]).run(wanted, "e1")
    assert failed is not None and failed.status == "failed"
    assert measured(run_row(wanted, "r1", "crashed", facts={"signal": "SIGKILL"})).run(wanted, "e1") is None


def test_only_the_same_point_in_the_same_environment_counts() -> None:
    """Another size, environment or source is no measurement of this point."""
    wanted = job(size=8)
    assert measured(run_row(job(size=16), "r1")).run(wanted, "e1") is None
    assert measured(run_row(wanted, "r1")).run(wanted, "e2") is None
    assert measured(run_row(wanted, "r1", source="import")).run(wanted, "e1") is None
    assert measured(run_row(wanted, "r1")).run(job(size=8, seed=1), "e1") is None
    assert measured(run_row(wanted, "r1")).run(job(size=8, artifacts=True), "e1") is not None


def test_an_unknown_status_and_missing_facts_are_no_answer() -> None:
    """What a later version may write is measured again rather than misread."""
    wanted = job(size=8)
    assert measured(run_row(wanted, "r1", "postponed")).run(wanted, "e1") is None
    assert measured(run_row(wanted, "r1") | {"facts": None}).run(wanted, "e1") is None
    assert measured().run(wanted, "e1") is None


def test_the_environment_before_is_told_once() -> None:
    """The latest one on this kind of device, as long as nothing was measured in today's."""
    runs = [run_row(job(size=8), "r1", environment_id="old"), run_row(job(size=8), "r2", environment_id="newer")]
    assert measured(*runs).before("today", "cpu") == "newer"
    assert measured(*runs).before("old", "cpu") is None
    assert measured(*runs).before("today", "cuda") is None
    assert measured().before("today", "cpu") is None


def test_seconds_of_earlier_points_are_medians_by_kind() -> None:
    """Of the ok runs in the environment; what is not there has no number."""
    warm = [run_row(job(size=8), f"r{s}", facts={"taken_s": float(s)}) for s in (1, 2, 9)]
    cold = [run_row(job(size=8, warmup=False), "r4", facts={"taken_s": 30.0})]
    failed = [run_row(job(size=8, compile=True), "r5", "failed", facts={"taken_s": 1.0})]
    assert measured(*warm, *cold, *failed).seconds("e1", 0.02) == {"eager": 2.0, "cold": 30.0}
    assert measured(*warm).seconds("e2", 0.02) == {}


def test_differences_are_told_in_words() -> None:
    """Every column and variable that changed, once, and nothing else."""
    before = {"environment_id": "a", "torch": "2.12.0", "threads": 2, "memory_bytes": 1,
              "versions": '{"torch":"2.12.0","cuda":"12.8"}', "variables": '{"OMP_NUM_THREADS":"1"}'}  # fmt: skip
    now = before | {"environment_id": "b", "torch": "2.13.0", "memory_bytes": 2,
                    "versions": '{"torch":"2.13.0","cuda":"13.0"}', "variables": '{"CUBLAS_X":":4:8"}'}  # fmt: skip
    assert differences(before, now) == (
        "torch 2.12.0 -> 2.13.0, cuda 12.8 -> 13.0, CUBLAS_X unset -> :4:8, OMP_NUM_THREADS 1 -> unset"
    )
    assert differences(before, before) == ""


def point(size: int, batch: int | None = None, **changes: Any) -> Point:
    """A point of a series."""
    return job(size=size, batch=batch, **changes).point


@pytest.mark.parametrize(
    ("other", "ruled_out"),
    [
        (point(64, 8), False), (point(65, 8), True), (point(64, 9), True), (point(128, 16), True),
        (point(63, 9), False), (point(65, 7), False), (point(128), False), (point(128, 8, dtype="bf16"), False),
        (point(128, 8, compile=True), False), (point(128, 8, seed=1), False),
    ],
    ids=lambda each: each.label if isinstance(each, Point) else "",
)  # fmt: skip
def test_what_a_lack_of_memory_rules_out(other: Point, ruled_out: bool) -> None:
    """Points alike in all but size and batch that are no smaller in either; never the point itself."""
    oom = OutOfMemory()
    oom.learn("e1", point(64, 8))
    assert (oom.smaller("e1", other) is not None) is ruled_out
    assert oom.smaller("e2", other) is None


@pytest.mark.parametrize(
    ("status", "failure"),
    [("ok", False), ("skipped", False), ("failed", True), ("oom", True), ("timeout", True), ("crashed", True)],
)
def test_what_makes_a_command_fail(status: str, failure: bool) -> None:
    """A skipped point is a decision, everything else that is not ok a failure."""
    assert is_failure(status) is failure


def test_columns_of_a_frame_without_runs_do() -> None:
    """A new store is an empty one."""
    assert Measured(pl.DataFrame(schema=tables.RUNS)).run(job(), "e1") is None


# -- what becomes of a point -------------------------------------------------------------------------------------------


def fates(*rows: dict[str, Any], **changes: Any) -> Fates:
    """What a store of these runs means for a command with these settings."""
    return Fates(Settings.checked(values(**changes)), measured(*rows))


def test_larger_points_stand_as_skipped_only_while_a_smaller_one_does_not_fit() -> None:
    """The card was shared when the smaller one ran out of memory: that is tried again, and so is the larger one."""
    small, large = job(size=8), job(size=16)
    skipped = run_row(large, "r2", "skipped", facts={"after_oom": True})
    alone = fates(run_row(small, "r1", "oom"), skipped)
    alone.learn([(small, "e1"), (large, "e1")])
    assert alone.stands(large, "e1") is not None and alone.smaller(large, "e1") == small.point
    shared = fates(run_row(small, "r1", "oom", facts={"condition": {"other_processes": 1}}), skipped)
    shared.learn([(small, "e1"), (large, "e1")])
    assert shared.stands(small, "e1") is None and shared.stands(large, "e1") is None
    tried = fates(run_row(small, "r1", "oom"), skipped, skip_after_oom=False)
    tried.learn([(small, "e1"), (large, "e1")])
    assert tried.stands(large, "e1") is None and tried.smaller(large, "e1") is None


def test_a_memory_limit_is_compared_with_the_one_then() -> None:
    """The same or a lower one tells nothing new, a higher one or none does."""
    limited = run_row(job(size=8), "r1", "oom", facts={"limits": {"memory_limit_bytes": 2_000_000_000}})
    stands = {limit: fates(limited, memory_limit_gb=limit).stands(job(size=8), "e1") for limit in (1, 2, 3, None)}
    assert {limit for limit, run in stands.items() if run is not None} == {1, 2}


@pytest.mark.parametrize(
    "facts",
    [
        "not json",
        "[1]",
        "null",
        '{"measure": 1}',
        '{"measure": {}}',
        '{"limits": 3}',
        '{"measure": 0}',
        '{"measure": {"target_frac": "x", "limit_s": 1}}',
    ],
)
def test_what_another_program_has_written_is_no_run_of_ours(facts: str) -> None:
    """The point is measured, and nothing breaks."""
    row = {**run_row(job(size=8), "r1"), "facts": facts}
    found = measured(row).run(job(size=8), "e1")
    assert found is None
