"""The history of one quantity as a chart: a small plot a point, its sweeps from left to right."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from typing import Any

import altair as alt
import vl_convert

from analysis import marks, theme
from analysis.charts import styled
from analysis.marks import Frame
from analysis.theme import Row

MOST = 12
"""Points that are drawn: those that changed most."""
COLUMNS = 3
PLOT = Frame(250, 130)
NARROW = 3
REAL = ("SLOWER", "FASTER", "HIGHER", "LOWER")
COLOURS = {"SLOWER": "#a84300", "HIGHER": "#a84300", "FASTER": "#005c8f", "LOWER": "#005c8f"}
UNITS = {"compile_s": "seconds", "peak_bytes": "bytes", "margin": "overhead / work", "crossover": "value of the axis"}


def chart(rows: Sequence[Row], quantity: str) -> alt.ConcatChart:
    """Small plots of `history`, at most MOST of them, those with the greatest real changes first.

    rows: of relation history (name, axis, started_at, sweep_id, value, low, high, ratio, verdict, note). Each plot has
    a logarithmic ruler of its own; a real change is a filled triangle that points where the value went.

    Raises:
        ValueError: no row has a value.
    """
    groups: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        if row["value"] is not None:
            groups.setdefault((row["name"], row["axis"] or ""), []).append(row)
    if not groups:
        raise ValueError(f"no sweep has a value of {quantity}")
    shown = sorted(groups, key=lambda key: (-_greatest(groups[key]), key))[:MOST]
    left_out = f" The {len(shown)} of {len(groups)} that changed most." if len(groups) > MOST else ""
    about = (
        "One dot a sweep, from left to right in time, with its interval; a filled triangle is a change that is no "
        f"chance.{left_out}"
    )
    return alt.concat(*(_plot(groups[key], key, quantity) for key in shown), columns=COLUMNS).properties(
        title=marks.title(
            f"{quantity} over the sweeps of the store: {_unit(quantity)}",
            about,
            Frame(PLOT.width * COLUMNS, PLOT.height),
        )
    )


def draw(rows: Sequence[Row], quantity: str, kind: str) -> bytes:
    """The chart as a picture. kind: svg or png."""
    specification: dict[str, Any] = styled(chart(rows, quantity)).to_dict()
    if kind == "svg":
        return vl_convert.vegalite_to_svg(specification).encode()
    return vl_convert.vegalite_to_png(specification, scale=2.0)


def _greatest(rows: Sequence[Row]) -> float:
    """Greatest change of a group on logarithms, real ones before all others."""
    sizes = [(abs(math.log(row["ratio"])) if row["ratio"] else 0.0, row["verdict"] in REAL) for row in rows]
    return max(size + (1e6 if real else 0.0) for size, real in sizes)


def _plot(rows: Sequence[Row], key: tuple[str, str], quantity: str) -> Any:
    name, axis = key
    ruler = _ruler([row[part] for row in rows for part in ("value", "low", "high")], quantity)
    drawn = [_drawn(place, row, ruler) for place, row in enumerate(rows)]
    values = marks.data(drawn)
    across = alt.X(
        "place:O", axis=alt.Axis(title=None, labelAngle=-40, labelExpr=_times(drawn), labelOverlap=True), sort=None
    )
    chart = alt.Chart(values).encode(x=across)
    hover = marks.tooltip(sweep="sweep", started="began", says=quantity, verdict="change", note="note")
    layers = [
        chart.mark_rule(color=theme.MUTED).encode(y=ruler.channel(alt.Y, "low"), y2="high:Q"),
        chart.mark_line(color=theme.FAINT).encode(y=ruler.channel(alt.Y, "value")),
        chart.mark_point(filled=True, opacity=1).encode(
            y=ruler.channel(alt.Y, "value"),
            shape=alt.Shape("shape:N", scale=None),
            color=alt.Color("colour:N", scale=None),
            size=alt.when(alt.datum.shape == "circle").then(alt.value(36)).otherwise(alt.value(110)),
            tooltip=hover,
        ),
    ]
    heading = f"{name} along {axis}" if axis else name
    return alt.layer(*layers).properties(
        title=alt.TitleParams(text=textwrap.wrap(heading, PLOT.width // 7), fontSize=12),
        width=PLOT.width,
        height=PLOT.height,
    )


def _drawn(place: int, row: Row, ruler: marks.Ruler) -> dict[str, Any]:
    real, ratio = row["verdict"] in REAL, row["ratio"] or 1
    went_up = row["verdict"] in ("SLOWER", "HIGHER")
    began = row["started_at"].strftime("%m-%d %H:%M") if row["started_at"] else "?"
    return {
        "place": place,
        "sweep": row["sweep_id"],
        "started": began,
        **ruler.drawable(row["value"], row["low"], row["high"]),
        "says": theme.number(row["value"]),
        "verdict": f"{row['verdict'].lower()}, {ratio:.3g} times" if row["ratio"] else row["verdict"].lower(),
        "note": row["note"] or "",
        "shape": ("triangle-up" if went_up else "triangle-down") if real else "circle",
        "colour": COLOURS[row["verdict"]] if real else theme.INK,
    }


def _times(drawn: Sequence[Row]) -> str:
    """Vega's expression for the label of a place: when its sweep began."""
    return f"{[row['started'] for row in drawn]}[datum.value]"


def _ruler(values: Sequence[float | None], quantity: str) -> marks.Ruler:
    """A ruler of the values: a logarithmic one where they differ by a factor of NARROW and more."""
    known = [value for value in values if value is not None and value > 0]
    low, high = min(known, default=1.0), max(known, default=1.0)
    if high >= NARROW * low:
        return marks.log_ruler(known, "", _labels(quantity), 0.1)
    room = 0.15 * (high - low) or 0.05 * high
    return marks.Ruler(low - room, high + room, None, "", _labels(quantity), "linear")


def _unit(quantity: str) -> str:
    return UNITS.get(quantity, "time per step")


def _labels(quantity: str) -> str:
    return marks.TIME_LABELS if quantity.endswith("_us") else "format(datum.value, '~s')"
