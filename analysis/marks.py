"""What charts are made of: rulers (scale and axis in one), and layers that several charts share."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import altair as alt
from altair.utils.schemapi import debug_mode

from analysis import theme
from analysis.theme import Line, Row

TIME_LABELS = (
    "datum.value >= 1e6 ? format(datum.value / 1e6, ',~g') + ' s' : "
    "datum.value >= 1e3 ? format(datum.value / 1e3, ',~g') + ' ms' : format(datum.value, '~g') + ' µs'"
)
COUNT_LABELS = "format(datum.value, ',~r')"
RATIO_LABELS = "format(datum.value, '~g') + '×'"
PERCENT_LABELS = "datum.value == 0 ? '0' : format(100 * datum.value, '+~r') + ' %'"
LABEL_CHARACTER = 5.8
"""Pixels that a letter of an axis' names takes, at most as a mean of a long name."""
TWO_LINES = 30
"""Height of a row whose name takes two lines."""
Side = Literal["left", "right"]
LEFT: Side = "left"
RIGHT: Side = "right"


@dataclass(frozen=True)
class Frame:
    """Size of a chart's plot in CSS pixels."""

    width: int
    height: int


@dataclass(frozen=True)
class Ruler:
    """A scale and its axis: the domain, the ticks (None lets Vega choose), title, Vega label expression, scale type."""

    low: float
    high: float
    ticks: Sequence[float] | None
    title: str
    labels: str
    kind: Literal["log", "linear"]

    def channel(self, kind: type[alt.X] | type[alt.Y], field: str) -> Any:
        """An X or Y channel of a quantitative field on this ruler."""
        scale = alt.Scale(type=self.kind, domain=[self.low, self.high], nice=False)
        ticks = alt.Undefined if self.ticks is None else list(self.ticks)
        return kind(f"{field}:Q", scale=scale, axis=alt.Axis(title=self.title, labelExpr=self.labels, values=ticks))

    def drawable(self, value: float | None, low: float | None, high: float | None) -> dict[str, float | None]:
        """A value and its interval as this ruler can show them, rounded.

        Zero and less have no place on a logarithmic ruler: such a value is not drawn, and an interval that reaches
        there ends at the low end of the ruler.
        """
        if self.kind == "log":
            value = value if value is not None and value > 0 else None
            low = None if low is None or high is None or high <= 0 else max(low, self.low)
            high = None if low is None else high
        return {"value": theme.rounded(value), "low": theme.rounded(low), "high": theme.rounded(high)}

    def widened(self, start: float, end: float) -> tuple[float, float]:
        """A stretch of the ruler with a little room at both ends, as the ruler has around all values."""
        if self.kind == "log":
            room = (self.high / self.low) ** 0.04
            return max(self.low, start / room), min(self.high, end * room)
        room = 0.04 * (self.high - self.low)
        return max(self.low, start - room), min(self.high, end + room)

    def position(self, value: float) -> float:
        """Where a value lies on a ruler, from 0 at its low to 1 at its high end."""
        place = math.log if self.kind == "log" else lambda each: each
        return (place(value) - place(self.low)) / (place(self.high) - place(self.low))


def values_ruler(values: Iterable[float], title: str, frame: Frame) -> Ruler:
    """A logarithmic ruler whose ticks are the measured values themselves, thinned until their labels stand apart.

    Values of zero or less have no logarithm; with such a value the ruler is linear.
    """
    values = sorted(set(values))
    low, high = values[0], values[-1]
    if low <= 0:
        margin = max(1.0, 0.04 * (high - low))
        return Ruler(low - margin, high + margin, _thinned(values, frame, float), title, COUNT_LABELS, "linear")
    margin = (high / low) ** 0.05 if high > low else 2.0
    return Ruler(low / margin, high * margin, _thinned(values, frame, math.log), title, COUNT_LABELS, "log")


def _thinned(values: Sequence[float], frame: Frame, place: Any) -> list[float]:
    """Values kept from the largest down, each at least a label's width (44 px) from the one kept before."""
    span = place(values[-1]) - place(values[0])
    apart = span * 44 / frame.width
    kept: list[float] = []
    for value in reversed(values):
        if not kept or place(kept[-1]) - place(value) >= apart:
            kept.append(value)
    return kept[::-1]


MEASURABLE = (1e-12, 1e18)


