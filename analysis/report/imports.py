"""What the report says of imported traces: their answer, and the rows of their table."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence

from analysis import theme
from analysis.report import html
from analysis.report.tables import Rows
from analysis.theme import Row

HEADS = ("trace", "bound", "steps", "a step", "busy", "idle mostly by", "what was read")
READING = (
    "Traces that python -m runner.ingest read, the most idle time first. Times are those of steps under the profiler, "
    "which slows the host. Of several kinds of step the one that takes most of the time stands first, and the other "
    "columns are of it: the median of a step, the share of it in which the device is busy, and the largest cause of "
    "idle time between the device's first and last work."
)
TIMES = (
    "Of an imported trace nothing was timed without a profiler: there is no wall time, and the host time is an "
    "estimate, the profiled one over what a profiler usually slows a host, with an interval from the most that was "
    "seen to no slowing at all. Its gain is an upper limit."
)

_TIME = re.compile(r"(?<![\w.,+-])([0-9]+(?:\.[0-9]+)?) us\b")


def answer(imports: Rows, places: Mapping[str, str]) -> str:
    """How many traces of each bound the store holds, and the verdict on the one whose device is idle longest."""
    idlest = ordered(imports)[0]
    place = places.get(idlest["environment_id"], idlest["environment_id"])
    verdict = in_units(idlest.get("sentence") or "")
    if len(imports) == 1:
        return f"The store holds one imported trace, {idlest['workload']}, taken on {place}. {verdict}"
    held = f"The store holds {len(imports):,} imported traces: {_counted(imports)}."
    if not _idle(idlest):
        return held
    idle = theme.time_us(_idle(idlest))
    where = f"in {idlest['workload']}, taken on {place}: {idle} between the device's first and last work"
    return f"{held} Idle time is longest {where}. {verdict}"


def _counted(imports: Rows) -> str:
    """How many are of each bound, the most frequent first, equals in the order of the vocabulary."""
    bounds = Counter(theme.bound_of(row).name for row in imports)
    found = sorted((name for name in theme.BOUNDS if bounds[name]), key=lambda name: -bounds[name])
    return theme.listed([f"{bounds[name]:,} {name}" for name in found])


def _idle(row: Row) -> float:
    return float(row.get("idle_us") or 0)


def in_units(sentence: str) -> str:
    """The sentence with its times, all in microseconds, in the units that read best.

    >>> in_units("for 1180000 us of a step, not 50.0 us")
    'for 1.18 s of a step, not 50.0 µs'
    """
    return _TIME.sub(lambda found: theme.time_us(float(found[1])), sentence)


def ordered(imports: Rows) -> list[Row]:
    """Imported traces in the order of reading: the most idle time first, then by name."""
    return sorted(imports, key=lambda row: (-_idle(row), str(row["workload"]), str(row["run_id"])))


def cells(row: Row, place: str) -> list[html.Cell]:
    """A row of the table, under HEADS; place: where the trace was taken, empty where all are from one place."""
    kinds = row.get("kinds") or []
    return [
        _with_small(row["workload"], [row.get("file"), _rank(row), place]),
        html.Cell(html.badge(theme.bound_of(row))),
        _steps(row.get("step_method"), kinds),
        html.time(kinds[0]["wall_us"] if kinds else None),
        _share(row.get("busy_frac")),
        _cause(row),
        html.word(row.get("line")),
    ]


def _rank(row: Row) -> str | None:
    if row.get("rank") is None:
        return None
    return f"rank {row['rank']}" + ("" if row.get("world_size") is None else f" of {row['world_size']}")


def _steps(method: str | None, kinds: Rows) -> html.Cell:
    """Number and kind of the steps, the kind that takes most of the time first."""
    if not kinds:
        return html.word(None)
    if method == "window":
        return html.word("none found, all of the trace")
    name = "sequence {}" if method == "sequence" else "{}"
    first, *others = [f"{each['steps']:,} × {name.format(each['kind'])}" for each in kinds]
    return _with_small(first, others)


def _share(fraction: float | None) -> html.Cell:
    return html.figure(fraction, "–" if fraction is None else f"{theme.number(100 * fraction)} %")


def _cause(row: Row) -> html.Cell:
    """The largest cause of idle time, and its share of how much."""
    if row.get("cause") is None:
        return html.word(None)
    share = f"{theme.number(100 * row['cause_frac'])} % of {theme.time_us(row['idle_us'])}"
    return _with_small(row["cause"], [share])


def _with_small(value: object, small: Sequence[str | None]) -> html.Cell:
    """A cell of text with further texts below it, each on its line; those that are unknown or empty are left out."""
    below = "".join(f"<small>{html.text(each)}</small>" for each in small if each)
    return html.Cell(html.word(value).html + below)
