"""runner.trace: a trace becomes rows of the events table, exactly."""

import gzip
import json
import os
import subprocess
import sys
from collections import Counter, defaultdict
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.profiler import ProfilerActivity, profile, record_function, schedule

from runner.trace import Event, TraceError, join, read_trace

RECORDED = sorted((Path(__file__).parent / "data" / "traces").glob("*.json.gz"))
FOREIGN = os.environ.get("CROSSOVER_TRACES")


def complete(name: str, ts: Any, dur: Any, cat: str = "cpu_op", tid: Any = 1, **args: Any) -> dict[str, Any]:
    """One complete event of process 1."""
    return {"ph": "X", "cat": cat, "name": name, "pid": 1, "tid": tid, "ts": ts, "dur": dur, "args": args}


def read(*events: dict[str, Any], **top: Any) -> list[Event]:
    """Rows of a trace of these events."""
    return read_trace(json.dumps({**top, "traceEvents": list(events)}).encode())


def by_name(events: list[Event]) -> dict[str, Event]:
    """Rows of a trace whose names are unique."""
    return {event.name: event for event in events}


# --- times


@pytest.mark.parametrize(
    ("text", "base_ns", "expected_ns"),
    [
        ("5111280495768.401", 1790857026000000000, 1795968306495768401),  # relative, as torch writes it today
        ("1712345678901234.567", None, 1712345678901234567),  # absolute with decimals: beyond a double's 53 bits
        ("1712345678901235", None, 1712345678901235000),  # integers
        ("0.0005", None, 0),  # half to even
        ("0.0015", None, 2),
        ("1.5e3", 7, 1500007),
        ("-12.25", 20000, 7750),
    ],
)
def test_timestamps_are_exact(text: str, base_ns: int | None, expected_ns: int) -> None:
    """Microseconds of any form become the exact integer nanoseconds, base included."""
    base = "" if base_ns is None else f'"baseTimeNanoseconds": {base_ns},'
    raw = f'{{{base} "traceEvents": [{{"ph":"X","cat":"cpu_op","name":"a","ts":{text},"dur":0.001}}]}}'
    [event] = read_trace(raw.encode())
    assert (event.ts_ns, event.dur_ns) == (expected_ns, 1)


def test_base_time_may_follow_the_events() -> None:
    """Some writers put the base time last."""
    raw = b'{"traceEvents": [{"ph":"X","cat":"cpu_op","name":"a","ts":1,"dur":1}], "baseTimeNanoseconds": 5}'
    assert read_trace(raw)[0].ts_ns == 1005


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.name)
def test_recorded_times_equal_rational_arithmetic(path: Path) -> None:
    """Every start and duration of the recorded traces equals the text x 1000 in fractions, in the order of the file."""
    document = json.loads(gzip.decompress(path.read_bytes()), parse_float=str)
    base_ns = document["baseTimeNanoseconds"]
    expected = [
        (raw["name"], base_ns + Fraction(raw["ts"]) * 1000, Fraction(raw.get("dur", "0")) * 1000)
        for raw in document["traceEvents"]
        if raw["ph"] == "X" or raw["name"] == "[memory]"
    ]
    events = read_trace(path.read_bytes())
    assert [(event.name, event.ts_ns, event.dur_ns) for event in events] == expected
    assert [event.event_id for event in events] == list(range(len(expected)))


# --- columns


def test_columns_of_a_kernel() -> None:
    """Launch parameters get their columns, everything else stays in args with numbers as numbers."""
    args = {"device": 0, "stream": 7, "correlation": 42, "grid": [4, 2, 1], "block": [128, 1, 1]}
    more = {"registers per thread": 168, "shared memory": 1024, "warps per SM": 0.25, "Comms Id": 2**70, "µ": "µ"}
    [kernel] = read(complete("gemm", 1, 2, "kernel", tid=7, **args, **more))
    assert kernel.is_device
    assert (kernel.device, kernel.stream, kernel.correlation) == (0, 7, 42)
    assert (kernel.grid, kernel.block) == ([4, 2, 1], [128, 1, 1])
    assert (kernel.registers_per_thread, kernel.shared_memory_bytes, kernel.bytes) == (168, 1024, None)
    assert json.loads(kernel.args or "") == {"warps per SM": 0.25, "Comms Id": 2**70, "µ": "µ"}
    assert (kernel.pid, kernel.tid, kernel.parent_id, kernel.depth) == ("1", "7", None, 0)


