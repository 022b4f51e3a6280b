"""Real sweeps on the CPU, through the command line: every kind of point becomes a row, nothing else stays behind."""

from __future__ import annotations

import gzip
import json
import os
import re
import signal
import statistics
import time
from collections import Counter
from pathlib import Path

import polars as pl
import pytest
from sweeps import Done, children, finish, start, store_with, swept, wait_for_runs

from analysis.store import open_store
from runner import tables

pytestmark = pytest.mark.alone

# In the order of the sweep; max_step_s is no axis, so that 5, 6 and 7 seconds make the same point three times.
GRIDS = [
    {"size": 8, "max_step_s": 5},
    {"size": 384},
    {"size": 8, "max_step_s": 6},
    {"size": 8, "batch": 2, "schedule": "0/0/3"},
    {"size": 8, "warmup": 3, "schedule": "1/0/2/2"},
    {"size": 4096, "max_step_s": 0.00001},
    {"size": 8, "dtype": "tf32"},
    {"size": 16, "compile": "true"},
    {"size": 8, "warmup": "false", "schedule": "0/0/5"},
    {"size": 8, "max_step_s": 7},
    {"workload": "noop"},
]
FIRST, HOT, AFTER_HOT, BATCHED, NUMBERED, SKIPPED, FAILED, COMPILED, COLD, LAST, NOOP = range(len(GRIDS))


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory, measured_roofs: Path) -> Done:
    """One sweep that meets everything."""
    store = store_with(tmp_path_factory.mktemp("sweep"), measured_roofs)
    grids = ",".join("{" + ",".join(f'{key}:"{value}"' for key, value in grid.items()) + "}" for grid in GRIDS)
    arguments = ["measure=quick", "artifacts=true", f"hydra.sweeper.grids=[{grids}]"]
    return swept(store, *arguments)


def test_every_point_is_a_row_with_its_status(done: Done) -> None:
    """A failed or impossible point is a row, never a gap; the sweep goes on and ends with 2."""
    assert [row["status"] for row in done.rows] == [
        "ok", "ok", "ok", "ok", "ok", "skipped", "failed", "ok", "ok", "ok", "ok",
    ], done.stdout + done.stderr  # fmt: skip
    assert done.code == 2
    assert [done.facts(position)["position"] for position in range(len(GRIDS))] == list(range(len(GRIDS)))


def test_the_sweep_says_what_it_does(done: Done) -> None:
    """A line a point, then a summary and where the results lie; nothing on stderr."""
    lines = done.stdout.splitlines()
    assert len(lines) == len(GRIDS) + 2
    assert "9 ok, 1 failed, 1 skipped in" in lines[-2] and str(done.store) in lines[-2]
    assert lines[-1].startswith("Next: ") and lines[-1].endswith(f"python -m analysis report --store {done.store}")
    assert done.stderr == ""


def test_every_column_has_its_type(done: Done) -> None:
    """All files hold the full schema of docs/store.md, also where every value is null."""
    schemas = {"runs": tables.RUNS, "events": tables.EVENTS, "environments": tables.ENVIRONMENTS}
    schemas |= {"roofs": tables.ROOFS, "code": tables.CODE}
    for name, schema in schemas.items():
        files = list((done.store / name).rglob("*.parquet"))
        assert files
        assert all(pl.read_parquet_schema(path) == schema for path in files)


def test_nothing_stays_behind(done: Done) -> None:
    """No temporary file in the store, no folder of trace files, and only the folders that docs/store.md names."""
    assert not list(done.store.rglob("*.tmp"))
    assert not list(done.scratch.glob("crossover-*"))
    assert {path.name for path in done.store.iterdir()} == {
        "runs", "events", "environments", "roofs", "code", "artifacts",
    }  # fmt: skip


def test_ids_and_times_are_in_order(done: Done) -> None:
    """Run ids and start times rise with the position; one sweep, and the same machine for all that needs torch."""
    runs = [row["run_id"] for row in done.rows]
    started = [row["started_at"] for row in done.rows]
    assert (runs, started) == (sorted(runs), sorted(started))
    assert len({row["sweep_id"] for row in done.rows}) == 1
    assert len({row["environment_id"] for row in done.rows[:NOOP]}) == 1


