"""The page of a point as data: what is in it, what stands for more than it shows, and that nothing is lost unsaid."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest
from given import write_store
from rule_given import H200, Trace

from analysis import table
from analysis.report.point import point_pages
from analysis.report.point_flame import Node, folded, operators, tree, walk
from analysis.report.point_parts import LONGEST_NAME
from analysis.rules import judge
from analysis.store import open_store

ROOT = Path(__file__).parents[1]
GEMM = "nvjet_sm90_tst_64x8_64x16_1x4_h_bz_NNT"
RUN = {
    "wall_us": (28, 27, 29), "issue_us": (28, 27, 29), "device_us": (4, 4, 4), "margin": (7, 6.5, 7.5),
    "samples": [
        {"quantity": "wall", "round": 0, "position": 0, "value": 28.0},
        {"quantity": "wall_disturbed", "round": 1, "position": 1, "value": 61.0},
        {"quantity": "issue", "round": 0, "position": 2, "value": 27.5},
    ],
    "facts": {
        "reasons": {"blocked_us": "the step makes no synchronizing call"},
        "host_contended": True,
        "condition": {"sm_clock_mhz": [1900, 1980, 1980], "throttle_reasons": ["sw_power_cap"]},
    },
}  # fmt: skip


def steps(count: int = 5, name: str = GEMM) -> Trace:
    """Steps of 30 us, 40 us apart: an operation in an operation, a launch, and 4 us of the device much later."""
    trace = Trace()
    for step in range(count):
        start = 40 * step
        trace.step(step, start, 30)
        trace.host("aten::matmul", start + 2, 20, step, shapes="[[64,64],[64,64]]")
        trace.host("aten::mm", start + 4, 16, step)
        call = trace.call("cudaLaunchKernel", start + 10, 5, step)
        trace.work(name, start + 20, 4, step, call, grid=[4, 2, 1], block=[384, 1, 1], registers_per_thread=168)
    return trace


def page_of(folder: Path, trace: Trace, run: dict[str, Any] | None = None, budget: int = 150_000) -> dict[str, Any]:
    """The page of a run with this trace."""
    store = write_store(folder, runs=[RUN | (run or {})], events=trace.events(), environments=[H200])
    with open_store(store) as connection:
        return point_pages(connection, ["r000"], budget)["r000"]


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The page of five steps."""
    return page_of(tmp_path_factory.mktemp("point"), steps())


# --- parts ------------------------------------------------------------------------------------------------------------


def test_a_page_is_strict_json(page: dict[str, Any]) -> None:
    """It survives JSON as it is, without infinities."""
    assert json.loads(json.dumps(page, allow_nan=False)) == page


def test_times_have_intervals_or_the_reason_for_none(page: dict[str, Any]) -> None:
    """A time that was taken has its ends; one that was not says why; what does not apply is left away."""
    times = {time["name"]: time for time in page["times"]}
    assert (times["wall"]["value"], times["wall"]["low"], times["wall"]["high"]) == (28, 27, 29)
    assert times["blocked"]["value"] is None
    assert times["blocked"]["reason"] == "the step makes no synchronizing call"
    assert "floor" not in times


def test_the_verdict_is_that_of_the_store(page: dict[str, Any]) -> None:
    """Bound and sentence are those of `bounds`."""
    assert page["verdict"]["bound"] == "overhead-bound"
    assert page["verdict"]["sentence"].startswith("The host needs 28.0 us")
    assert page["run"]["title"] == "matmul_add · size 64 · fp32 · eager"


def test_data_quality_is_told(page: dict[str, Any]) -> None:
    """A contended host, a lower clock and disturbed samples each have a sentence."""
    told = " ".join(page["quality"])
    assert "used the host" in told
    assert "sw_power_cap" in told
    assert "1 of 3 samples" in told


def test_samples_keep_their_order_and_their_outliers(page: dict[str, Any]) -> None:
    """A disturbed sample stays in the strip of its quantity, marked."""
    strips = {strip["name"]: strip for strip in page["samples"]}
    assert strips["wall"]["value"] == [28, 61]
    assert strips["wall"]["disturbed"] == [1]
    assert strips["issue"]["position"] == [2]


def test_steps_name_the_typical_one(page: dict[str, Any]) -> None:
    """Of five alike steps, the first set aside, the second of the others in order is the typical one."""
    told = page["steps"]
    assert told["step"] == [0, 1, 2, 3, 4]
    assert told["step"][told["typical"]] == 2
    assert told["busy_us"] == [4] * 5
    assert told["launches"] == [1] * 5


