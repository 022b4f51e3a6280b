"""The profiled windows of a sweep: small traces of our own, read whole and strictly."""

from __future__ import annotations

import io
from collections.abc import Iterable
from dataclasses import replace

import polars as pl

from runner.trace.audit import DeviceAudit
from runner.trace.decode import PHASES
from runner.trace.events import EVENTS, Event, TraceError
from runner.trace.link import Links, linked
from runner.trace.reading import Inline, Trace, read
from runner.trace.source import Source
from runner.trace.steps import annotation_steps, marked


def read_trace(data: bytes) -> list[Event]:
    """Read a Chrome trace as torch.profiler exports it, plain or gzip (told by its bytes), in the order of the file.

    Raises:
        TraceError: the bytes are no trace, or a damaged one, or an event lacks its name, time or duration: what was
            measured must be whole.
    """
    trace = read(Source(io.BytesIO(data)), Inline())
    _refuse_losses(trace)
    return events_of(trace)


def events_of(trace: Trace) -> list[Event]:
    """All events of a trace whose steps the profiler has marked, linked."""
    marks = trace.marks()
    steps = marked(marks)
    links = Links(trace.launches(), annotation_steps(marks, steps), steps)
    rows = list(linked(trace, links, DeviceAudit()))
    events = pl.concat(rows).sort("event_id") if rows else pl.DataFrame(schema=EVENTS)
    return [Event(**row) for row in events.iter_rows(named=True)]


def join(traces: Iterable[list[Event]]) -> list[Event]:
    """One list from the windows of one run (a schedule with repeat > 1), event ids running on.

    torch numbers its steps through all windows; a window whose numbers begin again is moved behind the one before it.
    """
    joined: list[Event] = []
    next_step = 0
    for trace in traces:
        steps = [event.step for event in trace if event.step is not None]
        shift = max(0, next_step - min(steps)) if steps else 0
        next_step = max(steps) + shift + 1 if steps else next_step
        first_id = len(joined)
        joined += [_moved(event, first_id, shift) for event in trace]
    return joined


# -- pieces ------------------------------------------------------------------------------------------------------------


def _refuse_losses(trace: Trace) -> None:
    for lost in trace.lost:
        raise TraceError(f"the trace is damaged at byte {lost.offset} of its JSON: {lost.why}")
    if trace.damage is not None:
        raise TraceError(f"the trace is not whole: {trace.damage}")
    for why in trace.set_aside.keys() - set(PHASES.values()):
        raise TraceError(f"{trace.set_aside[why]} of {trace.events} events cannot be used: {why}")


def _moved(event: Event, first_id: int, step_shift: int) -> Event:
    return replace(
        event,
        event_id=event.event_id + first_id,
        parent_id=None if event.parent_id is None else event.parent_id + first_id,
        launch_id=None if event.launch_id is None else event.launch_id + first_id,
        step=None if event.step is None else event.step + step_shift,
    )
