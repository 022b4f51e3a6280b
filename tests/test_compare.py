"""Two traces side by side: by step, by operator, by kernel, and in words."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
from pathlib import Path
from typing import Any

import pytest
from given import Row, write_store

from analysis.__main__ import main
from analysis.compare import RELATIONS, in_words, prepare
from analysis.store import SQL, open_store
from runner.trace import read_trace

TRACES = Path(__file__).parent / "data" / "traces"
STEP_NS = 100_000


class Trace:
    """Rows of `events` of one run: steps of 100 us, each with the same calls."""

    def __init__(self, run_id: str) -> None:
        self.run_id, self.rows = run_id, list[Row]()

    def step(self, number: int, host_us: int) -> None:
        """The annotation of a step."""
        self.add("matmul_add", "user_annotation", number, 0, host_us)

    def add(self, name: str, category: str, step: int | None, at_us: int, dur_us: float, **given: Any) -> int:
        """One event that starts `at_us` after its step; its id."""
        row = {
            "run_id": self.run_id, "event_id": len(self.rows), "name": name, "category": category, "step": step,
            "ts_ns": (step or 0) * STEP_NS + at_us * 1000, "dur_ns": int(dur_us * 1000), "is_device": False,
            "pid": "1", "tid": "1", "depth": 0, **given,
        }  # fmt: skip
        self.rows.append(row)
        return len(self.rows) - 1

    def kernel(self, name: str, step: int | None, at_us: int, dur_us: float, launch_id: int | None = None) -> None:
        """One kernel on device 0."""
        self.add(name, "kernel", step, at_us, dur_us, launch_id=launch_id, is_device=True, device=0, stream=7)


def addmm(run_id: str, steps: int, kernel_us: float, host_us: int = 40) -> Trace:
    """Each step: linear (30 us) holds addmm (20 us), which launches (5 us) a kernel of `kernel_us`."""
    trace = Trace(run_id)
    for number in range(steps):
        trace.step(number, host_us)
        linear = trace.add("aten::linear", "cpu_op", number, 1, 30, parent_id=len(trace.rows) - 1)
        inner = trace.add("aten::addmm", "cpu_op", number, 5, 20, parent_id=linear, shapes="[[2, 3]]")
        launch = trace.add("cudaLaunchKernel", "cuda_runtime", number, 8, 5, parent_id=inner)
        trace.kernel("gemm", number, 20, kernel_us, launch)
    return trace


def compared(folder: Path, a: Trace, b: Trace, shapes: bool = False, runs: list[Row] | None = None) -> list[Row]:
    """Rows of `comparison`."""
    with open_store(write_store(folder, runs=runs or [{}, {"size": 8}], events=[*a.rows, *b.rows])) as connection:
        prepare(connection, "r000", "r001", shapes)
        result = connection.execute("FROM comparison")
        names = [column[0] for column in result.description or ()]
        return [dict(zip(names, row, strict=True)) for row in result.fetchall()]


def words(folder: Path, a: Trace, b: Trace, runs: list[Row] | None = None) -> list[str]:
    """The lines above the tables."""
    with open_store(write_store(folder, runs=runs or [{}, {"size": 8}], events=[*a.rows, *b.rows])) as connection:
        return in_words(connection, prepare(connection, "r000", "r001", False))


def one(rows: list[Row], by: str, name: str, quantity: str) -> Row:
    """The one row of a thing and quantity."""
    (row,) = [row for row in rows if (row["by"], row["name"], row["quantity"]) == (by, name, quantity)]
    return row


def told(row: Row) -> tuple[Any, ...]:
    """Calls and times of both sides, ratio and change."""
    return tuple(row[name] for name in ("a_calls", "b_calls", "a_us", "b_us", "ratio", "change_us"))


def test_steps_show_medians_and_quartiles(tmp_path: Path) -> None:
    """A kind of step: how many there are, the median of each quantity and where half of the steps lie."""
    a, b = Trace("r000"), addmm("r001", 3, kernel_us=8)
    for number, host_us in enumerate([10, 20, 30, 40, 90]):
        a.step(number, host_us)
    row = one(compared(tmp_path, a, b), "step", "step", "host")
    assert told(row) == (5, 3, 30, 40, pytest.approx(4 / 3), 10)
    assert (row["a_low_us"], row["a_high_us"], row["b_low_us"], row["b_high_us"]) == (20, 40, 40, 40)


def test_what_a_step_lacks_on_one_side_is_null(tmp_path: Path) -> None:
    """Steps without device work have no busy time, and so no change of it."""
    a = Trace("r000")
    a.step(0, 10)
    rows = compared(tmp_path, a, addmm("r001", 1, kernel_us=8))
    assert told(one(rows, "step", "step", "busy")) == (None, 1, None, 8, None, None)


def test_kernels_are_told_by_step(tmp_path: Path) -> None:
    """A kernel: its calls and time a step, so that runs of different length compare, and the median of a call."""
    a, b = addmm("r000", 2, kernel_us=10), addmm("r001", 4, kernel_us=8)
    b.kernel("gemm", 0, 60, 4)
    row = one(compared(tmp_path, a, b), "kernel", "gemm", "device")
    assert told(row) == (1, 1.25, 10, 9, 0.9, -1)
    assert (row["a_call_us"], row["b_call_us"]) == (10, 8)


def test_a_kernel_of_one_side_changes_by_all_of_it(tmp_path: Path) -> None:
    """What one side lacks is NULL there; the change is the other side's time, and there is no ratio."""
    a, b = addmm("r000", 1, kernel_us=10), addmm("r001", 1, kernel_us=10)
    a.kernel("only a", 0, 60, 3)
    b.kernel("only b", 0, 60, 4)
    rows = compared(tmp_path, a, b)
    assert told(one(rows, "kernel", "only a", "device")) == (1, None, 3, None, None, -3)
    assert told(one(rows, "kernel", "only b", "device")) == (None, 1, None, 4, None, 4)


