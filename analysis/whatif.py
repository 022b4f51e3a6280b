"""What would bind each point on another host or card: every verdict moved by the two-term law."""

import tempfile
from pathlib import Path
from typing import Any

import duckdb

from analysis.output import short
from analysis.store import SQL, open_store

MOVED = ("bounds", "crossovers")
TOLD = 5
"""Crossovers that are told in words; the table has all."""


def open_whatif(folder: str | Path, host: float, device: float) -> duckdb.DuckDBPyConnection:
    """Open the store in `folder` as if its host and device were so many times as fast.

    Views whatif_bounds and whatif_crossovers show what was measured beside what would be. Raises StoreError.
    """
    with tempfile.TemporaryDirectory(prefix="crossover-") as beside:
        with open_store(folder) as now:
            for name in MOVED:
                now.sql(f"FROM {name}").write_parquet(f"{beside}/{name}.parquet")
        then = open_store(folder, host=host, device=device)
        for name in MOVED:
            path = f"{beside}/{name}.parquet".replace("'", "''")
            then.execute(f"CREATE TABLE _now_{name} AS FROM read_parquet('{path}')")
    for name in MOVED:
        then.execute((SQL / "whatif" / f"whatif_{name}.sql").read_text(encoding="utf-8"))
    return then


def in_words(connection: duckdb.DuckDBPyConnection, host: float, device: float) -> list[str]:
    """How many bounds move, what a step gains, and where the crossovers go that move most."""
    moved, points, speed_up, least, most, known = _row(
        connection,
        "SELECT count(*) FILTER (moves), count(*), median(speed_up), min(speed_up), max(speed_up), count(speed_up) "
        "FROM whatif_bounds WHERE bound <> 'unknown'",
    )
    told = f"With {_speed('host', host)} and {_speed('device', device)} {moved} of {points} bounds move"
    if known:
        told += f"; a step becomes {short(speed_up)}x as fast (median of {known}; {short(least)}x to {short(most)}x)"
    return [f"{told}.", *_crossovers_in_words(connection)]


def _speed(name: str, factor: float) -> str:
    return f"the same {name}" if factor == 1 else f"a {name} {short(factor)}x as fast"


def _crossovers_in_words(connection: duckdb.DuckDBPyConnection) -> list[str]:
    rows = connection.execute(
        "SELECT concat_ws(' ', workload, 'size=' || size, dtype, 'batch=' || batch, "
        "CASE compile WHEN 'false' THEN 'eager' ELSE 'compile=' || compile END, nullif(_settings(params), '')), "
        "axis, crossover, then_crossover FROM whatif_crossovers WHERE moves "
        'ORDER BY abs(ln(then_value / "value")) DESC NULLS LAST, 1, axis'
    ).fetchall()
    told = [
        f"The crossover of {name} along {axis} moves from {now} to {then}." for name, axis, now, then in rows[:TOLD]
    ]
    more = len(rows) - TOLD
    return told + ([f"So do {more} more: `whatif crossovers` lists them."] if more > 0 else [])


def _row(connection: duckdb.DuckDBPyConnection, query: str) -> tuple[Any, ...]:
    row = connection.execute(query).fetchone()
    assert row is not None
    return row
