"""Exports of Nsight Systems become events as traces do, whatever release made them and whatever is wrong with them."""

from __future__ import annotations

import gzip
import json
import sqlite3
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from runner.imports import stem
from runner.ingest import main
from runner.store import Store
from runner.trace import Event, TraceError, read_export
from runner.trace.events import is_runtime
from runner.trace.nsys import Export
from runner.trace.reading import Inline, read
from runner.trace.source import Source

DATA = Path(__file__).parent / "data" / "nsys"
YEARS = ("2020", "2022", "2025")
BASE_NS = {"2020": 0, "2022": 1_700_000_000_000_000_001, "2025": 1_700_000_000_000_000_001}


@pytest.fixture
def export(tmp_path: Path) -> Callable[[str], Path]:
    """Unpacks one of the exports under tests/data/nsys."""

    def unpacked(name: str) -> Path:
        path = tmp_path / f"{name}.sqlite"
        path.write_bytes(gzip.decompress((DATA / f"{name}.sqlite.gz").read_bytes()))
        return path

    return unpacked


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A store to import into; no verdict is asked for, which would start another process."""
    monkeypatch.setattr("runner.ingest._verdicts", lambda runs, folder: "not asked for")
    return tmp_path / "store"


def changed(path: Path, *statements: str) -> Path:
    """The export after some SQL."""
    with sqlite3.connect(path) as database:
        for statement in statements:
            database.execute(statement)
    database.close()
    return path


def of(events: list[Event], category: str) -> list[Event]:
    return [event for event in events if event.category == category]


def runs(store: Path) -> list[dict[str, Any]]:
    return Store(store).live_runs(["run_id", "workload", "point_id", "facts"]).to_dicts()


# -- what becomes of an export -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("year", YEARS)
def test_a_kernel_has_its_columns_its_launch_and_its_step(export: Callable[[str], Path], year: str) -> None:
    """Names come from StringIds, times are exact, and the call of the kernel's correlation launched it in its step."""
    events = read_export(export(f"schema_{year}"))
    first = of(events, "kernel")[0]
    assert (first.name, first.ts_ns, first.dur_ns) == ("void gemm<float>(float*, int)", BASE_NS[year] + 107_000, 5_003)
    assert (first.device, first.stream, first.grid, first.block) == (0, 7, [8, 4, 1], [128, 1, 1])
    assert (first.registers_per_thread, first.shared_memory_bytes, first.is_device) == (64, 1536, True)
    launch = events[first.launch_id or 0]
    assert (launch.name, launch.category, launch.pid, launch.tid) == ("cudaLaunchKernel", "cuda_runtime", "100", "101")
    assert (launch.step, first.step, launch.depth) == (0, 0, 2)
    assert events[launch.parent_id or 0].name == "forward"


@pytest.mark.parametrize("year", YEARS)
def test_every_kind_of_event_has_its_category(export: Callable[[str], Path], year: str) -> None:
    """Categories are Kineto's; calls of the operating system have their own, which is none of a device's runtime."""
    events = read_export(export(f"schema_{year}"))
    found = Counter(event.category for event in events)
    graphs = 2 if year == "2025" else 0
    assert found.pop("overhead", 0) == (year != "2020")
    assert found == {
        "user_annotation": 4, "cuda_runtime": 10, "cuda_driver": 1, "kernel": 3 + graphs, "gpu_memcpy": 2,
        "gpu_memset": 2, "cuda_sync": 2, "osrt": 2,
    }  # fmt: skip
    calls = pl.DataFrame({"category": ["osrt", "cuda_driver"]}).filter(is_runtime())
    assert calls.get_column("category").to_list() == ["cuda_driver"]
    assert [event.step for event in of(events, "gpu_memset")] == [0, 1]


def test_copies_and_fills_tell_their_bytes_and_kinds(export: Callable[[str], Path]) -> None:
    """A copy's name says from where to where, as far as the release does; a wait's name is Kineto's."""
    old, new = (read_export(export(f"schema_{year}")) for year in ("2020", "2025"))
    assert [of(events, "gpu_memcpy")[0].name for events in (old, new)] == [
        "Memcpy HtoD",
        "Memcpy HtoD (Pageable -> Device)",
    ]
    assert {event.bytes for event in of(new, "gpu_memcpy") + of(new, "gpu_memset")} == {4096}
    assert {event.name for event in of(new, "cuda_sync")} == {"Stream Synchronize"}


def test_a_graph_traced_as_a_whole_is_work_of_its_launch(export: Callable[[str], Path]) -> None:
    """It counts as one kernel, launched by the call that replayed it."""
    events = read_export(export("schema_2025"))
    graph = next(event for event in of(events, "kernel") if event.name == "CUDA graph 5")
    assert events[graph.launch_id or 0].name == "cudaGraphLaunch" and graph.step == 0 and graph.grid is None