def test_a_warm_point_has_both_times_of_a_cpu(done: Done) -> None:
    """wall, floor and, where slopes are taken, twice the work, in interleaved rounds; reasons for what is missing."""
    row = done.rows[FIRST]
    for name in ("wall_us", "floor_us"):
        value, low, high = row[name]
        assert 0 < low <= value <= high
    assert (row["dtype"], row["device"], row["compile"], row["warmup"]) == ("fp32", "cpu", "false", "true")
    for name in ("issue_us", "device_us", "replay_us", "single_us", "blocked_us", "host_slope", "device_slope"):
        assert row[name] is None and done.facts(FIRST)["reasons"][name]
    taken = [each["quantity"] for each in row["samples"] if each["quantity"] != "profiled"]
    assert taken[:6] == ["wall", "floor", "doubled", "doubled", "floor", "wall"]
    assert [each["position"] for each in row["samples"]] == list(range(len(row["samples"])))
    assert statistics.median(done.samples(FIRST, "wall")) == row["wall_us"][0]


def test_a_warm_point_tells_how_it_was_measured(done: Done) -> None:
    """Why measuring ended, rounds, seconds, target, the first call, warm-up, cost, and the host's condition."""
    facts = done.facts(FIRST)
    assert facts["stopped"] in ("target", "limit", "rounds")
    assert facts["rounds"] == len(done.samples(FIRST, "wall")) >= 3
    assert facts["measure"] == {"name": "quick", "target_frac": 0.1, "limit_s": 0.2}
    assert 0 < facts["measured_s"] <= facts["elapsed_s"]
    assert facts["first_call_us"] > 0 and facts["warmup_steps"] > 2
    assert [each["name"] for each in facts["cost"]["operations"]] == ["matmul", "add"]
    assert "involuntary_switches" in facts["condition"]
    assert facts["profile"]["perturbation"] > 1


def test_the_schedule_is_kept_exactly(done: Done) -> None:
    """1/1/20/1 records steps 2 to 21; 0/0/3 steps 0 to 2; 1/0/2/2 two windows of two behind one wait each."""
    recorded = {
        position: sorted(step for step in done.events(position)["step"].unique().to_list() if step is not None)
        for position in (FIRST, BATCHED, NUMBERED, COLD)
    }
    assert recorded == {FIRST: list(range(2, 22)), BATCHED: [0, 1, 2], NUMBERED: [1, 2, 4, 5], COLD: [0, 1, 2, 3, 4]}
    assert json.loads(done.rows[NUMBERED]["params"])["schedule"] == "1/0/2/2"
    assert done.rows[NUMBERED]["warmup"] == "3" and done.facts(NUMBERED)["warmup_steps"] == 3


def test_events_belong_to_their_steps(done: Done) -> None:
    """Each step holds one annotation with the workload's name, and its operators inside it."""
    events = done.events(FIRST)
    marks = events.filter((pl.col("name") == "matmul_add") & (pl.col("category") == "user_annotation"))
    assert marks["step"].to_list() == list(range(2, 22))
    products = events.filter(pl.col("name") == "aten::mm")
    assert products["step"].to_list() == list(range(2, 22))
    within = products.join(marks, on="step", suffix="_mark").filter(
        (pl.col("ts_ns") >= pl.col("ts_ns_mark"))
        & (pl.col("ts_ns") + pl.col("dur_ns") <= pl.col("ts_ns_mark") + pl.col("dur_ns_mark"))
    )
    assert within.height == 20
    assert json.loads(products["shapes"][0])[:2] == [[8, 8], [8, 8]]
    assert events["event_id"].to_list() == list(range(events.height))
    assert not events["is_device"].any()
    assert set(done.events(BATCHED)["name"]) >= {"aten::bmm"}


def test_profiled_host_times_stand_among_the_samples(done: Done) -> None:
    """One for each recorded step."""
    assert len(done.samples(FIRST, "profiled")) == 20
    assert len(done.samples(BATCHED, "profiled")) == 3


def test_a_predicted_step_that_is_too_long_is_skipped(done: Done) -> None:
    """The roofs predict it before anything is allocated; the estimate is told."""
    row = done.rows[SKIPPED]
    assert "above max_step_s=1e-05" in row["reason"]
    estimate = done.facts(SKIPPED)["estimate_s"]
    assert 2 * 4096**3 / 1e14 < estimate < 2 * 4096**3 / 1e8
    assert row["wall_us"] is None and row["samples"] == []


