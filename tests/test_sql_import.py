"""Audits, gaps, steps and verdicts of imported traces, on small given ones; times in the traces are microseconds."""

import json
import random
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from given import Row, write_store

from analysis.__main__ import main
from analysis.store import open_store

RUNTIME, ANNOTATION = "cuda_runtime", "user_annotation"
DEVICE = ("kernel", "gpu_memcpy", "gpu_memset")


def event(name: str, category: str, start: float, end: float, **more: Any) -> dict[str, Any]:
    """An event of the main thread from start to end; kernels, copies and fills are work of device 0, stream 7."""
    place = {"is_device": True, "device": 0, "stream": 7} if category in DEVICE else {"is_device": False, "tid": "main"}
    times = {"ts_ns": round(start * 1000), "dur_ns": round(end * 1000) - round(start * 1000)}
    return {"name": name, "category": category, "pid": "1", **place, **times, **more}


def call(name: str, start: float, end: float, event_id: int | None = None, **more: Any) -> dict[str, Any]:
    """A call of the device's runtime; what it launches names its event_id."""
    return event(name, RUNTIME, start, end, **({} if event_id is None else {"event_id": event_id}), **more)


def kernel(start: float, end: float, launch_id: int | None = None, name: str = "gemm", **more: Any) -> dict[str, Any]:
    """A kernel of that launch."""
    return event(name, "kernel", start, end, **{"launch_id": launch_id, **more})


def numbered(events: Iterable[Row]) -> list[Row]:
    """The events, those without an id numbered from 1,000."""
    return [{"event_id": 1000 + place, **row} for place, row in enumerate(events)]


def imported(method: str | None = "profiler", kinds: Any = None, **facts: Any) -> dict[str, Any]:
    """A run as the import writes it: no axes, no times, its steps found by this method."""
    axes = dict.fromkeys(("size", "dtype", "compile", "dynamic", "warmup", "device"))
    steps = {
        "method": method,
        "kinds": kinds or [{"kind": "train", "steps": [[0, 99]]}],
        "reason": facts.pop("why", None),
    }
    return {
        **axes,
        "source": "import",
        "workload": "rank0",
        "facts": {"import": {}, "audit": {}, "steps": steps, **facts},
    }


def rows(store: Path, query: str) -> list[tuple[Any, ...]]:
    """The rows of a query over a store."""
    with open_store(store) as connection:
        return connection.sql(query).fetchall()


def rows_by_run(
    folder: Path, run: Row, events: Mapping[str, Iterable[Row]], query: str
) -> dict[str, list[tuple[Any, ...]]]:
    """The rows of a query over one store that holds a point for every trace, by the run_id they begin with.

    run: what all points are; events: of each, by the name that becomes its run_id and its point_id.
    """
    runs = [{**run, "run_id": name, "point_id": name} for name in events]
    traces = [{**row, "run_id": name} for name, trace in events.items() for row in numbered(trace)]
    found: dict[str, list[tuple[Any, ...]]] = {name: [] for name in events}
    for name, *row in rows(write_store(folder, runs=runs, events=traces), query):
        found[name].append(tuple(row))
    return found


# --- audits


AUDIT = {
    "line": "rank0.json.gz: 9 events, 5 kept",
    **{"events": 9, "complete": 7, "kept": 5, "set_aside": {"flow": 2, "no name": 1}, "repaired": {"inf": 1}},
    **{"lost_events": 1, "lost_bytes": 40, "lost": [{"offset": 7, "bytes": 40, "why": "cut off"}], "truncated": True},
    **{"device_events": 4, "kernels": 3, "kernel_names": 2, "busy_ns": {"0": 12}, "device_dur_ns": 15, "unlinked": 1},
    **{"unlinked_dur_ns": 2, "overlapping": 1, "outside_steps": 1, "before_launch": 0, "suspiciously_long": 0},
    "profiler_steps": 2,
}


def test_audits(tmp_path: Path) -> None:
    """One row an imported run, counts summed and reasons beside them; a sweep has none."""
    file = {"file": "rank0.json.gz", "path": "traces/rank0.json.gz", "file_bytes": 10, "json_bytes": 100}
    facts: dict[str, Any] = {"import": file, "audit": AUDIT, "rank": 0, "world_size": 8}
    run = imported(**facts)
    query = """
        SELECT file, json_bytes, events, complete_events, kept, set_aside, set_aside_why, repaired, lost_events, lost,
            truncated, busy_ns, unlinked_dur_ns, step_method, step_kinds, rank, world_size, line
        FROM audits
    """
    assert rows(write_store(tmp_path, runs=[run, {}]), query) == [
        (
            *("rank0.json.gz", 100, 9, 7, 5, 3, '{"flow":2,"no name":1}', 1, 1),
            *('[{"offset":7,"bytes":40,"why":"cut off"}]', True, '{"0":12}', 2, "profiler"),
            *('[{"kind":"train","steps":[[0,99]]}]', 0, 8, "rank0.json.gz: 9 events, 5 kept"),
        )
    ]


