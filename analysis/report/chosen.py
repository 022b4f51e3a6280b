"""Which points get a page of their own, where nobody has chosen them."""

from __future__ import annotations

from collections import Counter, defaultdict
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
    """Run ids of up to `most` points with events.

    Of the first series those beside the crossing and at the ends; then one of every bound of every workload, and the
    imported traces, most idle time first; then one of every other series, one side of the crossing in turn.
    """
    told = [_telling(each) for each in _ordered(found)]
    others = zip_longest(*(runs if place % 2 else runs[1:] + runs[:1] for place, runs in enumerate(told[WHOLE:])))
    traces = [str(row["run_id"]) for row in ordered(tables.imports)] if tables.imports else []
    kinds = _one_of_each(tables.bounds)
    rest = [str(row["run_id"]) for row in sorted(tables.bounds, key=reading_order)]
    swept = (run for turn in others for run in turn if run is not None)
    wanted = dict.fromkeys(chain(*told[:WHOLE], _woven(kinds, traces), swept, rest))
    return list(islice(_with_events(connection, list(wanted)), most))


def _woven(*lists: Sequence[str]) -> Iterator[str]:
    for turn in zip_longest(*lists):
        yield from (each for each in turn if each is not None)


def _one_of_each(bounds: Sequence[Row]) -> list[str]:
    """The middle point, in the order of reading, of every bound of every workload; bounds in turn."""
    groups: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in sorted(bounds, key=reading_order):
        if row.get("status") == "ok":
            groups[str(row["workload"]), str(row.get("bound"))].append(row)
    middles = {kind: str(rows[len(rows) // 2]["run_id"]) for kind, rows in groups.items()}
    by_bound: dict[str, list[str]] = defaultdict(list)
    for (_, bound), run in middles.items():
        by_bound[bound].append(run)
    return list(_woven(*by_bound.values()))


WHOLE = 2
"""Series of which both sides of the crossing and the ends get a page; of the others one side does, in turn."""


def _ordered(series: Sequence[Series]) -> list[Series]:
    """Series with most points first; of equals those of the workload with most series, what is usual first."""
    alike = Counter(each.crossing["workload"] for each in series)
    return sorted(
        series,
        key=lambda each: (-len(each.points), -alike[each.crossing["workload"]], reading_order(each.crossing)),
    )


def _with_events(connection: duckdb.DuckDBPyConnection, runs: Sequence[str]) -> Iterator[str]:
    """Those of the runs that have events, in their order; a few are looked up at a time, since most have some."""
    for start in range(0, len(runs), LOOKED_UP):
        some = list(runs[start : start + LOOKED_UP])
        query = "SELECT DISTINCT run_id FROM events WHERE list_contains(?::VARCHAR[], run_id)"
        found = {row[0] for row in connection.execute(query, [some]).fetchall()}
        yield from (run for run in some if run in found)


LOOKED_UP = 200


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
