"""analysis.table: the operator table of torch.profiler from the store, row by row as torch has it where it is right."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import pytest
import torch
from given import Row, write_store
from tabled import differences, ours, profiled, torchs
from torch.profiler import ProfilerActivity, profile, record_function, schedule

from analysis.naming import PointError
from analysis.output import OutputError
from analysis.store import open_store
from analysis.table import SORT_KEYS, in_words, prepare, write

CPU = [ProfilerActivity.CPU]
X = torch.randn(32, 32)
BASE_NS = 1_790_857_026_000_000_000


# --- as torch has it


def annotated() -> None:
    """Annotations in annotations, and the same operator inside and outside of them."""
    for number in range(3):
        with record_function("outer"):
            y = X @ X
            with record_function(f"inner {number % 2}"):
                torch.add(y, X)
        torch.add(y, X)


def trained() -> None:
    """Forward, backward and step of a small network."""
    model = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.GELU(), torch.nn.Linear(64, 4))
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(3):
        optimizer.zero_grad()
        with record_function("forward"):
            loss = model(X).square().mean()
        loss.backward()
        optimizer.step()


def shaped() -> None:
    """One operator with several shapes, one without shapes among them."""
    for size in (2, 4, 4, 8):
        torch.add(torch.ones(size), 1)
        torch.cat([torch.ones(size), torch.ones(2)])


def alone(depth: int) -> None:
    """An annotation whose only child is itself."""
    with record_function("alone"):
        if depth:
            alone(depth - 1)
        else:
            torch.add(X, X)


@pytest.mark.parametrize("options", [{}, {"profile_memory": True}, {"record_shapes": True}], ids=str)
@pytest.mark.parametrize(
    "program", [annotated, trained, shaped, lambda: alone(3)], ids=["nested", "train", "shapes", "alone"]
)
def test_rows_are_those_of_torch(tmp_path: Path, program: Any, options: dict[str, Any]) -> None:
    """Calls, self and total host time, and memory of every row, by name."""
    program()
    prof = profiled(program, CPU, **options)
    assert differences(ours(prof, tmp_path), torchs(prof)) == []


@pytest.mark.parametrize("program", [shaped, trained])
def test_rows_by_shapes_are_those_of_torch(tmp_path: Path, program: Any) -> None:
    """The same by name and shapes, but for lists of tensors, whose shapes torch leaves out."""
    program()
    prof = profiled(program, CPU, record_shapes=True, profile_memory=True)
    theirs = {key: row for key, row in torchs(prof, shapes=True).items() if not listed(key[0])}
    own = {key: row for key, row in ours(prof, tmp_path, shapes=True).items() if not listed(key[0])}
    assert len(theirs) > len({key[0] for key in theirs})
    assert differences(own, theirs) == []


def listed(name: str) -> bool:
    """Operators that take lists of tensors."""
    return name == "aten::cat" or "_foreach_" in name


def test_steps_of_a_schedule_are_one_row(tmp_path: Path) -> None:
    """ProfilerStep* is any step; what the schedule left out is in no row."""
    with profile(activities=CPU, schedule=schedule(wait=1, warmup=1, active=3)) as prof:
        for _ in range(5):
            torch.add(X, X)
            prof.step()
    rows = ours(prof, tmp_path)
    assert rows["ProfilerStep*", False, True, ""]["calls"] == 3
    assert differences(rows, torchs(prof)) == []


def test_totals_are_those_below_torchs_table(tmp_path: Path) -> None:
    """The sum of all self times is torch's Self CPU time total."""
    prof = profiled(trained, CPU)
    total = sum(row["self_host_us"] for row in ours(prof, tmp_path).values())
    assert total == pytest.approx(prof.key_averages().self_cpu_time_total, abs=1)


def all_threads() -> dict[str, Any]:
    """The option that records other threads than the caller's; skips where this torch has none."""
    try:
        config = torch._C._profiler._ExperimentalConfig(profile_all_threads=True)
    except TypeError:
        pytest.skip("this torch records the caller's thread alone")
    return {"experimental_config": config}


def test_threads_at_once_are_those_of_torch(tmp_path: Path) -> None:
    """Threads that work at the same time do not lie in each other."""

    def program() -> None:
        threads = [threading.Thread(target=annotated) for _ in range(3)]
        for thread in threads:
            thread.start()
        annotated()
        for thread in threads:
            thread.join()

    prof = profiled(program, CPU, **all_threads())
    rows = ours(prof, tmp_path)
    assert rows["outer", False, True, ""]["calls"] == 12
    assert differences(rows, torchs(prof)) == []