def test_an_audit_that_says_nothing_is_unknown(tmp_path: Path) -> None:
    """What the import did not tell is NULL, never 0; of no reasons the sum is 0."""
    store = write_store(tmp_path, runs=[imported(audit={"repaired": {}})])
    assert rows(store, "SELECT events, set_aside, repaired, truncated, line FROM audits") == [
        (None, None, 0, None, None)
    ]


# --- gaps

FIRST = [call("cudaLaunchKernel", -10, -8, 0), kernel(0, 10, 0)]
"""A kernel that starts 10 us after its launch began, which is what a launch takes here; the device runs dry at 10."""


def late(start: float = 15, end: float = 17, at: float = 25, **more: Any) -> list[dict[str, Any]]:
    """A second kernel, launched from start to end."""
    return [call("cudaLaunchKernel", start, end, 1), kernel(at, 30, 1, **more)]


SYNC = "cudaStreamSynchronize"

CAUSES: dict[str, tuple[list[dict[str, Any]], str, str | None]] = {
    "launched late": (late(), "host late", "cudaLaunchKernel began 5.00 us after the device ran dry"),
    "just too late": (late(8, 9), "host late", "cudaLaunchKernel began only 17.0 us before the start"),
    "slow launch": (late(-5, 11), "host late", "cudaLaunchKernel took 16.0 us"),
    "stands still": (late(-5, -3), "other stream", "launched 30.0 us before, on a stream that stood still"),
    "a pause": (late(-9, -8, at=12), "unknown", "launched in time: a pause of the device between two events"),
    "other stream": (
        late(-9, -8, at=12, stream=8),
        "other stream",
        "launched 21.0 us before, on a stream that was free",
    ),
    "drained": ([call(SYNC, 2, 12), *late()], "synchronize", f"{SYNC}, then 3.00 us until the next launch"),
    "drained, and waited again": (
        [call(SYNC, 2, 12), call("cudaDeviceSynchronize", 12.5, 13), *late()],
        "synchronize",
        f"{SYNC}, then 3.00 us until the next launch",
    ),
    "waited too late": (
        [call(SYNC, 11, 12), *late()],
        "host late",
        "cudaLaunchKernel began 5.00 us after the device ran dry",
    ),
    "waited before": (
        [call(SYNC, 2, 9), *late()],
        "host late",
        "cudaLaunchKernel began 5.00 us after the device ran dry",
    ),
    "another thread waited": (
        [call(SYNC, 2, 12, tid="other"), *late()],
        "host late",
        "cudaLaunchKernel began 5.00 us after the device ran dry",
    ),
    "fence": (
        [event("crossover: fence", ANNOTATION, 1, 13), call(SYNC, 2, 12), *late()],
        "synchronize",
        f"the runner's fence: {SYNC}, then 3.00 us until the next launch",
    ),
    "no fence": (
        [event("crossover: fence", ANNOTATION, 1, 11), call(SYNC, 2, 12), *late()],
        "synchronize",
        f"{SYNC}, then 3.00 us until the next launch",
    ),
    "copied": ([call("cudaMemcpy", 2, 12), *late()], "memcpy", "cudaMemcpy, then 3.00 us until the next launch"),
    "copied without waiting": (
        [call("cudaMemcpyAsync", 2, 12), *late()],
        "host late",
        "cudaLaunchKernel began 5.00 us after the device ran dry",
    ),
    "a blocking copy comes next": (
        [call("hipMemcpyWithStream", 11, 31, 1), event("CopyHostToDevice", "gpu_memcpy", 25, 30, launch_id=1)],
        "memcpy",
        "hipMemcpyWithStream",
    ),
    "a blocking copy comes too late": (
        [call("cudaMemcpy", 20, 31, 1), event("Memcpy HtoD", "gpu_memcpy", 25, 30, launch_id=1)],
        "host late",
        "cudaMemcpy began 10.0 us after the device ran dry",
    ),
    "profiled": (
        [event("Activity Buffer Request", "overhead", 9, 20, tid="0"), *late()],
        "profiler",
        "Activity Buffer Request",
    ),
    "hardly profiled": (
        [event("Activity Buffer Request", "overhead", 9, 15, tid="0"), *late()],
        "host late",
        "cudaLaunchKernel began 5.00 us after the device ran dry",
    ),
    "loading is no overhead of the profiler": (
        [event("Lazy Function Loading", "overhead", 9, 24, tid="0"), *late()],
        "host late",
        "cudaLaunchKernel began 5.00 us after the device ran dry",
    ),
    "not launched": ([kernel(25, 30)], "unknown", "the launch of the next event is not in the trace"),
    "one launch": ([kernel(25, 30, 0)], "unknown", "between two events of one launch"),
    "collective": ([kernel(10, 25, name="ncclDevKernel_AllReduce"), kernel(25, 30, 0)], "collective", None),
}


