"""The ladder of workloads as one page: `python scripts/ladder.py STORE > docs/results/h200/ladder.md`.

STORE holds the sweeps of `scripts/ladder.sh`. Every figure of the page is asked of the store's views here.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import duckdb

from analysis.store import add, open_store

SQL = Path(__file__).parent / "ladder"
PARTS = (
    ("Where each workload stops being overhead-bound", "crossings"),
    ("Decoding one token", "decode"),
    ("The optimizers of a training step", "optimizers"),
    ("Who holds the memory of a training step", "memory"),
    ("Attention: the score matrix against the fused kernel", "attention"),
    ("Varying shapes: what each choice of `dynamic` costs", "dynamic"),
    ("Varying shapes: the allocator", "allocator"),
    ("Numerics against float64", "numerics"),
    ("Phases against the whole step", "phases"),
)
"""Title, and the query in scripts/ladder/ whose first comment introduces it."""


def main(arguments: Sequence[str]) -> int:
    """Print the page of a store."""
    (store,) = arguments
    with open_store(Path(store)) as connection:
        add(connection, "phases", "holders", "numerics", "payback", "allocator")
        connection.execute((SQL / "settings.sql").read_text())
        print(_head(connection))
        for title, name in PARTS:
            print(_part(connection, title, (SQL / f"{name}.sql").read_text()))
    return 0


def _head(connection: duckdb.DuckDBPyConnection) -> str:
    ((name, torch, hosts),) = connection.execute(
        "SELECT any_value(device_name), any_value(torch), string_agg(DISTINCT host_cpu, ', ') FROM environments"
    ).fetchall()
    ((runs, points, failed),) = connection.execute(
        "SELECT count(*), count(DISTINCT point_id), count(*) FILTER (status <> 'ok') FROM runs"
    ).fetchall()
    ((uneven,),) = connection.execute(
        "SELECT count(*) FROM points WHERE issue_us IS NULL AND starts_with(_fact(reasons, 'issue_us'), 'queue-full')"
    ).fetchall()
    return (
        f"# The ladder on an {name}\n\n"
        f"{points:,} points in {runs:,} runs, {failed} of them not ok; torch {torch}; host {hosts}. "
        "Measured by the parts of `sh scripts/ladder.sh`, but for eight quick points of `shape_sequence` (sizes 256 "
        "and 4,096) that were measured by themselves; "
        "written by `python scripts/ladder.py docs/results/h200_ladder`. "
        f"At {uneven} points the issue time is unknown: the runner of that day could take an uneven host for a full "
        "launch queue.\n\n"
        "![where the eager series in bf16 stop being overhead-bound](../../pictures/h200-ladder.png)\n"
    )


def _part(connection: duckdb.DuckDBPyConnection, title: str, query: str) -> str:
    """A section: what the query's leading comment says, and its rows as a table."""
    lines = query.splitlines()
    comment = [line.removeprefix("-- ") for line in lines if line.startswith("-- ")]
    found = connection.execute(query)
    names = [each[0] for each in found.description or ()]
    rows = found.fetchall()
    table = [_row(names), _row(["---"] * len(names)), *(_row([_cell(each) for each in row]) for row in rows)]
    return "\n".join([f"## {title}", "", *comment, "", *(table if rows else ["*Nothing of it was measured.*"]), ""])


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:,.3g}" if abs(value) < 1000 else f"{value:,.0f}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value).replace("|", "\\|")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