def test_columns_of_a_host_event() -> None:
    """Shapes get their column; the stream that a Triton operator names is an argument, not a place on the device."""
    [op] = read(complete("triton_poi", 1, 2, "CPU_op", **{"Input Dims": [[64, 64], []], "stream": 7, "bytes": 3}))
    assert (op.category, op.is_device, op.device, op.stream, op.bytes) == ("cpu_op", False, None, None, None)
    assert op.shapes == "[[64, 64], []]"
    assert json.loads(op.args or "") == {"stream": 7, "bytes": 3}


def test_missing_arguments_are_null() -> None:
    """No args at all is no empty object, and the bytes of a copy are counted."""
    bare = {"ph": "X", "cat": "overhead", "name": "a", "pid": -1, "tid": 0, "ts": 1, "dur": 1}
    a, copy = read(bare, complete("Memcpy", 1, 2, "gpu_memcpy", tid=7, bytes=2**33))
    assert (a.args, a.shapes, a.correlation, a.pid) == (None, None, None, "-1")
    assert (copy.bytes, copy.device, copy.stream) == (2**33, 1, 7)


def test_what_json_cannot_say_becomes_null() -> None:
    """NaN in an argument must not reach the store as text that no JSON reader takes."""
    raw = b'{"traceEvents": [{"ph":"X","cat":"cpu_op","name":"a","ts":1,"dur":1,"args":{"x":NaN,"y":-Infinity}}]}'
    assert json.loads(read_trace(raw)[0].args or "") == {"x": None, "y": None}


def test_only_complete_events_become_rows() -> None:
    """Flows, metadata and instants that no allocator wrote are left out and take no event id."""
    others = [{"ph": phase, "name": phase, "ts": 1} for phase in "Msfi"]
    events = read(*others, complete("a", 1, 1), *others, complete("b", 2, 1))
    assert [(event.event_id, event.name) for event in events] == [(0, "a"), (1, "b")]


def test_what_an_allocator_did_is_an_event_without_duration() -> None:
    """Bytes freed are negative; it lies in the host event and in the step around it, and encloses nothing."""
    memory = {"ph": "i", "cat": "cpu_instant_event", "name": "[memory]", "pid": 1, "tid": 1, "s": "t", "ts": 3}
    step, op, freed, other, inner = read(
        complete("ProfilerStep#4", 0, 10, "user_annotation"),
        complete("aten::empty", 2, 4),
        memory | {"args": {"Bytes": -512, "Device Type": 1, "Total Allocated": 0}},
        memory | {"tid": 2},
        complete("inner", 3, 0),
    )
    assert (freed.category, freed.dur_ns, freed.is_device, freed.bytes) == ("cpu_instant_event", 0, False, -512)
    assert (freed.parent_id, freed.step) == (op.event_id, 4)
    assert json.loads(freed.args or "") == {"Device Type": 1, "Total Allocated": 0}
    assert (other.parent_id, other.step, other.bytes, other.args) == (None, 4, None, None)
    assert inner.parent_id == op.event_id and op.parent_id == step.event_id


# --- links


def test_nesting_by_time_on_one_thread() -> None:
    """Parents enclose their children whatever the order of the file; other threads and the device do not nest."""
    events = by_name(
        read(
            complete("grandchild", 2, 1),
            complete("child", 1, 5),
            complete("root", 0, 10),
            complete("second", 6, 4),
            complete("elsewhere", 2, 1, tid=2),
            complete("kernel", 2, 1, "kernel", tid=1),
        )
    )
    parents = {name: event.parent_id for name, event in events.items()}
    assert parents == {"grandchild": 1, "child": 2, "root": None, "second": 2, "elsewhere": None, "kernel": None}
    assert [event.depth for event in events.values()] == [2, 1, 0, 1, 0, 0]