def test_processes_that_number_their_calls_alike_are_kept_apart(export: Callable[[str], Path]) -> None:
    """A kernel's launch is a call of its own process, and its card is the one that this process means."""
    events = read_export(export("schema_2025"))
    foreign = max(of(events, "kernel"), key=lambda event: event.ts_ns)
    launch = events[foreign.launch_id or 0]
    assert (launch.name, launch.pid, launch.category) == ("cuLaunchKernelEx", "200", "cuda_driver")
    assert foreign.device == 1 and {event.device for event in of(events, "kernel")} == {0, 1}


def test_a_real_export_shows_ranges_domains_and_threads(export: Callable[[str], Path]) -> None:
    """What nsys 2022.4 has recorded of six ranges in three steps, nested and timed as the program made them."""
    events = read_export(export("recorded_2022.4"))
    ranges = of(events, "user_annotation")
    assert [event.name for event in ranges] == ["whole run", *(f"{name}" for step in range(3) for name in (
        f"ProfilerStep#{step}", "forward", "optimizer"))]  # fmt: skip
    forward = [event for event in ranges if event.name == "forward"]
    assert [(event.step, event.depth, json.loads(event.args or "")) for event in forward] == [
        (step, 2, {"domain": "model"}) for step in range(3)
    ]
    assert all(2_000_000 <= event.dur_ns < 50_000_000 for event in forward)
    assert "ended on thread" in (ranges[0].args or "") and of(events, "osrt") and of(events, "overhead")


# -- the import --------------------------------------------------------------------------------------------------------