@pytest.fixture(scope="module")
def gaps_of(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[tuple[Any, ...]]]:
    """Start, cause and detail of the gaps of every trace of CAUSES, each a point of its own in one store."""
    events = {name: [*FIRST, *more] for name, (more, _, _) in CAUSES.items()}
    return rows_by_run(
        tmp_path_factory.mktemp("causes"), {}, events, "SELECT run_id, start_ns, cause, detail FROM gaps"
    )


@pytest.mark.parametrize("name", CAUSES)
def test_cause_of_a_gap(gaps_of: dict[str, list[tuple[Any, ...]]], name: str) -> None:
    """The device runs dry at 10: every cause, what was seen of it, and beside it a near miss."""
    _, cause, detail = CAUSES[name]
    assert gaps_of[name] == [(10_000, cause, detail)]


def test_a_gap_names_what_ends_it(tmp_path: Path) -> None:
    """A gap belongs to the step of the event that ends it; before and behind the work of a device there is none."""
    events = [*FIRST, *late(step=3), {**kernel(2, 4), "event_id": 9, "device": 1}]
    store = write_store(tmp_path, runs=[{}], events=numbered(events))
    query = "SELECT device, step, start_ns, dur_ns, next_event_id, launch_id FROM gaps"
    assert rows(store, query) == [(0, 3, 10_000, 15_000, 1003, 1)]


def test_collectives_are_no_work(tmp_path: Path) -> None:
    """Where work runs beside a collective is no gap; two collectives in a row are one; the last has no next event."""
    events = [
        *FIRST,
        kernel(5, 20, name="ncclKernel_AllGather", stream=9),
        kernel(20, 22, name="ONCCL_send", stream=9),
        kernel(25, 30, name="notnccl"),
        kernel(28, 40, name="rcclGenericKernel", stream=9),
    ]
    store = write_store(tmp_path, runs=[{}], events=numbered(events))
    query = "SELECT start_ns / 1000, dur_ns / 1000, cause, next_event_id FROM gaps ORDER BY start_ns"
    assert rows(store, query) == [(10, 12, "collective", 1004), (22, 3, "unknown", 1004), (30, 10, "collective", None)]


def random_work(seed: int) -> list[dict[str, Any]]:
    """Kernels and collectives of two streams, some of them without duration, at whole nanoseconds."""
    dice = random.Random(seed)
    names = ("gemm", "gemm", "ncclAllReduce")
    starts = [(dice.randrange(60), dice.randrange(9)) for _ in range(dice.randrange(1, 12))]
    return [
        {**kernel(0, 0, name=dice.choice(names), stream=dice.choice((7, 8))), "ts_ns": start, "dur_ns": length}
        for start, length in starts
    ]


def test_gaps_and_work_add_up_exactly(tmp_path: Path) -> None:
    """In 200 random traces every nanosecond of a device's span is work, or lies in one gap of the right kind."""
    traces = {f"r{seed:03d}": random_work(seed) for seed in range(200)}
    events = [{**row, "run_id": run_id} for run_id, trace in traces.items() for row in trace]
    store = write_store(tmp_path, runs=[{"point_id": run_id} for run_id in traces], events=events)
    found: dict[str, list[tuple[int, bool]]] = {run_id: [] for run_id in traces}
    for run_id, start, length, cause in rows(store, "SELECT run_id, start_ns, dur_ns, cause FROM gaps"):
        found[run_id] += [(time, cause == "collective") for time in range(start, start + length)]
    for run_id, trace in traces.items():
        assert sorted(found[run_id]) == by_the_nanosecond(trace), run_id


def by_the_nanosecond(trace: list[dict[str, Any]]) -> list[tuple[int, bool]]:
    """Every nanosecond without work between the first and the last event, and whether a collective runs in it."""
    spans = [(range(row["ts_ns"], row["ts_ns"] + row["dur_ns"]), row["name"] == "gemm") for row in trace]
    work = {time for span, works in spans if works for time in span}
    waits = {time for span, works in spans if not works for time in span}
    whole = range(min(span.start for span, _ in spans), max(span.stop for span, _ in spans))
    return [(time, time in waits) for time in whole if time not in work]


# --- steps


