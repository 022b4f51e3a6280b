"""The report: one HTML file that explains a store, needs no network, and is safe whatever the store holds."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import duckdb
from altair.utils.schemapi import debug_mode

from analysis import marks
from analysis.naming import Run
from analysis.report.bundle import begun
from analysis.report.chosen import representative
from analysis.report.files import replace_file
from analysis.report.page import page, specification
from analysis.report.parts import Section
from analysis.report.point import point_pages
from analysis.report.points import points_of
from analysis.report.sections import names_of_environments, sections
from analysis.report.series import series_of
from analysis.report.tables import judged, read

DEFAULT_PATH = Path("outputs/report.html")
MOST_PAGES = 12
"""Points that get a page where nobody has chosen them."""


def write_report(
    connection: duckdb.DuckDBPyConnection,
    path: str | Path = DEFAULT_PATH,
    chosen: Sequence[Run] | None = None,
    most: int = MOST_PAGES,
) -> Path:
    """Write the report of an open store (see `analysis.store.open_store`) to a file; return its path.

    chosen: the runs that get a page of their own; None for up to `most` representative ones. The file appears whole or
    not at all.

    Raises:
        OSError: it cannot be written.
        duckdb.Error: a relation fails.
    """
    bundle = begun()
    tables = read(connection)
    series = series_of(tables.crossovers, tables.bounds)
    runs = representative(connection, tables, series, most) if chosen is None else [run.run_id for run in chosen]
    tables = judged(connection, tables, runs)
    places = names_of_environments(tables)
    points = points_of(tables, places, runs)
    keys = {row["run_id"]: key for row, key in zip(points.rows, points.columns["key"], strict=True)}
    pages: dict[str, Any] = {keys[run]: each for run, each in point_pages(connection, runs).items() if run in keys}
    # Checking every chart against the schema of Vega-Lite takes most of the time; the tests do it instead.
    with debug_mode(False):
        text = page(sections(tables, series, places), points, pages, bundle())
    return replace_file(Path(path), text.encode("utf-8", "replace"))


def write_charts(connection: duckdb.DuckDBPyConnection, folder: Path) -> list[Path]:
    """Write every chart of the report as PNG and SVG into a folder, and return the files.

    Raises OSError where one cannot be written.
    """
    import vl_convert

    tables = read(connection)
    found = sections(tables, series_of(tables.crossovers, tables.bounds), names_of_environments(tables))
    written = []
    with debug_mode(False):
        for stem, spec in chart_files(found):
            svg = vl_convert.vegalite_to_svg(spec)
            for suffix, content in ((".svg", svg.encode()), (".png", vl_convert.svg_to_png(svg, scale=2.0))):
                written.append(replace_file(folder / f"{stem}{suffix}", content))
    return written


def chart_files(found: Sequence[Section]) -> list[tuple[str, dict[str, Any]]]:
    """File stem and specification of each figure, in the order of reading; equal names are told apart by a number."""
    figures = [figure for section in found for figure in section.figures]
    stems: dict[str, int] = {}
    files = []
    for figure in figures:
        stem = re.sub(r"[^a-z0-9]+", "-", figure.name.lower()).strip("-")[:80] or "chart"
        stems[stem] = stems.get(stem, 0) + 1
        files.append((stem if stems[stem] == 1 else f"{stem}-{stems[stem]}", marks.drawn(specification(figure))))
    return files
