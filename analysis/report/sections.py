"""The sections of the report, in the order in which they are read: each a pure function of the tables."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from analysis import charts, marks, theme
from analysis.charts import Chart
from analysis.report import html, imports
from analysis.report.answer import answer, environment_names, main_axis
from analysis.report.series import COLD, EAGER, Series, cold_points, compile_pairs, series_of, twin_key, warm_twins
from analysis.report.tables import Tables
from analysis.theme import Row, SeriesNames

MOST_CHARTS = 24
KEYS_ABOVE = {"legend": {"disable": True}}
MOST_ROWS = 1000
FEW_POINTS = 2
"""So few points show two ends and no course: such series stand behind the others."""
MOST_SERIES = 60
MOST_SEARCHES = 6
ALL_SERIES = "python -m analysis crossovers"
ALL_POINTS = "python -m analysis bounds --format csv"
ALL_IMPORTS = "python -m analysis audits --format csv"
SIZES = "size=64,256,1024,4096"


@dataclass(frozen=True)
class Figures:
    """Charts that stand side by side; config replaces parts of the common configuration in all of them."""

    charts: Sequence[Chart]
    config: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Section:
    """A section of the page: where links lead, its title, and its parts, HTML and charts in order."""

    anchor: str
    title: str
    parts: Sequence[str | Figures]


def sections(tables: Tables) -> list[Section]:
    """Every section of the report, each with its content or with the reason why there is none.

    Where nothing but traces was imported, what only a sweep can fill is left out.
    """
    series = series_of(tables.crossovers, tables.bounds)
    places = environment_names(_environments(tables))
    swept = [] if tables.only_imports else _swept(tables, series, places)
    traces = [_imports(tables, places)] if tables.imports else []
    return [
        _answer(tables, series, places),
        *swept,
        *traces,
        _points(tables, places),
        *([] if tables.only_imports and not _unmeasured(tables) else [_failed(tables, places)]),
        _environment(tables, places),
    ]


def _swept(tables: Tables, series: Sequence[Series], places: dict[str, str]) -> list[Section]:
    """The sections that a sweep alone can fill."""
    return [
        _series(series, places),
        _map(series, places),
        _compile(tables, places),
        _cold(tables, places),
        _perturbation(tables),
        _law(tables, places),
    ]


def _environments(tables: Tables) -> list[Row]:
    """Known environments, then those that points name without a row of their own."""
    known = {row["environment_id"] for row in tables.environments}
    named = dict.fromkeys(row["environment_id"] for row in tables.bounds if row["environment_id"] not in known)
    return [*tables.environments, *({"environment_id": each} for each in named)]


# --- the answer -------------------------------------------------------------------------------------------------------


def _answer(tables: Tables, series: Sequence[Series], places: dict[str, str]) -> Section:
    """Each environment's answer, the one with most points first, and below them that of the imported traces."""
    counts = Counter(each.crossing["environment_id"] for each in series for _ in each.points)
    asked = [environment for environment in places if environment not in _only_imported(tables)]
    parts = []
    for rank, environment in enumerate(sorted(asked, key=lambda place: -counts[place])):
        ours = [each for each in series if each.crossing["environment_id"] == environment]
        kind = "answer" if rank == 0 else "answer other"
        parts.append(html.paragraph(" ".join(answer(ours, places[environment])), kind))
        parts += _contention(ours)
    if tables.imports:
        parts.append(html.paragraph(imports.answer(tables.imports, places), "answer other" if parts else "answer"))
    if not parts:
        parts.append(html.missing("The store holds no points.", f"python -m runner -m {SIZES} compile=false,true"))
    return Section("answer", "The answer", parts)


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


# --- series -----------------------------------------------------------------------------------------------------------


def _series(series: Sequence[Series], places: dict[str, str]) -> Section:
    drawable = [each for each in series if sum(point.get("wall_us") is not None for point in each.points) >= 2]
    title = "Where each series crosses"
    if not drawable:
        why = "No series has wall times at two values of an axis."
        return Section("series", title, [html.missing(why, f"python -m runner -m {SIZES}")])
    main = main_axis(drawable)
    shown = sorted(drawable, key=lambda each: (each.axis != main, *_interest(each)))[:MOST_CHARTS]
    frame = charts.frame_for(len(shown))
    parts: list[str | Figures] = [_series_reading(shown)]
    for group in _grouped(shown, lambda each: (each.crossing["environment_id"], each.axis, each.crossing["workload"])):
        parts += _series_group(group, places, frame)
    parts += _left_out(len(drawable) - len(shown), "series", ALL_SERIES)
    return Section("series", title, [*parts, *_narrowing(shown)])


