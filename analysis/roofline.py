"""Charts of the roofs: where each point stands under them, and what fusing its operations would gain.

Pure functions of rows of the view `roofline` (and of `roofs`), in the manner of `charts`. READING is how to read a
chart, SQL the query that gives its rows.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import altair as alt

from analysis import looks, marks, theme
from analysis.marks import LEFT, RIGHT, Frame, Ruler
from analysis.theme import Row

Name = Callable[[Row], str]
Chart = alt.LayerChart | alt.FacetChart

FRAME = Frame(800, 420)
MOST_MARKS = 2000
MARKS_WITH_EDGES = 1000
CELLS_A_DECADE = 8
"""Cells of a crowded chart: counted along both axes."""
LABEL_HEIGHT = 14
SLOPE_WIDTH = 170
"""Room that the names of the slopes need left of them."""
WORTH_TELLING = 1.1
MOST_BARS = 30
ABOVE_A_ROOF = 1.05

ROOFLINE_READING = (
    "Both scales are logarithmic. The rising lines are what the measured memory roofs allow, the level ones the "
    "measured FLOP/s of each number format. The distance to the lower of the two at its place is what a better kernel "
    "could gain; a point above it (its data stays in a cache, or a roof was measured too low) says so on hover. A thin "
    "line joins a series as its size grows, its markers growing with it. Rates are those of the work alone: where the "
    "overhead binds, a step reaches less."
)
ROOFLINE_SQL = "FROM roofline ORDER BY environment_id, series, size"
FUSION_READING = (
    "From the circle to the triangle a step would go if one kernel read and wrote every byte once, at the share of the "
    "roofs that it reaches today and with today's overhead; the tick is the least that the roofs allow. What fewer "
    "launches save the host comes on top."
)
FUSION_SQL = f"FROM roofline WHERE fusion_gain >= {WORTH_TELLING} ORDER BY fusion_gain DESC"

FLOPS_LABELS = (
    "datum.value >= 1e12 ? format(datum.value / 1e12, ',~g') + ' TFLOP/s' : "
    "datum.value >= 1e9 ? format(datum.value / 1e9, '~g') + ' GFLOP/s' : format(datum.value / 1e6, ',~g') + ' MFLOP/s'"
)
INTENSITY_LABELS = "format(datum.value, ',~g')"


# --- the roofs and the points under them ------------------------------------------------------------------------------


def roofline(rows: Sequence[Row], roofs: Sequence[Row], name: Name, frame: Frame = FRAME) -> Chart:
    """The points of one environment under its measured roofs: FLOP/s against FLOPs for each byte moved.

    rows: rows of `roofline`; those without a rate or without FLOPs have no place, and are counted in the subtitle.
    roofs: rows of `roofs` of the same environment. name: names a row's series. Beyond MOST_MARKS points the chart
    counts points by cells instead of drawing each. Raises ValueError where no row has a place.
    """
    placed = [row for row in rows if has_place(row)]
    if not placed:
        raise ValueError("no point has both FLOPs and a rate: there is nothing to draw under the roofs")
    ceilings = _ceilings(roofs, set().union(*map(_formats, placed)))
    x, y = _rulers(placed, ceilings)
    crowded = len(placed) > MOST_MARKS
    points = _cells(placed, x, y) if crowded else _points(placed, name, x, y)
    subtitle = _subtitle(rows, placed, ceilings, crowded)
    return alt.layer(*_roof_lines(ceilings, x, y), *points, *_roof_names(ceilings, x, y, frame)).properties(
        title=marks.title("How near each point comes to the roofs", subtitle, frame),
        description=f"Roofline: FLOP/s against FLOPs for each byte moved. {subtitle}",
        width=frame.width,
        height=frame.height,
    )


def has_place(row: Row) -> bool:
    """Whether a point has a place under the roofs: it computes something, and its rate is known."""
    return bool(row.get("intensity")) and bool(row.get("flops_per_s"))


def _formats(row: Row) -> list[str]:
    """Number formats in which a point computes."""
    return str(row.get("flops_dtypes") or row["dtype"]).split(" and ")


def _ceilings(roofs: Iterable[Row], dtypes: set[Any]) -> dict[str, float]:
    """Measured roofs by name, FLOP/s by the number formats that occur: the highest where one was measured twice."""
    found: dict[str, float] = {}
    for row in roofs:
        name, value = str(row["dtype"] if row["roof"] == "flops" else row["roof"]), row.get("value_per_s")
        if value and (row["roof"] != "flops" or row["dtype"] in dtypes):
            found[name] = max(value, found.get(name, 0.0))
    return found


def _slopes(ceilings: dict[str, float]) -> dict[str, float]:
    return {name: value for name, value in ceilings.items() if name in ("dram", "l2")}


def _levels(ceilings: dict[str, float]) -> dict[str, float]:
    return {name: value for name, value in ceilings.items() if name not in ("dram", "l2")}


def _rulers(rows: Sequence[Row], ceilings: dict[str, float]) -> tuple[Ruler, Ruler]:
    """Rulers that hold every point, every roof, and enough of the slopes to write beside them."""
    slopes, levels = _slopes(ceilings).values(), _levels(ceilings).values()
    ridges = [level / slope for level in levels for slope in slopes]
    across = [row["intensity"] for row in rows] + [each for ridge in ridges for each in (ridge / 40, 4 * ridge)]
    x = marks.log_ruler(across, "FLOPs for each byte moved", INTENSITY_LABELS)
    rates = [row["flops_per_s"] for row in rows] + [1.5 * level for level in levels]
    y = marks.log_ruler(rates, "FLOP/s of the work", FLOPS_LABELS)
    return x, y


def _roof_lines(ceilings: dict[str, float], x: Ruler, y: Ruler) -> list[alt.Chart]:
    """Level roofs from where the fastest memory feeds them, slopes up to the highest level; none leaves the plot."""
    slopes, levels = _slopes(ceilings), _levels(ceilings)
    top = max(levels.values(), default=y.high)
    ends = [(word, max(x.low, y.low / speed), min(x.high, top / speed), speed) for word, speed in slopes.items()]
    rows = [_stretch(word, start, start * speed, end, end * speed) for word, start, end, speed in ends if start < end]
    fastest = max(slopes.values(), default=None)
    rows += [
        _stretch(word, x.low if fastest is None else max(x.low, level / fastest), level, x.high, level)
        for word, level in levels.items()
    ]
    if not rows:
        return []
    dashed = alt.when(alt.datum.roof == theme.roof_word("l2")).then(alt.value([6, 4])).otherwise(alt.value([1, 0]))
    rules = alt.Chart(marks.data(rows)).mark_rule(color=theme.INK, strokeWidth=1.3)
    across = x.channel(alt.X, "from"), y.channel(alt.Y, "low")
    hover = marks.tooltip(roof="roof", says="measured")
    return [rules.encode(*across, x2="to:Q", y2="high:Q", strokeDash=dashed, tooltip=hover)]


def _stretch(word: str, start: float, low: float, end: float, high: float) -> dict[str, Any]:
    """A stretch of a roof. A slope's speed is its height over its place."""
    is_level = low == high
    roof = f"{word} arithmetic" if is_level else theme.roof_word(word)
    says = flops_rate(low) if is_level else bytes_rate(low / start)
    ends = {"from": start, "low": low, "to": end, "high": high}
    return {"roof": roof, "says": says} | {key: theme.rounded(value) for key, value in ends.items()}


