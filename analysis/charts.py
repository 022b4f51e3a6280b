"""Charts: pure functions of rows to Altair charts, tested through their specification.

Every function takes rows as the views give them (mappings of column name to value; times in microseconds a step) and
returns a chart with a title, units on its axes and the numbers with their intervals on hover. Times go on logarithmic
axes. No row is dropped here: what cannot be drawn (no time, so no mark) stays in the data and in the page's table.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

import altair as alt
import vl_convert

from analysis import looks, marks, theme
from analysis.marks import COUNT_LABELS, LEFT, PERCENT_LABELS, RIGHT, Frame, Ruler
from analysis.theme import Line, Row

Name = Callable[[Row], str]
Chart = alt.LayerChart | alt.FacetChart

MARKS_WITH_STROKES = 1000
MOST_SERIES = 60
"""Rows of a chart that has one a series; a page with filters shows so many of those chosen."""
LAW_TOLERANCE = 0.05
CROWDED = "; so many points are drawn as cells, the darker the more lie there"
WORDS_WIDTH, WORDS_HEIGHT = 98, 40
LARGE, MEDIUM, SMALL = Frame(900, 360), Frame(420, 270), Frame(240, 200)


def frame_for(charts: int) -> Frame:
    """The plot size with which this many charts share a page: one wide, two in a row, or three in a row."""
    return LARGE if charts == 1 else MEDIUM if charts <= 4 else SMALL


def axis_value(row: Row, axis: str) -> float | int | None:
    """A point's value on a numeric axis: its column, or the key of `params`; None where the axis does not exist."""
    value = row[axis] if axis in row else theme.json_params(row).get(axis)
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def measured_at(row: Row, axis: str) -> float | int:
    """A point's value on an axis that it must have. Raises ValueError, naming the point, where it has none."""
    value = axis_value(row, axis)
    if value is None:
        raise ValueError(f"point {row.get('point_id')} has no number on the axis {axis}")
    return value


def styled(chart: alt.TopLevelMixin, **extra: Any) -> alt.TopLevelMixin:
    """A chart with the common configuration; keywords replace parts of it."""
    return chart.properties(config=theme.config() | extra)


def png(chart: alt.TopLevelMixin, scale: float = 2.0) -> bytes:
    """A chart as PNG, without browser or network; scale is image pixels a CSS pixel."""
    return vl_convert.vegalite_to_png(styled(chart).to_dict(), scale=scale)


# --- one series: overhead, work and wall against its axis -------------------------------------------------------------


@dataclass(frozen=True)
class Rulers:
    """The two rulers of crossover charts; charts that are to be compared share them."""

    x: Ruler
    y: Ruler


def rulers(points: Sequence[Row], axis: str, frame: Frame) -> Rulers:
    """Rulers that hold every point given, with room for the names of the regimes above the highest time."""
    times = [time for point in points for part in _TIME_LINES for time in marks.span(point, _COLUMNS[part])]
    x = marks.values_ruler([measured_at(point, axis) for point in points], axis, frame)
    return Rulers(x, marks.log_ruler(times, "time per step", headroom=WORDS_HEIGHT / frame.height))


def crossover(points: Sequence[Row], crossing: Row, name: str, frame: Frame, on: Rulers) -> Chart:
    """Overhead, work and wall of one series against its axis, with the crossing and the two regimes.

    points: rows of `bounds` of one series. crossing: the series' row of `crossovers` (axis, value, low, high, status,
    reason). The grey band is the bracket or interval, the rule the value where one is stated.
    """
    axis, summary = crossing["axis"], crossing_sentence(crossing)
    points = sorted(points, key=lambda point: measured_at(point, axis))
    rows = [_time_row(point, axis, part, on.y) for part in _TIME_LINES for point in points]
    lines = {row["quantity"]: _TIME_LINES[row["part"]] for row in rows}
    hover = {"x": axis, "says": "time per step", "note": "bound"}
    under = [*_regimes(points, crossing, on.x, frame), *_crossing_marks(crossing, on.x, frame)]
    over = [*marks.lines(rows, lines, on.x, on.y, hover), *_failed(points, on.x, axis, frame)]
    return alt.layer(*under, *over).properties(
        title=marks.title(name, summary, frame),
        description=f"{name}: time per step against {axis}. {summary}",
        width=frame.width,
        height=frame.height,
    )