def test_self_time_leaves_direct_children_out(tmp_path: Path) -> None:
    """linear lasts 30 us, 20 of them in addmm; addmm lasts 20, 5 of them in the launch."""
    rows = compared(tmp_path, addmm("r000", 2, kernel_us=10), addmm("r001", 2, kernel_us=10))
    assert told(one(rows, "operator", "aten::linear", "host")) == (1, 1, 10, 10, 1, 0)
    assert told(one(rows, "operator", "aten::addmm", "host")) == (1, 1, 15, 15, 1, 0)


def test_device_time_belongs_to_the_innermost_operator(tmp_path: Path) -> None:
    """A kernel counts for the operator that launched it, and not for those around it as well."""
    rows = compared(tmp_path, addmm("r000", 2, kernel_us=10), addmm("r001", 2, kernel_us=8))
    assert told(one(rows, "operator", "aten::addmm", "device")) == (1, 1, 10, 8, 0.8, -2)
    assert not [row for row in rows if (row["name"], row["quantity"]) == ("aten::linear", "device")]


def test_a_launch_deep_inside_an_operator_counts_for_it(tmp_path: Path) -> None:
    """Calls of other kinds between an operator and its launch are climbed over."""
    a, b = Trace("r000"), addmm("r001", 1, kernel_us=8)
    a.step(0, 40)
    operator = a.add("aten::addmm", "cpu_op", 0, 1, 30)
    frame = a.add("launch.py(3): run", "python_function", 0, 2, 20, parent_id=operator)
    inner = a.add("compiled", "python_function", 0, 3, 18, parent_id=frame)
    a.kernel("gemm", 0, 30, 8, a.add("cuLaunchKernel", "cuda_driver", 0, 4, 5, parent_id=inner))
    assert one(compared(tmp_path, a, b), "operator", "aten::addmm", "device")["a_us"] == 8