def test_nesting_of_ties_and_instants() -> None:
    """Equal times: the earlier in the file is the outer; an instant encloses nothing and ends nothing."""
    events = by_name(
        read(
            complete("outer", 0, 10),
            complete("inner", 0, 10),
            complete("instant", 0, 0),
            complete("twin", 0, 0),
            complete("first", 0, 4),
            complete("next", 4, 6),
            complete("at the seam", 4, 0),
            complete("after", 10, 0),
        )
    )
    parents = {name: event.parent_id for name, event in events.items()}
    assert parents == {
        "outer": None,
        "inner": 0,
        "instant": 4,
        "twin": 4,
        "first": 1,
        "next": 1,
        "at the seam": 5,
        "after": None,
    }


def test_crossing_events_do_not_enclose_each_other() -> None:
    """An event that outlasts another is beside it; what both contain belongs to the one that began last."""
    events = by_name(read(complete("a", 0, 10), complete("b", 5, 10), complete("both", 6, 2), complete("late", 12, 1)))
    assert {name: event.parent_id for name, event in events.items()} == {"a": None, "b": None, "both": 1, "late": 1}


@settings(deadline=None)  # the first examples pay for imports
@given(st.lists(st.tuples(st.integers(0, 12), st.integers(0, 6)), max_size=12))
def test_parent_is_the_innermost_enclosing_event(spans: list[tuple[int, int]]) -> None:
    """Against the definition, by trying all pairs."""
    events = read(*(complete(str(i), ts, dur) for i, (ts, dur) in enumerate(spans)))

    def order(event: Event) -> tuple[int, int, int]:
        return event.ts_ns, -event.dur_ns, event.event_id

    for event in events:
        enclosing = [
            other
            for other in events
            if order(other) < order(event) and other.end_ns > event.ts_ns and other.end_ns >= event.end_ns
        ]
        expected = max(enclosing, key=order).event_id if enclosing else None
        assert event.parent_id == expected
        assert event.depth == (0 if expected is None else events[expected].depth + 1)


def test_launch_and_step_of_device_work() -> None:
    """Device work belongs to the step of its launch; without one to the step it starts in; else to none."""
    events = by_name(
        read(
            complete("ProfilerStep#3", 0, 10, "user_annotation"),
            complete("ProfilerStep#4", 10, 10, "user_annotation"),
            complete("cudaLaunchKernel", 5, 1, "cuda_runtime", correlation=8),
            complete("cuLaunchKernelEx", 25, 1, "cuda_driver", correlation=9),
            complete("late", 15, 1, "kernel", tid=7, correlation=8),
            complete("behind the last step", 26, 1, "kernel", tid=7, correlation=9),
            complete("from before the window", 12, 9, "kernel", tid=7, correlation=1),
            complete("outside", 21, 1, "gpu_memset", tid=7),
            complete("aten::mm", 10, 1, correlation=8),
        )
    )
    found = {name: (event.launch_id, event.step) for name, event in events.items() if event.is_device}
    assert found == {
        "late": (2, 3),
        "behind the last step": (3, None),
        "from before the window": (None, 4),
        "outside": (None, None),
    }
    assert (events["aten::mm"].launch_id, events["aten::mm"].step) == (None, 4)


def test_step_of_host_events() -> None:
    """Every thread's events belong to the step in whose time they start, the annotation of the step itself included."""
    events = by_name(
        read(
            complete("ProfilerStep#0", 0, 10, "user_annotation"),
            complete("matmul_add", 1, 8, "user_annotation"),
            complete("backward", 9, 5, tid=2),
            complete("fence", 10, 1, "cuda_runtime"),
            complete("ProfilerStep#1", 11, 5, "user_annotation"),
            complete("before", -1, 3),
        )
    )
    steps = {name: event.step for name, event in events.items()}
    assert steps == {
        "ProfilerStep#0": 0,
        "matmul_add": 0,
        "backward": 0,
        "fence": None,
        "ProfilerStep#1": 1,
        "before": None,
    }


def test_shadows_of_annotations() -> None:
    """An annotation's shadow on the device belongs to the annotation's step and opens no step of its own."""
    events = read(
        complete("ProfilerStep#0", 0, 10, "user_annotation", **{"External id": 1}),
        complete("ProfilerStep#0", 14, 3, "gpu_user_annotation", tid=7, **{"External id": 1}),
        complete("kernel", 15, 1, "kernel", tid=7),
        complete("unknown", 5, 3, "gpu_user_annotation", tid=7),
    )
    assert [event.step for event in events] == [0, 0, None, None]
    assert [event.is_device for event in events] == [False, False, True, False]


