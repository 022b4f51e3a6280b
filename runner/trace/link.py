"""Links between the events of a trace, found in one pass over its rows in the order of time.

- launch_id: the runtime or driver call with the correlation of a row of the device's timeline.
- step: host events belong to the step in whose time they start, on any thread (autograd has its own); what a call
  launched to the step of the call, whenever it ran; device work without a launch to the step it starts in; an
  annotation's shadow on the device to the step of the annotation.
- parent_id, depth: the innermost host event of the same process and thread that encloses the event.

An event lasts from its start to just before its end: what starts where another ends is not inside it, and an event of
no duration encloses nothing. Of two events with the same times the earlier in the file is the outer one. What reaches
beyond an event (a call clipped by the window, two annotations that cross) is not inside it either.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import polars as pl

from runner.trace.audit import DeviceAudit
from runner.trace.events import DEVICE_TIMELINE, EVENTS, is_device_work
from runner.trace.reading import WINDOW_ROWS, Trace
from runner.trace.steps import Steps

Open = tuple[float, int | None, int]
"""An event that may still enclose others: its end, its id, its depth."""
_NOTHING: Open = (float("inf"), None, -1)
"""Encloses everything and is no event."""
_LINKS = ("event_id", "step", "parent_id", "depth", "launch_id")


@dataclass(slots=True)
class Nesting:
    """The open events of every thread, between one window and the next."""

    open_events: dict[str, list[Open]] = field(default_factory=dict)

    def add(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Host rows (event_id, ts_ns, dur_ns, pid, tid) with parent_id and depth; none starts before an earlier call's.

        Of the open events of a thread the ends fall from the outer to the inner: an event that outlasts an older one
        also encloses whatever that one still could, and began later, so the older one is dropped.
        """
        order = rows.select(pl.arg_sort_by("ts_ns", -pl.col("dur_ns"), "event_id")).to_series()
        ordered = rows.select(
            pl.concat_str("pid", pl.lit("\0"), "tid"),
            "ts_ns",
            (pl.col("ts_ns") + pl.col("dur_ns")).alias("end_ns"),
            "event_id",
        )[order]
        parents: list[int | None] = []
        depths: list[int] = []
        stacks, current, stack = self.open_events, None, [_NOTHING]
        for lane, start, end, event_id in zip(*(column.to_list() for column in ordered), strict=True):
            if lane != current:
                current, stack = lane, stacks.setdefault(lane, [_NOTHING])
            outer_end, parent, depth = stack[-1]
            while outer_end <= start or outer_end < end:
                stack.pop()
                outer_end, parent, depth = stack[-1]
            parents.append(parent)
            depths.append(depth + 1)
            stack.append((end, event_id, depth + 1))
        found = pl.DataFrame({"parent_id": parents, "depth": depths}, schema={"parent_id": pl.Int64, "depth": pl.Int64})
        return rows.hstack(found[order.arg_sort()])


@dataclass(frozen=True, slots=True)
class Links:
    """What a window needs of the whole trace. launches: the first call of each correlation, launch_id, launch_ns;
    annotations: external id and step of the host's annotations; steps: where each begins and ends."""

    launches: pl.DataFrame
    annotations: pl.DataFrame
    steps: Steps


def linked(trace: Trace, links: Links, audit: DeviceAudit, rows: int = WINDOW_ROWS) -> Iterator[pl.DataFrame]:
    """Rows of the `events` table, chunk by chunk, linked in windows of time of about so many rows."""
    nesting = Nesting()
    found: dict[int, list[pl.DataFrame]] = {}
    for window in trace.windows(rows):
        for (part,), each in _linked(window.rows, links, nesting, audit).partition_by("part", as_dict=True).items():
            found.setdefault(part, []).append(each)
        for part in window.finished:
            yield _with_links(trace.part(part), pl.concat(found.pop(part)))


def _linked(rows: pl.DataFrame, links: Links, nesting: Nesting, audit: DeviceAudit) -> pl.DataFrame:
    """part, event_id, step, parent_id, depth, launch_id of a window's rows."""
    timeline = rows.get_column("category").is_in(list(DEVICE_TIMELINE))
    of_device = rows.filter(timeline).join(links.launches, on="correlation", how="left").with_columns(timeline=True)
    of_host = nesting.add(rows.filter(~timeline)).with_columns(timeline=False)
    both = pl.concat([of_device, of_host], how="diagonal").with_columns(pl.col("depth").fill_null(0))
    done = links.steps.of(both, links.annotations)
    audit.add(done.filter(is_device_work()))
    return done.select("part", *_LINKS)


def _with_links(rows: pl.DataFrame, found: pl.DataFrame) -> pl.DataFrame:
    """A chunk's rows with their links, in the order of the file."""
    whole = pl.concat([rows.sort("event_id"), found.sort("event_id").drop("part", "event_id")], how="horizontal")
    return whole.with_columns(is_device=is_device_work()).select(EVENTS.names())
