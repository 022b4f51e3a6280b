"""runner.trace.steps: which steps a trace has, and what belongs to each."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable
from typing import Any

import polars as pl
import pytest

from runner.trace.audit import DeviceAudit
from runner.trace.events import EVENTS
from runner.trace.link import Links, linked
from runner.trace.reading import Inline, Trace, read
from runner.trace.source import Source
from runner.trace.steps import Steps, annotated, annotation_steps, marked, sequenced, window

FIND: dict[str, Callable[[Trace], Steps | None]] = {
    "profiler": lambda trace: marked(trace.marks()),
    "sequence": lambda trace: sequenced(trace.work(), trace.launches()),
    "window": lambda trace: window("why"),
}


def event(name: str, ts: float, dur: float = 1, cat: str = "cpu_op", tid: int = 1, **args: Any) -> dict[str, Any]:
    """One complete event of process 1."""
    return {"ph": "X", "cat": cat, "name": name, "pid": 1, "tid": tid, "ts": ts, "dur": dur, "args": args}


def noted(name: str, ts: float, dur: float, tid: int = 1) -> dict[str, Any]:
    """An annotation of the host's."""
    return event(name, ts, dur, "user_annotation", tid)


def call(ts: float, correlation: int, tid: int = 1) -> dict[str, Any]:
    """A call that launches."""
    return event("cudaLaunchKernel", ts, 1, "cuda_runtime", tid, correlation=correlation)


def kernel(
    name: str, ts: float, dur: float = 2, correlation: int | None = None, device: int = 0, stream: int = 7
) -> dict[str, Any]:
    """A kernel, launched by the call with this correlation or by none."""
    launched = {} if correlation is None else {"correlation": correlation}
    return event(name, ts, dur, "kernel", 7, device=device, stream=stream, **launched)


def trace_of(events: list[dict[str, Any]]) -> Trace:
    """A trace of these events."""
    return read(Source(io.BytesIO(json.dumps({"traceEvents": events}).encode())), Inline())


def found(events: list[dict[str, Any]], method: str, pattern: str = "") -> tuple[Steps, list[int | None]]:
    """The steps of a trace, and the step of each of its events."""
    trace = trace_of(events)
    steps = annotated(trace.marks(), re.compile(pattern)) if method == "annotation" else FIND[method](trace)
    assert steps is not None
    links = Links(trace.launches(), annotation_steps(trace.marks(), steps), steps)
    rows = pl.concat([pl.DataFrame(schema=EVENTS), *linked(trace, links, DeviceAudit())]).sort("event_id")
    return steps, rows.get_column("step").to_list()


def spans(steps: Steps) -> list[tuple[str, list[list[int]]]]:
    """Kinds of step and the numbers of each, as the run's facts say them."""
    return [(each["kind"], each["steps"]) for each in steps.facts()["kinds"]]


# --- marked by torch's profiler


def test_steps_of_the_profiler_keep_their_numbers() -> None:
    """Numbers of the marks, gaps between them included; an event between two steps is in none."""
    events = [
        noted("ProfilerStep#3", 0, 10), event("a", 5, 20), noted("ProfilerStep#4", 10, 10), event("b", 20),
        noted("ProfilerStep#9", 30, 5),
        event("c", 34.999), event("d", 35), event("e", 10),
    ]  # fmt: skip
    steps, of_events = found(events, "profiler")
    assert of_events == [3, 3, 4, None, 9, 9, None, 4]
    assert steps.facts() == {
        "method": "profiler", "annotation": None, "number": 3, "reason": None,
        "kinds": [{"kind": "ProfilerStep", "steps": [[3, 4], [9, 9]]}],
    }  # fmt: skip