def side_by_side(charts: Sequence[Chart]) -> alt.HConcatChart:
    """Charts in one row with one legend."""
    row = alt.hconcat(*charts, spacing=40)
    return row.resolve_scale(color="shared", shape="shared", strokeDash="shared")


def crossing_sentence(crossing: Row) -> str:
    """A row of `crossovers` in words, with thousands separated."""
    axis, status = crossing["axis"], crossing["status"]
    value, low, high = (
        None if crossing.get(key) is None else theme.size(crossing[key]) for key in ("value", "low", "high")
    )
    words = {
        "found": f"crosses at {axis} {value} ({low} to {high})",
        "bracketed": f"crosses between {axis} {low} and {high}",
        "above": f"{theme.OVERHEAD_REGIME} at every {axis} measured" + (f", up to {low}" if low else ""),
        "below": f"{theme.DEVICE_REGIME} at every {axis} measured" + (f", down to {high}" if high else ""),
    }
    return words.get(status) or f"no crossing stated: {crossing.get('reason') or status}"


_TIME_LINES = {"wall": theme.WALL_LINE, "overhead": theme.OVERHEAD_LINE, "work": theme.WORK_LINE}
_COLUMNS = {"wall": "wall_us", "overhead": "overhead_us", "work": "work_us"}


def _time_row(point: Row, axis: str, part: str, y: Ruler) -> dict[str, Any]:
    value, low, high = marks.span(point, _COLUMNS[part])
    words = {"wall": "wall", "overhead": theme.overhead_word(point), "work": theme.work_word(point)}
    return {
        "p": theme.point_key(point),
        "x": measured_at(point, axis),
        "part": part,
        "quantity": words[part],
        **y.drawable(value, low, high),
        "says": theme.interval(value, low, high),
        "note": theme.bound_of(point).name,
    }


def _regimes(points: Sequence[Row], crossing: Row, x: Ruler, frame: Frame) -> list[alt.Chart]:
    """Tinted grounds and names of the regimes on either side of the crossing, as far as the series was measured."""
    measured = [measured_at(point, crossing["axis"]) for point in points if point.get("wall_us") is not None]
    if not measured:
        return []
    first, last = x.widened(min(measured), max(measured))
    middle = crossing_value(crossing)
    if middle is not None:
        left, right = (_OVERHEAD, _DEVICE) if overhead_comes_first(points) else (_DEVICE, _OVERHEAD)
        words = [_left_words(x, middle, left, frame), _right_words(x, middle, right, frame)]
        return [_tint(x, first, middle, left), _tint(x, middle, last, right), *words]
    whole = {"above": _OVERHEAD, "below": _DEVICE}.get(crossing["status"])
    return [_tint(x, first, last, whole), _words(whole, 8, 13, LEFT)] if whole else []


_OVERHEAD = (theme.OVERHEAD_LINE, theme.OVERHEAD_REGIME)
_DEVICE = (theme.WORK_LINE, theme.DEVICE_REGIME)


def overhead_comes_first(points: Sequence[Row]) -> bool:
    """Whether overhead binds at the low end of the axis, as it nearly always does; points in the order of the axis."""
    sides = [point["bound"] == theme.OVERHEAD_REGIME for point in points if point.get("bound") in _DECIDED]
    return not sides or sides[0]


_DECIDED = ("overhead-bound", "compute-bound", "memory-bound", "device-bound")


def crossing_value(crossing: Row) -> float | None:
    """Where the two regimes part: the stated value, or the middle of the bracket on a logarithmic axis."""
    if crossing["status"] not in ("found", "bracketed"):
        return None
    if crossing.get("value") is not None:
        return crossing["value"]
    low, high = crossing.get("low"), crossing.get("high")
    return math.sqrt(low * high) if low and high else None


def _tint(x: Ruler, start: float, end: float, regime: tuple[Line, str]) -> alt.Chart:
    ground = alt.Chart(marks.data([{"from": theme.rounded(float(start)), "to": theme.rounded(float(end))}]))
    return ground.mark_rect(color=regime[0].colour, opacity=0.055).encode(x=x.channel(alt.X, "from"), x2=alt.X2("to:Q"))