# --- where torch counts twice


def nested(depth: int) -> None:
    """An annotation that lies in itself beside other work."""
    with record_function("nested"):
        torch.add(X, X)
        if depth:
            nested(depth - 1)


def test_a_recursion_counts_once(tmp_path: Path) -> None:
    """The outermost call's time is the row's, what torch counts again is told, and calls and self times are alike."""
    prof = profiled(lambda: nested(3), CPU, profile_memory=True)
    rows, theirs = ours(prof, tmp_path), torchs(prof)
    memory = [each for each in differences(rows, theirs) if each[0] == "nested"]
    row, torch_row = rows["nested", False, True, ""], theirs["nested", False, True, ""]
    outermost = max(event.cpu_time_total for event in prof.events() if event.name == "nested")
    assert row["host_us"] == pytest.approx(outermost, abs=0.01)
    assert row["calls"] == 4 and torch_row.cpu_time_total > 1.5 * row["host_us"]
    assert row["note"].startswith("lies in itself: torch counts ")
    assert {each[1] for each in memory} <= {"cpu_memory_usage"}


# --- on the device, by hand


HOST = {"pid": "1", "tid": "1", "is_device": False}
DEVICE = {"pid": "0", "tid": "7", "is_device": True, "device": 0, "stream": 7}


def event(name: str, category: str, start_us: float, dur_us: float, **given: Any) -> Row:
    """A host event that starts so many microseconds behind the base."""
    times = {"ts_ns": BASE_NS + round(1000 * start_us), "dur_ns": round(1000 * dur_us)}
    return {"name": name, "category": category, "depth": 0, **HOST, **times, **given}


def launched(**given: Any) -> list[Row]:
    """mm in matmul in an annotation launches a kernel of 30 us and then one of 5; a buffer request lies in mm."""
    return [
        event("step", "user_annotation", 0, 100, event_id=0),
        event("aten::matmul", "cpu_op", 10, 70, event_id=1, parent_id=0),
        event("aten::mm", "cpu_op", 15, 60, event_id=2, parent_id=1),
        event("cudaLaunchKernel", "cuda_runtime", 20, 5, event_id=3, parent_id=2, correlation=1),
        event("Activity Buffer Request", "overhead", 30, 25, event_id=4, pid="-1", tid="0"),
        event("cudaLaunchKernel", "cuda_runtime", 60, 5, event_id=5, parent_id=2, correlation=2),
        event("cudaDeviceSynchronize", "cuda_runtime", 85, 10, event_id=6, parent_id=0),
        event("gemm", "kernel", 40, 30, event_id=7, launch_id=3, **DEVICE),
        event("fill", "kernel", 70, 5, event_id=8, launch_id=5, **DEVICE),
        event(
            "step",
            "gpu_user_annotation",
            40,
            35,
            event_id=9,
            **DEVICE | {"is_device": False},
        ),
        *given.get("more", []),
    ]


def table(
    folder: Path, events: list[Row], shapes: bool = False, **run: Any
) -> tuple[dict[tuple[str, str], Row], list[str]]:
    """Rows by name and kind, and the words below them, of a run with these events."""
    store = write_store(folder / "store", runs=[run], events=events)
    with open_store(store) as connection:
        prepare(connection, "r000", shapes)
        result = connection.execute("FROM operator_table ORDER BY place")
        names = [column[0] for column in result.description or ()]
        rows = [dict(zip(names, row, strict=True)) for row in result.fetchall()]
        return {(row["name"], row["kind"]): row for row in rows}, in_words(connection)


def test_device_time_belongs_to_the_operators_around_the_launch(tmp_path: Path) -> None:
    """Self is the innermost operator's, total all of theirs; kernels have rows; a shadow is a span and no work."""
    rows, _ = table(tmp_path, launched())
    times = {key: (row["self_device_us"], row["device_us"]) for key, row in rows.items()}
    assert times == {
        ("step", "annotation"): (0, 35), ("aten::matmul", "operator"): (0, 35), ("aten::mm", "operator"): (35, 35),
        ("cudaLaunchKernel", "call"): (0, 0), ("Activity Buffer Request", "profiler"): (0, 0),
        ("cudaDeviceSynchronize", "call"): (0, 0), ("gemm", "work"): (30, 30), ("fill", "work"): (5, 5),
        ("step", "shadow"): (35, 35),
    }  # fmt: skip
    assert rows["gemm", "work"]["self_device_frac"] == pytest.approx(30 / 35)
    assert rows["step", "shadow"]["self_device_frac"] is None


