"""Sections that hold one way of measuring or running against another, and the step law against the wall clock."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from analysis import charts, theme
from analysis.pairs import KINDS, pair_chart, pair_names, pair_overview, pair_rulers, pair_series
from analysis.report import html, queries
from analysis.report.overview import MOST_CHARTS, SIZES, Places, left_out
from analysis.report.parts import Figure, Figures, Part, Section
from analysis.report.points import placed_names
from analysis.report.series import cold_points, reading_order, twin_key, warm_twins
from analysis.report.tables import Tables
from analysis.theme import Row, SeriesNames

ALL_PAIRS = 'python -m analysis sql "FROM pairs"'
MOST_OF_A_KIND = 6
"""Series of a kind of pair that get a chart of their own, those with most points."""

_MEASURED_BY = {
    "compile": f"python -m runner -m {SIZES} compile=false,true",
    "warmup": "python -m runner -m size=64 warmup=false,true",
    "profiler": "python -m runner doctor",
    "dtype": f"python -m runner -m {SIZES} dtype=fp32,bf16",
}
"""Kinds of pair that every sweep can have, and what measures them."""


def pairs_section(tables: Tables, places: Places) -> Section:
    """Ratios of points that differ in one thing, a part for each such thing; then the first steps of cold points."""
    title = "One way against another"
    parts = [part for kind in KINDS for part in _kind_parts(tables.pairs, kind)]
    missing = [kind for kind in _MEASURED_BY if not any(row["kind"] == kind for row in tables.pairs)]
    asked = [html.missing(f"{KINDS[kind].title}: no such pair.", _MEASURED_BY[kind]) for kind in missing]
    return Section("pairs", title, [*parts, *_cold_parts(tables, places), *asked])


def _kind_parts(pairs: Sequence[Row], name: str) -> Iterable[Part]:
    """All series of a kind in one chart, then some of them against the axis that most of their points lie along."""
    kind = KINDS[name]
    rows = [row for row in pairs if row["kind"] == name and row["ratio"] is not None]
    if not any(row["quantity"] == kind.leading for row in rows):
        return
    names = pair_names(rows, name)
    yield f"<h3>{html.text(kind.title)}</h3>"
    yield html.paragraph(kind.reading, "reading")
    yield Figures([Figure(f"pairs {kind.name}", pair_overview(rows, name, names), kind.reading, kind.sql)])
    series = [each for each in pair_series(rows, name, "size") if len({row["size"] for row in each}) > 1]
    shown = series[:MOST_OF_A_KIND]
    if not shown:
        return
    frame = charts.frame_for(len(shown))
    on = pair_rulers([row for each in shown for row in each], "size", frame)
    yield Figures(
        [
            Figure(
                f"pairs {kind.name} {names(each[0])}",
                pair_chart(each, name, "size", names, frame, on),
                kind.reading,
                kind.sql,
            )
            for each in shown
        ]
    )
    yield from left_out(len(series) - len(shown), "series", ALL_PAIRS)


COLD_READING = (
    "Each marker is one step of a fresh process, in order, on a logarithmic scale; the dashed rule is the warm "
    "step. The distance between them is what loading, allocation and, with compile, compilation cost."
)


def _cold_parts(tables: Tables, places: Places) -> list[Part]:
    """The first steps of every cold point."""
    points = cold_points(tables.first_steps)
    if not points:
        return []
    warm = warm_twins(tables.bounds)
    shown = sorted(points, key=lambda steps: reading_order(steps[0]))[:MOST_CHARTS]
    names = placed_names([steps[0] for steps in shown], places, axis="", said=("warmup",))
    frame = charts.frame_for(len(shown))
    figures = [
        Figure(
            f"first steps {names(steps[0])}",
            charts.cold_start(steps, warm.get(twin_key(steps[0])), names(steps[0]), frame),
            COLD_READING,
            queries.steps(steps[0]),
        )
        for steps in shown
    ]
    rest = left_out(len(points) - len(shown), "cold points", 'python -m analysis sql "FROM samples"')
    heading = "<h3>The first steps of a fresh process</h3>"
    return [heading, html.paragraph(COLD_READING, "reading"), Figures(figures), *rest]


LAW_READING = (
    "Each marker is one point; in the grey band the wall time is max(issue, device) within 5 %, on the line "
    "exactly. Serialized points wait by their nature and are not asked."
)


def law_section(tables: Tables, places: Places) -> Section:
    """How far the wall time lies from max(issue, device)."""
    title = "How well the step law holds"
    rows = [row for row in tables.law if row.get("deviation") is not None]
    if not rows:
        why = (
            "The law wall = max(issue, device) is checked on warm points of a device that works asynchronously; "
            "on the CPU wall = floor + work by definition."
        )
        return Section("law", title, [html.missing(why, f"python -m runner -m device=cuda {SIZES}")])
    sentences = [html.paragraph(_law_sentence(row, places)) for row in tables.law_summary if row.get("points")]
    figure = Figure("step law", charts.law(rows, SeriesNames(rows, axis="")), LAW_READING, queries.LAW)
    return Section("law", title, [*sentences, html.paragraph(LAW_READING, "reading"), Figures([figure])])


def _law_sentence(row: Row, places: Places) -> str:
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