def _roof_names(ceilings: dict[str, float], x: Ruler, y: Ruler, frame: Frame) -> list[alt.Chart]:
    """The roofs by name where no point can lie: levels right of the plot, slopes above their left end."""
    levels = _apart({f"{word} {flops_rate(level)}": level for word, level in _levels(ceilings).items()}, y, frame)
    names = [marks.words(text, frame.width + 7, top, LEFT, theme.INK) for text, top in levels]
    slopes = sorted(_slopes(ceilings).items(), key=lambda slope: slope[1])
    if not slopes:
        return names
    place = x.low * (x.high / x.low) ** (SLOPE_WIDTH / frame.width)
    foot = frame.height * (1 - y.position(min(max(place * slopes[-1][1], y.low), y.high)))
    foot = max(foot, LABEL_HEIGHT * len(slopes)) - 12
    return names + [
        marks.words(
            f"{_SLOPES[word]} {bytes_rate(speed)}",
            SLOPE_WIDTH - 8,
            _pixels(foot - LABEL_HEIGHT * line),
            RIGHT,
            theme.INK,
        )
        for line, (word, speed) in enumerate(slopes)
    ]


_SLOPES = {"l2": "L2 (dashed)", "dram": "DRAM"}
_SHORT = {"l2": "L2", "dram": "DRAM"}


