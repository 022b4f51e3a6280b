"""The report: one HTML file that explains a store, needs no network, and is safe whatever the store holds."""

from __future__ import annotations

from pathlib import Path

import duckdb
from altair.utils.schemapi import debug_mode

from analysis import charts
from analysis.report.files import replace_file
from analysis.report.page import page
from analysis.report.sections import sections
from analysis.report.series import EAGER, Series, key, series_of
from analysis.report.tables import read
from analysis.theme import SeriesNames

DEFAULT_PATH = Path("outputs/report.html")


def write_report(connection: duckdb.DuckDBPyConnection, path: str | Path = DEFAULT_PATH) -> Path:
    """Write the report of an open store (see `analysis.store.open_store`) to a file; return its path.

    The file appears whole or not at all. Raises OSError where it cannot be written, duckdb.Error where a relation
    fails.
    """
    # Checking every chart against the schema of Vega-Lite takes most of the time; the tests do it instead.
    with debug_mode(False):
        return replace_file(Path(path), page(sections(read(connection))).encode())


def write_png(connection: duckdb.DuckDBPyConnection, path: str | Path) -> Path:
    """Write the main crossover chart, eager beside compiled where both were measured, as PNG; return its path.

    Raises ValueError where no series can be drawn, OSError where the file cannot be written.
    """
    tables = read(connection)
    shown = main_series(series_of(tables.crossovers, tables.bounds))
    if not shown:
        raise ValueError("no series has two values of a numeric axis: run python -m runner -m size=64,256,1024,4096")
    names = SeriesNames([each.crossing for each in shown], shown[0].axis)
    on = charts.rulers([point for each in shown for point in each.points], shown[0].axis, charts.MEDIUM)
    drawn = [charts.crossover(each.points, each.crossing, names(each.crossing), charts.MEDIUM, on) for each in shown]
    return replace_file(Path(path), charts.png(charts.side_by_side(drawn)))


def main_series(series: list[Series]) -> list[Series]:
    """The series that a picture should show: the eager one with a crossing and most points, and its compiled twin."""
    if not series:
        return []

    def rank(each: Series) -> tuple[bool, bool, int]:
        crosses = charts.crossing_value(each.crossing) is not None
        return (crosses, each.crossing["compile"] == EAGER, len(each.points))

    best = max(series, key=rank)
    twins = [each for each in series if each is not best and _alike(each) == _alike(best)]
    return [best, *sorted(twins, key=rank, reverse=True)[:1]]


def _alike(series: Series) -> tuple[object, ...]:
    return (series.axis, key(series.crossing, "compile", series.axis))