def _interest(series: Series) -> tuple[int, int]:
    """Sorts series with a crossing first, then those with more points."""
    return (0 if charts.crossing_value(series.crossing) is not None else 1, -len(series.points))


def _reading_order(row: Row) -> tuple[Any, ...]:
    """Sorts series and points for reading: eager before compiled, no batch before batches, what is usual first."""
    modes, mode = (EAGER, "true"), str(row["compile"])
    rank = modes.index(mode) if mode in modes else len(modes)
    axes = (str(row["workload"]), str(row["dtype"]), row["batch"] or 0)
    params = theme.json_params(row)
    unusual = sum(key in params and params[key] != usual for key, usual in theme.USUAL.items())
    return (*axes, rank, mode, row["warmup"] == COLD, unusual, str(row["params"]), row["size"] or 0)


def _series_group(group: Sequence[Series], places: dict[str, str], frame: marks.Frame) -> list[str | Figures]:
    axis = group[0].axis
    names = SeriesNames([each.crossing for each in group], axis, said=("workload",))
    on = charts.rulers([point for each in group for point in each.points], axis, frame)
    ordered = sorted(group, key=lambda each: (len(each.points) <= FEW_POINTS, _reading_order(each.crossing)))
    drawn = [charts.crossover(each.points, each.crossing, names(each.crossing), frame, on) for each in ordered]
    place = places.get(group[0].crossing["environment_id"], "")
    heading = f"<h3>{html.text(group[0].crossing['workload'])} over {html.text(axis)}, on {html.text(place)}</h3>"
    return [heading, Figures(drawn, KEYS_ABOVE)]


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
    more = _left_out(len(searches) - MOST_SEARCHES, "searches", f"{ALL_SERIES} --format csv")
    return [f'<div class="commands">{words}<ul>{items}</ul></div>', *more]


def _left_out(count: int, what: str, command: str) -> list[str]:
    """What a section leaves out to stay readable, and the command that shows all of it; empty if nothing is."""
    words = f"{count:,} more {what} are not shown here; {html.code(command)} lists all."
    return [f'<p class="note">{words}</p>'] if count > 0 else []


def _grouped(items: Iterable[Any], group_of: Callable[[Any], Any]) -> list[list[Any]]:
    groups: dict[Any, list[Any]] = defaultdict(list)
    for item in items:
        groups[group_of(item)].append(item)
    return list(groups.values())


# --- map of bounds ----------------------------------------------------------------------------------------------------


def _map(series: Sequence[Series], places: dict[str, str]) -> Section:
    title = "What bounds each point"
    parts: list[str | Figures] = []
    for group in _unseen(series):
        axis, place = group[0].axis, places.get(group[0].crossing["environment_id"], "")
        name = SeriesNames([each.crossing for each in group], axis)
        ordered = sorted(group, key=lambda each: _reading_order(each.crossing))[:MOST_SERIES]
        points = [point for each in ordered for point in each.points]
        parts += [
            f"<h3>over {html.text(axis)}, on {html.text(place)}</h3>",
            Figures([charts.bounds_map(points, axis, name)]),
            *_left_out(len(group) - len(ordered), "series", ALL_SERIES),
        ]
    if not parts:
        why = "No two points differ in one numeric axis alone."
        return Section("map", title, [html.missing(why, f"python -m runner -m {SIZES}")])
    words = "Read a row from left to right: the letter and colour change where the series changes its bound."
    return Section("map", title, [html.paragraph(words, "reading"), *parts])


def _unseen(series: Sequence[Series]) -> list[list[Series]]:
    """Series by environment and axis, the main axis first; a series whose points all were seen before is left out."""
    groups = []
    for ours in _grouped(series, lambda each: each.crossing["environment_id"]):
        seen: set[object] = set()
        main = main_axis(ours)
        for group in _grouped(sorted(ours, key=lambda each: each.axis != main), lambda each: each.axis):
            new = [each for each in group if not {point["point_id"] for point in each.points} <= seen]
            seen |= {point["point_id"] for each in new for point in each.points}
            groups += [new] if new else []
    return groups