def _apart(levels: dict[str, float], y: Ruler, frame: Frame) -> list[tuple[str, float]]:
    """(words, pixels from the top) of levels from the highest down, moved apart where they would touch."""
    placed: list[tuple[str, float]] = []
    for text, level in sorted(levels.items(), key=lambda each: -each[1]):
        least = placed[-1][1] + LABEL_HEIGHT if placed else 0.0
        placed.append((text, _pixels(max(least, frame.height * (1 - y.position(level))))))
    return placed


def _pixels(place: float) -> float:
    return round(place, 1)


def _points(rows: Sequence[Row], name: Name, x: Ruler, y: Ruler) -> list[alt.Chart]:
    """A marker for each point, coloured and shaped by its bound, and the path of each series as size grows."""
    data = [_point(row, place, name) for row, place in _along(rows)]
    chart = alt.Chart(marks.data(data)).encode(x=x.channel(alt.X, "x"), y=y.channel(alt.Y, "value"))
    path = chart.mark_line(color=theme.MUTED, strokeWidth=0.8, opacity=0.4).encode(detail="path:N", order="place:Q")
    keys = {row["key"] for row in data}
    edge: dict[str, Any] = {"stroke": theme.PAPER, "strokeWidth": 0.5} if len(data) <= MARKS_WITH_EDGES else {}
    hover = marks.tooltip(
        series="series", size="size", bound="bound", intensity="FLOPs a byte", rate="reaches", share="share of roof",
        fused="fused",
    )  # fmt: skip
    dots = chart.mark_point(filled=True, opacity=0.9, **edge).encode(
        color=looks.bound_colour(keys, looks.legend()),
        shape=looks.bound_shape(keys, looks.legend()),
        size=alt.Size("grown:Q", scale=alt.Scale(domain=[0, 1], range=[24, 120]), legend=None),
        tooltip=hover,
    )
    return [path, dots]


def _along(rows: Sequence[Row]) -> list[tuple[Row, tuple[int, float]]]:
    """Each row with its place in its series, and how far along it is, from 0 (smallest size) to 1 (largest)."""
    series: dict[Any, list[Row]] = defaultdict(list)
    for row in rows:
        series[row["series"]].append(row)
    found = []
    for points in series.values():
        points.sort(key=lambda row: row.get("size") or 0)
        last = max(1, len(points) - 1)
        found += [(row, (place, place / last if len(points) > 1 else 0.5)) for place, row in enumerate(points)]
    return found


def _point(row: Row, place: tuple[int, float], name: Name) -> dict[str, Any]:
    bound, gain = theme.bound_of(row), row.get("fusion_gain")
    return {
        "p": theme.point_key(row),
        "x": theme.rounded(row["intensity"]),
        "value": theme.rounded(row["flops_per_s"]),
        "key": looks.bound_key(bound),
        "path": row["series"][:8],
        "place": place[0],
        "grown": round(place[1], 3),
        "series": name(row),
        "size": "–" if row.get("size") is None else theme.size(row["size"]),
        "bound": bound.name,
        "intensity": theme.number(row["intensity"]),
        "rate": f"{flops_rate(row['flops_per_s'])}, {bytes_rate(row['bytes_per_s'])}",
        "share": _share(row),
        "fused": "–" if gain is None else f"{theme.number(gain)} times as fast",
    }


