"""The points of a store as the page holds them: columns for its tables, and facets for its filters."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from analysis import theme
from analysis.report import html
from analysis.report.imports import in_units
from analysis.report.series import reading_order
from analysis.report.tables import Tables
from analysis.theme import Row, SeriesNames

SHORTEST = 8
"""Characters that a shown beginning of an id has at least."""


@dataclass(frozen=True)
class Points:
    """All points in the order of reading. rows: of `bounds`; place: the place of each by its `theme.point_key`;
    columns, facets: as the page's scripts read them."""

    rows: Sequence[Row]
    place: Mapping[str, int]
    columns: Mapping[str, Sequence[Any]]
    facets: Sequence[Mapping[str, Any]]


def points_of(tables: Tables, places: Mapping[str, str], pages: Collection[str]) -> Points:
    """Points of the store. places: names of environments; pages: run ids that the report holds a page of."""
    rows = sorted(tables.bounds, key=reading_order)
    name = placed_names(rows, places)
    return Points(
        rows=rows,
        place={theme.point_key(row): place for place, row in enumerate(rows)},
        columns=_columns(rows, tables, name, pages),
        facets=[facet for facet in _facets(rows, tables, places) if facet["values"]],
    )


def placed_names(
    rows: Sequence[Row], places: Mapping[str, str], axis: str = "size", said: Sequence[str] = ()
) -> Callable[[Row], str]:
    """Names of points or series, with their environment where the rows come from several."""
    if len({row["environment_id"] for row in rows}) < 2:
        return SeriesNames(rows, axis, said)
    name = SeriesNames(rows, axis, said=(*said, "device"))
    return lambda row: f"{name(row)}{theme.SEPARATOR}{places.get(row['environment_id'], row['environment_id'])}"


def _columns(
    rows: Sequence[Row], tables: Tables, name: Callable[[Row], str], pages: Collection[str]
) -> dict[str, Sequence[Any]]:
    times = {"wall": "wall_us", "overhead": "overhead_us", "work": "work_us"}
    ends = ("", "_low", "_high")
    imported, codes = tables.imported, {bound: code for code, bound in enumerate(theme.BOUNDS)}
    return {
        "key": page_keys(rows),
        "name": [name(row) for row in rows],
        "size": [row.get("size") for row in rows],
        "status": [str(row.get("status") or "") for row in rows],
        "bound": [codes[theme.bound_of(row).name] for row in rows],
        **{
            f"{key}{end}": [theme.rounded(row.get(f"{column}{end}")) for row in rows]
            for key, column in times.items()
            for end in ends
        },
        **{key: [theme.rounded(row.get(key)) for row in rows] for key in ("margin", "gain")},
        "sentence": [_sentence(row, imported) for row in rows],
        "why": [_cause(row) for row in rows],
        "imported": [int(row["run_id"] in imported) for row in rows],
        "page": [int(row["run_id"] in pages) for row in rows],
    }


def page_keys(rows: Sequence[Row]) -> list[str]:
    """What a point is called in the page's address: its id, and its environment's where several have the point."""
    counts = Counter(row["point_id"] for row in rows)
    return [
        str(row["point_id"])
        if counts[row["point_id"]] == 1
        else f"{row['point_id']} environment_id={row['environment_id']}"
        for row in rows
    ]


def _sentence(row: Row, imported: Collection[object]) -> str | None:
    sentence = row.get("sentence") or row.get("reason")
    return in_units(sentence) if sentence and row["run_id"] in imported else sentence


def _cause(row: Row) -> str | None:
    """The reason of a point without times, less the status that has a column of its own."""
    if row.get("status") == "ok":
        return None
    return str(row.get("reason") or "no reason was recorded").removeprefix(f"{row['status']}: ")


def bounds_as_data() -> list[dict[str, str]]:
    """The looks of all bounds, in the order of their codes."""
    return [{"name": each.name, "letter": each.letter, "css": html.css_name(each)} for each in theme.BOUNDS.values()]


# --- facets -----------------------------------------------------------------------------------------------------------


def _facets(rows: Sequence[Row], tables: Tables, places: Mapping[str, str]) -> list[dict[str, Any]]:
    """What points can be chosen by; of each the values with the number of their points, the usual order of values."""
    plain: dict[str, Callable[[Row], object]] = {
        "workload": lambda row: row.get("workload"),
        "dtype": lambda row: row.get("dtype"),
        "batch": lambda row: row.get("batch"),
        "compile": lambda row: theme.compile_word(row.get("compile")) or None,
        "warm-up": lambda row: {"true": "warm", "false": "cold"}.get(str(row.get("warmup")), row.get("warmup")),
        "device": lambda row: row.get("device"),
        "environment": lambda row: places.get(row["environment_id"], row["environment_id"]),
        "bound": lambda row: theme.bound_of(row).name,
    }
    found = [_facet(label, [of(row) for row in rows]) for label, of in plain.items()]
    return [*found, *_settings(rows), _sweeps(rows, tables)]


def _facet(label: str, values: Sequence[object]) -> dict[str, Any]:
    counts = Counter(values)
    order = {bound: place for place, bound in enumerate(theme.BOUNDS)} if label == "bound" else {}
    ordered = sorted(counts, key=lambda value: (order.get(str(value), 0), *_order(value)))
    codes = {value: code for code, value in enumerate(ordered)}
    shown = [
        {"label": "none" if value is None else str(value), "title": theme.plural(counts[value], "point")}
        for value in ordered
    ]
    return {"name": label, "label": label, "values": shown, "codes": [codes[value] for value in values]}


def _order(value: object) -> tuple[bool, float, str]:
    """None first, numbers by size, then texts; eager before every mode of compiling."""
    number = float(value) if isinstance(value, int | float) else 0.0
    return (value is not None, number, "" if value == "eager" else str(value))


def _settings(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Further axes, where points of one workload differ in them; what a cold point's schedule is tells nothing."""
    params = [theme.json_params(row) for row in rows]
    keys = sorted({key for each in params for key in each} - {"schedule"})
    values = {key: [_value(each.get(key)) for each in params] for key in keys}
    workloads = [row.get("workload") for row in rows]
    return [
        _facet(key, each)
        for key, each in values.items()
        if len(set(zip(workloads, each, strict=True))) > len(set(workloads)) and len(set(each)) <= MOST_VALUES
    ]


MOST_VALUES = 12
"""So many values of a further axis can be chosen from; an axis with more is left to the search."""


def _value(value: object) -> object:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return value if value is None or isinstance(value, str | int | float) else json.dumps(value)


def _sweeps(rows: Sequence[Row], tables: Tables) -> dict[str, Any]:
    """The sweeps that measured a point, in the order of time; a point may be of several."""
    sweeps = sorted(tables.sweeps, key=lambda row: (str(row["started_at"]), str(row["sweep_id"])))
    codes = {row["sweep_id"]: code for code, row in enumerate(sweeps)}
    shown = [
        {"label": _sweep_label(row), "title": f"{row['sweep_id']}: {theme.plural(row['points'], 'point')}"}
        for row in sweeps
    ]
    of = {(row["point_id"], row["environment_id"]): row["sweep_ids"] for row in tables.sweeps_of_points}
    found = [[codes[each] for each in of.get((row["point_id"], row["environment_id"]), ())] for row in rows]
    return {"name": "sweep", "label": "sweep", "values": shown, "codes": found}


def _sweep_label(row: Row) -> str:
    when = row["started_at"]
    day = when.strftime("%Y-%m-%d %H:%M ") if hasattr(when, "strftime") else ""
    return f"{day}{str(row['sweep_id'])[:SHORTEST]}"
