"""The first sections of the report: the answer, where each series crosses, and what bounds each point."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from analysis import charts, marks, multiples, theme
from analysis.report import html, imports, queries
from analysis.report.answer import answer, main_axis
from analysis.report.parts import Figure, Figures, Part, Section
from analysis.report.points import placed_names
from analysis.report.series import Series, reading_order
from analysis.report.tables import Tables
from analysis.theme import Row, SeriesNames

MOST_CHARTS, FEW_CHARTS, MANY_SERIES = 24, 9, 200
"""Series that get a chart of their own: fewer where there are so many that they would be a sample of them anyhow."""
MOST_HELD = 12_000
"""Cells of a map, and series of the overview, that the page holds; it shows the first of those chosen."""
MOST_SEARCHES = 6
MOST_ANSWERS = 4
"""Paragraphs of answers that stand open; those of further environments can be unfolded."""
MOST_GRIDS = 4
"""Grids of small multiples: those of the workloads with most series."""
FEW_POINTS = 2
"""So few points show two ends and no course: such series stand behind the others."""
KEYS_ABOVE = {"legend": {"disable": True}}
ALL_SERIES = "python -m analysis crossovers"
SIZES = "size=64,256,1024,4096"

Places = Mapping[str, str]


# --- the answer -------------------------------------------------------------------------------------------------------


def answer_section(tables: Tables, series: Sequence[Series], places: Places) -> Section:
    """Each environment's answer, the one with most points first, and below them that of the imported traces."""
    counts = Counter(each.crossing["environment_id"] for each in series for _ in each.points)
    asked = [environment for environment in places if environment not in _only_imported(tables)]
    parts: list[Part] = []
    for rank, environment in enumerate(sorted(asked, key=lambda place: -counts[place])):
        ours = [each for each in series if each.crossing["environment_id"] == environment]
        kind = "answer" if rank == 0 else "answer other"
        parts.append(html.paragraph(" ".join(answer(ours, places[environment])), kind))
        parts += _contention(ours)
    if len(parts) > MOST_ANSWERS:
        rest = "".join(map(str, parts[MOST_ANSWERS:]))
        parts[MOST_ANSWERS:] = [f"<details><summary>The answers of all other environments</summary>{rest}</details>"]
    if tables.imports:
        parts.append(html.paragraph(imports.answer(tables.imports, places), "answer other" if parts else "answer"))
    if not parts:
        parts.append(html.missing("The store holds no points.", f"python -m runner -m {SIZES} compile=false,true"))
    return Section("answer", "The answer", [*parts, *_crossings(series, places)])


def _only_imported(tables: Tables) -> set[object]:
    """Environments of which the store holds imported traces only: no sweep of them can be asked for an answer."""
    swept = {row["environment_id"] for row in tables.bounds if row["run_id"] not in tables.imported}
    return {row["environment_id"] for row in tables.imports} - swept


def _contention(series: Sequence[Series]) -> list[str]:
    """A word of caution where something else worked on the host while points were measured."""
    busy = {point["point_id"]: point.get("host_contended") is True for each in series for point in each.points}
    if not any(busy.values()):
        return []
    words = (
        f"{sum(busy.values())} of {theme.plural(len(busy), 'point')} were measured while something else used the host."
    )
    return [html.paragraph(f"{words} Their intervals are wider, and on a CPU their times may be too long.", "reading")]


CROSSINGS_READING = (
    "A dot is where overhead and work are equal, the grey bar its interval, a bar alone the measured points between "
    "which they meet. A dotted line shows the range in which a series never changes side."
)


def _crossings(series: Sequence[Series], places: Places) -> list[Part]:
    """One chart of all crossings over the main axis: those with most points, where there are many."""
    if not series:
        return []
    axis = main_axis(series)
    asked = [each for each in series if each.axis == axis and each.crossing["status"] in _STATED]
    most = sorted(asked, key=_interest)[:MOST_HELD]
    if len(most) < 2:
        return []
    rows = [{**each.crossing, "p": theme.point_key(each.points[0])} for each in most]
    unstated = sum(each.axis == axis for each in series) - len(asked)
    chart = charts.crossings(rows, axis, placed_names(rows, places, axis), unstated)
    figure = Figure("crossovers", chart, CROSSINGS_READING, queries.crossings(axis), KEYS_ABOVE)
    return [Figures([figure]), *left_out(len(most) - charts.MOST_SERIES, "series", ALL_SERIES)]


