"""Sections on what to mind: points without times, and findings, those that question the data before all others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from urllib.parse import quote

from analysis import theme
from analysis.report import html
from analysis.report.numerics import numerics_parts
from analysis.report.parts import Column, PointTable, Section
from analysis.report.tables import Found, Tables
from analysis.rules import SEVERITIES
from analysis.theme import Row

MOST_EXAMPLES = 3
FAILED_HEADS = (
    Column("name", "series", "name"),
    Column("size", "size", "size"),
    Column("status", "status"),
    Column("why", "why"),
)
MISLEADS, DATA = SEVERITIES[0], "data quality"


def failed_section(tables: Tables) -> Section:
    """Every point that failed or was skipped, with the reason."""
    title = "Failed and skipped points"
    rows = unmeasured(tables)
    if not rows:
        return Section("failed", title, [html.paragraph("None: every point was measured.", "none")])
    counts = Counter(str(row["status"]) for row in rows)
    told = theme.listed(
        [f"{count:,} {status}" for status, count in sorted(counts.items(), key=lambda item: (-item[1], item[0]))]
    )
    words = f"{len(rows):,} of {theme.plural(len(tables.bounds), 'point')} have no times: {told}."
    table = PointTable("Points without times, and why", FAILED_HEADS, rows)
    return Section("failed", title, [html.paragraph(words, "reading"), table])


def unmeasured(tables: Tables) -> list[Row]:
    """Points that failed or were skipped."""
    return [row for row in tables.bounds if row.get("status") != "ok"]


QUALITY_READING = (
    "What was seen while the points were measured that makes their figures worth less: a host or device that something "
    "else used, a clock that was lowered, a trace that is not whole, times that scatter. Links lead to the first."
)


def quality_section(found: Found, numerics: Sequence[Row] = ()) -> Section:
    """Every rule on the quality of data that fired, with the points it fired on, and how far results are from float64;
    numerics: rows of the view."""
    title = "How far the data can be trusted"
    rules = [row for row in found.rules if row["topic"] == DATA or row["severity"] == MISLEADS]
    if not rules:
        words = "Nothing was seen that speaks against the figures: no busy host, lowered clock or incomplete trace."
        return Section("quality", title, [html.paragraph(words, "none"), *numerics_parts(numerics)])
    told = [html.paragraph(QUALITY_READING, "reading"), _rules_table(rules, title)]
    return Section("quality", title, [*told, *numerics_parts(numerics)])


FINDINGS_READING = (
    "What an expert would read in the traces. Each row is a rule, with the number of points it fired on and the one "
    "with most to gain; a point's own page shows its findings with their evidence."
)


def findings_section(found: Found) -> Section:
    """What the rules found, the most costly first."""
    title = "What the traces tell"
    rules = [row for row in found.rules if row["topic"] != DATA and row["severity"] != MISLEADS]
    if not rules:
        why = "No profile was kept, or no rule found anything in it."
        return Section("findings", title, [html.missing(why, "python -m analysis findings")])
    ordered = sorted(
        rules, key=lambda row: (SEVERITIES.index(row["severity"]), -(row["best_gain"] or 0), -row["points"])
    )
    asked = [html.paragraph(found.reason, "note")] if found.reason else []
    words = html.paragraph(FINDINGS_READING, "reading")
    return Section("findings", title, [words, *asked, _rules_table(ordered, title)])


def _rules_table(found: Sequence[Row], label: str) -> str:
    heads = ["rule", "points", "gain up to", "for example"]
    lines = [
        [
            html.Cell(
                f"{html.text(row['title'])}<small>{html.text(row['rule'])}, {html.text(row['severity'])}</small>"
            ),
            html.Cell(_examples(row), row["points"], True),
            html.figure(row["best_gain"], "–" if row["best_gain"] is None else f"{theme.number(row['best_gain'])}×"),
            html.Cell(html.text(row["sentence"])),
        ]
        for row in found
    ]
    return html.table(label, heads, lines)


def _examples(row: Row) -> str:
    """How many points, and links to the pages of the first."""
    links = [
        f'<a href="#point={quote(str(key))}">{html.text(str(key)[:8])}</a>' for key in row["point_ids"][:MOST_EXAMPLES]
    ]
    return f"{row['points']:,}<small>{' '.join(links)}</small>"