def _share(row: Row) -> str:
    share = row.get("roof_share")
    if share is None:
        return f"unknown: {row.get('reason')}"
    above = f" ({_WHY_ABOVE.get(row['roof'], 'that roof was measured too low')})" if share > ABOVE_A_ROOF else ""
    is_flops = row["roof"] == "flops"
    roof = f"{' and '.join(_formats(row))} FLOP/s" if is_flops else f"{_SHORT[row['roof']]} bytes/s"
    return f"{theme.number(100 * share)} % of {roof}{above}"


_WHY_ABOVE = {
    "flops": "that roof, the speed of a large product, was measured too low for this",
    "dram": "part of its data stays in the cache",
}


def _cells(rows: Sequence[Row], x: Ruler, y: Ruler) -> list[alt.Chart]:
    """Points counted in cells of both logarithms by their bound: Vega counts, so that a page may choose points."""
    data = [
        {
            "p": theme.point_key(row),
            "x": _cell(row["intensity"]),
            "value": _cell(row["flops_per_s"]),
            "key": looks.bound_key(theme.bound_of(row)),
        }
        for row in rows
    ]
    keys = {str(row["key"]) for row in data}
    chart = alt.Chart(marks.data(data)).mark_point(filled=True, opacity=0.75)
    counted = alt.Size("count():Q", scale=alt.Scale(type="sqrt", range=[12, 260]), legend=None)
    hover = [alt.Tooltip("key:N", title="bound"), alt.Tooltip("count():Q", title="points near here")]
    return [
        chart.encode(
            x=x.channel(alt.X, "x"),
            y=y.channel(alt.Y, "value"),
            color=looks.bound_colour(keys, looks.legend()),
            shape=looks.bound_shape(keys, looks.legend()),
            size=counted,
            tooltip=hover,
        )
    ]


def _cell(value: float) -> float:
    """The middle of the cell that a value lies in, on a logarithmic scale."""
    return float(f"{10 ** (round(math.log10(value) * CELLS_A_DECADE) / CELLS_A_DECADE):.3g}")


def _subtitle(rows: Sequence[Row], placed: Sequence[Row], ceilings: dict[str, float], crowded: bool) -> str:
    shares = [row["roof_share"] for row in placed if row.get("roof_share") is not None]
    words = [f"{theme.plural(len(placed), 'point')}"]
    if not ceilings:
        words[0] += "; no roof was measured in this environment"
    elif shares:
        near, above = sum(share >= 0.5 for share in shares), sum(share > ABOVE_A_ROOF for share in shares)
        words.append(f"{near:,} reach half of their roof or more")
        why = "" if crowded else ", and say why on hover"
        words += [f"{above:,} read above 105 % of it{why}"] if above else []
    missing = len(rows) - len(placed)
    words += [f"{missing:,} more have no place (no time, no FLOPs, or no cost model)"] if missing else []
    words += [f"counted in cells, {CELLS_A_DECADE} to a power of ten"] if crowded else []
    return "; ".join(words)


def flops_rate(value: float) -> str:
    """A rate of arithmetic in the unit that reads best."""
    return _in_units(value, (("TFLOP/s", 1e12), ("GFLOP/s", 1e9), ("MFLOP/s", 1e6)))


def bytes_rate(value: float) -> str:
    """A rate of bytes in the unit that reads best."""
    return _in_units(value, (("TB/s", 1e12), ("GB/s", 1e9), ("MB/s", 1e6)))


def _in_units(value: float, units: Sequence[tuple[str, float]]) -> str:
    unit, divisor = next((each for each in units if value >= each[1]), units[-1])
    return f"{theme.number(value / divisor)} {unit}"


# --- what fusing would gain -------------------------------------------------------------------------------------------