_STATED = ("found", "bracketed", "above", "below")


# --- series -----------------------------------------------------------------------------------------------------------

SERIES_READING = (
    "Left of the crossing the overhead is larger than the work, right of it the work is; the pale line is the time a "
    "step takes. Bars are 95 % intervals; a cross at the foot is a point without times."
)


def series_section(series: Sequence[Series], places: Places) -> Section:
    """The times of every series against its axis; of many, those with a crossing and most points."""
    drawable = [each for each in series if sum(point.get("wall_us") is not None for point in each.points) >= 2]
    title = "Where each series crosses"
    if not drawable:
        why = "No series has wall times at two values of an axis."
        return Section("series", title, [html.missing(why, f"python -m runner -m {SIZES}")])
    main = main_axis(drawable)
    most = MOST_CHARTS if len(drawable) <= MANY_SERIES else FEW_CHARTS
    shown = sorted(drawable, key=lambda each: (each.axis != main, *_interest(each)))[:most]
    frame = charts.frame_for(len(shown))
    parts: list[Part] = [_series_reading(shown)]
    alike = grouped(drawable, _group)
    parts += [part for group in sorted(alike, key=len, reverse=True)[:MOST_GRIDS] for part in _grid(group, places)]
    for group in grouped(shown, _group):
        parts += _series_group(group, places, frame)
    parts += left_out(len(drawable) - len(shown), "series", ALL_SERIES)
    return Section("series", title, [*parts, *_narrowing(shown)])


def _group(series: Series) -> tuple[object, ...]:
    """What series have in common that stand below one heading."""
    return (series.crossing["environment_id"], series.axis, series.crossing["workload"])


def _grid(group: Sequence[Series], places: Places) -> list[Part]:
    """Small multiples of series below one heading, where there are several."""
    axis, workload = group[0].axis, group[0].crossing["workload"]
    if len(group) < 2:
        return []
    place = places.get(group[0].crossing["environment_id"], "")
    chart = multiples.small_multiples(group, f"{workload} over {axis}, on {place}")
    reading, sql = multiples.SMALL_MULTIPLES_READING, multiples.SMALL_MULTIPLES_SQL
    return [Figures([Figure(f"multiples {workload} {axis} {place}", chart, reading, sql, KEYS_ABOVE)])]


def _interest(series: Series) -> tuple[int, int]:
    """Sorts series with a crossing first, then those with more points."""
    return (0 if charts.crossing_value(series.crossing) is not None else 1, -len(series.points))


def _series_group(group: Sequence[Series], places: Places, frame: marks.Frame) -> list[Part]:
    axis = group[0].axis
    names = SeriesNames([each.crossing for each in group], axis, said=("workload",))
    on = charts.rulers([point for each in group for point in each.points], axis, frame)
    ordered = sorted(group, key=lambda each: (len(each.points) <= FEW_POINTS, reading_order(each.crossing)))
    figures = [
        Figure(
            f"series {each.crossing['workload']} {axis} {names(each.crossing)}",
            charts.crossover(each.points, each.crossing, names(each.crossing), frame, on),
            SERIES_READING,
            queries.series(each.crossing, axis),
            KEYS_ABOVE,
        )
        for each in ordered
    ]
    place = places.get(group[0].crossing["environment_id"], "")
    heading = f"<h3>{html.text(group[0].crossing['workload'])} over {html.text(axis)}, on {html.text(place)}</h3>"
    return [heading, Figures(figures)]


def _series_reading(series: Sequence[Series]) -> str:
    points = [point for each in series for point in each.points]
    on_cpu = {point["device"] == "cpu" for point in points}
    laws = {
        False: "On an asynchronous device a step takes as long as the slower of issue and device.",
        True: "On the CPU, where host and device are one, a step takes floor and work together.",
    }
    words = [
        "Both scales are logarithmic, and charts below one heading share them.",
        *(laws[cpu] for cpu in sorted(on_cpu)),
        f"Left of the crossing (dashed rule; grey band: the measured points around it) the overhead is larger than the "
        f"work and the step is {theme.OVERHEAD_REGIME}, right of it {theme.DEVICE_REGIME}.",
    ]
    return f'{html.paragraph(" ".join(words), "reading")}<p class="keys">{_keys(points)}</p>'