def test_a_kernel_has_its_decoded_name_and_its_footprint(page: dict[str, Any]) -> None:
    """What the name says, launch shape, share and waves stand beside each other."""
    [kernel] = page["kernels"]
    assert page["names"][kernel["name"]] == GEMM
    assert {"cuBLAS", "gemm", "tile 64x8", "tensor cores"} <= set(kernel["decoded"])
    assert (kernel["grid"], kernel["calls"], kernel["share"]) == ([4, 2, 1], 5, 1)
    assert kernel["registers_per_thread"] == 168


def test_a_failed_run_has_a_page_that_says_why(tmp_path: Path) -> None:
    """Without times and trace the page holds the reason, and its parts are empty."""
    failed = {"run_id": "r000", "workload": "matmul_add", "size": 9, "status": "oom", "reason": "out of memory"}
    with open_store(write_store(tmp_path, runs=[failed])) as connection:
        page = point_pages(connection, ["r000"])["r000"]
    assert page["quality"] == ["The run is oom: out of memory."]
    assert page["timeline"] is page["flame"] is page["steps"] is page["operators"] is None
    assert page["kernels"] == page["memory"] == page["findings"] == []


def test_a_run_that_is_not_there_has_no_page(tmp_path: Path) -> None:
    """An unknown id is left away."""
    with open_store(write_store(tmp_path)) as connection:
        assert point_pages(connection, ["nothing"]) == {}


# --- timeline ---------------------------------------------------------------------------------------------------------


def names_in(page: dict[str, Any], places: list[int]) -> list[str]:
    """Names of blocks of the timeline."""
    return [page["names"][page["timeline"]["name"][place]] for place in places]


def test_lanes_are_threads_above_streams(page: dict[str, Any]) -> None:
    """One thread, five deep, over one stream."""
    assert [(lane["side"], lane["rows"]) for lane in page["timeline"]["lanes"]] == [("host", 5), ("device", 1)]


def test_blocks_nest_as_their_events_do(page: dict[str, Any]) -> None:
    """The depth of a block is that of its event, and rows of a lane are slices in the order of time."""
    timeline = page["timeline"]
    depths = {name: timeline["depth"][place] for place, name in enumerate(names_in(page, list(range(30))))}
    assert (depths["matmul_add"], depths["aten::matmul"], depths["aten::mm"], depths["cudaLaunchKernel"]) == (
        1,
        2,
        3,
        4,
    )
    keys = list(zip(timeline["lane"], timeline["depth"], timeline["from"], strict=True))
    assert keys == sorted(keys)


def test_device_work_points_at_its_launch(page: dict[str, Any]) -> None:
    """The launch of a kernel is the place of the call that started it, ten microseconds before."""
    timeline = page["timeline"]
    pairs = [(place, launch) for place, launch in enumerate(timeline["launch"]) if launch >= 0]
    assert len(pairs) == 5
    assert set(names_in(page, [launch for _, launch in pairs])) == {"cudaLaunchKernel"}
    assert {timeline["from"][work] - timeline["from"][call] for work, call in pairs} == {10_000}


def test_the_view_opens_on_the_typical_step_and_its_neighbours(page: dict[str, Any]) -> None:
    """All events are there, and the first view is steps 1 to 3."""
    timeline = page["timeline"]
    assert timeline["view"] == [41_000, 161_000]
    assert page["notes"]["timeline"] == [
        "All 30 events of the profiled window are drawn; the view opens on steps 1 to 3 (step 2, the typical one)."
    ]


def test_gaps_have_their_cause(page: dict[str, Any]) -> None:
    """Between the kernels the host is late, and says so."""
    gaps = page["timeline"]["gaps"]
    assert [gaps["causes"][cause] for cause in gaps["cause"]] == ["host late"] * 4
    assert set(gaps["dur_ns"]) == {36_000}


def test_details_tell_launch_shape_and_input_shapes(page: dict[str, Any]) -> None:
    """A kernel has its grid and registers, an operation its shapes."""
    details = page["timeline"]["details"]
    assert any("grid 4 × 2 × 1" in words and "168 registers" in words for words in details)
    assert any("[[64,64],[64,64]]" in words for words in details)


def crowded(operations: int) -> Trace:
    """One step of many operations of 1 us and one of 50 us; the device does 0.5 us for each tenth."""
    trace = Trace()
    trace.step(0, 0, 3 * operations + 100)
    trace.host("aten::long", 1, 50, 0)
    for place in range(operations):
        start = 60 + 3 * place
        if place % 10:
            trace.host("aten::tiny", start, 1, 0)
        else:
            trace.work("k", start + 2, 0.5, 0, trace.call("cudaLaunchKernel", start, 1, 0))
    return trace