def test_the_profilers_own_work_is_taken_off_the_operator_in_which_it_lies(tmp_path: Path) -> None:
    """Its row names no thread: by its time it lies in mm, 60 us long, with two calls of 5 us."""
    rows, _ = table(tmp_path, launched())
    assert rows["aten::mm", "operator"]["self_host_us"] == 60 - 25 - 10
    assert rows["step", "annotation"]["self_host_us"] == 100 - 70 - 10
    assert rows["Activity Buffer Request", "profiler"]["host_us"] == 25


def test_totals_and_the_reading(tmp_path: Path) -> None:
    """Host 100 us, device 35 read as overhead; what lies in the host's total is told where no verdict decides."""
    _, words = table(tmp_path, launched())
    assert words[0] == "Self CPU time total: 100 us"
    assert words[1] == "Self device time total: 35.0 us"
    assert words[2] == (
        "One would read off these totals: overhead-bound (host / device = 2.86: the host's far above the device's)"
    )
    assert "  - 25.0 us of the host's total (25.0 %) is the profiler's own work" in words
    assert (
        "  - 10.0 us of the host's total (10.0 %) is waiting for the device, most of it in cudaDeviceSynchronize"
        in words
    )


def test_a_reading_that_the_times_contradict_is_explained(tmp_path: Path) -> None:
    """Host 1,000 us over device 400 reads as overhead; without the profiler the host needs 10 us and the device 40."""
    events = [event("aten::mm", "cpu_op", 0, 1000), event("gemm", "kernel", 0, 400, **DEVICE)]
    times: dict[str, Any] = {"wall_us": [40, 40, 40], "issue_us": [10, 10, 10], "device_us": [40, 40, 40]}
    _, words = table(tmp_path, events, facts={"profile": {"profiled_host_us": 20.0}}, **times)
    assert words[2].startswith("One would read off these totals: overhead-bound (host / device = 2.50")
    assert words[3].startswith("The verdict: The device works 40.0 us on a step that the host issues in 10.0 us")
    assert words[4:] == ["The two differ:", "  - the profiler makes the host 2.00 times as slow at this point"]


def test_a_wait_that_makes_the_totals_alike_is_told(tmp_path: Path) -> None:
    """Host 2,000 us, of which 1,800 wait, over device 1,900: the right side, for a reason that is none."""
    events = [
        event("aten::mm", "cpu_op", 0, 200),
        event("cudaDeviceSynchronize", "cuda_runtime", 200, 1800),
        event("gemm", "kernel", 100, 1900, **DEVICE),
    ]
    times: dict[str, Any] = {
        "wall_us": [1900, 1900, 1900],
        "issue_us": [100, 100, 100],
        "device_us": [1900, 1900, 1900],
    }
    _, words = table(tmp_path, events, **times)
    assert words[2].startswith("One would read off these totals: compute-bound (host / device = 1.05")
    assert words[4] == "The two agree; but"
    assert words[5] == (
        "  - the host's total is as large as the device's because the host waits for it: 1.80 ms (90.0 %), most of it "
        "in cudaDeviceSynchronize"
    )


def test_without_a_device_nothing_is_read(tmp_path: Path) -> None:
    """On the CPU there is one total."""
    _, words = table(tmp_path, [event("aten::add", "cpu_op", 0, 10)])
    assert words[:2] == [
        "Self CPU time total: 10.0 us",
        "Self device time total: none: the trace holds no work of a device",
    ]
    assert not any(line.startswith("One would") for line in words)


def test_memory_goes_to_all_around_it_and_stays_negative_where_freed(tmp_path: Path) -> None:
    """Device and host memory are told apart by the type of their device; what lies in nothing has a row."""
    memory = [
        event("[memory]", "cpu_instant_event", at, 0, event_id=20 + number, parent_id=parent, bytes=size,
              args=json.dumps({"Device Type": kind}))
        for number, (at, parent, size, kind) in enumerate([(16, 2, 512, 1), (90, 0, -64, 0), (300, None, -512, 1)])
    ]  # fmt: skip
    rows, _ = table(tmp_path, launched(more=memory))
    step, mm = rows["step", "annotation"], rows["aten::mm", "operator"]
    assert (mm["device_bytes"], mm["self_device_bytes"], mm["host_bytes"]) == (512, 512, 0)
    assert (step["device_bytes"], step["self_device_bytes"]) == (512, 0)
    assert (step["host_bytes"], step["self_host_bytes"]) == (-64, -64)
    assert rows["[memory]", "memory"]["self_device_bytes"] == -512
    assert step["self_host_us"] == 100 - 70 - 10


