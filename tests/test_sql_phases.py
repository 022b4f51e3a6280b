"""The view phases: what each annotation of a step costs host and device, and that the parts add up to the step."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from given import write_store
from rule_given import Trace

from analysis.store import add, open_store

Rows = dict[str, dict[str, Any]]

SUMMED = ("host_us", "device_us", "launches", "kernels", "idle_us", "wait_us")


def phases(folder: Path, trace: Trace, run: Mapping[str, Any] | None = None) -> Rows:
    """Path -> the row of the only run; of several kinds `kind:path`."""
    store = write_store(folder, runs=[{"workload": "train_step", **(run or {})}], events=trace.events())
    with open_store(store) as connection:
        add(connection, "phases")
        result = connection.execute('FROM phases ORDER BY "order"')
        names = [column[0] for column in result.description or ()]
        rows = [dict(zip(names, row, strict=True)) for row in result.fetchall()]
    return {f"{row['kind']}:{row['path']}" if row["kind"] else row["path"]: row for row in rows}


def training_step(trace: Trace, step: int, at: float) -> None:
    """100 us: forward 10 to 40 with attention 15 to 25, backward 40 to 70 on another thread, optimizer 75 to 95."""
    trace.step(step, at, 100)
    trace.host("forward", at + 10, 30, step, "user_annotation")
    trace.host("attention", at + 15, 10, step, "user_annotation")
    trace.host("backward", at + 40, 30, step, "user_annotation")
    trace.host("optimizer", at + 75, 20, step, "user_annotation")
    trace.launched("zero", at + 5, at + 12, 3, step)
    trace.launched("scores", at + 16, at + 20, 10, step)
    trace.launched("product", at + 30, at + 32, 13, step)
    trace.launched("gradient", at + 45, at + 50, 20, step)
    call = trace.call("cudaLaunchKernel", at + 60, 2, step, tid="2")
    trace.work("weights", at + 65, 15, step, call, stream=8)
    trace.launched("copy", at + 80, at + 85, 4, step, "cudaMemcpyAsync", "gpu_memcpy")
    trace.call("cudaStreamSynchronize", at + 85, 5, step)


def training(steps: int = 4) -> Trace:
    """So many steps, the first of them with a late optimizer, and a fence behind the last."""
    trace = Trace("train_step")
    for step in range(steps):
        training_step(trace, step, 1000.0 * step)
    trace.host("crossover: fence", 1000.0 * steps, 50, steps - 1, "user_annotation")
    trace.call("cudaDeviceSynchronize", 1000.0 * steps + 1, 40, steps - 1)
    return trace


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Rows:
    """The phases of four alike steps."""
    return phases(tmp_path_factory.mktemp("phases") / "store", training())


def test_phases_nest_in_the_order_of_the_step(rows: Rows) -> None:
    """The step first, each phase before those in it, then what lies in none."""
    assert list(rows) == [
        "step", "forward", "forward / attention", "backward", "optimizer", "outside",
    ]  # fmt: skip
    assert rows["forward / attention"]["parent"] == "forward"
    assert [row["depth"] for row in rows.values()] == [0, 1, 2, 1, 1, 1]


def test_host_times_are_those_of_the_ranges(rows: Rows) -> None:
    """What is outside is the rest of the step."""
    host = {path: row["host_us"] for path, row in rows.items()}
    assert host == {
        "step": 100, "forward": 30, "forward / attention": 10, "backward": 30, "optimizer": 20, "outside": 20,
    }  # fmt: skip
    assert rows["forward"]["host_frac"] == pytest.approx(0.3)


def test_device_work_belongs_to_the_phase_of_its_launch(rows: Rows) -> None:
    """Also where autograd's thread launched it, however late it ran; an overlap counts once, for what began first."""
    device = {path: row["device_us"] for path, row in rows.items()}
    assert device == {
        "step": 60, "forward": 23, "forward / attention": 10, "backward": 30, "optimizer": 4, "outside": 3,
    }  # fmt: skip
    assert [rows[path]["launches"] for path in rows] == [6, 2, 1, 2, 1, 1]
    assert [rows[path]["kernels"] for path in rows] == [5, 2, 1, 2, 0, 1]


def test_outermost_phases_and_outside_add_up_to_the_step(rows: Rows) -> None:
    """Exactly, in every figure, and the step is that of the view steps."""
    for figure in SUMMED:
        parts = sum(row[figure] for row in rows.values() if row["depth"] == 1)
        assert parts == pytest.approx(rows["step"][figure], rel=1e-12), figure