def test_names_that_only_resemble_steps_are_none() -> None:
    """A longer name, another number sign, and a shadow on the device are no marks."""
    names = [
        "ProfilerStep#3 again",
        "ProfilerStep#",
        "ProfilerStep 3",
        "my ProfilerStep#3",
        "ProfilerStep#-1",
        "ProfilerStep#٣",
        "ProfilerStep#3\n",
    ]
    events = [noted(name, i, 5) for i, name in enumerate(names)] + [
        event("ProfilerStep#1", 0, 9, "gpu_user_annotation", 7)
    ]
    assert marked(trace_of(events).marks()).method is None


def test_steps_of_2021_are_operators() -> None:
    """Then the marks were operators; a step on another thread's row counts as well."""
    steps, of_events = found(
        [event("ProfilerStep#0", 0, 10, "Operator"), event("a", 5, 1, "Operator", tid=2)], "profiler"
    )
    assert (of_events, spans(steps)) == ([0, 0], [("ProfilerStep", [[0, 0]])])


# --- marked by the user


def test_annotations_are_parted_into_kinds_by_the_first_group() -> None:
    """The group says what kind a step is; steps are numbered by their start, kinds in the order of their first step."""
    events = [
        noted("run prefill 17", 0, 5), noted("run decode 1", 5, 2), noted("other", 7, 1), noted("run decode 2", 8, 2),
        noted("run prefill 9", 10, 4), event("a", 11), event("b", 7.5), event("c", 9.999, 1, tid=4),
    ]  # fmt: skip
    steps, of_events = found(events, "annotation", r"run (\w+)")
    assert of_events == [0, 1, None, 2, 3, 3, None, 2]
    assert spans(steps) == [("prefill", [[0, 0], [3, 3]]), ("decode", [[1, 2]])]
    assert (steps.method, steps.annotation) == ("annotation", r"run (\w+)")


def test_kinds_without_a_group_are_names_without_their_numbers() -> None:
    """`step 12 of 30` and `step 13 of 30` are one kind; a group that matched nothing is no kind."""
    events = [noted("step 12 of 30", 0, 5), noted("step 13 of 30", 5, 5), noted("warm", 10, 5)]
    assert spans(found(events, "annotation", "step|warm")[0]) == [("step # of #", [[0, 1]]), ("warm", [[2, 2]])]
    assert spans(found(events, "annotation", "(?:step|warm)(ing)?")[0]) == [
        ("step # of #", [[0, 1]]),
        ("warm", [[2, 2]]),
    ]


def test_a_match_inside_another_on_its_thread_is_no_step() -> None:
    """Nested matches belong to the outer one; the same name twice, at the same time, is one step."""
    events = [
        noted("step", 0, 10), noted("step inner", 2, 3), noted("step inner", 5, 5), noted("step", 0, 10),
        noted("step", 10, 10),
        noted("step inner", 19, 1), event("a", 3),
    ]  # fmt: skip
    steps, of_events = found(events, "annotation", "step")
    assert of_events == [0, 0, 0, 0, 1, 1, 0]
    assert len(steps.kinds) == 2


def test_matches_that_cross_are_both_steps() -> None:
    """Neither lies in the other: what both hold belongs to the one that began last."""
    assert found([noted("step", 0, 10), noted("step", 5, 10), event("a", 3), event("b", 7), event("c", 12)],
        "annotation", "step")[1] == [
        0, 1, 0, 1, 1,
    ]  # fmt: skip


def test_steps_on_several_threads_are_all_steps() -> None:
    """Each thread has its own; what starts while two last belongs to the one that began last."""
    events = [
        noted("step", 0, 10, tid=1),
        noted("step", 4, 10, tid=2),
        event("a", 3, tid=2),
        event("b", 5, tid=1),
        event("c", 12, tid=1),
    ]
    assert found(events, "annotation", "step")[1] == [0, 1, 0, 1, 1]


def test_no_match_is_no_step() -> None:
    """Neither a name that does not match nor a shadow of one on the device."""
    trace = trace_of([noted("a", 0, 5), event("step", 0, 5, "gpu_user_annotation", 7)])
    assert annotated(trace.marks(), re.compile("step")) is None