def test_what_does_not_fit_is_put_together_and_stated(tmp_path: Path) -> None:
    """Every event is in a block, durations add up, the longest has a block of its own, and a note has the numbers."""
    trace = crowded(600)
    page = page_of(tmp_path, trace, budget=0)
    timeline = page["timeline"]
    together = {place: (events, busy) for place, events, _, busy in timeline["together"]}
    events = sum(together.get(place, (1, 0))[0] for place in range(len(timeline["from"])))
    busy = sum(together.get(place, (0, dur))[1] for place, dur in enumerate(timeline["dur"]))
    assert events == len(trace.events())
    assert busy == sum(event["dur_ns"] for event in trace.events())
    assert len(timeline["from"]) < 300
    assert "aten::long" in names_in(page, [place for place in range(len(timeline["from"])) if place not in together])
    merged = sum(count for count, _ in together.values())
    assert any(f"{merged:,} events" in note and f"{len(together)} blocks" in note for note in page["notes"]["timeline"])


def test_blocks_of_a_row_do_not_overlap(tmp_path: Path) -> None:
    """What is put together lies between what is not."""
    timeline = page_of(tmp_path, crowded(600), budget=0)["timeline"]
    ends: dict[tuple[int, int], int] = {}
    for lane, depth, start, dur in zip(
        timeline["lane"], timeline["depth"], timeline["from"], timeline["dur"], strict=True
    ):
        assert start >= ends.get((lane, depth), start)
        ends[lane, depth] = start + dur


def test_events_of_the_evidence_stay_their_own(tmp_path: Path) -> None:
    """The first event that a finding shows can be jumped to, however short it is."""
    store = write_store(tmp_path, runs=[RUN], events=crowded(600).events(), environments=[H200])
    with open_store(store) as connection:
        judge(connection)
        late = "SELECT run_id, (evidence::JSON -> 'events')::BIGINT[] AS ids FROM findings WHERE \"rule\" = 'host_late'"
        [(_, ids)] = connection.execute(late).fetchall()
        timeline = point_pages(connection, ["r000"], 0)["r000"]["timeline"]
    together = {place for place, *_ in timeline["together"]}
    assert ids[0] in {event for place, event in enumerate(timeline["id"]) if place not in together}


def test_a_very_long_name_is_cut_and_says_so(tmp_path: Path) -> None:
    """A template of 5,000 characters keeps its beginning and its length."""
    page = page_of(tmp_path, steps(name="k" * 5000))
    [name] = [name for name in page["names"] if name.startswith("kkk")]
    assert name == "k" * LONGEST_NAME + "… (5,000 characters)"


# --- call paths and operators -----------------------------------------------------------------------------------------


def test_call_paths_hold_host_and_device_time_of_one_step(page: dict[str, Any]) -> None:
    """Own times of the typical step add up to its annotation, and the kernel lies under its launch."""
    flame = page["flame"]
    names = [page["names"][name] for name in flame["name"]]
    assert flame["step"] == 2
    assert sum(flame["host_us"]) == 32
    assert flame["device_us"][names.index(GEMM)] == 4
    assert names[flame["above"][names.index(GEMM)]] == "cudaLaunchKernel"
    assert all(above < place for place, above in enumerate(flame["above"]))


def test_operators_are_those_of_the_profilers_table(tmp_path: Path) -> None:
    """Of a trace of one step, names, calls and times are the same as in the table of torch.profiler."""
    store = write_store(tmp_path, runs=[RUN], events=steps(1).events(), environments=[H200])
    with open_store(store) as connection:
        table.prepare(connection, "r000", False)
        columns = "calls, self_host_us, host_us, self_device_us, device_us"
        query = f"SELECT name, {columns} FROM operator_table WHERE kind NOT IN ('work', 'shadow')"
        expected = {row[0].replace("*", "#0"): row[1:] for row in connection.execute(query).fetchall()}
        page = point_pages(connection, ["r000"])["r000"]
    rows = page["operators"]
    keys = ("calls", "self_host_us", "host_us", "self_device_us", "device_us")
    found = {page["names"][name]: tuple(rows[key][place] for key in keys) for place, name in enumerate(rows["name"])}
    # torch gives a call of the runtime no device time: that is its operation's
    assert {name: values for name, values in found.items() if name != "cudaLaunchKernel"} == {
        name: values for name, values in expected.items() if name != "cudaLaunchKernel"
    }


def path(key: int, above: int | None, name: str, host_us: float = 0, device_us: float = 0) -> dict[str, Any]:
    """A row of point_paths."""
    return {
        "path": key, "above": above, "name": name, "category": "kernel" if device_us else "cpu_op", "calls": 1,
        "host_us": host_us, "device_us": device_us, "is_device": device_us > 0, "first_id": key,
    }  # fmt: skip