def fusion_headroom(rows: Sequence[Row], name: Name, frame: Frame = FRAME) -> Chart:
    """A step now and fused, for the points that fusing would make 10 % or more faster, the most first.

    rows: rows of `roofline`. name: names a point. At most MOST_BARS are drawn; the subtitle says of how many.
    Raises ValueError where no point gains so much (see `worth_fusing`).
    """
    gaining = sorted(worth_fusing(rows), key=lambda row: -row["fusion_gain"])
    if not gaining:
        raise ValueError("no point would be 10 % faster if it were fused: there is nothing to draw")
    data = [_headroom(row, label) for row, label in _labelled(gaining[:MOST_BARS], name)]
    times = [time for row in data for time in (row["now"], row["fused"], row["roof"])]
    x = marks.log_ruler(times, "time per step")
    x = Ruler(x.low, theme.rounded(x.high * (x.high / x.low) ** 0.12), x.ticks, x.title, x.labels, x.kind)
    axis, height = marks.series_names((row["point"] for row in data), 320, 22, grid=True)
    names = alt.Y("point:N", sort=[row["point"] for row in data], axis=axis)
    base = alt.Chart(marks.data(data)).encode(
        y=names, tooltip=marks.tooltip(point="point", says="now", then="fused", least="roofs allow", gain="gain")
    )
    subtitle = _fusion_sentence(rows, gaining)
    return alt.layer(*_headroom_marks(base, x)).properties(
        title=marks.title("What fusing the operations of a step would gain", subtitle, frame),
        description=f"Time of a step now and fused. {subtitle}",
        width=frame.width - 120,
        height=height,
    )


def worth_fusing(rows: Iterable[Row]) -> list[Row]:
    """The points that fusing would make at least WORTH_TELLING times as fast."""
    return [row for row in rows if (row.get("fusion_gain") or 0) >= WORTH_TELLING and row.get("wall_us")]


def _headroom_marks(base: alt.Chart, x: Ruler) -> list[alt.Chart]:
    now, fused, tick = (x.channel(alt.X, field) for field in ("now", "fused", "roof"))
    work = theme.WORK_LINE
    return [
        base.mark_rule(color=theme.MUTED, strokeWidth=2, opacity=0.6).encode(x=fused, x2="now:Q"),
        base.mark_tick(color=theme.MUTED, thickness=2, height=11).encode(x=tick),
        base.mark_point(filled=True, size=64, opacity=1, color=theme.INK).encode(x=now),
        base.mark_point(filled=True, size=64, opacity=1, color=work.colour, shape=work.shape).encode(x=fused),
        base.mark_text(align="left", dx=9, fontSize=11, fontWeight=600, color=theme.INK).encode(x=now, text="gain:N"),
    ]


def _labelled(rows: Sequence[Row], name: Name) -> list[tuple[Row, str]]:
    """Rows with names that are all different: a name that comes again is told apart by the beginning of the id."""
    names = [name(row) for row in rows]
    return [
        (row, label if names.count(label) == 1 else f"{label}{theme.SEPARATOR}{str(row['point_id'])[:6]}")
        for row, label in zip(rows, names, strict=True)
    ]


def _headroom(row: Row, label: str) -> dict[str, Any]:
    least = row["fused_roof_us"] + (row["overhead_us"] or 0.0) if row.get("device") == "cpu" else row["fused_roof_us"]
    return {
        "p": theme.point_key(row),
        "point": label,
        "now": theme.rounded(row["wall_us"]),
        "fused": theme.rounded(row["fused_wall_us"]),
        "roof": theme.rounded(least),
        "says": theme.time_us(row["wall_us"]),
        "then": theme.time_us(row["fused_wall_us"]),
        "least": theme.time_us(least),
        "gain": f"{theme.number(row['fusion_gain'])}×",
    }


def _fusion_sentence(rows: Sequence[Row], gaining: Sequence[Row]) -> str:
    known = sum(row.get("fusion_gain") is not None for row in rows)
    shown = f", the {MOST_BARS} that gain most are shown" if len(gaining) > MOST_BARS else ""
    most = theme.number(gaining[0]["fusion_gain"])
    count = f"{len(gaining):,} of {theme.plural(known, 'point')}"
    keys = "circle: now, triangle: fused, tick: least by the roofs"
    return f"{count} would be 10 % faster or more, up to {most} times{shown}; {keys}"