def test_the_step_is_that_of_the_view_steps(tmp_path: Path) -> None:
    """Busy time, launches and kernels are the means over the same steps, to the nanosecond."""
    store = write_store(tmp_path, runs=[{"workload": "train_step"}], events=training().events())
    with open_store(store) as connection:
        add(connection, "phases")
        query = "SELECT device_us, launches, kernels, host_us FROM phases WHERE part = 'step'"
        [found] = connection.execute(query).fetchall()
        query = (
            "SELECT avg(busy_us), avg(kernel_launches + memcpy_launches + memset_launches + graph_launches), "
            "avg(kernels), avg(host_us) FROM steps WHERE step > 0"
        )
        [expected] = connection.execute(query).fetchall()
    assert found == pytest.approx(expected, rel=1e-12)


def test_idle_time_between_phases_is_of_none(rows: Rows) -> None:
    """Between two events of one phase it is that phase's; between two phases it lies outside; waiting is told apart."""
    idle = {path: row["idle_us"] for path, row in rows.items()}
    assert idle["forward"] == 2 and idle["forward / attention"] == 0
    assert idle["step"] == 5 + 2 + 5 + 5 and idle["outside"] == 15 and idle["backward"] == 0
    assert rows["optimizer"]["wait_us"] == 5
    assert rows["step"]["wait_us"] == 5, "the runner's fence is no wait of the step"


def test_the_first_recorded_step_is_left_out(tmp_path: Path) -> None:
    """A first step ten times as long changes nothing; alone it is all there is."""
    trace = Trace("train_step")
    trace.step(0, 0, 5000)
    trace.host("forward", 10, 4000, 0, "user_annotation")
    training_step(trace, 1, 10_000)
    found = phases(tmp_path / "two", trace)
    assert (found["forward"]["host_us"], found["step"]["steps"]) == (30, 1)
    assert phases(tmp_path / "one", training(1))["forward"]["host_us"] == 30


def test_a_phase_of_some_steps_is_shared_by_all(tmp_path: Path) -> None:
    """An optimizer in every second step: half a call a step, and the sums still hold; its median is that of a call."""
    trace = Trace("train_step")
    for step in range(5):
        at = 1000.0 * step
        trace.step(step, at, 100)
        trace.host("forward", at + 10, 30, step, "user_annotation")
        trace.launched("product", at + 12, at + 15, 10, step)
        if step % 2:
            trace.host("optimizer", at + 50, 40, step, "user_annotation")
            trace.launched("update", at + 55, at + 60, 8, step)
    found = phases(tmp_path, trace)
    optimizer = found["optimizer"]
    assert (optimizer["calls"], optimizer["host_us"], optimizer["host_median_us"]) == (0.5, 20, 40)
    assert found["step"]["device_us"] == found["forward"]["device_us"] + optimizer["device_us"] == 14


def test_a_phase_that_comes_twice_is_one(tmp_path: Path) -> None:
    """Two micro-batches in a step: two calls, their times together."""
    trace = Trace("train_step")
    trace.step(0, 0, 100)
    for start in (10, 50):
        trace.host("forward", start, 20, 0, "user_annotation")
        trace.launched("product", start + 2, start + 5, 10, 0)
    found = phases(tmp_path, trace)
    assert list(found) == ["step", "forward", "outside"]
    assert (found["forward"]["calls"], found["forward"]["host_us"], found["forward"]["device_us"]) == (2, 40, 20)
    assert (found["forward"]["idle_us"], found["outside"]["idle_us"]) == (30, 0)


def test_data_before_the_step_counts_as_its_phase(tmp_path: Path) -> None:
    """Inside of the profiler's step, before the workload's own annotation: it takes nothing from what is outside."""
    trace = Trace("train_step")
    trace.host("ProfilerStep#0", 0, 200, 0, "user_annotation")
    trace.host("data", 5, 40, 0, "user_annotation")
    trace.launched("batch", 10, 20, 15, 0, "cudaMemcpyAsync", "gpu_memcpy")
    trace.host("train_step", 50, 100, 0, "user_annotation")
    trace.host("forward", 60, 30, 0, "user_annotation")
    found = phases(tmp_path, trace)
    assert list(found) == ["step", "data", "forward", "outside"]
    assert (found["data"]["host_us"], found["data"]["device_us"], found["outside"]["host_us"]) == (40, 15, 70)


def test_annotations_of_other_threads_and_of_compiled_code_are_no_phases(tmp_path: Path) -> None:
    """A loader's thread and the call of a compiled graph are not parts of the step's own time."""
    trace = Trace("train_step")
    trace.step(0, 0, 100)
    trace.host("forward", 10, 30, 0, "user_annotation")
    trace.host("load", 10, 60, 0, "user_annotation", tid="9")
    trace.host("## Call CompiledFxGraph fabc ##", 12, 20, 0, "user_annotation")
    assert list(phases(tmp_path, trace)) == ["step", "forward", "outside"]


def test_a_run_without_phases_has_no_rows(tmp_path: Path) -> None:
    """The step alone says nothing that steps does not."""
    trace = Trace("train_step")
    trace.step(0, 0, 100)
    trace.launched("product", 10, 15, 10, 0)
    assert phases(tmp_path, trace) == {}