# --- joining


def test_join_renumbers_ids_and_keeps_distinct_steps() -> None:
    """Ids run on through the windows, links follow them, and torch's own step numbers stay."""

    def window(step: int, ts: int) -> list[Event]:
        return read(
            complete(f"ProfilerStep#{step}", ts, 10, "user_annotation"),
            complete("cudaLaunchKernel", ts + 1, 1, "cuda_runtime", correlation=1),
            complete("kernel", ts + 3, 1, "kernel", tid=7, correlation=1),
        )

    joined = join([window(2, 0), window(7, 100)])
    assert [event.event_id for event in joined] == [0, 1, 2, 3, 4, 5]
    assert [event.parent_id for event in joined] == [None, 0, None, None, 3, None]
    assert [event.launch_id for event in joined] == [None, None, 1, None, None, 4]
    assert [event.step for event in joined] == [2, 2, 2, 7, 7, 7]
    assert [event.step for event in join([window(2, 0), window(2, 100)])] == [2, 2, 2, 3, 3, 3]
    assert join([]) == join([[], []]) == []


# --- what is no trace


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "no traceEvents: it seems to be an empty file"),
        (b'{"traceEvents": [{"ph": "X"', "no whole event"),
        (b"\xff\xfe\xfa", "no traceEvents"),
        (b"\x1f\x8b\x08\x00", "no traceEvents"),
        (gzip.compress(b'{"traceEvents": []}' * 50)[:-12], "the gzip data ends early"),
        (b'{"schema": "chakra"}', "no traceEvents"),
        (b'{"traceEvents": [{"ph": "X", "ts": 1, "dur": 1}]}', "1 of 1 events cannot be used: no name"),
        (b'{"traceEvents": [{"ph": "X", "name": "a", "ts": 1}]}', "no duration"),
        (b'{"traceEvents": [{"ph": "X", "name": "a", "ts": "now", "dur": 1}]}', "time is no number"),
        (b'{"traceEvents": [{"ph": "X", "name": "a", "ts": 1e99, "dur": 1}]}', "time out of range"),
        (b'{"traceEvents": [{"ph": "X", "name": "a", "ts": 1, "dur": -2}]}', "negative duration"),
    ],
    ids=lambda given: given if isinstance(given, str) else "data",  # packed data hold the time of their packing
)
def test_refusals_say_what_is_wrong(data: bytes, message: str) -> None:
    """What is no trace is refused with one sentence."""
    with pytest.raises(TraceError, match=message) as refusal:
        read_trace(data)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    "text",
    [
        '{"ph": "X", "name": "a", "cat": "cpu_op", "ts": 1e999999999999, "dur": 1}',
        '{"ph": "X", "name": "a", "cat": "cpu_op", "ts": 1, "dur": 1, "args": {"x": 1e9999999999999999999999}}',
        '{"ph": "X", "name": "ProfilerStep#' + "9" * 5000 + '", "cat": "user_annotation", "ts": 1, "dur": 1}',
        '{"ph": "X", "name": "a", "cat": "user_annotation", "ts": 1, "dur": 1, "args": {"External id": [1, 2]}}',
    ],
    ids=["time", "number", "step", "id"],
)
def test_values_that_no_profiler_writes_are_refused(text: str) -> None:
    """Whatever stands in a file, the answer is events or a TraceError."""
    try:
        read_trace(f'{{"traceEvents": [{text}]}}'.encode())
    except TraceError as error:
        assert str(error)


def test_gzip_is_told_by_bytes() -> None:
    """The same events, packed or not."""
    plain = gzip.decompress(RECORDED[0].read_bytes())
    assert read_trace(plain) == read_trace(gzip.compress(plain))