def test_memory_belongs_to_the_thread_that_moved_it(tmp_path: Path) -> None:
    """What autograd's thread allocates is not that of the annotation in which its caller waits, as torch has it."""
    events = [
        event("backward", "user_annotation", 0, 100, event_id=0),
        event("MmBackward0", "cpu_op", 10, 50, event_id=1, tid="2"),
        event("[memory]", "cpu_instant_event", 20, 0, event_id=2, parent_id=1, tid="2", bytes=512,
              args=json.dumps({"Device Type": 0})),
    ]  # fmt: skip
    rows, _ = table(tmp_path, events)
    assert {key[0]: row["host_bytes"] for key, row in rows.items()} == {"backward": 0, "MmBackward0": 512}


def test_python_functions_and_hidden_helpers_are_no_rows(tmp_path: Path) -> None:
    """What lies in them belongs to what lies around them."""
    events = [
        event("outer", "user_annotation", 0, 100, event_id=0),
        event("f.py(1): f", "python_function", 1, 90, event_id=1, parent_id=0),
        event("aten::is_leaf", "cpu_op", 2, 50, event_id=2, parent_id=1),
        event("aten::add", "cpu_op", 3, 10, event_id=3, parent_id=2),
        event("PyTorch Profiler (0)", "trace", 0, 1000, event_id=4, tid="spans"),
    ]
    rows, _ = table(tmp_path, events)
    assert {key[0]: row["self_host_us"] for key, row in rows.items()} == {"outer": 90, "aten::add": 10}


# --- the command


def written(capsys: pytest.CaptureFixture[str], folder: Path, **given: Any) -> str:
    """What the command prints."""
    store = write_store(folder / "store", runs=[{}], events=launched())
    with open_store(store) as connection:
        prepare(connection, "r000", False)
        write(connection, given.get("sort"), given.get("limit"), given.get("format", "table"), given.get("path"))
    return capsys.readouterr().out


def test_rows_come_in_their_order_or_by_a_key(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Without a key as they began; with torch's keys, the old ones too, the largest first; a table ends with words."""
    lines = written(capsys, tmp_path / "a").splitlines()
    assert [line.split()[0] for line in lines[1:4]] == ["step", "aten::matmul", "aten::mm"]
    assert "Self CPU time total: 100 us" in lines
    lines = written(capsys, tmp_path / "b", sort="self_cuda_time_total", limit=2).splitlines()
    assert [line.split()[:2] for line in lines[1:3]] == [["aten::mm", "operator"], ["step", "shadow"]]
    assert lines[3] == "and 7 more: --limit 9 shows all"


def test_other_formats_hold_all_rows_and_columns(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Numbers as numbers, no words; a file where one is named."""
    rows = json.loads(written(capsys, tmp_path / "a", format="json", sort="count"))
    assert len(rows) == 9 and rows[0]["name"] == "cudaLaunchKernel" and rows[0]["calls"] == 2
    assert written(capsys, tmp_path / "b", path=tmp_path / "x.txt") == ""
    assert "Self device time total: 35.0 us" in (tmp_path / "x.txt").read_text()


def test_a_wrong_key_lists_what_is_allowed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One sentence with torch's keys."""
    with pytest.raises(OutputError, match=r"--sort cpu: allowed are cpu_time, cpu_time_total, .* with cuda or xpu"):
        written(capsys, tmp_path, sort="cpu")
    assert {"cuda_time_total", "self_cuda_time_total", "cuda_memory_usage", "self_xpu_memory_usage"} <= set(SORT_KEYS)


def test_a_point_without_events_says_why(tmp_path: Path) -> None:
    """Nothing is printed of a run that was not profiled."""
    with (
        open_store(write_store(tmp_path / "store", runs=[{}])) as connection,
        pytest.raises(PointError, match="no events"),
    ):
        prepare(connection, "r000", False)


def test_every_column_of_the_table_says_what_it_is(tmp_path: Path) -> None:
    """Relations of sql/table/ that a user may query carry their comments."""
    with open_store(write_store(tmp_path / "store", runs=[{}], events=launched())) as connection:
        prepare(connection, "r000", False)
        bare = connection.execute(
            "SELECT table_name, column_name FROM duckdb_columns() "
            "WHERE table_name IN ('operator_table', 'table_totals') AND comment IS NULL"
        ).fetchall()
    assert bare == []