def _left_words(x: Ruler, middle: float, regime: tuple[Line, str], frame: Frame) -> alt.Chart:
    """The left regime's name, ending at the crossing; in too narrow a regime on a line of its own, from the edge."""
    room = x.position(middle) * frame.width
    return _words(regime, room - 7, 13, RIGHT) if room >= WORDS_WIDTH else _words(regime, 4, 29, LEFT)


def _right_words(x: Ruler, middle: float, regime: tuple[Line, str], frame: Frame) -> alt.Chart:
    """The right regime's name, beginning at the crossing; in too narrow a regime on a line of its own, to the edge."""
    left = x.position(middle) * frame.width
    fits = frame.width - left >= WORDS_WIDTH
    return _words(regime, left + 7, 13, LEFT) if fits else _words(regime, frame.width - 4, 29, RIGHT)


def _words(regime: tuple[Line, str], left: float, top: float, side: marks.Side) -> alt.Chart:
    line, words = regime
    return marks.words(words, theme.rounded(float(left)), top, side, line.ink)


def _crossing_marks(crossing: Row, x: Ruler, frame: Frame) -> list[alt.Chart]:
    """The bracket as a band and the crossing as a labelled rule, under the regimes' names; empty if none is stated."""
    value = crossing_value(crossing)
    if value is None:
        return []
    row = {"value": value, "low": crossing["low"], "high": crossing["high"], "label": _crossing_label(crossing)}
    says = {"says": crossing_sentence(crossing)}
    chart = alt.Chart(marks.data([{key: theme.rounded(each) for key, each in row.items()} | says]))
    ends = {"y": alt.YValue(WORDS_HEIGHT - 4), "y2": alt.Y2Value(frame.height)}
    down = ends | {"tooltip": marks.tooltip(says="crossing")}
    band = chart.mark_rect(color=theme.MUTED, opacity=0.16).encode(
        x=x.channel(alt.X, "low"), x2=alt.X2("high:Q"), **down
    )
    rule = chart.mark_rule(color=theme.INK, strokeWidth=1.5, strokeDash=[4, 3])
    rules = [rule.encode(x=x.channel(alt.X, "value"), **down)] if crossing["status"] == "found" else []
    return [band, *rules, _crossing_text(chart, x.position(value) * frame.width > WORDS_WIDTH, x)]


def _crossing_label(crossing: Row) -> str:
    ends = ["value"] if crossing["status"] == "found" else ["low", "high"]
    return " … ".join(theme.size(crossing[end]) for end in ends)


def _crossing_text(chart: alt.Chart, fits_left: bool, x: Ruler) -> alt.Chart:
    """The crossing's label: left of the rule, where the plot is empty above the overhead line, unless it lacks room."""
    text = chart.mark_text(
        align=RIGHT if fits_left else LEFT, dx=-6 if fits_left else 6, fontSize=12, fontWeight=700, color=theme.INK
    )
    return text.encode(x=x.channel(alt.X, "value"), y=alt.YValue(WORDS_HEIGHT + 6), text=alt.Text("label:N"))


def _failed(points: Sequence[Row], x: Ruler, axis: str, frame: Frame) -> list[alt.Chart]:
    """A cross at the foot of the plot where a point of the series failed or was skipped."""
    rows = [
        {
            "p": theme.point_key(point),
            "x": measured_at(point, axis),
            "letter": theme.NOT_MEASURED.letter,
            "says": point.get("reason") or point["status"],
        }
        for point in points
        if theme.bound_of(point) is theme.NOT_MEASURED
    ]
    if not rows:
        return []
    text = alt.Chart(marks.data(rows)).mark_text(fontSize=14, fontWeight=700, color=theme.MUTED)
    hover = marks.tooltip(x=axis, says="not measured")
    return [
        text.encode(x=x.channel(alt.X, "x"), y=alt.YValue(frame.height - 10), text=alt.Text("letter:N"), tooltip=hover)
    ]


# --- all series at once -----------------------------------------------------------------------------------------------