def mark(number: int, start: float, end: float, name: str | None = None) -> dict[str, Any]:
    """The annotation of a step."""
    return event(name or f"ProfilerStep#{number}", ANNOTATION, start, end, step=number)


STEPS = """
    SELECT step, kind, start_ns / 1000, end_ns / 1000, wall_us, host_us, busy_us, busy_frac, idle_us, lead_us, queue_us
    FROM steps ORDER BY step
"""


def in_step(number: int, launch: float, start: float, end: float) -> list[dict[str, Any]]:
    """A kernel and its launch of 2 us in a step."""
    return [call("cudaLaunchKernel", launch, launch + 2, number, step=number), kernel(start, end, number, step=number)]


def test_profiler_steps_follow_each_other(tmp_path: Path) -> None:
    """A step lasts until the next one begins, the last until its work has ended; launches lead their kernels."""
    events = [mark(0, 0, 95), *in_step(0, 20, 30, 80), mark(1, 100, 195), *in_step(1, 120, 160, 260)]
    store = write_store(tmp_path, runs=[imported()], events=numbered(events))
    assert rows(store, STEPS) == [
        (0, "train", 0, 95, 130, 95, 50, pytest.approx(50 / 130), 80, 10, 8),
        (1, "train", 100, 195, 160, 95, 100, 0.625, 60, 40, 38),
    ]


def test_steps_with_a_long_pause_stand_alone(tmp_path: Path) -> None:
    """More than half a step's length behind its end another one does not follow it: it ends with its own work."""
    traces = {
        str(start): [mark(0, 0, 100), *in_step(0, 20, 30, 120), mark(1, start, 300), *in_step(1, start, 200, 210)]
        for start in (181, 180)
    }
    found = rows_by_run(tmp_path, imported(), traces, "SELECT run_id, wall_us FROM steps WHERE step = 0")
    assert found == {"181": [(120,)], "180": [(180,)]}


def test_steps_of_an_annotation(tmp_path: Path) -> None:
    """The step is the range that --step matched, not what lies inside it or beside it under another name."""
    kinds = [{"kind": "decode", "steps": [[0, 0]]}, {"kind": "prefill", "steps": [[1, 1]]}]
    events = [mark(0, 0, 50, "decode"), mark(0, 5, 90, "other"), mark(1, 50, 70, "prefill"), *in_step(0, 10, 20, 30)]
    store = write_store(tmp_path, runs=[imported("annotation", kinds)], events=numbered(events))
    assert rows(store, "SELECT step, kind, wall_us, host_us, busy_us, busy_frac FROM steps ORDER BY step") == [
        (0, "decode", 50, 50, 10, 0.2),
        (1, "prefill", 20, 20, None, None),
    ]


def test_steps_of_a_sequence(tmp_path: Path) -> None:
    """Without annotations a step goes from its first launch to its last work, host time to the next first launch."""
    kinds = [{"kind": "A", "steps": [[0, 1]]}]
    around = event("python", "cpu_op", 0, 500, step=0)
    events = [around, *in_step(0, 10, 20, 40), *in_step(1, 24, 50, 70)]
    events[3:3] = [call("cudaLaunchKernel", 14, 18, 7, step=0), kernel(40, 45, 7, step=0)]
    store = write_store(tmp_path, runs=[imported("sequence", kinds)], events=numbered(events))
    assert rows(store, STEPS) == [
        (0, "A", 10, 45, 30, 14, 25, pytest.approx(25 / 30), 5, 18, 15),
        (1, "A", 24, 70, 46, 2, 20, pytest.approx(20 / 46), 26, 26, 24),
    ]


def test_a_window_is_one_step(tmp_path: Path) -> None:
    """The whole window goes from its first launch to the end of its work; launches may be missing."""
    kinds = [{"kind": "window", "steps": [[0, 0]]}]
    events = [event("main", "cpu_op", 0, 900, step=0), kernel(100, 150, step=0), kernel(180, 200, step=0)]
    store = write_store(tmp_path, runs=[imported("window", kinds)], events=numbered(events))
    assert rows(store, STEPS) == [(0, "window", 100, 200, 100, None, 70, 0.7, 30, None, None)]


def test_a_sweep_has_steps_without_a_kind(tmp_path: Path) -> None:
    """A swept step is its workload's annotation, and its work is compared with the time until the next."""
    events = [mark(1, 0, 99), mark(1, 5, 95, "matmul_add"), *in_step(1, 10, 20, 30), mark(2, 100, 190, "matmul_add")]
    store = write_store(tmp_path, runs=[{}], events=numbered(events))
    assert rows(store, "SELECT kind, host_us, wall_us, busy_us FROM steps WHERE step = 1") == [(None, 90, 95, 10)]


