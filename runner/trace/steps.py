"""The steps of a trace: which there are, and to which of them an event belongs."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any

import polars as pl

from runner.trace import sequences
from runner.trace.events import STEP_NAME

_DIGITS = re.compile(r"\d+")
_STARTS = pl.Schema({"start_ns": pl.Int64, "end_ns": pl.Int64, "step": pl.Int64})


@dataclass(frozen=True, slots=True)
class Steps:
    """Steps in the order of their start. An event is in the step that began last, if that has not ended.

    method: profiler (ProfilerStep#N), annotation (of the user's choice), sequence (kernels that repeat), window (all of
    the trace is step 0), or None where steps were neither marked nor looked for. host: start_ns, end_ns, step of the
    steps as host events tell time; device: the same for device work, whose step then is that of its own start, not that
    of its launch; None where it is the launch's. kinds: the kind of each step, by its number.
    """

    method: str | None
    host: pl.DataFrame
    device: pl.DataFrame | None
    kinds: dict[int, str]
    annotation: str | None = None
    reason: str | None = None

    def of(self, rows: pl.DataFrame, annotations: pl.DataFrame) -> pl.DataFrame:
        """The rows with their `step`. Columns needed: ts_ns, launch_ns, timeline, category, external."""
        if self.method == "window":
            return rows.with_columns(step=pl.lit(0, dtype=pl.Int64))
        by_time = rows.with_columns(at_ns=pl.coalesce("launch_ns", "ts_ns")).pipe(_step_at, self.host, "at_ns")
        if self.device is not None:
            by_time = _step_at(by_time.rename({"step": "host_step"}), self.device, "ts_ns").with_columns(
                step=pl.when("timeline").then("step").otherwise("host_step")
            )
        return self._shadowed(by_time, annotations)

    def _shadowed(self, rows: pl.DataFrame, annotations: pl.DataFrame) -> pl.DataFrame:
        shadow = (pl.col("category") == "gpu_user_annotation") & pl.col("launch_id").is_null()
        if not rows.select(shadow.any()).item():
            return rows
        joined = rows.join(annotations, on="external", how="left")
        return joined.with_columns(step=pl.when(shadow).then("annotated_step").otherwise("step"))

    def because(self, missed: str | None) -> Steps:
        """The same steps, with why they are not those that were asked for."""
        return self if missed is None else replace(self, reason="; ".join(filter(None, (missed, self.reason))))

    def facts(self) -> dict[str, Any]:
        """What the run's row says of its steps."""
        runs: dict[str, list[list[int]]] = {}
        for step, kind in sorted(self.kinds.items()):
            spans = runs.setdefault(kind, [])
            if spans and spans[-1][1] == step - 1:
                spans[-1][1] = step
            else:
                spans.append([step, step])
        kinds = [{"kind": kind, "steps": spans} for kind, spans in runs.items()]
        told = {"annotation": self.annotation, "number": len(self.kinds), "kinds": kinds, "reason": self.reason}
        return {"method": self.method, **told}


def marked(marks: pl.DataFrame) -> Steps:
    """The steps that torch's profiler has marked; none where it has not. marks: name, ts_ns, dur_ns."""
    found = marks.filter(pl.col("name").str.contains(f"^(?:{STEP_NAME.pattern})$")).drop_nulls("dur_ns")
    steps = found.select(
        start_ns="ts_ns",
        end_ns=pl.col("ts_ns") + pl.col("dur_ns"),
        step=pl.col("name").str.extract(r"#(\d+)", 1).cast(pl.Int64),
    ).sort("start_ns", "end_ns", "step")
    kinds = dict.fromkeys(steps.get_column("step").unique().sort().to_list(), "ProfilerStep")
    return Steps("profiler" if kinds else None, steps, None, kinds)


def annotated(marks: pl.DataFrame, pattern: re.Pattern[str]) -> Steps | None:
    """The ranges whose name the pattern finds; None if there is none. marks: name, ts_ns, dur_ns, pid, tid.

    A range inside another on its thread is no step of its own. The kind of a step is the pattern's first group, else
    its name without numbers.
    """
    names = [name for name in marks.get_column("name").unique() if pattern.search(name)]
    outer = _outermost(marks.filter(pl.col("name").is_in(names)).drop_nulls("dur_ns"))
    if not outer:
        return None
    steps = [(start, start + dur, number) for number, (start, dur, _) in enumerate(outer)]
    kinds = {number: _kind(name, pattern) for number, (_, _, name) in enumerate(outer)}
    return Steps("annotation", pl.DataFrame(steps, _STARTS, orient="row"), None, kinds, annotation=pattern.pattern)


