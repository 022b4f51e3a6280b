"""The section that shows the points under the roofs that were measured, and what fusing their operations would gain."""

from __future__ import annotations

from collections.abc import Sequence

from analysis import roofline
from analysis.report import html
from analysis.report.overview import SIZES, Places
from analysis.report.parts import Figure, Figures, Part, Section
from analysis.report.points import placed_names
from analysis.report.tables import Tables
from analysis.theme import Row


def roofline_section(tables: Tables, places: Places) -> Section:
    """A roofline for every environment, and the points that would gain by fusion."""
    title = "How far each point is from its roofs"
    drawn = [environment for environment in places if any(_here(tables.roofline, environment))]
    if not drawn:
        why = "No point has a cost model and a measured roof."
        return Section("roofline", title, [html.missing(why, f"python -m runner -m {SIZES}")])
    parts = [part for environment in drawn for part in _environment(tables, environment, places)]
    words = html.paragraph(roofline.ROOFLINE_READING, "reading")
    return Section("roofline", title, [words, *parts, *_fusion(tables, places)])


def _here(rows: Sequence[Row], environment: str) -> list[Row]:
    return [row for row in rows if row["environment_id"] == environment and roofline.has_place(row)]


def _environment(tables: Tables, environment: str, places: Places) -> list[Part]:
    rows = _here(tables.roofline, environment)
    roofs = [row for row in tables.roofs if row["environment_id"] == environment]
    chart = roofline.roofline(rows, roofs, placed_names(rows, places))
    name = f"roofline on {places[environment]}"
    figure = Figure(name, chart, roofline.ROOFLINE_READING, roofline.ROOFLINE_SQL)
    return [f"<h3>On {html.text(places[environment])}</h3>", Figures([figure])]


def _fusion(tables: Tables, places: Places) -> list[Part]:
    rows = roofline.worth_fusing(tables.roofline)
    if not rows:
        return [html.paragraph("No point would be 10 % faster if its operations were fused into one.", "none")]
    name = placed_names(rows, places, axis="")
    chart = roofline.fusion_headroom(tables.roofline, name)
    figure = Figure("fusion headroom", chart, roofline.FUSION_READING, roofline.FUSION_SQL)
    return ["<h3>What fusion would gain</h3>", html.paragraph(roofline.FUSION_READING, "reading"), Figures([figure])]