# --- verdicts

Part = tuple[float, float]


def loop(
    period: float,
    host: float | None = None,
    work: Iterable[Part] = (),
    collectives: Iterable[Part] = (),
    waits: Iterable[Part] = (),
    inputs: Iterable[Part] = (),
    launched: bool = True,
    wait: str = SYNC,
    thread: str = "main",
) -> list[Row]:
    """Five equal steps of so many microseconds, all parts given relative to their start.

    Work is launched 20 us before it starts; host is the length of the annotation, else the period.
    """
    events: list[dict[str, Any]] = []
    for step in range(5):
        begin = step * period
        events.append(mark(step, begin, begin + (host or period)))
        for place, (start, end) in enumerate(work):
            launch = 10 * step + place
            if launched:
                events.append(call("cudaLaunchKernel", begin + start - 20, begin + start - 15, launch, step=step))
            events.append(kernel(begin + start, begin + end, launch if launched else None, step=step))
        for start, end in collectives:
            events.append(kernel(begin + start, begin + end, name="ncclAllReduce", step=step))
        events += [call(wait, begin + start, begin + end, step=step, tid=thread) for start, end in waits]
        loader = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"
        events += [event(loader, ANNOTATION, begin + start, begin + end, step=step) for start, end in inputs]
    return numbered(events)


INFLATED = "the profiler hides which side is slower: host without the profiler / device = "