def bounds_map(points: Sequence[Row], axis: str, name: Name) -> Chart:
    """A cell for each series and value of its axis: the bound as colour and letter; failed and skipped points too.

    points: rows of `bounds` and failed rows of `points` (with status and reason), each with a value on the axis.
    """
    rows = [_cell(point, axis, name) for point in points]
    columns = sorted({row["x"] for row in rows})
    series = len({row["series"] for row in rows})
    step = max(14, min(46, 640 // max(1, len(columns))))
    x_axis = alt.Axis(orient="top", title=axis, labelAngle=0 if step >= 34 else -90, domain=False, ticks=False)
    names, height = marks.series_names((row["series"] for row in rows), 300, 26 if series <= 40 else 18)
    base = alt.Chart(marks.data(rows)).encode(
        x=alt.X("column:O", sort=[theme.size(column) for column in columns], axis=x_axis),
        y=alt.Y("series:N", sort=None, axis=names),
        tooltip=marks.tooltip(series="series", column=axis, bound="bound", says="why"),
    )
    stroke, width = (theme.FAINT, 1) if len(rows) <= MARKS_WITH_STROKES else (None, 0)
    keys = [row["key"] for row in rows]
    cells = base.mark_rect(stroke=stroke, strokeWidth=width).encode(color=looks.bound_colour(keys, looks.legend()))
    ink = alt.when(alt.datum.ink == theme.WHITE).then(alt.value(theme.WHITE)).otherwise(alt.value(theme.DARK))
    letters = base.mark_text(fontSize=12, fontWeight=600).encode(text=alt.Text("letter:N"), color=ink)
    return alt.layer(cells, letters).properties(
        title=marks.title(f"Bound at each {axis}", "one row a series; blank cells were not part of the sweep", LARGE),
        description=f"Map of bounds: {theme.plural(series, 'series')} by {axis}",
        width=alt.Step(step),
        height=height,
        usermeta=marks.first_of("series", MOST_SERIES),
    )


def _cell(point: Row, axis: str, name: Name) -> dict[str, Any]:
    bound = theme.bound_of(point)
    value = measured_at(point, axis)
    return {
        "p": theme.point_key(point),
        "series": name(point),
        "x": value,
        "column": theme.size(value),
        "bound": point["status"] if bound is theme.NOT_MEASURED else bound.name,
        "key": looks.bound_key(bound),
        "letter": bound.letter,
        "ink": bound.ink,
        "says": point.get("sentence") or point.get("reason") or bound.reading,
    }


def crossings(crossings: Sequence[Row], axis: str, name: Name, unstated: int = 0) -> Chart:
    """Where every series crosses: a dot for a value, a bar for its interval or bracket, an arrow for beyond the range.

    crossings: rows of `crossovers` over one axis (status, value, low, high, text), each with `p`, the `theme.point_key`
    of one of its points. unstated: series that are left out, since nothing can be said of their crossing.
    """
    rows = [_crossing_row(crossing, name) for crossing in crossings]
    ends = [end for row in rows for end in (row["low"], row["high"], row["value"]) if end is not None]
    x = marks.log_ruler(ends, axis, COUNT_LABELS)
    for row in rows:
        row["from"], row["to"] = row["low"] or x.low, row["high"] or x.high
    names, height = marks.series_names((row["series"] for row in rows), 360, 24, grid=True)
    base = alt.Chart(marks.data(sorted(rows, key=_crossing_order))).encode(
        y=alt.Y("series:N", sort=None, axis=names),
        tooltip=marks.tooltip(series="series", says="crossing"),
    )
    kind = alt.datum.kind
    bars = base.transform_filter(kind == "crosses").mark_rule(
        strokeWidth=7, opacity=0.35, color=theme.MUTED, strokeCap="round"
    )
    stays = base.transform_filter(kind != "crosses").mark_rule(strokeWidth=2, strokeDash=[2, 4], opacity=0.9)
    dots = base.transform_filter("isValid(datum.value)").mark_point(filled=True, size=75, opacity=1, color=theme.INK)
    regimes = [theme.OVERHEAD_REGIME, theme.DEVICE_REGIME]
    colours = alt.Scale(domain=regimes, range=[theme.OVERHEAD_LINE.colour, theme.WORK_LINE.colour])
    says = base.mark_text(align=LEFT, dx=8, fontSize=11, color=theme.MUTED)
    across, beyond = x.channel(alt.X, "from"), alt.XValue(LARGE.width - 330 + 4)
    crossing = sum(row["kind"] == "crosses" for row in rows)
    said = f"{theme.plural(len(rows), 'series')}; {crossing} cross in the range measured"
    said += f"; of {unstated} more no crossing can be stated" if unstated else ""
    return alt.layer(
        says.encode(x=beyond, text=alt.Text("label:N")),  # first: the order of its rows is that of the axis
        bars.encode(x=across, x2=alt.X2("to:Q")),
        stays.encode(x=across, x2=alt.X2("to:Q"), color=alt.Color("kind:N", scale=colours, legend=None)),
        dots.encode(x=x.channel(alt.X, "value")),
    ).properties(
        title=marks.title(f"At which {axis} each series stops being {theme.OVERHEAD_REGIME}", said, LARGE),
        description=f"Crossover of each series over {axis}. {said}",
        width=LARGE.width - 330,
        height=height,
        usermeta=marks.first_of("series", MOST_SERIES),
    )


def _crossing_row(crossing: Row, name: Name) -> dict[str, Any]:
    status = crossing["status"]
    kind = {"found": "crosses", "bracketed": "crosses", "above": theme.OVERHEAD_REGIME, "below": theme.DEVICE_REGIME}
    low, high = crossing.get("low"), crossing.get("high")
    return {
        "p": crossing["p"],
        "series": name(crossing),
        "kind": kind.get(status, "unknown"),
        "value": theme.rounded(crossing.get("value")) if status == "found" else None,
        "low": theme.rounded(None if status == "above" else low),
        "high": theme.rounded(None if status == "below" else high),
        "label": _short_crossing(crossing),
        "says": crossing_sentence(crossing),
    }


def _short_crossing(crossing: Row) -> str:
    value, low, high = (
        None if crossing.get(end) is None else theme.size(crossing[end]) for end in ("value", "low", "high")
    )
    words = {
        "found": f"{value}  ({low} to {high})",
        "bracketed": f"between {low} and {high}",
        "above": f"{theme.OVERHEAD_REGIME} up to {low}" if low else f"{theme.OVERHEAD_REGIME} throughout",
        "below": f"{theme.DEVICE_REGIME} from {high}" if high else f"{theme.DEVICE_REGIME} throughout",
        "several": "changes side more than once",
    }
    return words.get(crossing["status"], "no crossing stated")


def _crossing_order(row: Row) -> tuple[int, float]:
    """Series bound by the device throughout, then those that cross in the order of where, then those that never do."""
    rank = {theme.DEVICE_REGIME: 0, "crosses": 1, theme.OVERHEAD_REGIME: 2}.get(row["kind"], 3)
    return rank, row["value"] or math.sqrt(row["from"] * row["to"])


# --- comparisons ------------------------------------------------------------------------------------------------------


def cold_start(steps: Sequence[Row], warm: Row | None, name: str, frame: Frame = MEDIUM) -> Chart:
    """The first steps of a fresh process, one by one, against the warm step.

    steps: raw samples of quantity `first` (position from 0, value in microseconds), of one point. warm: the row of
    `bounds` of the same point warm, or None where it was not measured.
    """
    steps = sorted(steps, key=lambda step: step["position"])
    rows = [
        {
            "p": theme.point_key(step),
            "x": place,
            "value": theme.rounded(step["value"]),
            "says": theme.time_us(step["value"]),
        }
        for place, step in enumerate(steps, start=1)
    ]
    wall, low, high = marks.span(warm or {}, "wall_us")
    x = Ruler(0.5, len(rows) + 0.5, _steps_ticks(len(rows)), "step of a fresh process", COUNT_LABELS, "linear")
    y = marks.log_ruler(
        [*(row["value"] for row in rows), high, *([wall / 1.6] if wall else [])], "time of the step", headroom=0.08
    )
    chart = alt.Chart(marks.data(rows)).encode(
        x=x.channel(alt.X, "x"), y=y.channel(alt.Y, "value"), tooltip=marks.tooltip(x="step", says="time")
    )
    layers = [
        *_warm_marks(wall, low, high, y),
        chart.mark_line(color=theme.OVERHEAD_LINE.colour, strokeWidth=1.5),
    ]
    layers.append(chart.mark_point(color=theme.OVERHEAD_LINE.colour, filled=True, size=42, opacity=1))
    return alt.layer(*layers).properties(
        title=marks.title(name, _cold_sentence(rows, wall), frame),
        description=f"{name}: time of the first steps against the warm step",
        width=frame.width,
        height=frame.height,
    )


def _steps_ticks(count: int) -> list[float]:
    stride = max(1, math.ceil(count / 8))
    return [float(step) for step in range(1, count + 1, stride)]


def _warm_marks(wall: float | None, low: float | None, high: float | None, y: Ruler) -> list[alt.Chart]:
    if wall is None:
        return []
    row = {"value": wall, "low": low, "high": high}
    chart = alt.Chart(marks.data([{key: theme.rounded(each) for key, each in row.items()}]))
    hover = alt.TooltipValue(f"warm step: {theme.interval(wall, low, high)}")
    rule = chart.mark_rule(color=theme.INK, strokeDash=[4, 3]).encode(y=y.channel(alt.Y, "value"), tooltip=hover)
    text = chart.mark_text(align=LEFT, dy=9, fontSize=11, color=theme.INK)
    label = text.encode(
        x=alt.XValue(6),
        y=y.channel(alt.Y, "value"),
        text=alt.TextValue(f"warm: {theme.time_us(wall)}"),
        tooltip=hover,
    )
    return [rule, label]


def _cold_sentence(rows: Sequence[Row], wall: float | None) -> str:
    first = rows[0]["value"]
    if not wall:
        return f"first step {theme.time_us(first)}; the warm point was not measured"
    return f"first step {theme.time_us(first)}, {theme.number(first / wall)}× the warm step"


def law(rows: Sequence[Row], name: Name) -> Chart:
    """How far wall lies from max(issue, device), against max(issue, device): 0 where the step law holds; band ±5 %.

    rows: rows of `law` with a deviation (wall_us, model_us = max(issue, device), deviation = wall / model - 1, bound).
    """
    data = [_law_row(row, name) for row in rows]
    x = marks.log_ruler((row["x"] for row in data), "max(issue, device) per step")
    worst = max(0.1, *(abs(row["value"]) for row in data))
    y = Ruler(-1.15 * worst, 1.15 * worst, None, "wall beyond max(issue, device)", PERCENT_LABELS, "linear")
    band = alt.Chart(marks.data([{"low": -LAW_TOLERANCE, "high": LAW_TOLERANCE}]))
    tint = band.mark_rect(color=theme.MUTED, opacity=0.13).encode(y=y.channel(alt.Y, "low"), y2=alt.Y2("high:Q"))
    points = alt.Chart(marks.data(data)).mark_point(
        filled=True, size=58, opacity=0.9, stroke=theme.PAPER, strokeWidth=0.5
    )
    frame, keys = Frame(LARGE.width, 300), [row["key"] for row in data]
    dots = points.encode(
        x=x.channel(alt.X, "x"),
        y=y.channel(alt.Y, "value"),
        color=looks.bound_colour(keys, looks.legend()),
        shape=looks.bound_shape(keys, looks.legend()),
        tooltip=marks.tooltip(
            series="point", bound="bound", wall="wall", model="max(issue, device)", says="difference"
        ),
    )
    tolerance = marks.words("±5 %", 878, 0, RIGHT, theme.MUTED).encode(
        y=alt.YValue(300 * (1 - y.position(LAW_TOLERANCE)) - 8)
    )
    many = len(data) > marks.MOST_DOTS
    shown = marks.crowd(data, x, y, frame) if many else dots
    return alt.layer(tint, marks.level(0.0, y), shown, tolerance).properties(
        title=marks.title(
            "Does wall = max(issue, device) hold?", _law_sentence(data) + (CROWDED if many else ""), LARGE
        ),
        description=f"Step law: {_law_sentence(data)}",
        width=LARGE.width,
        height=300,
    )


def _law_row(row: Row, name: Name) -> dict[str, Any]:
    bound = theme.bound_of(row)
    return {
        "p": theme.point_key(row),
        "series": name(row),
        "x": theme.rounded(row["model_us"]),
        "value": theme.rounded(row["deviation"]),
        "bound": bound.name,
        "key": looks.bound_key(bound),
        "wall": theme.time_us(row["wall_us"]),
        "model": theme.time_us(row["model_us"]),
        "says": f"{100 * row['deviation']:+.1f} %",
    }


def _law_sentence(rows: Sequence[Row]) -> str:
    off = [abs(row["value"]) for row in rows]
    held = sum(each <= LAW_TOLERANCE for each in off)
    middle, worst = (theme.number(100 * each, 2) for each in (median(off), max(off)))
    points = theme.plural(len(off), "point")
    return f"within 5 % on {held} of {points}; off by {middle} % in the median, {worst} % at worst"