def log_ruler(values: Iterable[float | None], title: str, labels: str = TIME_LABELS, headroom: float = 0.05) -> Ruler:
    """A logarithmic ruler over the positive values given; headroom is the share of the plot kept free above them.

    What lies outside MEASURABLE is no measurement, and is not made room for.
    """
    least, greatest = MEASURABLE
    positive = [value for value in values if value is not None and least < value < greatest] or [1.0]
    low, high = min(positive) / 1.12, max(positive) * 1.12
    high *= (high / low) ** (headroom / (1 - headroom))
    return Ruler(theme.rounded(low), theme.rounded(high), _log_ticks(low, high), title, labels, "log")


def _log_ticks(low: float, high: float) -> list[float]:
    """Powers of ten where there are at least two, with 2 and 5 between them where the domain is narrow."""
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for digits in ((1,), (1, 2, 5), (1, 1.5, 2, 3, 4, 5, 6, 8)):
        ticks = [float(f"{digit}e{decade}") for decade in decades for digit in digits]
        ticks = [tick for tick in ticks if low <= tick <= high]
        if len(ticks) >= 3:
            return ticks
    return ticks


def data(rows: Sequence[Mapping[str, Any]]) -> alt.InlineData:
    """Rows as inline values of a chart; equal rows of several layers are stored once in its specification.

    A tuple, since Altair copies every list whenever a chart gets a layer or a property.
    """
    with debug_mode(False):  # the schema of Vega-Lite says of rows only that they may be anything
        return alt.InlineData(values=tuple(dict(row) for row in rows))