VERDICTS: dict[str, tuple[list[Row], str, str]] = {
    "one event": (
        numbered([mark(0, 0, 100), call("cudaLaunchKernel", 5, 10, 1, step=0), kernel(20, 30, 1, step=0)]),
        "unknown",
        "the trace holds one device event, and a verdict needs more",
    ),
    "capture": (
        numbered(
            [mark(0, 0, 400)]
            + [call("hipLaunchKernel", 10 * i, 10 * i + 5, i, step=0) for i in range(20)]
            + [kernel(300 + 10 * i, 305 + 10 * i, i, step=0) for i in range(2)]
        ),
        "unknown",
        "most launches have no work in the trace (20.0 a step, 2.00 kernels), as while a graph is captured",
    ),
    "overhead that does not leave the device idle": (
        numbered(
            [mark(0, 0, 1000)]
            + [call("cudaLaunchKernel", i, i + 1, i, step=0) for i in range(4)]
            + [kernel(300 * i + 60, 300 * i + 80, i, step=0) for i in range(4)]
        ),
        "unknown",
        "host without the profiler / device = 7.14 (3.91 to 12.5), but the device is idle for another reason: other "
        "stream (100 % of its gaps)",
    ),
    "overhead": (
        loop(400, work=[(50, 150)]),
        "overhead-bound",
        "host without the profiler / device = 2.29 (1.25 to 4.00); without overhead it would be at "
        "most 4.00 times as fast, an upper limit, since the profiled step is slowed",
    ),
    "hidden by the profiler": (
        loop(300, work=[(50, 150)]),
        "unknown",
        f"{INFLATED}1.71 (0.938 to 3.00) if it slows the host 1.75 times (3.20 to 1.00)",
    ),
    "device": (
        loop(200, host=100, work=[(20, 170)]),
        "device-bound",
        "host without the profiler / device = 0.381 (0.208 to 0.667), and a trace alone has no roofs, which would say "
        "by what the device is bound",
    ),
    "not surely device": (
        loop(200, host=100, work=[(20, 115)]),
        "unknown",
        f"{INFLATED}0.602 (0.329 to 1.05) if it slows the host 1.75 times (3.20 to 1.00)",
    ),
    "full": (
        loop(100, work=[(20, 116)]),
        "device-bound",
        "it computes for 96.0 % of the step; a trace alone has no roofs, which would say by what it is bound",
    ),
    "not quite full": (
        loop(100, work=[(20, 114)]),
        "unknown",
        f"{INFLATED}0.608 (0.332 to 1.06) if it slows the host 1.75 times (3.20 to 1.00)",
    ),
    "serialized": (
        loop(300, work=[(60, 260)], waits=[(150, 280)]),
        "serialized",
        f"the host waits inside the step: {SYNC}",
    ),
    "mostly blocked": (
        loop(300, work=[(20, 310)], waits=[(40, 200)]),
        "serialized",
        f"the host waits inside the step: {SYNC}",
    ),
    "hardly blocked": (
        loop(300, work=[(50, 150)], waits=[(140, 150)]),
        "unknown",
        f"{INFLATED}1.66 (0.906 to 2.90) if it slows the host 1.75 times (3.20 to 1.00)",
    ),
    "waits while the device is idle": (
        loop(400, work=[(50, 150)], waits=[(150, 390)]),
        "overhead-bound",
        "host without the profiler / device = 2.29 (1.25 to 4.00); without overhead it would be at "
        "most 4.00 times as fast, an upper limit, since the profiled step is slowed",
    ),
    "a thread that launches nothing waits": (
        loop(400, work=[(50, 150)], waits=[(60, 390)], thread="other"),
        "overhead-bound",
        "host without the profiler / device = 2.29 (1.25 to 4.00); without overhead it would be at "
        "most 4.00 times as fast, an upper limit, since the profiled step is slowed",
    ),
    "an asynchronous copy does not wait": (
        loop(400, work=[(50, 150)], waits=[(60, 390)], wait="cudaMemcpyAsync"),
        "overhead-bound",
        "host without the profiler / device = 2.29 (1.25 to 4.00); without overhead it would be at "
        "most 4.00 times as fast, an upper limit, since the profiled step is slowed",
    ),
    "communication": (
        loop(300, work=[(50, 150)], collectives=[(100, 260)]),
        "communication-bound",
        "for 110 us of a step nothing but collectives runs, and the device computes for 100 us",
    ),
    "less communication than work": (
        loop(300, work=[(50, 150)], collectives=[(100, 240)]),
        "unknown",
        f"{INFLATED}1.71 (0.938 to 3.00) if it slows the host 1.75 times (3.20 to 1.00)",
    ),
    "input": (
        loop(400, work=[(310, 390)], inputs=[(10, 250)]),
        "input-bound",
        "a step waits 240 us for its input while the device is idle: "
        "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__",
    ),
    "input is less than the rest": (
        loop(400, work=[(310, 390)], inputs=[(10, 160)]),
        "overhead-bound",
        "host without the profiler / device = 2.86 (1.56 to 5.00); without overhead it would be at "
        "most 5.00 times as fast, an upper limit, since the profiled step is slowed",
    ),
    "input while the device works": (
        loop(400, host=380, work=[(30, 390)], inputs=[(40, 380)]),
        "unknown",
        f"{INFLATED}0.603 (0.33 to 1.06) if it slows the host 1.75 times (3.20 to 1.00)",
    ),
    "launches are not in the trace": (
        [*loop(400, work=[(50, 150)], launched=False), {**call("cudaLaunchKernel", 1, 2), "event_id": 5000}],
        "unknown",
        "the launches behind 100 % of the device's idle time are not in the trace",
    ),
    "nothing of the host is in the trace": (
        loop(100, work=[(20, 114)], launched=False),
        "unknown",
        "no call of the host is in the trace, and the device is idle for 6.00 % of a step",
    ),
    "full, launches are not in the trace": (
        loop(100, work=[(20, 116)], launched=False),
        "device-bound",
        "it computes for 96.0 % of the step; a trace alone has no roofs, which would say by what it is bound",
    ),
    "host alone": (
        loop(100),
        "unknown",
        "the trace has neither device work nor launches, and of a CPU's time alone no trace tells what is overhead and "
        "what is work",
    ),
    "no kernels": (
        [*loop(100), {**call("cudaLaunchKernel", 1, 2), "event_id": 5000}],
        "unknown",
        "no device work was recorded, although the host called the device's runtime 1 time",
    ),
    "work outside of steps": (
        [*loop(100), *({**kernel(600 + i, 601 + i), "event_id": 5000 + i} for i in range(2))],
        "unknown",
        "no step holds device work",
    ),
}


@pytest.fixture(scope="module")
def bounds_of(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[tuple[Any, ...]]]:
    """Bound and reason of every trace of VERDICTS, each a point of its own in one store."""
    events = {name: given for name, (given, _, _) in VERDICTS.items()}
    return rows_by_run(
        tmp_path_factory.mktemp("bounds"), imported(), events, "SELECT run_id, bound, reason FROM bounds"
    )


@pytest.mark.parametrize("name", VERDICTS)
def test_verdict_of_a_trace(bounds_of: dict[str, list[tuple[Any, ...]]], name: str) -> None:
    """Each rule gives its bound and the figures it rests on, and beside it stands a near miss."""
    _, bound, reason = VERDICTS[name]
    assert bounds_of[name] == [(bound, reason)]


def told(store: Path) -> str:
    """The sentence of the only point."""
    ((sentence,),) = rows(store, "SELECT sentence FROM bounds")
    return str(sentence)