def sequenced(work: pl.DataFrame, launches: pl.DataFrame) -> Steps | None:
    """Steps as repeated kernel sequences of the device with most work; None where nothing repeats.

    work: code, ts_ns, dur_ns, device, correlation, by start; launches: correlation, launch_ns.
    """
    if not work.height:
        return None
    busiest = work.get_column("device").value_counts(sort=True).get_column("device")[0]
    of_device = work.filter(pl.col("device").eq_missing(busiest))
    found = sequences.find(of_device.get_column("code").rank("dense").cast(pl.Int64).to_list())
    return None if found is None else _of_sequences(of_device, launches, found)


def window(reason: str) -> Steps:
    """All of the trace as one step."""
    return Steps("window", pl.DataFrame(schema=_STARTS), None, {0: "window"}, reason=reason)


# -- pieces ------------------------------------------------------------------------------------------------------------


def _step_at(rows: pl.DataFrame, steps: pl.DataFrame, column: str) -> pl.DataFrame:
    """The step that lasts at the time in a column: its start belongs to it, its end does not."""
    if not steps.height:
        return rows.with_columns(step=pl.lit(None, dtype=pl.Int64))
    place = steps.get_column("start_ns").search_sorted(rows.get_column(column), side="right").cast(pl.Int64) - 1
    inside = place >= 0
    at = steps[place.clip(0)]
    lasts = inside & (rows.get_column(column) < at.get_column("end_ns"))
    return rows.with_columns(step=at.get_column("step").set(~lasts, None))


def _outermost(found: pl.DataFrame) -> list[tuple[int, int, str]]:
    """(start, duration, name) of ranges that lie in no other of their thread, by start."""
    outer, until = [], dict[tuple[str, str], int]()
    columns = ("ts_ns", "dur_ns", "name", "pid", "tid")
    for start, dur, name, pid, tid in found.sort("ts_ns", -pl.col("dur_ns")).select(columns).iter_rows():
        reached = until.get((pid, tid), start)
        if start >= reached or start + dur > reached:
            outer.append((start, dur, name))
            until[pid, tid] = start + dur
    return outer


def _kind(name: str, pattern: re.Pattern[str]) -> str:
    matched = pattern.search(name)
    if matched and matched.groups() and matched[1]:
        return matched[1]
    return _DIGITS.sub("#", name)


def _of_sequences(work: pl.DataFrame, launches: pl.DataFrame, found: sequences.Found) -> Steps:
    firsts, lasts = pl.Series(found.starts), pl.Series(found.ends) - 1
    starts = work.get_column("ts_ns")
    ends = starts + work.get_column("dur_ns")
    numbers = pl.Series(range(len(found.starts)), dtype=pl.Int64)
    next_starts = _until(firsts, lasts, starts.gather(firsts), ends.gather(lasts))
    device = pl.DataFrame({"start_ns": starts.gather(firsts), "end_ns": next_starts, "step": numbers}, schema=_STARTS)
    launched = work.select("correlation").join(launches, on="correlation", how="left", maintain_order="left")
    called = launched.get_column("launch_ns")
    host = pl.DataFrame(
        {
            "start_ns": called.gather(firsts),
            "end_ns": _until(firsts, lasts, called.gather(firsts), called.gather(lasts) + 1),
            "step": numbers,
        },
        schema=_STARTS,
    ).drop_nulls()
    if not host.get_column("start_ns").is_sorted() or host.get_column("start_ns").n_unique() < host.height:
        host = pl.DataFrame(schema=_STARTS)  # several steps of one launch, or launches in another order than the work
    kinds = {number: _letter(kind) for number, kind in enumerate(found.kinds)}
    return Steps("sequence", host, device, kinds)


def _until(firsts: pl.Series, lasts: pl.Series, starts: pl.Series, ends: pl.Series) -> pl.Series:
    """End of each step: where the next one starts if that follows at once, else its own end."""
    follows = (firsts.shift(-1) == lasts + 1).fill_null(False)
    return pl.select(pl.when(follows).then(starts.shift(-1)).otherwise(ends)).to_series()


def _letter(kind: int) -> str:
    """A, B, ... Z, then A1, B1, ..."""
    return f"{chr(ord('A') + kind % 26)}{kind // 26 or ''}"


def annotation_steps(marks: pl.DataFrame, steps: Steps) -> pl.DataFrame:
    """external, annotated_step of the host's annotations: their shadows on the device belong to the same step."""
    known = marks.filter(pl.col("external").is_not_null()).select("external", "ts_ns")
    at = _step_at(known, steps.host, "ts_ns").rename({"step": "annotated_step"})
    return at.unique("external", keep="last", maintain_order=True).select("external", "annotated_step")
