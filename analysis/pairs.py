"""Charts of pairs: two settings of the same step held against each other, as a ratio.

Pure functions of rows of the view `pairs`, in the manner of `charts`. A ratio is A over B: above 1 side B takes less.
KINDS holds what is said about each kind of pair: its title, how to read it, the quantities drawn, and the query.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Any

import altair as alt

from analysis import marks, theme
from analysis.charts import MEDIUM, Rulers, axis_value, measured_at
from analysis.marks import LEFT, RATIO_LABELS, Frame, Ruler
from analysis.theme import Line, Row, SeriesNames

Name = Callable[[Row], str]
Chart = alt.LayerChart | alt.FacetChart

MOST_ROWS = 40
MOST_MARKS = 2000
REACH = 4.0
OVERVIEW = Frame(520, 0)

TIMES = ("wall", "issue", "floor", "device", "work")


@dataclass(frozen=True)
class Kind:
    """A kind of pair: its name in the view, a title, how to read its charts, and the quantities that they draw.

    The first quantity that a row has is the one that an overview shows.
    """

    name: str
    title: str
    reading: str
    quantities: Sequence[str]

    @property
    def sql(self) -> str:
        """The query that gives the rows of its charts."""
        drawn = ", ".join(f"'{quantity}'" for quantity in self.quantities)
        return f"FROM pairs WHERE kind = '{self.name}' AND quantity IN ({drawn}) ORDER BY series, size"

    @property
    def leading(self) -> str:
        """The quantity of an overview."""
        return self.quantities[0]


_SIDES = (
    "Above 1× the second setting takes less, below it more; bars are the widest ratio that both intervals allow, and a "
    "bar that crosses the line at 1× tells no difference."
)

KINDS: dict[str, Kind] = {
    kind.name: kind
    for kind in (
        Kind("compile", "Eager against compiled", f"Eager time over compiled time of the same step. {_SIDES}", TIMES),
        Kind(
            "warmup",
            "Cold against warm",
            "Time of the first call in a fresh process over that of a warm step: loading, allocation and, with "
            "compile, compilation. A first call happens once, so it has no interval.",
            ("first call",),
        ),
        Kind(
            "profiler",
            "Profiled against unprofiled",
            "Host time of a step under the profiler over that without it. On the line at 1× profiling would cost "
            "nothing; a verdict from profiled host times is wrong by this factor.",
            ("host",),
        ),
        Kind(
            "dtype",
            "Number formats against each other",
            f"Time with the more exact number format over that with the other. {_SIDES} Where the overhead binds, a "
            "cheaper format gains nothing: wall stays at 1× while device time falls.",
            TIMES,
        ),
        Kind(
            "environment",
            "Environments against each other",
            f"Time in the older environment over that in the newer one, of the same point. {_SIDES}",
            TIMES,
        ),
        Kind(
            "dynamic",
            "Static against dynamic shapes",
            f"Time with shapes fixed over that with them free. {_SIDES}",
            TIMES,
        ),
        Kind(
            "static_inputs",
            "Copied against static inputs",
            f"Time with inputs copied into a CUDA graph over that with inputs that stay in place. {_SIDES}",
            TIMES,
        ),
        Kind(
            "setting",
            "One way to the same result against another",
            f"Time with the plainer setting of the workload over that with the other. {_SIDES} What it costs or saves "
            "of memory stands in view pairs, and in the cures on the page of a point.",
            TIMES,
        ),
    )
}

_LOOKS: dict[str, Line] = {
    "wall": theme.WALL_LINE,
    "issue": theme.OVERHEAD_LINE,
    "floor": theme.OVERHEAD_LINE,
    "device": theme.WORK_LINE,
    "work": theme.WORK_LINE,
    "host": theme.OVERHEAD_LINE,
    "first call": theme.OVERHEAD_LINE,
}


def pair_series(rows: Iterable[Row], kind: str, axis: str) -> list[list[Row]]:
    """Pairs of a kind that can be drawn along an axis, one list a series, the series with most points first.

    A series is all that its pairs have in common but the axis, both sides included.
    """
    found: dict[Hashable, list[Row]] = defaultdict(list)
    for row in rows:
        if row["kind"] == kind and row["quantity"] in KINDS[kind].quantities and _is_drawn(row, axis):
            found[_common(row, axis)].append(row)
    return sorted(found.values(), key=lambda series: -len({measured_at(row, axis) for row in series}))


def _is_drawn(row: Row, axis: str) -> bool:
    return row.get("ratio") is not None and axis_value(row, axis) is not None


_AXES = ("workload", "size", "dtype", "batch", "compile", "dynamic", "warmup", "device")


def _common(row: Row, axis: str) -> Hashable:
    shared = _shared(row, row["kind"])
    params = {key: value for key, value in theme.json_params(shared).items() if key != axis}
    axes = [shared.get(name) for name in _AXES if name != axis]
    return (row["a"], row["b"], row["environment_id"], *axes, json.dumps(params, sort_keys=True))


def pair_names(rows: Sequence[Row], kind: str, axis: str = "size") -> Name:
    """Names series of pairs of a kind by what tells them apart: the sides, unless all rows have the same, and the
    settings that both sides share."""
    name = SeriesNames([_shared(row, kind) for row in rows], axis)
    if len(_sides_of(rows)) < 2:
        return lambda row: name(_shared(row, kind))
    return lambda row: f"{row['a']} → {row['b']}{theme.SEPARATOR}{name(_shared(row, kind))}"


def _sides_of(rows: Iterable[Row]) -> list[tuple[str, str]]:
    return list(dict.fromkeys((row["a"], row["b"]) for row in rows))


_SAID = {"compile": ("compile", "dynamic", "static_inputs"), "environment": ()}


def _shared(row: Row, kind: str) -> Row:
    """What both sides of a pair have in common, in the columns of a point. (A schedule tells no pairs apart.)"""
    said = (row["a"].partition("=")[0],) if kind == "setting" else _SAID.get(kind, (kind,))
    params = {key: value for key, value in theme.json_params(row).items() if key not in (*said, "schedule")}
    return {**row, **{name: None for name in said if name in row}, "params": json.dumps(params)}


# --- one series -------------------------------------------------------------------------------------------------------


def pair_rulers(rows: Sequence[Row], axis: str, frame: Frame) -> Rulers:
    """Rulers that hold every ratio given and the line at 1, with room for words above and below.

    Intervals are held as far as REACH beyond the outermost ratios: where noise lets one end at nearly zero, the rest
    would be pressed flat.
    """
    ratios = [1.0, *(row["ratio"] for row in rows if row.get("ratio"))]
    least, most = min(ratios) / REACH, max(ratios) * REACH
    ends = [row[key] for row in rows for key in ("ratio_low", "ratio_high") if row.get(key)]
    held = [*ratios, *(min(max(end, least), most) for end in ends)]
    x = marks.values_ruler([measured_at(row, axis) for row in rows], axis, frame)
    return Rulers(x, marks.log_ruler([*held, 0.72 * min(held), 1.35 * max(held)], "A ÷ B", RATIO_LABELS))


def pair_chart(
    rows: Sequence[Row], kind: str, axis: str, name: Name, frame: Frame = MEDIUM, on: Rulers | None = None
) -> Chart:
    """Ratios of one series against an axis, with their intervals and the line at 1.

    rows: one list of `pair_series`. name: names the series by a row, as `pair_names` does. on: rulers shared with
    other charts. Raises ValueError where no row has a ratio and a value on the axis.
    """
    order = KINDS[kind].quantities
    drawn = sorted(
        (row for row in rows if _is_drawn(row, axis)),
        key=lambda row: (order.index(row["quantity"]), measured_at(row, axis)),
    )
    if not drawn:
        raise ValueError(f"no {kind} pair has a ratio and a number on the axis {axis}")
    on = on or pair_rulers(drawn, axis, frame)
    a, b = drawn[0]["a"], drawn[0]["b"]
    y = replace(on.y, title=f"{a} ÷ {b}")
    lines = {quantity: _LOOKS[quantity] for quantity in dict.fromkeys(row["quantity"] for row in drawn)}
    less = marks.words(f"↑ {b} takes less", 8, 12, LEFT, theme.MUTED)
    more = marks.words(f"↓ {a} takes less", 8, frame.height - 12, LEFT, theme.MUTED)
    hover = {"x": axis, "says": f"{a} ÷ {b}", "note": "values"}
    data = [_ratio_row(row, axis, y) for row in drawn]
    subtitle = _ratio_sentence(drawn)
    return alt.layer(marks.level(1.0, y), less, more, *marks.lines(data, lines, on.x, y, hover)).properties(
        title=marks.title(name(drawn[0]), subtitle, frame),
        description=f"{name(drawn[0])}: {a} over {b} against {axis}. {subtitle}",
        width=frame.width,
        height=frame.height,
    )


def _ratio_row(row: Row, axis: str, y: Ruler) -> dict[str, Any]:
    high = row.get("ratio_high")
    return {
        "p": theme.point_key(row),
        "x": measured_at(row, axis),
        "quantity": row["quantity"],
        **y.drawable(row["ratio"], row.get("ratio_low"), None if high is None else min(high, y.high)),
        "says": ratio_words(row),
        "note": f"{row['a']} {_value(row, 'a_value')}, {row['b']} {_value(row, 'b_value')}",
    }


def ratio_words(row: Row) -> str:
    """`1.21× (1.1 to 1.33)`, or the ratio alone where it has no interval."""
    low, high = row.get("ratio_low"), row.get("ratio_high")
    interval = "" if low is None or high is None else f" ({theme.number(low)} to {theme.number(high)})"
    return f"{theme.number(row['ratio'])}×{interval}"


def _value(row: Row, side: str) -> str:
    value = row.get(side)
    return theme.time_us(None if value is None else value * (1e6 if row["unit"] == "s" else 1))


def _ratio_sentence(rows: Sequence[Row]) -> str:
    leading = rows[0]["quantity"]
    ratios = [row["ratio"] for row in rows if row["quantity"] == leading]
    low, high = theme.number(min(ratios)), theme.number(max(ratios))
    return f"{leading} {low}×" if low == high else f"{leading} {low}× to {high}×"


# --- all series -------------------------------------------------------------------------------------------------------

_CHANGES: dict[str, tuple[str, str]] = {
    "less": ("takes less", "#009e73"),
    "more": ("takes more", "#d55e00"),
    "same": ("within the noise", "#9aa4ae"),
    "none": ("no interval", "#56b4e9"),
}
"""What `change` says, in words and colour; the words of each pair stand in its hover as well."""


def pair_overview(rows: Sequence[Row], kind: str, name: Name, frame: Frame = OVERVIEW) -> Chart:
    """One row a series: a tick at the ratio of each pair, a line over all of them and a dot at their median.

    rows: rows of `pairs` of one environment (B's); those of the kind's leading quantity that have a ratio are drawn.
    name: names the series by a row, as `pair_names` does. Series are sorted by their median; beyond MOST_ROWS those
    whose median lies nearest to 1 are left out, beyond MOST_MARKS pairs the ticks, and the subtitle says so. Raises
    ValueError where no row has a ratio.
    """
    asked = KINDS[kind]
    series = _by_label([row for row in rows if row["kind"] == kind and row["quantity"] == asked.leading], name)
    if not series:
        raise ValueError(f"no {kind} pair has a ratio of {asked.leading}")
    middles = {label: median(row["ratio"] for row in group) for label, group in series.items()}
    shown = sorted(middles, key=lambda label: -max(middles[label], 1 / middles[label]))[:MOST_ROWS]
    shown.sort(key=lambda label: -middles[label])
    pairs = [(label, row) for label in shown for row in series[label]]
    has_ticks = len(pairs) <= MOST_MARKS
    data = [_strip_row(label, row, has_ticks) for label, row in pairs]
    x = marks.log_ruler([*(row["value"] for row in data), 0.8, 1.25], _ratio_title(pairs), RATIO_LABELS)
    subtitle = _overview_sentence(asked, middles, len(shown), has_ticks)
    axis, height = marks.series_names(shown, 420, 18)
    return alt.layer(*_strip_marks(data, alt.Y("series:N", sort=shown, axis=axis), x, has_ticks)).properties(
        title=marks.title(f"{asked.title}: {asked.leading}, by series", subtitle, Frame(frame.width + 300, 0)),
        description=f"{asked.title}: ratio of {asked.leading} by series. {subtitle}",
        width=frame.width,
        height=height,
    )


def _ratio_title(pairs: Sequence[tuple[str, Row]]) -> str:
    sides = _sides_of(row for _, row in pairs)
    a, b = sides[0] if len(sides) == 1 else ("first", "second")
    return f"{a} ÷ {b}: right of 1×, {b} takes less"


def _by_label(rows: Iterable[Row], name: Name) -> dict[str, list[Row]]:
    groups: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        if row.get("ratio"):
            groups[name(row)].append(row)
    return groups


def _strip_row(label: str, row: Row, has_ticks: bool) -> dict[str, Any]:
    drawn = {"p": theme.point_key(row), "series": label, "value": theme.rounded(row["ratio"])}
    if not has_ticks:
        return drawn
    at = "" if row.get("size") is None else f"size {theme.size(row['size'])}: "
    return drawn | {"change": _CHANGES[row.get("change") or "none"][0], "says": f"{at}{ratio_words(row)}"}


def _strip_marks(data: Sequence[Row], names: alt.Y, x: Ruler, has_ticks: bool) -> list[alt.Chart]:
    base = alt.Chart(marks.data(data)).encode(y=names)
    one = alt.Chart(marks.data([{"level": 1.0}])).mark_rule(color=theme.INK, strokeWidth=1)
    least, most = _summary(x, "min(value):Q"), alt.X2("max(value):Q")
    reach = base.mark_rule(color=theme.MUTED, strokeWidth=1.4, opacity=0.7).encode(x=least, x2=most)
    hover = [
        alt.Tooltip("series:N", title="series"),
        alt.Tooltip("median(value):Q", title="median", format=".3~r"),
        alt.Tooltip("count():Q", title="pairs"),
    ]
    middle = base.mark_point(filled=True, size=58, opacity=1, color=theme.INK)
    dots = middle.encode(x=_summary(x, "median(value):Q"), tooltip=hover)
    line = one.encode(x=x.channel(alt.X, "level"))
    return [line, reach, *([_ticks(base, data, x)] if has_ticks else []), dots]


def _ticks(base: alt.Chart, data: Sequence[Row], x: Ruler) -> alt.Chart:
    present = {row["change"] for row in data}
    looks = [(words, colour) for words, colour in _CHANGES.values() if words in present]
    scale = alt.Scale(domain=[words for words, _ in looks], range=[colour for _, colour in looks])
    colour = alt.Color("change:N", scale=scale, legend=alt.Legend(symbolType="square"))
    hover = marks.tooltip(series="series", says="A ÷ B", change="B")
    return base.mark_tick(thickness=2.5, height=11).encode(x=x.channel(alt.X, "value"), color=colour, tooltip=hover)


def _summary(x: Ruler, field: str) -> alt.X:
    """An X channel of an aggregate on a ruler."""
    channel = x.channel(alt.X, "value")
    return alt.X(field, scale=channel["scale"], axis=channel["axis"])


def _overview_sentence(kind: Kind, middles: dict[str, float], shown: int, has_ticks: bool) -> str:
    values = list(middles.values())
    words = [f"dot: median of a series, {theme.number(min(values))}× to {theme.number(max(values))}×; line: its range"]
    words += ["tick: a pair"] if has_ticks else [f"pairs are not drawn one by one, being more than {MOST_MARKS:,}"]
    words += [f"{len(middles) - shown:,} series nearer to 1× are left out"] if shown < len(middles) else []
    return "; ".join(words)