def _keys(points: Sequence[Row]) -> str:
    overhead = theme.listed(sorted({theme.overhead_word(point) for point in points}), "or")
    work = theme.listed(sorted({theme.work_word(point) for point in points}), "or")
    looks = ((theme.WALL_LINE, "wall"), (theme.OVERHEAD_LINE, overhead), (theme.WORK_LINE, work))
    return "".join(_swatch(line, word) for line, word in looks)


def _swatch(line: theme.Line, words: str) -> str:
    dash = "" if line.dash == (1, 0) else f' stroke-dasharray="{" ".join(map(str, line.dash))}"'
    markers = {
        "circle": f'<circle cx="20" cy="7" r="4" fill="{line.colour}"/>',
        "square": f'<rect x="16.5" y="3.5" width="7" height="7" fill="{line.colour}"/>',
        "triangle-up": f'<path d="M20 2.5 24.5 11h-9z" fill="{line.colour}"/>',
    }
    rule = f'<path d="M0 7h40" stroke="{line.colour}" stroke-width="{line.width}"{dash}/>'
    drawing = f'<svg width="40" height="14" viewBox="0 0 40 14" aria-hidden="true">{rule}{markers[line.shape]}</svg>'
    return f'<span class="key">{drawing}{html.text(words)}</span>'


def _narrowing(series: Sequence[Series]) -> list[str]:
    """The searches that narrow wide brackets, those without a value before all others."""
    wide = [each.crossing for each in series if each.crossing.get("command")]
    ordered = sorted(wide, key=lambda crossing: crossing["status"] != "bracketed")
    searches = list(dict.fromkeys(crossing["command"] for crossing in ordered))
    if not searches:
        return []
    items = "".join(f"<li>{html.code(search)}</li>" for search in searches[:MOST_SEARCHES])
    words = html.paragraph("A crossing whose bracket is wide is narrowed by a search:")
    more = left_out(len(searches) - MOST_SEARCHES, "searches", f"{ALL_SERIES} --format csv")
    return [f'<div class="commands">{words}<ul>{items}</ul></div>', *more]


def left_out(count: int, what: str, command: str) -> list[str]:
    """What a section leaves out to stay readable, and the command that shows all of it; empty if nothing is."""
    words = f"{count:,} more {what} are not shown here; {html.code(command)} lists all."
    return [f'<p class="note">{words}</p>'] if count > 0 else []


def grouped(items: Iterable[Any], group_of: Callable[[Any], Any]) -> list[list[Any]]:
    """Items in groups, in the order in which the first of each group comes."""
    groups: dict[Any, list[Any]] = defaultdict(list)
    for item in items:
        groups[group_of(item)].append(item)
    return list(groups.values())


# --- map of bounds ----------------------------------------------------------------------------------------------------

MAP_READING = "Read a row from left to right: the letter and colour change where the series changes its bound."


def map_section(series: Sequence[Series], places: Places) -> Section:
    """A cell for every point that lies in a series."""
    title = "What bounds each point"
    parts: list[Part] = []
    for group in _unseen(series):
        axis, environment = group[0].axis, group[0].crossing["environment_id"]
        name = SeriesNames([each.crossing for each in group], axis)
        ordered = sorted(group, key=lambda each: reading_order(each.crossing))
        points = [point for each in ordered for point in each.points][:MOST_HELD]
        figure = Figure(
            f"bounds over {axis} on {places.get(environment, environment)}",
            charts.bounds_map(points, axis, name),
            MAP_READING,
            queries.bounds_map(axis, environment),
        )
        parts += [
            f"<h3>over {html.text(axis)}, on {html.text(places.get(environment, ''))}</h3>",
            Figures([figure]),
            *left_out(len(group) - charts.MOST_SERIES, "series", ALL_SERIES),
        ]
    if not parts:
        why = "No two points differ in one numeric axis alone."
        return Section("map", title, [html.missing(why, f"python -m runner -m {SIZES}")])
    return Section("map", title, [html.paragraph(MAP_READING, "reading"), *parts])


def _unseen(series: Sequence[Series]) -> list[list[Series]]:
    """Series by environment and axis, the main axis first; a series whose points all were seen before is left out."""
    groups = []
    for ours in grouped(series, lambda each: each.crossing["environment_id"]):
        seen: set[object] = set()
        main = main_axis(ours)
        for group in grouped(sorted(ours, key=lambda each: each.axis != main), lambda each: each.axis):
            new = [each for each in group if not {point["point_id"] for point in each.points} <= seen]
            seen |= {point["point_id"] for each in new for point in each.points}
            groups += [new] if new else []
    return groups