def test_a_dtype_that_the_device_lacks_fails_alone(done: Done) -> None:
    """tf32 on a CPU: a row with the reason and the cure."""
    row = done.rows[FAILED]
    assert row["reason"] == "ValueError: dtype=tf32: tf32 is a mode of CUDA's tensor cores; use dtype=fp32"
    assert (row["dtype"], row["size"]) == ("tf32", 8)


def test_a_compiled_point_ran_compiled(done: Done) -> None:
    """A compiled region in its trace; the first call holds the compilation; facts of the compiler."""
    facts = done.facts(COMPILED)["compile"]
    assert facts["region_ran"] is True
    assert (facts["compilations"], facts["graph_breaks"], facts["reasons"]) == (1, 0, [])
    assert facts["seconds"] > 0
    assert done.facts(COMPILED)["first_call_us"] > 5 * done.rows[COMPILED]["wall_us"][0]
    assert done.events(COMPILED)["name"].str.starts_with("Torch-Compiled Region").any()
    assert "compile" not in done.facts(FIRST)


def test_a_cold_point_has_its_first_steps(done: Done) -> None:
    """The times of the first five steps of one process, the first by far the longest, and the profile of another."""
    row, first = done.rows[COLD], done.samples(COLD, "first")
    assert len(first) == 5
    assert first[0] == done.facts(COLD)["first_call_us"] > 2 * min(first[1:])
    assert row["wall_us"] is None and row["margin"] is None
    assert row["warmup"] == "false" and json.loads(row["params"])["schedule"] == "0/0/5/1"
    assert len(done.samples(COLD, "profiled")) == 5
    assert done.facts(COLD)["profiled_elapsed_s"] > 0


def test_noop_is_a_row_without_times(done: Done) -> None:
    """One call, status ok, no size, no rounds, no profile."""
    row = done.rows[NOOP]
    assert (row["workload"], row["size"], row["batch"], row["wall_us"], row["samples"]) == (
        "noop",
        None,
        None,
        None,
        [],
    )
    assert done.facts(NOOP)["reasons"]["wall_us"]


def test_artifacts_are_kept_beside_their_run(done: Done) -> None:
    """Trace and table of each point that has a profile, named by the point and the run, and readable."""
    row = done.rows[COMPILED]
    kept = done.facts(COMPILED)["artifacts"]
    stem = f"artifacts/{row['sweep_id']}/matmul_add_16_fp32_warm_compile_bnone_{row['run_id']}"
    assert kept == {"trace": f"{stem}.json.gz", "table": f"{stem}.txt"}
    assert json.loads(gzip.decompress((done.store / kept["trace"]).read_bytes()))["traceEvents"]
    assert "Self CPU" in (done.store / kept["table"]).read_text()
    assert "_cold_eager_bnone_" in done.facts(COLD)["artifacts"]["trace"]
    assert set(done.facts(NUMBERED)["artifacts"]) == {"trace", "trace_1", "table"}
    assert not done.facts(FAILED).get("artifacts")
    named = {path for position in range(NOOP) for path in done.facts(position).get("artifacts", {}).values()}
    assert named == {str(path.relative_to(done.store)) for path in (done.store / "artifacts").rglob("*.*")}


def test_the_generated_code_is_kept(done: Done) -> None:
    """The compiled point names the one file that was generated for it; others name none."""
    compiled = done.facts(COMPILED)["compile"]
    (path,) = (done.store / "code").iterdir()
    assert compiled["code"] == [path.stem]
    assert pl.read_parquet(path)["graph_hash"].to_list() == compiled["graph_hashes"]
    assert [each["name"] for each in compiled["frames"]] == ["matmul_add"]
    assert "compile" not in done.facts(FIRST)


def test_a_profile_says_how_it_was_recorded(done: Done) -> None:
    """The profiler's options; clocks and memory counters are a card's, so a CPU has neither."""
    facts = done.facts(FIRST)
    assert facts["profile"]["options"] == {
        "record_shapes": True, "profile_memory": False, "with_stack": False, "with_modules": False,
        "tool": "torch", "nvtx": None,
    }  # fmt: skip
    assert facts["profile"]["window"] is None and "memory" not in facts