def test_sentence_of_a_trace(tmp_path: Path) -> None:
    """It names the kind of step, says that the profiler slows the host and by how much, and why the device is idle."""
    run = imported(audit={"truncated": True})
    assert told(write_store(tmp_path, runs=[run], events=VERDICTS["overhead"][0])) == (
        "Of a profiled step of 400 us (train, median of 5) the device is busy 25.0 %, the host works for 400 us under "
        "the profiler, which usually slows it 1.75 times (seen: 1.00 to 3.20): overhead-bound, "
        "host without the profiler / device = 2.29 "
        "(1.25 to 4.00); without overhead it would be at most 4.00 times as fast, an upper limit, since the "
        "profiled step is slowed. Most of its idle time: host late (100 %). "
        "The trace is cut off."
    )


def test_sentence_of_a_window(tmp_path: Path) -> None:
    """Where no step was found the sentence says so."""
    events = [{**row, "step": 0} for row in loop(400, work=[(50, 150)]) if row["category"] != ANNOTATION]
    run = imported("window", [{"kind": "window", "steps": [[0, 0]]}])
    assert told(write_store(tmp_path, runs=[run], events=events)).startswith(
        "Of the 1.72 ms of the whole window, in which no step was found, the device is busy 29.1 %, the host works for "
        "1.60 ms under the profiler"
    )


def test_the_kind_that_takes_most_time_decides(tmp_path: Path) -> None:
    """Prefill and decode are judged apart, by the one that takes more time in all, not by the longer one."""
    kinds = [{"kind": "decode", "steps": [[0, 3]]}, {"kind": "prefill", "steps": [[4, 4]]}]
    events = loop(400, work=[(50, 150)])
    longer = [{**row, "dur_ns": 5_000_000} if row["name"] == "ProfilerStep#4" else row for row in events]
    query = "SELECT run_id, kind, steps, wall_us FROM _import_verdicts"
    assert rows_by_run(tmp_path, imported(kinds=kinds), {"as it is": events, "longer": longer}, query) == {
        "as it is": [("decode", 4, 400)],
        "longer": [("prefill", 1, 5000)],
    }


def test_figures_of_a_trace(tmp_path: Path) -> None:
    """Overhead is the host's time by its usual inflation, work the device's; no unprofiled time is made up."""
    query = """
        SELECT wall_us, issue_us, device_us, overhead_us, overhead_us_low, overhead_us_high, work_us, busy_us,
            blocked_us, margin, margin_low, margin_high, confidence, gain, launches, kernels, blocking_calls, bound
        FROM bounds
    """
    store = write_store(tmp_path, runs=[imported()], events=VERDICTS["serialized"][0])
    (row,) = rows(store, query)
    assert row[:3] == (None, None, None)
    assert row[3:12] == pytest.approx((190 / 1.75, 190 / 3.2, 190, 200, 200, 110, 0.95 / 1.75, 0.95 / 3.2, 0.95))
    assert row[12:] == (None, None, 1, 1, '{"cudaStreamSynchronize":1.0}', "serialized")


def test_an_import_changes_no_sweep(tmp_path: Path) -> None:
    """Beside an import the rows of a sweep are what they are without it, and the import has no perturbation."""
    swept = {"run_id": "s", "point_id": "s", "issue_us": 18, "wall_us": 18, "device_us": 5, "busy_us": 4}
    both = write_store(
        tmp_path / "both", runs=[swept, {**imported(), "run_id": "i", "environment_id": "other"}], events=[
            {**row, "run_id": "i"} for row in VERDICTS["overhead"][0]
        ]
    )  # fmt: skip
    alone = write_store(tmp_path / "alone", runs=[swept])
    with open_store(both) as beside, open_store(alone) as by_itself:
        for query in ("FROM bounds WHERE point_id = 's'", "SELECT count(*) FROM law", "FROM crossovers"):
            assert beside.sql(query).fetchall() == by_itself.sql(query).fetchall()
        assert beside.sql("SELECT count(*) FROM law").fetchall() == [(1,)]
        assert beside.sql("SELECT perturbation, reason FROM perturbation WHERE run_id = 'i'").fetchall() == [
            (None, "imported: nothing was timed without a profiler")
        ]


def test_a_store_without_imports_reads_no_event(tmp_path: Path) -> None:
    """Bounds of sweeps stand although no row of their events can be read."""
    store = write_store(tmp_path, runs=[{"issue_us": 18, "wall_us": 18, "device_us": 5}], events=VERDICTS["full"][0])
    (file,) = (store / "events").rglob("*.parquet")
    data = file.read_bytes()
    footer = int.from_bytes(data[-8:-4], "little") + 8
    file.write_bytes(data[:4] + b"\xff" * (len(data) - footer - 4) + data[-footer:])
    with pytest.raises(pl.exceptions.PolarsError):
        pl.read_parquet(file)
    assert rows(store, "SELECT bound FROM bounds") == [("overhead-bound",)]