def test_device_time_without_an_operator_is_not_lost(tmp_path: Path) -> None:
    """Work of a bare launch, and work whose launch the trace lacks, stand under a name of their own."""
    a, b = addmm("r000", 1, kernel_us=10), addmm("r001", 1, kernel_us=10)
    a.kernel("triton", 0, 60, 3, a.add("cuLaunchKernel", "cuda_driver", 0, 41, 5))
    a.kernel("unlinked", 0, 70, 4)
    assert told(one(compared(tmp_path, a, b), "operator", "(no operator)", "device")) == (None, None, 7, None, None, -7)


def test_operators_of_one_name_are_told_apart_by_shapes(tmp_path: Path) -> None:
    """With shapes an operator has a row for each, without them one."""
    a, b = addmm("r000", 1, kernel_us=10), addmm("r001", 1, kernel_us=10)
    b.rows = [row | {"shapes": "[[4, 4]]"} if row["name"] == "aten::addmm" else row for row in b.rows]
    for shapes, found in [(False, [None]), (True, ["[[2, 3]]", "[[4, 4]]"])]:
        rows = compared(tmp_path / str(shapes), a, b, shapes)
        hosts = [row for row in rows if (row["name"], row["quantity"]) == ("aten::addmm", "host")]
        assert sorted((row["shapes"] for row in hosts), key=str) == found


def test_what_lies_outside_steps_is_left_out(tmp_path: Path) -> None:
    """Events without a step do not count where there are steps, and all count where there are none."""
    a, b = addmm("r000", 1, kernel_us=10), Trace("r001")
    a.kernel("outside", None, 90, 5)
    b.kernel("whole window", None, 0, 6)
    names = {row["name"] for row in compared(tmp_path, a, b) if row["by"] == "kernel"}
    assert names == {"gemm", "whole window"}


IMPORT = {"source": "import", "size": None, "dtype": None, "compile": None, "warmup": None, "device": None}


def imported(*kinds: tuple[str, int, int]) -> Row:
    """An imported run with kinds of step, each (kind, first step, last step)."""
    listed = [{"kind": kind, "steps": [[first, last]]} for kind, first, last in kinds]
    return {**IMPORT, "workload": "rank0", "facts": {"steps": {"method": "annotation", "kinds": listed}}}


def annotated(run_id: str, *kinds: str) -> Trace:
    """A trace with one step of each kind: the second lasts 20 us, the third 30."""
    trace = Trace(run_id)
    for number, kind in enumerate(kinds):
        trace.add(kind, "user_annotation", number, 0, 10 + 10 * number)
    return trace


def test_kinds_of_step_are_kept_apart(tmp_path: Path) -> None:
    """prefill is compared with prefill; a kind that one side lacks is NULL there."""
    runs = [imported(("prefill", 0, 0), ("decode", 1, 1)), imported(("prefill", 0, 0))]
    rows = compared(tmp_path, annotated("r000", "prefill", "decode"), annotated("r001", "prefill"), runs=runs)
    assert told(one(rows, "step", "prefill", "host")) == (1, 1, 10, 10, 1, 0)
    assert told(one(rows, "step", "decode", "host")) == (1, None, 20, None, None, None)


def test_the_only_kinds_are_matched_whatever_they_are_called(tmp_path: Path) -> None:
    """One kind on each side: they are compared, as `step`."""
    runs = [imported(("train", 0, 0)), imported(("iteration", 0, 0))]
    rows = compared(tmp_path, annotated("r000", "train"), annotated("r001", "iteration"), runs=runs)
    assert told(one(rows, "step", "step", "host")) == (1, 1, 10, 10, 1, 0)


# --- in words