# --- comparisons ------------------------------------------------------------------------------------------------------


def _compile(tables: Tables, places: dict[str, str]) -> Section:
    title = "Eager against compiled"
    groups = list(compile_pairs(tables.bounds, "size").values())
    if not groups:
        why = "No point was measured both eager and compiled."
        return Section("compile", title, [html.missing(why, f"python -m runner -m {SIZES} compile=false,true")])
    longest = sorted(groups, key=len, reverse=True)[:MOST_CHARTS]
    shown = sorted(longest, key=lambda group: _reading_order(group[0]["compiled"]))
    names = _placed_names([group[0]["compiled"] for group in shown], places)
    frame = charts.frame_for(len(shown))
    on = charts.gain_rulers([pair for group in shown for pair in group], "size", frame)
    drawn = [charts.compile_gain(group, "size", names(group[0]["compiled"]), frame, on) for group in shown]
    words = (
        "Time of the eager step over that of the compiled one, wall and host side apart. Above the line at 1× "
        "compiling pays; the bars are the widest ratio that both intervals allow."
    )
    rest = _left_out(len(groups) - len(shown), "series", ALL_POINTS)
    return Section("compile", title, [html.paragraph(words, "reading"), Figures(drawn), *rest])


def _placed_names(
    rows: Sequence[Row], places: dict[str, str], axis: str = "size", said: Sequence[str] = ()
) -> Callable[[Row], str]:
    """Names of points or series, with their environment where the rows come from several."""
    if len({row["environment_id"] for row in rows}) < 2:
        return SeriesNames(rows, axis, said)
    name = SeriesNames(rows, axis, said=(*said, "device"))
    return lambda row: f"{name(row)}{theme.SEPARATOR}{places.get(row['environment_id'], row['environment_id'])}"


def _cold(tables: Tables, places: dict[str, str]) -> Section:
    title = "Cold against warm"
    points = cold_points(tables.first_steps)
    if not points:
        why = "No point was measured cold, from the first step of a fresh process."
        return Section("cold", title, [html.missing(why, "python -m runner -m size=64 warmup=false,true")])
    warm = warm_twins(tables.bounds)
    shown = sorted(points, key=lambda steps: _reading_order(steps[0]))[:MOST_CHARTS]
    names = _placed_names([steps[0] for steps in shown], places, axis="", said=("warmup",))
    frame = charts.frame_for(len(shown))
    drawn = [charts.cold_start(steps, warm.get(twin_key(steps[0])), names(steps[0]), frame) for steps in shown]
    words = (
        "Each marker is one step of a fresh process, in order, on a logarithmic scale; the dashed rule is the warm "
        "step. The distance between them is what loading, allocation and, with compile, compilation cost."
    )
    rest = _left_out(len(points) - len(shown), "cold points", 'python -m analysis sql "FROM samples"')
    return Section("cold", title, [html.paragraph(words, "reading"), Figures(drawn), *rest])


def _perturbation(tables: Tables) -> Section:
    title = "Profiled against unprofiled host time"
    told = ("profiled_host_us", "unprofiled_host_us", "perturbation")
    rows = [row for row in tables.perturbation if all(row.get(name) for name in told)]
    if not rows:
        why = "No point has host times both with and without the profiler; the doctor says whether profiling works."
        return Section("perturbation", title, [html.missing(why, "python -m runner doctor")])
    words = (
        "The profiler slows down the host that it watches, so its host times must not decide a bound. On the line at "
        "1× profiling would cost nothing; at 2× a step takes the host twice as long."
    )
    chart = charts.perturbation(rows, SeriesNames(rows, axis=""))
    return Section("perturbation", title, [html.paragraph(words, "reading"), Figures([chart])])


