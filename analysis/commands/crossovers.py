"""Where overhead stops binding, and the searches that narrow it."""

import argparse
import shlex

import duckdb

from analysis import store
from analysis.commands import views
from analysis.commands.options import WELL, elsewhere, is_told
from analysis.commands.views import rows_of, write_view
from analysis.naming import ORDER

NARROWED = 3
"""Crossings for which a search is printed; the column has all."""

arguments = views.arguments


def run(given: argparse.Namespace) -> int:
    """Write the crossovers; below a table the searches that narrow the first of them."""
    with store.open_store(given.store) as connection:
        write_view(connection, given)
        if is_told(given):
            place = f" store={shlex.quote(str(given.store))}" if elsewhere(given.store) else ""
            told = narrowing(connection, rows_of(connection, "crossovers", given.point), place)
            print("".join(f"\n{sentence}" for sentence in told), end="")
    return WELL


def narrowing(connection: duckdb.DuckDBPyConnection, source: str = "crossovers", place: str = "") -> list[str]:
    """The searches that narrow the first crossings of a wide bracket, those without a value before all others.

    place: what a search needs to measure into the same store.
    """
    rows = connection.execute(
        f'SELECT axis, "text", command FROM {source} WHERE command IS NOT NULL '
        f"ORDER BY status <> 'bracketed', axis, {ORDER}"
    ).fetchall()
    told = [
        f"to narrow the crossing {text} of {axis}:\n  {command}{place}\n" for axis, text, command in rows[:NARROWED]
    ]
    more = len(rows) - NARROWED
    return told + ([f"and {more} more: column command of `--format csv`\n"] if more > 0 else [])