def title(text: str, subtitle: str, frame: Frame) -> alt.TitleParams:
    """A chart's title and the sentence below it, broken into lines that fit the frame."""
    return alt.TitleParams(text=_wrapped(text, frame.width // 7), subtitle=_wrapped(subtitle, int(frame.width / 5.6)))


def _wrapped(text: str, characters: int) -> list[str]:
    return textwrap.wrap(text, max(24, characters), break_on_hyphens=False) or [""]


def series_names(names: Iterable[str], limit: int, step: int, **axis: Any) -> tuple[alt.Axis, alt.Step]:
    """The axis of series' names, a row each, and the height of a row: a name longer than limit pixels takes two lines.

    What differs may stand behind the words that many series share, so that a name is cut only behind its second line.
    step: height of a row whose name is short. axis: further properties of the axis.
    """
    characters = int(limit / LABEL_CHARACTER)
    broken = f"replace(datum.label, regexp('^(.{{1,{characters - 2}}}) · '), '$1 ·\\n')"
    is_long = f"length(datum.label) > {characters}"
    look: dict[str, Any] = {
        "labelExpr": f"{is_long} ? split({broken}, '\\n') : datum.label",
        "labelBaseline": {"condition": {"test": is_long, "value": "bottom"}, "value": "middle"},
        "labelLineHeight": 12,
    }
    height = max(step, TWO_LINES) if any(len(name) > characters for name in names) else step
    return alt.Axis(title=None, labelLimit=limit, domain=False, ticks=False, **look, **axis), alt.Step(height)


def tooltip(**titles: str) -> list[alt.Tooltip]:
    """Hover: fields of the row with the title of each, in the order given."""
    return [alt.Tooltip(f"{field}:N", title=text) for field, text in titles.items()]


def words(text: str, left: float, top: float, side: Side, colour: str) -> alt.Chart:
    """Words at a place of the plot (pixels from its left and top), aligned to the side named."""
    mark = alt.Chart(data([{"words": text}])).mark_text(
        align=side, baseline="middle", fontSize=12, fontWeight=600, color=colour
    )
    return mark.encode(x=alt.XValue(left), y=alt.YValue(top), text=alt.Text("words:N"))


def level(value: float, ruler: Ruler) -> alt.Chart:
    """A horizontal rule at a value of the vertical ruler."""
    rule = alt.Chart(data([{"level": value}])).mark_rule(color=theme.INK, strokeWidth=1)
    return rule.encode(y=ruler.channel(alt.Y, "level"))


def lines(
    rows: Sequence[Row], looks: Mapping[str, Line], x: Ruler, y: Ruler, hover: Mapping[str, str]
) -> list[alt.Chart]:
    """Interval rules, lines and markers of several quantities; quantities differ in colour, dash, width and marker.

    rows: x, quantity, value, low, high, says (value and interval in words), note. hover: names of x, says, note.
    """
    names = list(looks)
    chart = alt.Chart(data(rows))
    across, colours = x.channel(alt.X, "x"), [look.colour for look in looks.values()]
    colour = _scaled(alt.Color, names, colours)
    shown = tooltip(quantity="quantity", **hover)
    spans = chart.mark_rule(strokeWidth=1.2).encode(
        x=across, y=y.channel(alt.Y, "low"), y2=alt.Y2("high:Q"), color=colour
    )
    # A scale of widths would interpolate between the first and the last of three; a condition states them.
    wide, narrow = alt.value(theme.WALL_LINE.width), alt.value(theme.OVERHEAD_LINE.width)
    drawn = chart.mark_line().encode(
        x=across,
        y=y.channel(alt.Y, "value"),
        color=colour,
        strokeDash=_scaled(alt.StrokeDash, names, [list(look.dash) for look in looks.values()]),
        strokeWidth=alt.when(alt.datum.quantity == "wall").then(wide).otherwise(narrow),
    )
    dots = chart.mark_point(filled=True, size=44, opacity=1).encode(
        x=across,
        y=y.channel(alt.Y, "value"),
        color=colour,
        shape=_scaled(alt.Shape, names, [look.shape for look in looks.values()]),
        tooltip=shown,
    )
    return [spans, drawn, dots]


def _scaled(channel: Any, names: Sequence[str], looks: Sequence[Any]) -> Any:
    return channel("quantity:N", scale=alt.Scale(domain=names, range=looks))


def first_of(field: str, count: int) -> dict[str, Any]:
    """A chart's word to who draws it: of its rows those with the first so many values of a field are to be shown.

    (`drawn` does so; a page with filters chooses among all rows first.)
    """
    return {"first": {"field": field, "count": count}}


def drawn(spec: dict[str, Any]) -> dict[str, Any]:
    """A specification with the rows alone that its `first_of` asks for."""
    first = (spec.get("usermeta") or {}).get("first")
    if not first:
        return spec
    datasets = {name: _first(rows, first["field"], first["count"]) for name, rows in spec.get("datasets", {}).items()}
    return spec | {"datasets": datasets}


def _first(rows: Sequence[dict[str, Any]], field: str, count: int) -> list[dict[str, Any]]:
    kept = set(list(dict.fromkeys(row.get(field) for row in rows))[:count])
    return [row for row in rows if row.get(field) in kept]


MOST_DOTS = 2000
"""Markers that are drawn one by one; of more, the plot shows how many lie in each of its cells."""
CELL_PX = 8


def crowd(rows: Sequence[Mapping[str, Any]], x: Ruler, y: Ruler, frame: Frame) -> alt.Chart:
    """Cells of a plane instead of markers, darker where more rows lie (x, value); x logarithmic, y linear.

    The cells are counted where the chart is drawn, of the rows that it is given there.
    """
    wide = math.log10(x.high / x.low) * CELL_PX / frame.width
    high = (y.high - y.low) * CELL_PX / frame.height
    column, line = f"floor(log(datum.x) / LN10 / {wide:.6g})", f"floor(datum.value / {high:.6g})"
    cells = alt.Chart(data(rows)).transform_calculate(column=column, line=line)
    counted = cells.transform_aggregate(points="count()", groupby=["column", "line"]).transform_calculate(
        left=f"pow(10, datum.column * {wide:.6g})",
        right=f"pow(10, (datum.column + 1) * {wide:.6g})",
        foot=f"datum.line * {high:.6g}",
        head=f"(datum.line + 1) * {high:.6g}",
    )
    scale = alt.Scale(type="log", range=[0.18, 1])
    return counted.mark_rect(color=theme.WORK_LINE.colour, clip=True).encode(
        x=x.channel(alt.X, "left"),
        x2=alt.X2("right:Q"),
        y=y.channel(alt.Y, "foot"),
        y2=alt.Y2("head:Q"),
        opacity=alt.Opacity("points:Q", scale=scale, legend=None),
        tooltip=[alt.Tooltip("points:Q", title="points here", format=",")],
    )


def span(row: Row, column: str) -> tuple[float | None, float | None, float | None]:
    """(value, low, high) of a time; low and high are None where the view states no interval."""
    return row.get(column), row.get(f"{column}_low"), row.get(f"{column}_high")