def test_every_event_is_accounted_for(
    export: Callable[[str], Path], store: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The audit counts marks, names and tables that are not read; the run knows the release, the card, the driver."""
    assert main([str(export("schema_2025")), "--store", str(store)]) == 0
    told = capsys.readouterr().out
    assert "35 events: 29 kept; set aside 3 thread switch, 2 instant, 1 metadata; 9 device events busy" in told
    assert "2 steps of kind ProfilerStep (marked by the profiler)" in told
    [run] = runs(store)
    facts = json.loads(run["facts"])
    assert run["workload"] == "schema_2025" and facts["import"]["nsys"] == {"release": "2025.1.1.0"}
    assert facts["audit"]["busy_ns"]["1"] == 5_003 and facts["audit"]["unlinked"] == 0
    [environment] = pl.read_parquet(store / "environments" / "*.parquet").to_dicts()
    assert (environment["device_name"], environment["multiprocessors"], environment["compute_capability"]) == (
        "An invented card", 100, "9.0",
    )  # fmt: skip
    assert (environment["threads_per_multiprocessor"], environment["driver"]) == (2048, "570.00")


def test_content_decides_and_not_the_name(
    export: Callable[[str], Path], store: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """An export under a trace's name is read, and is the same as under its own; a folder is searched for both."""
    path = export("schema_2022")
    renamed = path.with_name("trace.json")
    renamed.write_bytes(path.read_bytes())
    assert main([str(renamed), "--store", str(store)]) == 0
    assert main([str(path.parent), "--store", str(store)]) == 0
    assert capsys.readouterr().out.count("has the same content, nothing was written") == 2
    assert len(runs(store)) == 1 and stem(path) == "schema_2022"


def test_ranges_of_a_pattern_are_the_steps(export: Callable[[str], Path], store: Path) -> None:
    """--step names ranges of NVTX as it names those of torch's profiler."""
    assert main([str(export("schema_2022")), "--store", str(store), "--step", "forw"]) == 0
    [run] = runs(store)
    steps = json.loads(run["facts"])["steps"]
    assert (steps["method"], steps["number"], steps["kinds"][0]["kind"]) == ("annotation", 2, "forward")


def test_reading_leaves_the_file_and_its_folder_alone(export: Callable[[str], Path], store: Path) -> None:
    """No journal, no lock, no write: an export on a medium that cannot be written to is read."""
    path = export("schema_2022")
    before = path.read_bytes()
    path.chmod(0o444)
    with Export(path) as opened:
        assert opened.text().read().startswith(b"{")
        assert sorted(each.name for each in path.parent.iterdir()) == [path.name]
    assert path.read_bytes() == before


# -- what is wrong with it ---------------------------------------------------------------------------------------------


def _overwritten(path: Path) -> Path:
    content = bytearray(path.read_bytes())
    content[4096:] = b"\xa5" * (len(content) - 4096)
    path.write_bytes(content)
    return path


def _truncated(path: Path) -> Path:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    return path


def _only_the_beginning(path: Path) -> Path:
    path.write_bytes(b"SQLite format 3\0" + b"\1" * 200)
    return path


def _of_another_program(path: Path) -> Path:
    path.unlink()
    return changed(path, "CREATE TABLE people (name TEXT)", 'CREATE TABLE "a\nb" (start INT)')


def _without_strings(path: Path) -> Path:
    return changed(path, "DROP TABLE StringIds")


def _without_times(path: Path) -> Path:
    return changed(path, "ALTER TABLE OSRT_API DROP COLUMN end")


def _of_views(path: Path) -> Path:
    path.unlink()
    return changed(
        path, "CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT)",
        "CREATE VIEW OSRT_API AS SELECT 1 AS start, 2 AS end, 3 AS nameId",
    )  # fmt: skip


def _of_no_text(path: Path) -> Path:
    path.write_bytes(path.read_bytes().replace(b"CREATE TABLE", b"CREATE \xa8ABLE"))
    return path


@pytest.mark.parametrize(
    ("break_it", "told"),
    [
        (_of_no_text, "the SQLite database is damaged"),
        (_overwritten, "the SQLite database is damaged"),
        (_truncated, "the SQLite database is damaged"),
        (_only_the_beginning, "the SQLite database is damaged"),
        (_of_another_program, "without a table of events of Nsight Systems (its tables: people)"),
        (_without_strings, "it lacks the table StringIds"),
        (_without_times, "its table OSRT_API lacks end"),
        (_of_views, "without a table of events of Nsight Systems (its tables: StringIds)"),
    ],
)
def test_what_is_no_whole_export_is_refused_in_one_sentence(
    export: Callable[[str], Path], store: Path, capsys: pytest.CaptureFixture[str],
    break_it: Callable[[Path], Path], told: str,
) -> None:  # fmt: skip
    """A sentence says what is wrong; nothing is in the store, and no error of Python's is shown."""
    path = break_it(export("schema_2022"))
    assert main([str(path), "--store", str(store)]) == 1
    [line] = capsys.readouterr().err.splitlines()
    assert told in line and "Traceback" not in line
    assert not runs(store)


def test_odd_values_cost_their_own_event_alone(export: Callable[[str], Path]) -> None:
    """Huge numbers, texts among numbers, negative or missing durations, names that are nowhere: counted, no guess."""
    path = changed(
        export("schema_2022"),
        f"UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET start = {2**63 - 1}, end = {-(2**63)} WHERE correlationId = 1",
        "UPDATE CUPTI_ACTIVITY_KIND_MEMSET SET end = start - 1",
        "UPDATE CUPTI_ACTIVITY_KIND_MEMCPY SET start = 'soon', streamId = 'x'",
        "UPDATE NVTX_EVENTS SET end = NULL WHERE text = 'forward'",
        "UPDATE OSRT_API SET nameId = 999",
        f"UPDATE CUPTI_ACTIVITY_KIND_RUNTIME SET correlationId = {2**62} WHERE correlationId = 2",
        "UPDATE CUPTI_ACTIVITY_KIND_RUNTIME SET returnValue = x'00ff'",
        "UPDATE CUPTI_ACTIVITY_KIND_SYNCHRONIZATION SET streamId = 4294967295, deviceId = 'card'",
    )
    with Export(path) as opened:
        trace = read(Source(opened.text()), Inline())
        assert trace.events == opened.rows
    assert trace.set_aside == {
        "time out of range": 2, "negative duration": 2, "no time": 2, "no duration": 2, "no name": 2, "instant": 2,
        "metadata": 1,
    }  # fmt: skip
    assert trace.events == trace.rows_read + trace.set_aside.total()
    waits = [
        row for rows in trace.rows() for row in rows.filter(pl.col("category") == "cuda_sync").iter_rows(named=True)
    ]
    assert [wait["stream"] for wait in waits] == [None, None]


def test_names_of_any_kind_stay_as_they_are(export: Callable[[str], Path]) -> None:
    """A name may hold what ends a line, a text or a trace; bytes that are no UTF-8 are replaced."""
    odd = 'a "name"\n]} \x00 \u2028 \\'
    path = changed(export("schema_2022"))
    with sqlite3.connect(path) as database:
        database.execute("UPDATE StringIds SET value = ? WHERE id = 3", (odd,))
        database.execute("UPDATE NVTX_EVENTS SET text = CAST(x'66ff6f' AS TEXT) WHERE text = 'forward'")
    database.close()
    events = read_export(path)
    assert of(events, "kernel")[0].name == odd
    assert of(events, "user_annotation")[1].name == "f\ufffdo"


def test_a_text_without_end_is_refused(export: Callable[[str], Path]) -> None:
    """One cell cannot take all memory."""
    path = changed(export("schema_2022"), "UPDATE StringIds SET value = hex(zeroblob(9000000)) WHERE id = 3")
    with pytest.raises(TraceError, match="too big"):
        read_export(path)
