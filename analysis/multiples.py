"""Small multiples: a small crossover chart for every number format, compile mode and batch, all on the same scales."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeVar

import altair as alt

from analysis import marks, theme
from analysis.charts import crossing_sentence, crossing_value, measured_at
from analysis.marks import Frame, Ruler
from analysis.theme import Row, SeriesNames

T = TypeVar("T")

MOST_COLUMNS, MOST_BLOCKS = 6, 6
MOST_MARKS = 2000
WIDTH = 900
CELL_HEIGHT = 92
MOST_TICKS = 4
HEADROOM = 0.24
"""Share of a cell above its lines, where the crossing is written."""

SMALL_MULTIPLES_READING = (
    "Each cell is one series, time per step against the axis, all on the same logarithmic scales: number formats below "
    "each other, compile modes side by side, a block for each batch. Where overhead (dashed) and work (dotted) meet, "
    "at the rule, the overhead stops binding; the grey band is the interval or the bracket of that place."
)
SMALL_MULTIPLES_SQL = (
    'SELECT b.*, c.axis, c."value", c.low, c.high, c.status FROM bounds AS b JOIN crossovers AS c '
    "USING (environment_id, workload, dtype, compile, dynamic, warmup, device) "
    "WHERE c.axis = 'size' AND c.batch IS NOT DISTINCT FROM b.batch AND c.params = b.params"
)


class Series(Protocol):
    """A row of `crossovers` and the rows of `bounds` that it speaks of, in the order of the axis."""

    @property
    def crossing(self) -> Row:
        """The row of `crossovers`."""

    @property
    def points(self) -> Sequence[Row]:
        """The rows of `bounds`."""


@dataclass(frozen=True)
class _Place:
    """Where a series stands in the grid."""

    block: int | None
    row: str
    column: str


def small_multiples(series: Sequence[Series], name: str) -> alt.VConcatChart:
    """A grid of small crossover charts: a row each dtype, a column each compile mode, a block each batch.

    series: all along one axis, of one workload in one environment; what else tells them apart becomes part of a column.
    name: what the title says they are. At most MOST_COLUMNS columns and MOST_BLOCKS blocks are drawn, those with most
    series; the subtitle says how many series that leaves out. Raises ValueError without a series.
    """
    if not series:
        raise ValueError("there is no series to draw")
    axis = str(series[0].crossing["axis"])
    found = _placed(series, axis)
    blocks, rows, columns = _grid(found)
    shown = {place: each for place, each in found.items() if place.block in blocks and place.column in columns}
    frame = Frame(max(110, min(240, (WIDTH - 70) // len(columns) - 14)), CELL_HEIGHT)
    x, y = _rulers(list(shown.values()), axis, frame)
    has_dots = sum(2 * len(each.points) for each in shown.values()) <= MOST_MARKS
    charts = [_block(block, rows, columns, shown, axis, (x, y), frame, has_dots) for block in blocks]
    subtitle = _subtitle(series, shown, has_dots)
    grid = alt.vconcat(*charts, spacing=22).resolve_scale(color="shared", strokeDash="shared", shape="shared")
    return grid.properties(
        title=marks.title(f"{name}: every series on one scale", subtitle, Frame(WIDTH, 0)),
        description=f"{name}: overhead and work against {axis}, a cell each series. {subtitle}",
    )


# --- where each series stands -----------------------------------------------------------------------------------------


def _placed(series: Sequence[Series], axis: str) -> dict[_Place, Series]:
    """Each series by its place; of several at one place (a source that has changed) the last stands."""
    by = "size" if axis == "batch" else "batch"
    crossings = [each.crossing for each in series]
    told = [{**row, "dtype": None, "batch": None, "size": None} for row in crossings]
    column = SeriesNames(told, axis, said=("workload",))
    return {
        _Place(row.get(by), str(row.get("dtype")), column(rest)): each
        for row, rest, each in zip(crossings, told, series, strict=True)
    }


def _grid(found: dict[_Place, Series]) -> tuple[list[int | None], list[str], list[str]]:
    """Blocks, rows and columns to draw: no batch and eager first, number formats from the most exact."""
    blocks = _most([place.block for place in found], MOST_BLOCKS)
    columns = _most([place.column for place in found], MOST_COLUMNS)
    rows = list(dict.fromkeys(place.row for place in found))
    exact = ("fp64", "fp32", "tf32", "fp16", "bf16")
    return (
        sorted(blocks, key=lambda block: (block is not None, block or 0)),
        sorted(rows, key=lambda row: (exact.index(row) if row in exact else len(exact), row)),
        sorted(columns, key=lambda column: (not column.startswith("eager"), not column.startswith("compiled"), column)),
    )


def _most(values: Sequence[T], count: int) -> list[T]:
    """The values that occur most, at most so many."""
    return sorted(dict.fromkeys(values), key=lambda value: -values.count(value))[:count]


def _rulers(series: Sequence[Series], axis: str, frame: Frame) -> tuple[Ruler, Ruler]:
    points = [point for each in series for point in each.points]
    x = marks.values_ruler([measured_at(point, axis) for point in points], axis, frame)
    times = [point.get(column) for point in points for column in _LINES]
    y = marks.log_ruler(times, "", headroom=HEADROOM)
    few = list(y.ticks or [])[:: math.ceil(len(y.ticks or [1]) / MOST_TICKS)]
    return x, replace(y, ticks=few)


_LINES = {"overhead_us": "overhead", "work_us": "work"}


# --- one block --------------------------------------------------------------------------------------------------------


def _block(
    block: int | None,
    rows: Sequence[str],
    columns: Sequence[str],
    shown: dict[_Place, Series],
    axis: str,
    on: tuple[Ruler, Ruler],
    frame: Frame,
    has_dots: bool,
) -> alt.FacetChart:
    """The cells of one batch, with the number formats that were measured at it."""
    here = [row for row in rows if any(place.block == block and place.row == row for place in shown)]
    data: list[dict[str, Any]] = []
    for row in here:
        for column in columns:
            each = shown.get(_Place(block, row, column))
            cell = _empty() if each is None else _cell(each, axis, *on)
            data += [{"row": row, "column": column, **mark} for mark in cell]
    look: dict[str, Any] = {"title": None, "labelFontSize": 11, "labelFontWeight": 600, "labelColor": theme.INK}
    by = "size" if axis == "batch" else "batch"
    return (
        alt.layer(*_layers(axis, *on, frame, has_dots))
        .properties(width=frame.width, height=frame.height, view=alt.ViewBackground(stroke=theme.FAINT))
        .facet(
            row=alt.Row("row:N", sort=here, header=alt.Header(**look, labelAngle=0, labelAlign="left")),
            column=alt.Column("column:N", sort=list(columns), header=alt.Header(**look)),
            data=marks.data(data),
            spacing=10,
        )
        .properties(
            title=alt.TitleParams(text=f"no {by}" if block is None else f"{by} {block:,}", fontSize=12, offset=4)
        )
    )


def _empty() -> list[dict[str, Any]]:
    return [{"kind": "empty", "says": "not measured"}]


def _cell(series: Series, axis: str, x: Ruler, y: Ruler) -> list[dict[str, Any]]:
    """Rows of one cell: its lines, what is said of its crossing, and its points that failed."""
    points = sorted(series.points, key=lambda point: measured_at(point, axis))
    lines = [_time(point, axis, column, y) for column in _LINES for point in points if (point.get(column) or 0) > 0]
    failed = [
        {"kind": "failed", "p": theme.point_key(point), "x": measured_at(point, axis),
         "says": point.get("reason") or point["status"]}
        for point in points if theme.bound_of(point) is theme.NOT_MEASURED
    ]  # fmt: skip
    return [*lines, *_crossing(series, points, axis, x), *failed]


def _time(point: Row, axis: str, column: str, y: Ruler) -> dict[str, Any]:
    words = {"overhead_us": theme.overhead_word(point), "work_us": theme.work_word(point)}
    return {
        "kind": _LINES[column],
        "p": theme.point_key(point),
        "x": measured_at(point, axis),
        "value": theme.rounded(point[column]),
        "quantity": words[column],
        "says": theme.interval(*marks.span(point, column)),
        "bound": theme.bound_of(point).name,
    }


def _crossing(series: Series, points: Sequence[Row], axis: str, x: Ruler) -> list[dict[str, Any]]:
    """The crossing as a band, a rule and its value, or in words where there is none; it goes with its nearest point."""
    crossing, value = series.crossing, crossing_value(series.crossing)
    says = crossing_sentence(crossing)
    if value is None:
        words = {"above": theme.OVERHEAD_REGIME, "below": theme.DEVICE_REGIME, "several": "several crossings"}
        key = theme.point_key(points[-1]) if points else None
        return [{"kind": "words", "p": key, "says": says, "label": words.get(crossing["status"], "no crossing stated")}]
    nearest = min(points, key=lambda point: abs(measured_at(point, axis) - value))
    is_found = crossing["status"] == "found"
    label = (
        theme.size(crossing["value"]) if is_found else " … ".join(theme.size(crossing[end]) for end in ("low", "high"))
    )
    return [
        {
            "kind": "crossing",
            "p": theme.point_key(nearest),
            "at": theme.rounded(float(value)) if is_found else None,
            "low": theme.rounded(crossing["low"]),
            "high": theme.rounded(crossing["high"]),
            "middle": theme.rounded(_within(x, float(value))),
            "label": label,
            "says": says,
        }
    ]


def _within(x: Ruler, value: float) -> float:
    """A place for words about a value, far enough from both edges of a cell."""
    if x.kind == "linear":
        return value
    room = (x.high / x.low) ** 0.2
    return min(max(value, x.low * room), x.high / room)


def _layers(axis: str, x: Ruler, y: Ruler, frame: Frame, has_dots: bool) -> list[alt.Chart]:
    crossing = _of("crossing")
    down = {"y": alt.value(20), "y2": alt.value(frame.height), "tooltip": marks.tooltip(says="crossing")}
    band = crossing.mark_rect(color=theme.MUTED, opacity=0.16).encode(x=x.channel(alt.X, "low"), x2="high:Q", **down)
    rule = crossing.mark_rule(color=theme.INK, strokeWidth=1.2, strokeDash=[4, 3])
    label = crossing.mark_text(fontSize=11, fontWeight=700, color=theme.INK, baseline="middle")
    return [
        band,
        rule.encode(x=x.channel(alt.X, "at"), **down),
        *_line_layers(axis, x, y, has_dots),
        label.encode(
            x=x.channel(alt.X, "middle"), y=alt.value(10), text="label:N", tooltip=marks.tooltip(says="crossing")
        ),
        *_word_layers(x, frame),
    ]


def _of(*kinds: str) -> alt.Chart:
    """A layer of the rows of these kinds."""
    return alt.Chart().transform_filter(alt.FieldOneOfPredicate(field="kind", oneOf=list(kinds)))


def _line_layers(axis: str, x: Ruler, y: Ruler, has_dots: bool) -> list[alt.Chart]:
    names, looks = ["overhead", "work"], [theme.OVERHEAD_LINE, theme.WORK_LINE]
    base = _of(*names).encode(
        x=x.channel(alt.X, "x"),
        y=y.channel(alt.Y, "value"),
        color=alt.Color("kind:N", scale=alt.Scale(domain=names, range=[look.colour for look in looks])),
    )
    dashes = alt.Scale(domain=names, range=[list(look.dash) for look in looks])
    shapes = alt.Scale(domain=names, range=[look.shape for look in looks])
    line = base.mark_line(strokeWidth=1.8).encode(strokeDash=alt.StrokeDash("kind:N", scale=dashes))
    hover = [
        alt.Tooltip("x:Q", title=axis, format=",~r"),
        *marks.tooltip(quantity="quantity", says="time", bound="bound"),
    ]
    dots = base.mark_point(filled=True, size=16, opacity=1).encode(
        shape=alt.Shape("kind:N", scale=shapes), tooltip=hover
    )
    return [line, dots] if has_dots else [line]


def _word_layers(x: Ruler, frame: Frame) -> list[alt.Chart]:
    """Words where there is no crossing, where nothing was measured, and a cross at each point that failed."""
    middle = alt.value(frame.width / 2)
    ink = (
        alt.when(alt.datum.label == theme.OVERHEAD_REGIME)
        .then(alt.value(theme.OVERHEAD_LINE.ink))
        .when(alt.datum.label == theme.DEVICE_REGIME)
        .then(alt.value(theme.WORK_LINE.ink))
        .otherwise(alt.value(theme.MUTED))
    )
    regime = _of("words").mark_text(fontSize=11, baseline="middle", fontWeight=600)
    empty = _of("empty").mark_text(fontSize=11, baseline="middle", color=theme.MUTED, fontStyle="italic")
    failed = _of("failed").mark_text(color=theme.MUTED, fontWeight=700, fontSize=12, baseline="middle")
    return [
        regime.encode(x=middle, y=alt.value(10), text="label:N", color=ink, tooltip=marks.tooltip(says="crossing")),
        empty.encode(x=middle, y=alt.value(frame.height / 2), text="says:N"),
        failed.encode(
            x=x.channel(alt.X, "x"),
            y=alt.value(frame.height - 8),
            text=alt.value(theme.NOT_MEASURED.letter),
            tooltip=marks.tooltip(says="not measured"),
        ),
    ]


def _subtitle(series: Sequence[Series], shown: dict[_Place, Series], has_dots: bool) -> str:
    crossing = sum(crossing_value(each.crossing) is not None for each in shown.values())
    words = [f"{crossing} of {theme.plural(len(shown), 'series')} cross"]
    left_out = len(series) - len(shown)
    words += [f"{left_out:,} more are left out of the grid"] if left_out else []
    words += ["points are not marked, being many"] if not has_dots else []
    return "; ".join(words)
