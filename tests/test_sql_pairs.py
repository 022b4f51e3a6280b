"""The view pairs: two points that differ in one thing alone, held against each other."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from given import write_store

from analysis.multiples import SMALL_MULTIPLES_SQL
from analysis.pairs import KINDS
from analysis.roofline import FUSION_SQL, ROOFLINE_SQL
from analysis.store import add, open_store

Row = dict[str, Any]

CARDS = [
    {"environment_id": each, "device": "cuda", "device_name": "a card", "torch": "2.11"} for each in ("env", "new")
]


def pairs(folder: Path, *runs: Mapping[str, Any], environments: list[Row] = CARDS) -> list[Row]:
    """Rows of the view without the pairs of the profiler, in a fixed order."""
    return [row for row in all_pairs(folder, *runs, environments=environments) if row["kind"] != "profiler"]


def all_pairs(folder: Path, *runs: Mapping[str, Any], environments: list[Row] = CARDS) -> list[Row]:
    """Rows of the view, in a fixed order."""
    store = write_store(folder, runs=runs, environments=environments)
    with open_store(store) as connection:
        add(connection, "pairs")
        found = connection.execute("FROM pairs ORDER BY kind, a, b, quantity, size")
        names = [column[0] for column in found.description or ()]
        return [dict(zip(names, row, strict=True)) for row in found.fetchall()]


def step(wall_us: Any = 40, **more: Any) -> Row:
    """A step that the host issues in its wall time and the device finishes in 2 us."""
    return {"wall_us": wall_us, "issue_us": wall_us, "device_us": 2, **more}


def wall(rows: list[Row]) -> Row:
    """The only row of wall times."""
    (row,) = [row for row in rows if row["quantity"] == "wall"]
    return row


def test_eager_against_compiled(tmp_path: Path) -> None:
    """A over B with the widest interval that both allow; the axes and ids are those of the compiled side."""
    rows = pairs(tmp_path, step((40, 38, 42)), step((20, 19, 21), compile="true"))
    assert {row["quantity"] for row in rows} == {"wall", "issue", "device"}
    row = wall(rows)
    assert (row["kind"], row["a"], row["b"], row["ratio"]) == ("compile", "eager", "compiled", 2)
    assert (row["ratio_low"], row["ratio_high"]) == pytest.approx((38 / 21, 42 / 19))
    assert (row["compile"], row["run_id"], row["change"]) == ("true", "r001", "less")
    assert row["a_point_id"] != row["point_id"]
    assert row["sentence"] == "A step takes 40.0 us eager and 20.0 us compiled: 2.00 times less (1.81 to 2.21)."


def test_each_mode_is_a_pair_with_eager_and_none_with_another(tmp_path: Path) -> None:
    """Two modes are two pairs: modes are not held against each other."""
    rows = pairs(tmp_path, step(), step(compile="true"), step(compile="max-autotune"))
    assert [(row["a"], row["b"]) for row in rows if row["quantity"] == "wall"] == [
        ("eager", "compiled"),
        ("eager", "max-autotune"),
    ]


def test_a_slower_side_says_how_much_more_it_takes(tmp_path: Path) -> None:
    """Below 1 the sentence gives the inverse."""
    row = wall(pairs(tmp_path, step((20, 19, 21)), step((40, 38, 42), compile="true")))
    assert (row["ratio"], row["change"]) == (0.5, "more")
    assert row["sentence"].endswith("2.00 times as much (1.81 to 2.21).")


def test_a_difference_within_the_noise_is_none(tmp_path: Path) -> None:
    """The interval holds 1."""
    row = wall(pairs(tmp_path, step((21, 19, 23)), step((20, 18, 22), compile="true")))
    assert row["change"] == "same" and "within the noise, a ratio of 1.05" in row["sentence"]


@pytest.mark.parametrize("more", [{"size": 128}, {"batch": 8}, {"params": {"threads": 2}}, {"workload": "addmm"}])
def test_points_that_differ_in_two_things_are_no_pair(tmp_path: Path, more: Row) -> None:
    """Compile mode and something else: nothing can be told apart."""
    assert pairs(tmp_path, step(), step(compile="true", **more)) == []


def test_the_schedule_of_the_profiler_tells_no_points_apart(tmp_path: Path) -> None:
    """A pair may have been profiled by different schedules."""
    rows = pairs(tmp_path, step(params={"schedule": "1/1/20/1"}), step(compile="true", params={"schedule": "0/0/20/1"}))
    assert wall(rows)["ratio"] == 1


def test_what_compiling_costs_and_how_many_steps_pay_it_back(tmp_path: Path) -> None:
    """2 s over 20 us saved a step are 100,000 steps; an eager step compiles nothing, so there is no ratio."""
    compiled = step(20, compile="true", facts={"compile": {"seconds": 2.0}})
    (row,) = [row for row in pairs(tmp_path, step(40), compiled) if row["quantity"] == "compilation"]
    assert (row["b_value"], row["unit"], row["ratio"]) == (2.0, "s", None)
    assert row["sentence"] == "Compiling took 2.00 s, which 100000 steps pay back."


def test_a_compiled_step_that_is_slower_never_pays_back(tmp_path: Path) -> None:
    """No number of steps makes up for it."""
    compiled = step(50, compile="true", facts={"compile": {"seconds": 2.0}})
    (row,) = [row for row in pairs(tmp_path, step(40), compiled) if row["quantity"] == "compilation"]
    assert row["sentence"].endswith("which no number of steps pays back.")


def test_every_two_number_formats_are_a_pair(tmp_path: Path) -> None:
    """Three formats are three pairs, the more exact one first."""
    rows = pairs(tmp_path, step(dtype="bf16"), step(dtype="fp32"), step(dtype="tf32"))
    assert [(row["a"], row["b"]) for row in rows if row["quantity"] == "wall"] == [
        ("fp32", "bf16"),
        ("fp32", "tf32"),
        ("tf32", "bf16"),
    ]


def test_environments_are_told_apart_by_what_differs(tmp_path: Path) -> None:
    """The older environment comes first, and only the version of torch is named where the cards are alike."""
    cards = [CARDS[0], CARDS[1] | {"torch": "2.13"}]
    row = wall(pairs(tmp_path, step(40), step(20, environment_id="new"), environments=cards))
    assert (row["kind"], row["a"], row["b"], row["ratio"]) == ("environment", "torch 2.11", "torch 2.13", 2)
    assert (row["a_environment_id"], row["environment_id"]) == ("env", "new")


def test_environments_that_read_alike_are_named_by_their_id(tmp_path: Path) -> None:
    """Same card and torch: the beginning of the id is what is left."""
    row = wall(pairs(tmp_path, step(40), step(20, environment_id="new")))
    assert (row["a"], row["b"]) == ("[env]", "[new]")


def test_cold_against_warm(tmp_path: Path) -> None:
    """The first call of a cold point over the wall time of its warm twin, whatever its schedule."""
    cold = {"warmup": "false", "params": {"schedule": "0/0/20/1"}, "facts": {"first_call_us": 4000}}
    (row,) = pairs(tmp_path, cold, step(40, params={"schedule": "1/1/20/1"}))
    assert (row["kind"], row["quantity"], row["a"], row["b"], row["ratio"]) == (
        "warmup",
        "first call",
        "cold",
        "warm",
        100,
    )
    assert (row["ratio_low"], row["change"]) == (None, None)
    assert row["sentence"] == "The first call took 4.00 ms, a warm step takes 40.0 us: 100 times less."


def test_profiled_against_unprofiled(tmp_path: Path) -> None:
    """One point with itself: host time under the profiler over issue time without."""
    (row,) = all_pairs(tmp_path, step(40, facts={"profile": {"profiled_host_us": 80}}))
    assert (row["kind"], row["quantity"], row["ratio"]) == ("profiler", "host", 2)
    assert row["a_point_id"] == row["point_id"]


def test_static_inputs_and_dynamic_shapes_are_pairs_of_compiled_points(tmp_path: Path) -> None:
    """Each is held against the compiled point that differs in it alone; to an eager point neither means anything."""
    rows = pairs(
        tmp_path,
        step(40, compile="reduce-overhead"),
        step(20, compile="reduce-overhead", params={"static_inputs": True}),
        step(80, compile="reduce-overhead", dynamic="true"),
        step(10),
    )
    found = {(row["kind"], row["a"], row["b"]): row["ratio"] for row in rows if row["quantity"] == "wall"}
    assert found["static_inputs", "copied inputs", "static inputs"] == 2
    assert found["dynamic", "dynamic=false", "dynamic=true"] == 0.5
    assert found["compile", "eager", "reduce-overhead static_inputs"] == 0.5
    assert found["compile", "eager", "reduce-overhead dynamic=true"] == 0.125
    assert len(found) == 5


def test_ways_to_the_same_result_are_pairs(tmp_path: Path) -> None:
    """The plainer way comes first, whichever was measured first; sizes share a series, and work tells points apart."""
    ways = [
        step(wall_us, workload="train_step", size=size, params={"impl": impl, "width": 64})
        for size in (64, 128)
        for wall_us, impl in ((20, "fused"), (40, "loop"))
    ]
    rows = pairs(tmp_path, *ways, step(10, workload="train_step", params={"impl": "fused", "width": 128}))
    walls = [row for row in rows if row["quantity"] == "wall"]
    assert {(row["kind"], row["a"], row["b"], row["ratio"]) for row in walls} == {
        ("setting", "impl=loop", "impl=fused", 2)
    }
    assert len(walls) == 2 and len({row["series"] for row in walls}) == 1
    assert walls[0]["sentence"].startswith(
        "A step takes 40.0 us with impl=loop and 20.0 us with impl=fused: 2.00 times less"
    )


def test_values_that_nobody_knows_are_pairs_in_the_order_of_their_names(tmp_path: Path) -> None:
    """Of somebody's own function: a known value is the plainer one."""
    rows = pairs(tmp_path, *(step(workload="custom", params={"impl": each}) for each in ("mine", "yours", "naive")))
    sides = {(row["a"], row["b"]) for row in rows}
    assert sides == {("impl=naive", "impl=mine"), ("impl=naive", "impl=yours"), ("impl=mine", "impl=yours")}