def test_roofs_are_measured_once(done: Done) -> None:
    """FLOP/s of every dtype, DRAM and L2; what a CPU has not is NULL with the reason."""
    (path,) = (done.store / "roofs").iterdir()
    rows = {(row["roof"], row["dtype"]): row for row in pl.read_parquet(path).to_dicts()}
    assert set(rows) == {("flops", dtype) for dtype in ("fp32", "tf32", "bf16", "fp16")} | {
        ("dram", None),
        ("l2", None),
    }
    assert rows["flops", "tf32"]["value_per_s"] is None and "tf32" in rows["flops", "tf32"]["reason"]
    assert 1e8 < rows["flops", "fp32"]["value_per_s"] < 1e14
    assert 1e8 < rows["dram", None]["value_per_s"] < 1e13
    assert all(
        row["low_per_s"] <= row["value_per_s"] <= row["high_per_s"] for row in rows.values() if row["value_per_s"]
    )
    assert path.stem == done.rows[FIRST]["environment_id"]


def test_the_analysis_reads_it(done: Done) -> None:
    """The public views hold one row a point; the point that was measured three times is one of three runs."""
    with open_store(done.store) as connection:
        bounds = connection.sql("SELECT point_id, runs, ok_runs, bound FROM bounds").fetchall()
    assert len(bounds) == len({row["point_id"] for row in done.rows}) == len(GRIDS) - 2
    told = {point: (runs, ok, bound) for point, runs, ok, bound in bounds}
    assert told[done.rows[FIRST]["point_id"]][:2] == (3, 3)
    assert told[done.rows[HOT]["point_id"]][2] in ("compute-bound", "memory-bound", "device-bound")
    assert {told[done.rows[position]["point_id"]][2] for position in (SKIPPED, FAILED, COLD, NOOP)} == {"unknown"}


def alike(walls: list[list[float]]) -> bool:
    """Whether all medians lie within a factor of 2.5, or all intervals share a value.

    A virtual machine changes its pace by a factor of 2 from one second to the next; what a hot neighbour could leave
    behind (memory, compiled code, threads that spin) costs far more.
    """
    values = [value for value, _, _ in walls]
    return max(values) <= 2.5 * min(values) or max(low for _, low, _ in walls) <= min(high for *_, high in walls)


def test_order_changes_nothing(done: Done, tmp_path: Path) -> None:
    """The same point first, behind a hot one, and last takes the same time; on a shared machine, at the second try."""
    places = (FIRST, AFTER_HOT, LAST)
    assert len({done.rows[place]["point_id"] for place in places}) == 1
    walls = [done.rows[place]["wall_us"] for place in places]
    if not alike(walls):
        grids = "[{size:8,max_step_s:5},{size:384},{size:8,max_step_s:6}]"
        again = swept(store_with(tmp_path, done.store), "measure=quick", f"hydra.sweeper.grids={grids}")
        walls = [again.rows[place]["wall_us"] for place in (0, 2)]
    assert alike(walls), walls


# -- a worker that is killed ------------------------------------------------------------------------------------------


def test_a_killed_worker_costs_one_point(measured_roofs: Path, tmp_path: Path) -> None:
    """SIGKILL in the middle of a point: its row says so, and the next is measured in a new worker."""
    store, scratch = store_with(tmp_path, measured_roofs), tmp_path / "scratch"
    sweep = start(store, scratch, "size=704,736,768", "measure.target_frac=1e-9", "measure.limit_s=2")
    wait_for_runs(store, sweep)
    time.sleep(0.7)  # the second point is warmed up or measured now: two seconds at least
    (worker,) = children(sweep.pid)
    os.kill(worker, signal.SIGKILL)
    found = finish(sweep, store, scratch)
    assert Counter(row["status"] for row in found.rows) == {"ok": 2, "crashed": 1}, found.stdout
    assert [row["size"] for row in found.rows] == [704, 736, 768]
    crashed = found.rows[1]
    assert crashed["status"] == "crashed"
    assert re.match(r"the worker ended with signal SIGKILL", crashed["reason"])
    assert found.code == 2
    assert not list(scratch.glob("crossover-*")) and not list(store.rglob("*.tmp"))