def test_reader_needs_no_torch() -> None:
    """The parent process imports the reader and must stay free of torch and hydra."""
    code = (
        "import sys, runner.trace, runner.window; print({'torch', 'hydra', 'omegaconf', 'duckdb'} & set(sys.modules))"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "set()"


# --- traces that torch writes here


def profiled(tmp_path: Path, repeat: int) -> tuple[list[list[Event]], list[Counter[tuple[str, int, int]]]]:
    """Windows of a real CPU profile (schedule 1/1/3), and what kineto itself says about the same events."""
    traces: list[list[Event]] = []
    kineto: list[Counter[tuple[str, int, int]]] = []

    def collect(profiler: Any) -> None:
        path = tmp_path / f"{len(traces)}.json"
        profiler.export_chrome_trace(str(path))
        traces.append(read_trace(path.read_bytes()))
        own = profiler.profiler.kineto_results.events()
        kineto.append(Counter((event.name(), event.start_ns(), event.duration_ns()) for event in own))

    x = torch.ones(8, 8)
    plan = schedule(wait=1, warmup=1, active=3, repeat=repeat)
    with profile(
        activities=[ProfilerActivity.CPU], schedule=plan, on_trace_ready=collect, record_shapes=True
    ) as profiler:
        for _ in range(5 * repeat):
            with record_function("matmul_add"):
                torch.matmul(x, x) + x
            profiler.step()
    return traces, kineto


def test_a_real_profile_is_read_exactly(tmp_path: Path) -> None:
    """Names, starts and durations equal kineto's own to the nanosecond, and steps, parents and shapes are there."""
    traces, kineto = profiled(tmp_path, repeat=2)
    for events, own in zip(traces, kineto, strict=True):
        seen = Counter((e.name, e.ts_ns, e.dur_ns) for e in events if e.category in {"cpu_op", "user_annotation"})
        assert seen and not seen - own
    joined = join(traces)
    assert sorted({event.step for event in joined if event.step is not None}) == [2, 3, 4, 7, 8, 9]
    names = {event.event_id: event.name for event in joined}
    chains = {(names[e.parent_id], e.depth) for e in joined if e.name == "aten::matmul" and e.parent_id is not None}
    assert chains == {("matmul_add", 2)}
    assert {e.shapes for e in joined if e.name == "aten::mm"} == {"[[8, 8], [8, 8]]"}


# --- public traces, where the machine has them


def foreign_cases() -> list[dict[str, Any]]:
    """Lines of expected.jsonl of small traces; tests/test_ingest_corpus.py has all."""
    if FOREIGN is None:
        return []
    lines = (Path(FOREIGN) / "expected.jsonl").read_text().splitlines()
    cases = [json.loads(line) for line in lines]
    return [case for case in cases if case.get("events", 0) < 20_000]


def busy_ns(spans: list[tuple[int, int]]) -> int:
    """Length of the union."""
    total, until = 0, 0
    for start, end in sorted(spans):
        total += max(0, end - max(start, until))
        until = max(until, end)
    return total


@pytest.mark.skipif(FOREIGN is None, reason="CROSSOVER_TRACES names no folder of public traces")
@pytest.mark.parametrize("case", foreign_cases(), ids=lambda case: case["file"])
def test_public_traces(case: dict[str, Any]) -> None:
    """Counts and device times of traces of other makers equal figures computed without this reader."""
    data = (Path(FOREIGN or "") / case["file"]).read_bytes()
    if "refused" in case:
        with pytest.raises(TraceError):
            read_trace(data)
        return
    events = read_trace(data)
    work = [event for event in events if event.is_device]
    spans = defaultdict(list)
    for event in work:
        spans[str(event.device)].append((event.ts_ns, event.end_ns))
    steps = {e.name for e in events if e.name.startswith("ProfilerStep#") and e.category != "gpu_user_annotation"}
    assert {
        "complete_events": sum(event.category != "cpu_instant_event" for event in events),
        "gpu_events": len(work),
        "kernels": sum(event.category == "kernel" for event in work),
        "busy_ns_by_device": {device: busy_ns(each) for device, each in spans.items()},
        "gpu_dur_sum_ns": sum(event.dur_ns for event in work),
        "unlinked_gpu_events": sum(event.launch_id is None for event in work),
        "unlinked_dur_ns": sum(event.dur_ns for event in work if event.launch_id is None),
        "profiler_steps": len(steps),
        "distinct_kernel_names": len({event.name for event in work if event.category == "kernel"}),
    } == {key: value for key, value in case.items() if key not in {"file", "events"}}
