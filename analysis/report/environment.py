"""The section that says where the points were measured: environments side by side, and their roofs."""

from __future__ import annotations

import json

from analysis import theme
from analysis.report import html
from analysis.report.overview import SIZES, Places
from analysis.report.parts import Section
from analysis.report.tables import Tables
from analysis.theme import Row

_UNITS = {"_bytes": "bytes", "_mhz": "MHz", "_w": "W"}


def environment_section(tables: Tables, places: Places) -> Section:
    """What is known of every environment, and the roofs that were measured there."""
    title = "Where it was measured"
    if not tables.environments:
        return Section(
            "environment", title, [html.missing("No environment was recorded.", f"python -m runner -m {SIZES}")]
        )
    columns = [places[row["environment_id"]] for row in tables.environments]
    names = [name for name in tables.environments[0] if any(row[name] is not None for row in tables.environments)]
    facts = [(_fact_name(name), [_fact(row[name]) for row in tables.environments]) for name in names]
    return Section("environment", title, [html.facts("Environments", columns, facts), *_roofs(tables, places)])


def _fact_name(name: str) -> str:
    for ending, unit in _UNITS.items():
        if name.endswith(ending):
            return f"{name.removesuffix(ending).replace('_', ' ')} ({unit})"
    return name.replace("_", " ")


def _fact(value: object) -> str:
    if value is None:
        return "–"
    if isinstance(value, str) and value.startswith("{"):
        try:
            return ", ".join(f"{key} {each}" for key, each in json.loads(value).items()) or "–"
        except ValueError:
            return value
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,.10g}" if isinstance(value, int | float) else str(value)


def _roofs(tables: Tables, places: Places) -> list[str]:
    if not tables.roofs:
        if tables.only_imports:
            return []
        return [
            html.missing("No roof was measured, so no bound names compute or memory.", f"python -m runner -m {SIZES}")
        ]
    heads = ["environment", "roof", "dtype", "measured", "interval", "how"]
    lines = [
        [
            html.word(places.get(row["environment_id"], row["environment_id"])),
            html.word(theme.roof_word(row["roof"])),
            html.word(row.get("dtype")),
            html.figure(row.get("value_per_s"), theme.rate(row.get("value_per_s"), row["roof"])),
            html.word(_rates(row)),
            html.word(row.get("reason") if row.get("value_per_s") is None else row.get("method")),
        ]
        for row in tables.roofs
    ]
    return ["<h3>Roofs: ceilings measured here, not taken from a data sheet</h3>", html.table("Roofs", heads, lines)]


def _rates(row: Row) -> str | None:
    low, high = row.get("low_per_s"), row.get("high_per_s")
    if low is None or high is None:
        return None
    return f"{theme.rate(low, row['roof'])} to {theme.rate(high, row['roof'])}"