def test_a_step_reason_is_told(tmp_path: Path) -> None:
    """Where the import found no step at all, the verdict gives its reason."""
    run = imported(None, [], why="its events have no time")
    store = write_store(tmp_path, runs=[run], events=[{**kernel(10 * i, 10 * i + 5), "event_id": i} for i in range(2)])
    assert rows(store, "SELECT bound, reason FROM bounds") == [("unknown", "its events have no time")]
    assert json.loads(rows(store, "SELECT step_kinds FROM audits")[0][0])


# --- our own profiles, judged without the times beside them

RESULTS = Path(__file__).parent.parent / "docs" / "results"


def as_imports(results: Path, folder: Path) -> Path:
    """A store of the same profiles, of which nothing is known but their events."""
    with open_store(results) as connection:
        events = folder / "events" / "sweep"
        events.mkdir(parents=True)
        connection.execute(f"COPY (FROM events) TO '{events / 'all-events.parquet'}'")
        ids = connection.execute("SELECT DISTINCT run_id FROM events").fetchall()
    return write_store(folder, runs=[{**imported(), "run_id": run_id, "point_id": run_id} for (run_id,) in ids])


def side(bound: str) -> str:
    """The side of a bound: what explains the device's work is not in a trace."""
    return "device-bound" if bound in ("compute-bound", "memory-bound") else bound


def test_a_trace_alone_seldom_contradicts_the_measured_bound(tmp_path: Path) -> None:
    """Of the warm points whose measured bound is decided, at least three quarters are told right, at most 1 % wrong."""
    pairs = []
    for name in ("h200", "h200_article", "h200_dtypes"):
        warm = "SELECT run_id, bound FROM bounds WHERE warmup <> 'false' AND bound NOT IN ('balanced', 'unknown')"
        traced = dict(rows(as_imports(RESULTS / name, tmp_path / name), "SELECT run_id, bound FROM bounds"))
        pairs += [(side(bound), traced[run_id]) for run_id, bound in rows(RESULTS / name, warm) if run_id in traced]
    decided = [(measured, told) for measured, told in pairs if told != "unknown"]
    assert len(pairs) > 350
    assert {told for _, told in decided} == {"overhead-bound", "device-bound", "serialized"}
    assert len(decided) >= 0.75 * len(pairs)
    assert sum(measured != told for measured, told in decided) <= 0.01 * len(pairs)


def test_sequences_between_which_the_host_works_are_no_steps_to_judge_by(tmp_path: Path) -> None:
    """Where the device waits for the host between the kernels that repeat, these alone would look device-bound."""
    events = []
    for step in range(20):
        begin = step * 5050
        for i in range(3):
            events.append(call("cudaLaunchKernel", begin + 10 * i, begin + 10 * i + 5, 10 * step + i, step=step))
            events.append(kernel(begin + 15 + 100 * i, begin + 115 + 100 * i, 10 * step + i, step=step))
    run = imported("sequence", [{"kind": "A", "steps": [[0, 19]]}])
    store = write_store(tmp_path, runs=[run], events=numbered(events))
    [(bound, reason)] = rows(store, "SELECT bound, reason FROM bounds")
    assert bound == "unknown"
    assert reason.startswith("for 93.8 % of the trace the device waits for the host, between the sequences of kernels")


def test_the_gaps_of_one_run_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A point named behind the command chooses its run; its causes stand above, with times and shares."""
    runs = [imported() | {"run_id": name, "point_id": name} for name in ("one", "two")]
    events = [each | {"run_id": name} for name in ("one", "two") for each in loop(400, work=[(50, 150)])]
    store = str(write_store(tmp_path, runs=runs, events=events))
    assert main(["gaps", "one", "--store", store]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("host late: 1.20 ms in 4 gaps, 100 %\n")
    assert "two" not in shown
    assert main(["gaps", "--store", store]) == 0
    assert capsys.readouterr().out.startswith("host late: 2.40 ms in 8 gaps, 100 %\n")
    assert main(["gaps", "three", "--store", store]) == 1
    assert "'three' names no point" in capsys.readouterr().err


def test_sequences_whose_host_is_slower_anyway_are_overhead_bound(tmp_path: Path) -> None:
    """What the host does between the sequences could only make it slower still."""
    events = []
    for step in range(20):
        begin = step * 300
        for i in range(3):
            events.append(call("cudaLaunchKernel", begin + 100 * i, begin + 100 * i + 5, 10 * step + i, step=step))
            events.append(kernel(begin + 8 + 100 * i, begin + 18 + 100 * i, 10 * step + i, step=step))
    run = imported("sequence", [{"kind": "A", "steps": [[0, 19]]}])
    store = write_store(tmp_path, runs=[run], events=numbered(events))
    assert rows(store, "SELECT bound FROM bounds") == [("overhead-bound",)]
