"""Which points get a page of their own, where nobody has chosen them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, islice, zip_longest

import duckdb

from analysis.charts import axis_value
from analysis.report.imports import ordered
from analysis.report.series import Series, reading_order
from analysis.report.tables import Tables
from analysis.theme import Row


def representative(
    connection: duckdb.DuckDBPyConnection, tables: Tables, found: Sequence[Series], most: int
) -> list[str]:
    """Run ids of up to `most` points with events: of each series those beside the crossing and its ends, first one of
    every series; then cold points and the imported traces with most idle time."""
    series = sorted(found, key=lambda each: -len(each.points))
    traces = [str(row["run_id"]) for row in ordered(tables.imports)] if tables.imports else []
    told = zip_longest(*(_telling(each) for each in series))
    rest = [str(row["run_id"]) for row in sorted(tables.bounds, key=reading_order)]
    swept = (run for turn in told for run in turn if run is not None)
    told_first = list(dict.fromkeys(chain(_woven(swept, traces), rest)))
    return list(islice(_with_events(connection, told_first), most))


def _with_events(connection: duckdb.DuckDBPyConnection, runs: Sequence[str]) -> Iterator[str]:
    """Those of the runs that have events, in their order; a few are looked up at a time, since most have some."""
    for start in range(0, len(runs), LOOKED_UP):
        some = list(runs[start : start + LOOKED_UP])
        query = "SELECT DISTINCT run_id FROM events WHERE list_contains(?::VARCHAR[], run_id)"
        found = {row[0] for row in connection.execute(query, [some]).fetchall()}
        yield from (run for run in some if run in found)


LOOKED_UP = 200


def _woven(*lists: Iterator[str] | Sequence[str]) -> Iterator[str]:
    for turn in zip_longest(*lists):
        yield from (each for each in turn if each is not None)


def _telling(series: Series) -> list[str]:
    """Points of a series in the order of what they tell: both sides of the crossing, then the ends."""
    points = [point for point in series.points if point.get("status") == "ok"]
    low, high = series.crossing.get("low"), series.crossing.get("high")
    below = [point for point in points if low is not None and _value(point, series) <= low]
    above = [point for point in points if high is not None and _value(point, series) >= high]
    told = [*below[-1:], *above[:1], *points[:1], *points[-1:]]
    return list(dict.fromkeys(str(point["run_id"]) for point in told))


def _value(point: Row, series: Series) -> float:
    return float(axis_value(point, series.axis) or 0)