def test_on_the_cpu_there_is_host_time_alone(tmp_path: Path) -> None:
    """Device time is unknown, not zero."""
    trace = Trace("train_step")
    trace.step(0, 0, 100)
    trace.host("forward", 10, 30, 0, "user_annotation")
    found = phases(tmp_path, trace, {"device": "cpu"})["forward"]
    assert (found["host_us"], found["device_us"], found["idle_us"], found["device_frac"]) == (30, None, None, None)


IMPORTED = {"source": "import", "facts": {"steps": {"method": "profiler", "kinds": [
    {"kind": "ProfilerStep", "steps": [[0, 3]]},
]}}}  # fmt: skip


def test_imports_have_phases_by_kind_of_step(tmp_path: Path) -> None:
    """ProfilerStep#N is the step; all in it that is annotated is a phase, the workload's own range as well."""
    found = phases(tmp_path, training(), IMPORTED)
    assert list(found)[:3] == ["ProfilerStep:step", "ProfilerStep:train_step", "ProfilerStep:train_step / forward"]
    assert found["ProfilerStep:train_step"]["device_us"] == found["ProfilerStep:step"]["device_us"] == 60


def test_a_named_annotation_is_the_step_of_an_import(tmp_path: Path) -> None:
    """The step's own range is no phase; those inside it are."""
    trace = Trace("x")
    for step in range(2):
        at = 1000.0 * step
        trace.host(f"iteration {step}", at, 100, step, "user_annotation")
        trace.host("forward", at + 10, 30, step, "user_annotation")
        trace.launched("product", at + 12, at + 15, 10, step)
    kinds = [{"kind": "iteration #", "steps": [[0, 1]]}]
    run = {"source": "import", "facts": {"steps": {"method": "annotation", "annotation": "iteration", "kinds": kinds}}}
    found = phases(tmp_path, trace, run)
    assert list(found) == ["iteration #:step", "iteration #:forward", "iteration #:outside"]
    assert (found["iteration #:step"]["host_us"], found["iteration #:forward"]["device_us"]) == (100, 10)


def test_without_a_marked_step_the_annotations_still_divide_the_device(tmp_path: Path) -> None:
    """A window without steps: host time of the step is unknown, device time adds up."""
    trace = Trace("x")
    trace.host("forward", 10, 30, 0, "user_annotation")
    trace.launched("product", 12, 15, 10, 0)
    trace.launched("other", 50, 55, 5, 0)
    run = {
        "source": "import",
        "facts": {"steps": {"method": "window", "kinds": [{"kind": "window", "steps": [[0, 0]]}]}},
    }
    found = phases(tmp_path, trace, run)
    assert (found["window:forward"]["device_us"], found["window:outside"]["device_us"]) == (10, 5)
    assert (found["window:step"]["device_us"], found["window:step"]["host_us"]) == (15, None)


def test_work_without_a_launch_in_the_trace_is_outside(tmp_path: Path) -> None:
    """Nobody knows which phase launched it."""
    trace = Trace("train_step")
    trace.step(0, 0, 100)
    trace.host("forward", 10, 30, 0, "user_annotation")
    trace.work("graph node", 20, 10, 0)
    found = phases(tmp_path, trace)
    assert (found["forward"]["device_us"], found["outside"]["device_us"]) == (0, 10)


MEMORY = [
    {"phase": "step", "parent": None, "order": 0, "start_bytes": 100, "end_bytes": 100, "peak_bytes": 900},
    {"phase": "forward", "parent": "step", "order": 1, "start_bytes": 100, "end_bytes": 700, "peak_bytes": 800},
    {"phase": "attention", "parent": "forward", "order": 2, "start_bytes": 150, "end_bytes": 300, "peak_bytes": 600},
    {"phase": "backward", "parent": "step", "order": 3, "start_bytes": 700, "end_bytes": 200, "peak_bytes": 900},
]


def test_memory_peaks_stand_beside_the_times(tmp_path: Path) -> None:
    """By path; a phase that was not watched has none."""
    found = phases(tmp_path, training(), {"facts": {"phase_memory": MEMORY}})
    peaks = {path: row["peak_bytes"] for path, row in found.items()}
    assert peaks == {
        "step": 900, "forward": 800, "forward / attention": 600, "backward": 900, "optimizer": None, "outside": None,
    }  # fmt: skip


def test_memory_alone_makes_rows_as_well(tmp_path: Path) -> None:
    """Without a trace times are unknown, in the order of the phases."""
    found = phases(tmp_path, Trace(), {"facts": {"phase_memory": MEMORY}})
    assert list(found) == ["step", "forward", "forward / attention", "backward"]
    assert (found["backward"]["peak_bytes"], found["backward"]["host_us"], found["backward"]["steps"]) == (
        900,
        None,
        None,
    )