def test_words_say_who_is_faster_and_why(tmp_path: Path) -> None:
    """The device by its busy time, with the kernel that changed most; then who is who."""
    a, b = addmm("r000", 3, kernel_us=20), addmm("r001", 3, kernel_us=10)
    for trace, dur_us in ((a, 4), (b, 5)):
        for number in range(3):
            trace.kernel("bias", number, 60, dur_us)
    first, *legend = words(tmp_path, a, b)
    assert first == (
        "Device: b is 1.6x as fast (busy 24 us in a, 15 us in b a step); the largest part is kernel gemm (-10 us). "
        "Host under the profiler: no clear difference (host 40 us in a, 40 us in b a step)."
    )
    assert legend == ["a = run r000: matmul_add size=64 fp32 eager", "b = run r001: matmul_add size=8 fp32 eager"]


def test_words_name_the_operator_that_slows_the_host(tmp_path: Path) -> None:
    """The host by its annotation, with the operator whose self time grew most."""
    a, b = addmm("r000", 3, kernel_us=10), addmm("r001", 3, kernel_us=10, host_us=80)
    for number in range(3):
        b.add("aten::copy_", "cpu_op", number, 50, 25)
    assert (
        "Host under the profiler: a is 2x as fast (host 40 us in a, 80 us in b a step); the largest part is operator "
        in (words(tmp_path, a, b)[0])
    )
    assert "aten::copy_ (+25 us)" in words(tmp_path / "again", a, b)[0]


def test_overlapping_steps_are_no_difference(tmp_path: Path) -> None:
    """Where the middle halves of the steps overlap, neither side is called faster."""
    a, b = Trace("r000"), Trace("r001")
    for number, (in_a, in_b) in enumerate([(10, 20), (20, 30), (30, 40)]):
        a.step(number, in_a)
        b.step(number, in_b)
    assert "Host under the profiler: no clear difference" in words(tmp_path, a, b)[0]


def test_a_single_step_is_told(tmp_path: Path) -> None:
    """One step has no spread, so the words say what they rest on; large changes have no powers of ten."""
    first = words(tmp_path, addmm("r000", 1, kernel_us=10), addmm("r001", 3, kernel_us=90_010))[0]
    assert "in b a step, with a single step to judge by); the largest part is kernel gemm (+90 ms)" in first


def test_words_without_device_work(tmp_path: Path) -> None:
    """A trace without device work says that there is nothing to compare."""
    a, b = Trace("r000"), Trace("r001")
    a.step(0, 10)
    b.step(0, 20)
    assert words(tmp_path, a, b)[0].startswith("Device: no kind of step has a busy time on both sides. Host under")


def test_times_without_a_profiler_are_told(tmp_path: Path) -> None:
    """Swept runs have better times than their traces; imported ones have none."""
    runs = [{"wall_us": 30}, {"size": 8, "wall_us": 15}]
    first = words(tmp_path, addmm("r000", 1, 10), addmm("r001", 1, 10), runs)[0]
    assert first.endswith("Measured without a profiler: b is 2x as fast (wall 30 us in a, 15 us in b).")


# --- the command


def run_command(store: Path, *arguments: str) -> int:
    """Exit code of `python -m analysis compare`."""
    return main(["compare", "--store", str(store), *arguments])


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """Two runs; the second has 20 kernels more."""
    a, b = addmm("r000", 1, kernel_us=10), addmm("r001", 1, kernel_us=10)
    for number in range(20):
        b.kernel(f"kernel {number:02d}", 0, 50 + number, number / 2 + 1)
    return write_store(tmp_path / "store", runs=[{}, {"size": 8}], events=[*a.rows, *b.rows])