def test_peak_memory_is_what_the_steps_hold_where_both_were_watched(tmp_path: Path) -> None:
    """Libraries' workspaces are left out; else the allocator's peaks are compared."""

    def watched(checkpoint: bool, activations: int) -> Row:
        held = {"other": 50, "activations": activations}
        phase = {"phase": "step", "parent": None, "order": 0, "peak_bytes": 50 + activations, "holders_at_peak": held}
        facts = {"phase_memory": [phase], "memory": {"allocated_peak_bytes": 1000}}
        return step(workload="train_step", params={"checkpoint": checkpoint}, facts=facts)

    (row,) = [row for row in pairs(tmp_path / "a", watched(False, 300), watched(True, 100)) if row["unit"] == "bytes"]
    assert (row["a"], row["a_value"], row["b_value"], row["ratio"]) == ("checkpoint=false", 300, 100, 3)
    half = watched(True, 100) | {"facts": {"memory": {"allocated_peak_bytes": 500}}}
    (row,) = [row for row in pairs(tmp_path / "b", watched(False, 300), half) if row["unit"] == "bytes"]
    assert (row["a_value"], row["b_value"]) == (1000, 500)


def test_a_side_that_failed_is_a_row_with_its_reason(tmp_path: Path) -> None:
    """The pair is there, without a ratio."""
    failed = {"compile": "true", "status": "oom", "reason": "out of memory"}
    row = wall(pairs(tmp_path, step(40), failed))
    assert (row["a_value"], row["b_value"], row["ratio"]) == (40, None, None)
    assert row["reason"] == "compiled: oom: out of memory"
    assert row["sentence"] == "Unknown: compiled: oom: out of memory."


