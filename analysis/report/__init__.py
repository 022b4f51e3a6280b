"""The report: one HTML file that explains a store, needs no network, and is safe whatever the store holds."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
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
from analysis.report.points import Points, points_of
from analysis.report.sections import names_of_environments, sections
from analysis.report.series import series_of
from analysis.report.tables import Tables, judged, read

DEFAULT_PATH = Path("outputs/report.html")
MOST_PAGES, FEW_PAGES, MANY_POINTS = 24, 12, 1_000
"""Points that get a page where nobody has chosen them: fewer in a store of many, which takes longer anyhow."""


def write_report(
    connection: duckdb.DuckDBPyConnection,
    path: str | Path = DEFAULT_PATH,
    chosen: Sequence[Run] | None = None,
    most: int | None = None,
) -> Path:
    """Write the report of an open store (see `analysis.store.open_store`) to a file; return its path.

    chosen: the runs that get a page of their own; None for up to `most` (by default MOST_PAGES or FEW_PAGES)
    representative ones. The file appears whole or not at all.

    Raises:
        OSError: it cannot be written.
        duckdb.Error: a relation fails.
    """
    bundle = begun()
    tables = read(connection)
    series = series_of(tables.crossovers, tables.bounds)
    most = most or (MOST_PAGES if len(tables.bounds) <= MANY_POINTS else FEW_PAGES)
    runs = representative(connection, tables, series, most) if chosen is None else _latest(tables, chosen)
    places = names_of_environments(tables)
    # DuckDB judges and reads events while Python draws. Checking every chart against the schema of Vega-Lite would take
    # most of the time; the tests do it instead.
    with _turns(), ThreadPoolExecutor(1) as pool, connection.cursor() as cursor, debug_mode(False):
        found = pool.submit(judged, cursor, runs)
        pages = pool.submit(_pages, cursor, runs)
        points = points_of(tables, places, runs)
        drawn = sections(tables, series, places, found.result)
        text = page(drawn, points, lambda: _by_key(points, pages.result()), bundle())
    return replace_file(Path(path), text.encode("utf-8", "replace"))


@contextmanager
def _turns() -> Iterator[None]:
    """Let threads take turns ten times as often: one that asks DuckDB hundreds of small queries waits each time until
    the other one, which computes, is made to let go."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(before / 10)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


def _pages(connection: duckdb.DuckDBPyConnection, runs: Sequence[str]) -> dict[str, Any]:
    """What the pages of runs show; where numbers of one are beyond reckoning, it alone has none."""
    try:
        return point_pages(connection, runs)
    except duckdb.InterruptException:
        raise
    except duckdb.Error:
        if len(runs) == 1:
            return {}
        return {run: page for each in runs for run, page in _pages(connection, [each]).items()}


def _by_key(points: Points, pages: Mapping[str, Any]) -> dict[str, Any]:
    """Pages of runs by the keys of their points."""
    keys = {row["run_id"]: key for row, key in zip(points.rows, points.columns["key"], strict=True)}
    return {keys[run]: each for run, each in pages.items() if run in keys}


def _latest(tables: Tables, chosen: Sequence[Run]) -> list[str]:
    """The runs that stand for the points of those chosen: a report tells of a point what its latest good run says."""
    of = {(row["point_id"], row["environment_id"]): str(row["run_id"]) for row in tables.bounds}
    return list(dict.fromkeys(of.get((run.point_id, run.environment_id), run.run_id) for run in chosen))


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
            svg = vl_convert.vegalite_to_svg(_for_xml(spec))
            for suffix, content in ((".svg", svg.encode()), (".png", vl_convert.svg_to_png(svg, scale=2.0))):
                written.append(replace_file(folder / f"{stem}{suffix}", content))
    return written


_NO_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def _for_xml(value: Any) -> Any:
    """A specification without the characters that XML cannot hold: one of them would end the process that draws."""
    if isinstance(value, dict):
        return {_for_xml(key): _for_xml(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_for_xml(each) for each in value]
    return _NO_XML.sub("\ufffd", value) if isinstance(value, str) else value


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