def test_tables_show_the_greatest_changes(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Three tables of at most 15 rows, the greatest change first, with how many more there are."""
    assert run_command(store, "size=64", "size=8") == 0
    lines = capsys.readouterr().out.splitlines()
    kernels = [line for line in lines if line.startswith("kernel ") and not line.startswith("kernel  ")]
    assert lines[0].startswith("Device: ")
    assert [line.split()[1] for line in kernels] == [f"{number:02d}" for number in range(19, 4, -1)]
    assert "and 6 more: --by kernel shows all" in lines


def test_one_table_is_whole(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With --by the table has every row."""
    assert run_command(store, "size=64", "size=8", "--by", "kernel") == 0
    out = capsys.readouterr().out
    assert out.count("\nkernel ") == 21  # the head, and the 20 kernels of b alone
    assert "more" not in out


def test_other_formats_are_whole(store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """csv and json have every row of all three, told apart by the column `by`; words go to stderr."""
    assert run_command(store, "r000", "r001", "--format", "csv") == 0
    told = capsys.readouterr()
    rows = list(csv.DictReader(io.StringIO(told.out)))
    assert list(dict.fromkeys(row["by"] for row in rows)) == ["step", "operator", "kernel"]
    assert sum(row["by"] == "kernel" for row in rows) == 21
    assert told.err.startswith("Device: ")
    assert run_command(store, "r000", "r001", "--format", "json", "--by", "step", "-o", str(tmp_path / "x")) == 0
    assert {row["quantity"] for row in json.loads((tmp_path / "x").read_text())} == {"wall", "busy", "host"}


def test_a_table_goes_to_a_file(store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """-o takes the three tables; the words stay on stderr."""
    assert run_command(store, "r000", "r001", "-o", str(tmp_path / "x.txt")) == 0
    assert capsys.readouterr().out == ""
    assert (tmp_path / "x.txt").read_text().count("change_us") == 3


def test_a_side_without_events_says_why(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A run without a profile cannot be compared."""
    store = write_store(tmp_path, runs=[{}, {"size": 8}], events=addmm("r000", 1, 10).rows)
    assert run_command(store, "r000", "r001") == 1
    assert "run r001 (matmul_add size=8 fp32 eager) has no events: it was measured" in capsys.readouterr().err


def test_real_traces_compare(tmp_path: Path) -> None:
    """Of real traces no device time is lost: operators and kernels sum up to all of it in the steps."""
    sides = [read_trace((TRACES / f"h200_1024_{name}.json.gz").read_bytes()) for name in (
        "float32_b8_eager", "bfloat16_b0_default")]  # fmt: skip
    a, b = Trace("r000"), Trace("r001")
    for trace, events in zip((a, b), sides, strict=True):
        trace.rows = [{"run_id": trace.run_id, **dataclasses.asdict(each)} for each in events]
    rows = compared(tmp_path, a, b)
    for side, events in zip("ab", sides, strict=True):
        steps = {each.step for each in events} - {None}
        expected = sum(each.dur_ns for each in events if each.is_device and each.step is not None) / len(steps) / 1e3
        for by in ("operator", "kernel"):
            found = [row[f"{side}_us"] or 0 for row in rows if (row["by"], row["quantity"]) == (by, "device")]
            assert sum(found) == pytest.approx(expected)
            assert expected > 0


def test_a_run_compares_with_itself(tmp_path: Path) -> None:
    """Both sides may be one run: nothing changes."""
    with open_store(write_store(tmp_path, runs=[{}], events=addmm("r000", 2, 10).rows)) as connection:
        prepare(connection, "r000", "r000", False)
        assert connection.execute("SELECT DISTINCT change_us, ratio FROM comparison").fetchall() == [(0, 1)]


def test_relations_say_what_they_are(tmp_path: Path) -> None:
    """Every relation of sql/compare/ and sql/trace/ states its grain; each has a comment, each public column too."""
    files = [file for folder in ("compare", "trace") for file in (SQL / folder).glob("*.sql")]
    assert {file.stem for file in files if file.parent.name == "compare"} == set(RELATIONS)
    assert [f.stem for f in files if not f.read_text().startswith("-- Grain: one row a")] == ["_trace_macros"]
    with open_store(write_store(tmp_path, runs=[{}], events=addmm("r000", 2, 10).rows)) as connection:
        prepare(connection, "r000", "r000", False)
        columns = connection.sql("SELECT table_name, column_name, comment FROM duckdb_columns()").fetchall()
    public = [name for name in RELATIONS if not name.startswith("_")]
    assert [f"{table}.{column}" for table, column, comment in columns if table in public and not comment] == []