def _law(tables: Tables, places: dict[str, str]) -> Section:
    title = "How well the step law holds"
    rows = [row for row in tables.law if row.get("deviation") is not None]
    if not rows:
        why = (
            "The law wall = max(issue, device) is checked on warm points of a device that works asynchronously; "
            "on the CPU wall = floor + work by definition."
        )
        return Section("law", title, [html.missing(why, f"python -m runner -m device=cuda {SIZES}")])
    sentences = [html.paragraph(_law_sentence(row, places)) for row in tables.law_summary if row.get("points")]
    words = (
        "Each marker is one point; in the grey band the wall time is max(issue, device) within 5 %, on the line "
        "exactly. Serialized points wait by their nature and are not asked."
    )
    chart = charts.law(rows, SeriesNames(rows, axis=""))
    return Section("law", title, [*sentences, html.paragraph(words, "reading"), Figures([chart])])


def _law_sentence(row: Row, places: dict[str, str]) -> str:
    """A row of `law_summary` in words; a check of which there is no point is not mentioned."""
    checks = [
        f"{row[f'{check}_agreeing_outside']} of {row[f'{check}_points_outside']} bounds outside a 10 % band around the "
        f"crossing agree with {words}"
        for check, words in (("slopes", "the two slopes"), ("replay", "the replay"))
        if row.get(f"{check}_points_outside")
    ]
    held = (
        f"On {places.get(row['environment_id'], row['environment_id'])} wall = max(issue, device) holds within 5 % on "
        f"{row['points_within']} of {theme.plural(row['points'], 'point')} ({100 * row['within_frac']:.1f} %), "
        f"off by {theme.number(100 * abs(row['worst_deviation']))} % at worst ({row['worst_point']})"
    )
    return f"{theme.listed([held, *checks])}."


# --- tables -----------------------------------------------------------------------------------------------------------


def _imports(tables: Tables, places: dict[str, str]) -> Section:
    rows = imports.ordered(tables.imports)[:MOST_ROWS]
    several = len({row["environment_id"] for row in tables.imports}) > 1
    lines = [imports.cells(row, places.get(row["environment_id"], "") if several else "") for row in rows]
    rest = _left_out(len(tables.imports) - len(rows), "traces", ALL_IMPORTS)
    table = html.table("Imported traces", imports.HEADS, lines)
    return Section("imports", "Imported traces", [html.paragraph(imports.READING, "reading"), table, *rest])


def _points(tables: Tables, places: dict[str, str]) -> Section:
    rows = [row for row in tables.bounds if row.get("status") == "ok"]
    if not rows:
        why = "No point was measured."
        return Section("points", "All points", [html.missing(why, f"python -m runner -m {SIZES}")])
    names = _placed_names(rows, places)
    ordered = sorted(rows, key=_reading_order)
    overhead = "host, estimated" if tables.only_imports else "issue / floor"
    heads = ["series", "size", "bound", "wall", overhead, "device / work", "overhead ÷ work", "gain", "in words"]
    imported = tables.imported
    lines = [(_import_cells if row["run_id"] in imported else _point_cells)(row, names) for row in ordered[:MOST_ROWS]]
    rest = _left_out(len(rows) - len(lines), "points", ALL_POINTS)
    table = html.table("All points that were measured", heads, lines)
    return Section("points", "All points", [html.paragraph(_points_reading(tables), "reading"), table, *rest])


def _points_reading(tables: Tables) -> str:
    measured = (
        "Times are microseconds to seconds a step, each with its 95 % interval; gain is how many times less a step "
        "would take without overhead."
    )
    said = [*([] if tables.only_imports else [measured]), *([imports.TIMES] if tables.imports else [])]
    return " ".join([*said, "Click a heading to sort."])


def _import_cells(row: Row, name: Callable[[Row], str]) -> list[html.Cell]:
    """The cells of an imported trace, which say that its host time is no issue time and its gain an upper limit."""
    cells = _point_cells({**row, "sentence": imports.in_units(row.get("sentence") or "")}, name)
    host, gain = cells[_OVERHEAD], cells[_GAIN]
    if row.get("overhead_us") is not None:
        cells[_OVERHEAD] = replace(host, html=f"{host.html}<small>from the profiled host</small>")
    if row.get("gain") is not None:
        cells[_GAIN] = replace(gain, html=f"≤ {gain.html}")
    return cells


_OVERHEAD, _GAIN = 4, 7
"""Places of two columns among the cells of a point."""


