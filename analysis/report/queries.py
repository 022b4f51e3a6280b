"""The queries that give the rows of the report's charts: shown beside each, to be asked again with `sql`."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import dedent

from analysis import theme
from analysis.report.series import AXES
from analysis.theme import Row

CROSSINGS = """\
SELECT workload, dtype, batch, compile, axis, status, value, low, high, reason
FROM crossovers
WHERE axis = {axis}
ORDER BY status <> 'found', value, low"""

BOUNDS_MAP = """\
SELECT workload, dtype, batch, compile, {column} AS {name}, bound, status, sentence
FROM bounds
WHERE environment_id = {environment}
ORDER BY workload, dtype, batch, compile, {name}"""

LAW = """\
SELECT workload, size, dtype, batch, compile, bound, wall_us, model_us, deviation
FROM law
WHERE deviation IS NOT NULL
ORDER BY abs(deviation) DESC"""


def literal(value: object) -> str:
    """A value as SQL.

    >>> literal("it's"), literal(8), literal(None), literal(True)
    ("'it''s'", '8', 'NULL', 'true')
    """
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return repr(value)
    return "'" + str(value).replace("'", "''") + "'"


def name(column: str) -> str:
    """A column's name as SQL, quoted where it is no plain word."""
    return column if column.isidentifier() and column.isascii() else '"' + column.replace('"', '""') + '"'


def value_of(axis: str) -> str:
    """The value on an axis: a column, or a further axis of `params`."""
    if axis in AXES:
        return axis
    path = "$." + '"' + axis.replace('"', '\\"') + '"'
    return f"(params ->> {literal(path)})::DOUBLE"


def crossings(axis: str) -> str:
    """The crossovers over an axis."""
    return CROSSINGS.format(axis=literal(axis))


def bounds_map(axis: str, environment_id: object) -> str:
    """The bounds of all points of an environment."""
    return BOUNDS_MAP.format(column=value_of(axis), name=name(axis), environment=literal(environment_id))


def series(row: Row, axis: str) -> str:
    """The times of one series against its axis; row: of `crossovers`."""
    columns = "wall_us, wall_us_low, wall_us_high, overhead_us, work_us, bound"
    return f"SELECT {value_of(axis)} AS {name(axis)}, {columns}\nFROM bounds\n{_where(row, (axis,))}\nORDER BY 1"


def steps(row: Row) -> str:
    """The first steps of one cold point, as its latest run took them; row: of `samples`."""
    return dedent(f"""\
        SELECT position + 1 AS step, value AS us
        FROM samples
        WHERE run_id = {literal(row["run_id"])} AND quantity = 'first'
        ORDER BY position""")


def _where(row: Row, without: Sequence[str]) -> str:
    """The points that share all axes with a row but those named."""
    axes = [
        f"{name(axis)} = {literal(row[axis])}" for axis in AXES if axis not in without and row.get(axis) is not None
    ]
    params = {key: value for key, value in theme.json_params(row).items() if key not in without and value is not None}
    further = [f"params ->> {literal('$.' + key)} = {literal(_text(value))}" for key, value in params.items()]
    return "WHERE " + "\n  AND ".join([*axes, *further])


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
