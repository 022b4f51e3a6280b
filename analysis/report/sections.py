"""The sections of the report, in the order in which they are read: each a pure function of the tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from analysis import theme
from analysis.report import html, imports
from analysis.report.answer import environment_names
from analysis.report.comparisons import law_section, pairs_section
from analysis.report.environment import environment_section
from analysis.report.overview import SIZES, Places, answer_section, left_out, map_section, series_section
from analysis.report.parts import Column, PointTable, Section
from analysis.report.quality import failed_section, findings_section, quality_section, unmeasured
from analysis.report.roofs import roofline_section
from analysis.report.series import Series
from analysis.report.tables import Found, Tables
from analysis.theme import Row

MOST_ROWS = 1000
ALL_IMPORTS = "python -m analysis audits --format csv"


def sections(
    tables: Tables, series: Sequence[Series], places: Places, found: Callable[[], Found] = Found
) -> list[Section]:
    """Every section of the report, each with its content or with the reason why there is none. series: of the tables
    (`series_of`); places: names of environments; found: gives what the rules found, and is asked after all else.

    Where nothing but traces was imported, what only a sweep can fill is left out.
    """
    swept = [] if tables.only_imports else _swept(tables, series, places)
    traces = [_imports(tables, places)] if tables.imports else []
    return [
        answer_section(tables, series, places),
        *swept,
        *traces,
        findings_section(found()),
        _points(tables),
        *([] if tables.only_imports and not unmeasured(tables) else [failed_section(tables)]),
        quality_section(found(), tables.numerics),
        environment_section(tables, places),
    ]


def _swept(tables: Tables, series: Sequence[Series], places: Places) -> list[Section]:
    """The sections that a sweep alone can fill."""
    return [
        series_section(series, places),
        map_section(series, places),
        roofline_section(tables, places),
        pairs_section(tables, places),
        law_section(tables, places),
    ]


def names_of_environments(tables: Tables) -> dict[str, str]:
    """The name of each environment by its id: known ones, then those that points name without a row of their own."""
    known = {row["environment_id"] for row in tables.environments}
    named = dict.fromkeys(row["environment_id"] for row in tables.bounds if row["environment_id"] not in known)
    rows: list[Row] = [*tables.environments, *({"environment_id": each} for each in named)]
    return environment_names(rows)


# --- tables -----------------------------------------------------------------------------------------------------------


def _imports(tables: Tables, places: Places) -> Section:
    rows = imports.ordered(tables.imports)[:MOST_ROWS]
    several = len({row["environment_id"] for row in tables.imports}) > 1
    lines = [imports.cells(row, places.get(row["environment_id"], "") if several else "") for row in rows]
    rest = left_out(len(tables.imports) - len(rows), "traces", ALL_IMPORTS)
    table = html.table("Imported traces", imports.HEADS, lines, [row.get("point_id") for row in rows])
    return Section("imports", "Imported traces", [html.paragraph(imports.READING, "reading"), table, *rest])


def _points(tables: Tables) -> Section:
    rows = [row for row in tables.bounds if row.get("status") == "ok"]
    if not rows:
        why = "No point was measured."
        return Section("points", "All points", [html.missing(why, f"python -m runner -m {SIZES}")])
    overhead = "host, estimated" if tables.only_imports else "issue / floor"
    heads = (
        Column("name", "series", "name"),
        Column("size", "size", "size"),
        Column("bound", "bound", "bound"),
        Column("wall", "wall", "time"),
        Column("overhead", overhead, "time", note="from the profiled host"),
        Column("work", "device / work", "time"),
        Column("margin", "overhead ÷ work", "number"),
        Column("gain", "gain", "times"),
        Column("sentence", "in words"),
    )
    table = PointTable("All points that were measured", heads, rows)
    return Section("points", "All points", [html.paragraph(_points_reading(tables), "reading"), table])


def _points_reading(tables: Tables) -> str:
    measured = (
        "Times are microseconds to seconds a step, each with its 95 % interval; gain is how many times less a step "
        "would take without overhead."
    )
    said = [*([] if tables.only_imports else [measured]), *([imports.TIMES] if tables.imports else [])]
    told = f"{theme.plural(len(tables.bounds), 'point')} in the store."
    return " ".join([told, *said, "A name opens the point's page; a heading sorts."])