def _point_cells(row: Row, name: Callable[[Row], str]) -> list[html.Cell]:
    return [
        html.Cell(f"{html.text(name(row))}<small>{html.text(str(row['point_id'])[:12])}</small>"),
        html.figure(row.get("size"), "–" if row.get("size") is None else theme.size(row["size"])),
        html.Cell(html.badge(theme.bound_of(row))),
        html.time(*marks.span(row, "wall_us")),
        html.time(*marks.span(row, "overhead_us")),
        html.time(*marks.span(row, "work_us")),
        html.figure(row.get("margin")),
        html.figure(row.get("gain"), "–" if row.get("gain") is None else f"{theme.number(row['gain'])}×"),
        html.Cell(html.text(row.get("sentence") or row.get("reason") or "")),
    ]


def _failed(tables: Tables, places: dict[str, str]) -> Section:
    title = "Failed and skipped points"
    rows = _unmeasured(tables)
    if not rows:
        return Section("failed", title, [html.paragraph("None: every point was measured.", "none")])
    names = _placed_names(rows, places)
    lines = [
        [
            html.word(names(row)),
            html.figure(row.get("size"), _size(row)),
            html.word(row["status"]),
            html.word(_cause(row)),
        ]
        for row in sorted(rows, key=lambda row: (str(row["status"]), names(row), row.get("size") or 0))[:MOST_ROWS]
    ]
    rest = _left_out(len(rows) - len(lines), "points", ALL_POINTS)
    table = html.table("Points without times, and why", ["series", "size", "status", "why"], lines)
    return Section("failed", title, [table, *rest])


def _unmeasured(tables: Tables) -> list[Row]:
    return [row for row in tables.bounds if row.get("status") != "ok"]


def _cause(row: Row) -> str:
    """The reason of a point without times, less the status that has a column of its own."""
    return str(row.get("reason") or "no reason was recorded").removeprefix(f"{row['status']}: ")


def _size(row: Row) -> str:
    return "–" if row.get("size") is None else theme.size(row["size"])


# --- where it was measured --------------------------------------------------------------------------------------------

_UNITS = {"_bytes": "bytes", "_mhz": "MHz", "_w": "W"}


def _environment(tables: Tables, places: dict[str, str]) -> Section:
    title = "Where it was measured"
    if not tables.environments:
        return Section(
            "environment", title, [html.missing("No environment was recorded.", f"python -m runner -m {SIZES}")]
        )
    columns = [places[row["environment_id"]] for row in tables.environments]
    names = [name for name in tables.environments[0] if any(row[name] is not None for row in tables.environments)]
    facts = [(_fact_name(name), [_fact(row[name]) for row in tables.environments]) for name in names]
    return Section("environment", title, [html.facts("Environments", columns, facts), *_roofs(tables, places)])


def _fact_name(name: str) -> str:
    for ending, unit in _UNITS.items():
        if name.endswith(ending):
            return f"{name.removesuffix(ending).replace('_', ' ')} ({unit})"
    return name.replace("_", " ")


def _fact(value: object) -> str:
    if value is None:
        return "–"
    if isinstance(value, str) and value.startswith("{"):
        try:
            return ", ".join(f"{key} {each}" for key, each in json.loads(value).items()) or "–"
        except ValueError:
            return value
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,.10g}" if isinstance(value, int | float) else str(value)


def _roofs(tables: Tables, places: dict[str, str]) -> list[str]:
    if not tables.roofs:
        if tables.only_imports:
            return []
        return [
            html.missing("No roof was measured, so no bound names compute or memory.", f"python -m runner -m {SIZES}")
        ]
    heads = ["environment", "roof", "dtype", "measured", "interval", "how"]
    lines = [
        [
            html.word(places.get(row["environment_id"], row["environment_id"])),
            html.word(theme.roof_word(row["roof"])),
            html.word(row.get("dtype")),
            html.figure(row.get("value_per_s"), theme.rate(row.get("value_per_s"), row["roof"])),
            html.word(_rates(row)),
            html.word(row.get("reason") if row.get("value_per_s") is None else row.get("method")),
        ]
        for row in tables.roofs
    ]
    return ["<h3>Roofs: ceilings measured here, not taken from a data sheet</h3>", html.table("Roofs", heads, lines)]


def _rates(row: Row) -> str | None:
    low, high = row.get("low_per_s"), row.get("high_per_s")
    if low is None or high is None:
        return None
    return f"{theme.rate(low, row['roof'])} to {theme.rate(high, row['roof'])}"