# --- found in the device's work


def loop(steps: int, launched: bool = True, names: str = "abcd") -> list[dict[str, Any]]:
    """Equal steps of one kernel a letter: every 100 us, launched 30 us ahead of the work."""
    events = []
    for step in range(steps):
        for i, name in enumerate(names):
            number, ts = step * len(names) + i, 1000 + step * 100 + i * 10
            if launched:
                events.append(call(ts - 30, number))
            events.append(kernel(name, ts, 5, number))
    return events


def test_repeated_kernels_are_steps_of_device_and_host() -> None:
    """Kernels belong to the step that they make up, host events to the step whose launches they stand between."""
    events = loop(8)
    steps, of_events = found([*events, event("host", 1000 + 3 * 100 - 30 + 5, 1)], "sequence")
    assert spans(steps) == [("A", [[0, 7]])] and steps.method == "sequence"
    assert of_events[: len(events)] == [step for step in range(8) for _ in range(8)]
    assert of_events[-1] == 3


def test_repeated_kernels_without_launches_are_steps_of_the_device_alone() -> None:
    """A trace without calls: kernels have steps, host events have none."""
    events = [*loop(8, launched=False), event("host", 1205)]
    assert found(events, "sequence")[1] == [step for step in range(8) for _ in range(4)] + [None]


def test_one_launch_of_many_kernels_is_one_step_each() -> None:
    """A graph's launch starts a step's kernels at once: work and call are of the same step."""
    events = []
    for step in range(8):
        ts = 1000 + step * 100
        events += [event("cudaGraphLaunch", ts - 50, 3, "cuda_runtime", correlation=step)]
        events += [kernel(name, ts + 10 * i, 5, step) for i, name in enumerate("abcd")]
    steps, of_events = found(events, "sequence")
    assert of_events == [step for step in range(8) for _ in range(5)]
    assert steps.facts()["number"] == 8


def test_several_steps_of_one_launch_leave_the_host_without_steps() -> None:
    """One launch of the whole loop belongs to no single step; its kernels do."""
    events = [event("cudaGraphLaunch", 0, 3, "cuda_runtime", correlation=1)]
    events += [kernel(name, 100 + step * 100 + 10 * i, 5, 1) for step in range(8) for i, name in enumerate("abcd")]
    _, of_events = found(events, "sequence")
    assert of_events == [None] + [step for step in range(8) for _ in range(4)]


def test_the_busiest_device_tells_the_steps_of_all() -> None:
    """Another device's few kernels belong to the step in whose time they start."""
    events = [*loop(8), kernel("x", 1205, 1, device=1), kernel("x", 1505, 1, device=1)]
    assert found(events, "sequence")[1][-2:] == [2, 5]


def test_work_without_repetition_has_no_sequence() -> None:
    """No work, and work in which nothing repeats: None, and never a guess."""
    for events in ([event("a", 1)], [kernel(name, i * 10) for i, name in enumerate("abcdefgh")]):
        trace = trace_of(events)
        assert sequenced(trace.work(), trace.launches()) is None


# --- none


def test_the_window_is_one_step_with_a_reason() -> None:
    """Everything is step 0, and the facts say why."""
    steps, of_events = found([event("a", 0), kernel("k", 5), event("b", 1e6)], "window")
    assert of_events == [0, 0, 0]
    assert steps.because("no range matched").facts() == {
        "method": "window", "annotation": None, "number": 1, "kinds": [{"kind": "window", "steps": [[0, 0]]}],
        "reason": "no range matched; why",
    }  # fmt: skip
    assert steps.because(None) is steps


@pytest.mark.parametrize("method", ["profiler", "window"])
def test_a_trace_without_events_has_no_rows(method: str) -> None:
    """An empty list of events is a trace."""
    assert found([], method)[1] == []