def test_on_the_cpu_the_terms_are_floor_and_work(tmp_path: Path) -> None:
    """Each in its own words; a low end below zero stays out of the ratio."""
    eager = {"device": "cpu", "wall_us": (10, 9, 11), "floor_us": (9, 8, 10)}
    rows = pairs(tmp_path, eager, eager | {"compile": "true"})
    found = {row["quantity"]: row for row in rows}
    assert set(found) == {"wall", "floor", "work"}
    assert (found["work"]["ratio_low"], found["work"]["ratio_high"], found["work"]["change"]) == (0, None, None)


def test_of_a_source_that_has_changed_the_latest_counts(tmp_path: Path) -> None:
    """Two points alike in every axis are one side."""
    rows = pairs(tmp_path, step(80, point_id="old"), step(40, point_id="new"), step(20, compile="true"))
    assert wall(rows)["a_value"] == 40


def test_sizes_of_one_comparison_share_a_series(tmp_path: Path) -> None:
    """Two sizes of eager against compiled; number formats are another series."""
    runs = [step(size=size, compile=mode) for size in (64, 128) for mode in ("false", "true")]
    rows = pairs(tmp_path, *runs, step(dtype="bf16"))
    series: dict[str, set[str]] = {row["kind"]: set() for row in rows}
    for row in rows:
        series[row["kind"]].add(row["series"])
    assert len(series["compile"]) == 1 and series["compile"].isdisjoint(series["dtype"])


def test_imports_are_no_pairs(tmp_path: Path) -> None:
    """A trace has no axes to be alike in."""
    assert all_pairs(tmp_path, step(source="import", point_id="one"), step(source="import", point_id="two")) == []


@pytest.mark.parametrize(
    "query", [ROOFLINE_SQL, FUSION_SQL, SMALL_MULTIPLES_SQL, *(kind.sql for kind in KINDS.values())]
)
def test_the_queries_that_charts_state_can_be_asked(tmp_path: Path, query: str) -> None:
    """What stands behind a chart's fold runs as it is."""
    with open_store(write_store(tmp_path, runs=[step()])) as connection:
        add(connection, "roofline", "pairs")
        connection.execute(query).fetchall()