def test_an_operator_in_itself_counts_once() -> None:
    """Totals of a recursive name are those of its outermost calls; self times and calls add up."""
    [row, _] = operators(tree([path(1, None, "f", 1), path(2, 1, "f", 2), path(3, 2, "g", 0.5), path(4, 3, "k", 0, 8)]))
    assert (row["name"], row["calls"], row["self_host_us"], row["host_us"], row["device_us"]) == ("f", 2, 3, 3.5, 8)


def test_small_paths_are_put_together_without_losing_time() -> None:
    """A tree of 200 leaves becomes about 20 nodes that hold the same time."""
    leaves = [path(place, 1, f"leaf {place}", 1 if place > 20 else 50) for place in range(2, 202)]
    roots = tree([path(1, None, "root", 10), *leaves])
    few = list(walk(folded(roots, 20)))
    assert len(few) <= 21
    assert sum(node.host_us for node in few) == 10 + 19 * 50 + 181
    assert [node.folded for node in few if node.folded] == [181]


def test_deep_stacks_are_no_trouble() -> None:
    """Ten thousand calls in each other are one chain."""
    roots: list[Node] = tree([path(place, place - 1 if place else None, "f", 1) for place in range(10_000)])
    assert roots[0].host_total_us == 10_000


# --- findings, memory -------------------------------------------------------------------------------------------------


def test_sides_of_one_thing_are_one_finding(page: dict[str, Any]) -> None:
    """The late host speaks for the gaps that it makes, and the most severe come first."""
    rules = {finding["rule"]: finding for finding in page["findings"]}
    also = {finding["rule"] for finding in rules["host_late"]["also"]}
    assert {"gaps_between_steps"} <= also
    assert not also & rules.keys()
    order = [("misleads", "costs", "explains").index(finding["severity"]) for finding in page["findings"]]
    assert order == sorted(order)


def test_memory_is_told_by_its_moments(tmp_path: Path) -> None:
    """Of 1,000 changes at most 400 points are kept, the peak among them, and the note says so."""
    trace = steps(1)
    for place in range(1000):
        total = 10_000 if place == 617 else place
        args = {"Device Type": 1, "Device Id": 0, "Total Allocated": total, "Total Reserved": 20_000}
        trace.host("[memory]", 0.02 * place, 0, 0, "cpu_instant_event", bytes=1, args=json.dumps(args))
    page = page_of(tmp_path, trace)
    [device] = page["memory"]
    assert max(device["allocated_bytes"]) == 10_000
    assert set(device["reserved_bytes"]) == {20_000}
    assert len(device["at_ns"]) <= 400
    assert page["notes"]["memory"][0].startswith("1,000 changes are drawn as")


# --- real stores ------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def h200() -> Iterator[duckdb.DuckDBPyConnection]:
    """The runs with traces of one H200."""
    with open_store(ROOT / "docs" / "results" / "h200_findings", whole=True) as connection:
        yield connection


@pytest.fixture(scope="module")
def pages(h200: duckdb.DuckDBPyConnection) -> dict[str, dict[str, Any]]:
    """Pages of every fifth of them."""
    runs = [row[0] for row in h200.execute("SELECT run_id FROM stg_runs ORDER BY run_id").fetchall()]
    return point_pages(h200, runs[::5])


def test_real_pages_keep_their_budget(pages: dict[str, dict[str, Any]]) -> None:
    """A page takes at most 150 kB, every part is there, and each event of the trace is drawn."""
    assert len(pages) == 12
    for page in pages.values():
        assert len(json.dumps(page, separators=(",", ":"), ensure_ascii=False)) < 150_000
        assert page["timeline"] is not None
        assert page["flame"] is not None
        assert page["samples"]


def test_the_query_behind_a_section_runs_and_gives_what_is_shown(
    h200: duckdb.DuckDBPyConnection, pages: dict[str, dict[str, Any]]
) -> None:
    """Each works as it stands, and has a row for everything that its section draws."""
    page = next(iter(pages.values()))
    rows = {section: len(h200.execute(query).fetchall()) for section, query in page["sql"].items()}
    assert rows["times"] == 1
    assert rows["samples"] == sum(len(strip["value"]) for strip in page["samples"])
    assert rows["steps"] == len(page["steps"]["step"])
    assert rows["kernels"] == len(page["kernels"])
    assert rows["cures"] == len(page["cures"])
    assert rows["findings"] == sum(1 + len(finding["also"]) for finding in page["findings"])
    assert rows["operators"] == len(page["operators"]["name"])
    assert rows["timeline"] == len(page["timeline"]["from"])
    assert rows["gaps"] == len(page["timeline"]["gaps"]["start_ns"])
    assert rows["memory"] == 0
