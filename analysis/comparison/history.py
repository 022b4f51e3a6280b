"""python -m analysis history QUANTITY: one quantity of every point over the sweeps of a store (sql/comparison/)."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import duckdb

from analysis.comparison.compared import THRESHOLDS, Row, chance, rows_of
from analysis.comparison.sides import make, narrow, selected, stores, widen
from analysis.comparison.significance import holm
from analysis.comparison.suspects import percent
from analysis.output import FORMATS, OutputError, printable, short, whole, write_rows
from analysis.store import StoreError

HELP = "one quantity of every point over the sweeps of a store, in time order, and where it really changed"
WELL = 0
CROSSOVER = "crossover"
QUANTITIES = {
    "wall_us": THRESHOLDS["wall"],
    "issue_us": THRESHOLDS["issue"],
    "device_us": THRESHOLDS["device"],
    "replay_us": THRESHOLDS["device"],
    "single_us": THRESHOLDS["issue"],
    "busy_us": THRESHOLDS["device"],
    "blocked_us": THRESHOLDS["issue"],
    "floor_us": THRESHOLDS["issue"],
    "margin": THRESHOLDS["issue"],
    "compile_s": THRESHOLDS["compile"],
    "peak_bytes": THRESHOLDS["memory"],
    CROSSOVER: THRESHOLDS["crossover"],
}
"""Quantities, and the fraction up to which a change of each is none."""
CHANGED = ("SLOWER", "FASTER", "HIGHER", "LOWER")
TOLD = 5
"""Changes that are told in words."""

ORDER = "name, axis, started_at, sweep_id, environment_id"
SHOWN = 'name, axis, strftime(started_at, \'%Y-%m-%d %H:%M\') AS started, sweep_id, "value", low, high, runs, ratio, ' \
    "verdict, nullif(note, '') AS note"  # fmt: skip


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command line of `history`, but for --store and -o."""
    parser.add_argument("quantity", choices=list(QUANTITIES), metavar="QUANTITY", help=", ".join(QUANTITIES))
    parser.add_argument(
        "filters", nargs="*", metavar="KEY=VALUE", help="which points, sweeps and environments (default: all)"
    )
    parser.add_argument(
        "--threshold", metavar="PERCENT", help="up to which a change is none (by quantity, 1%% to 10%%)"
    )
    parser.add_argument("--chart", type=Path, metavar="FILE", help="draw it as well: FILE.svg or FILE.png")
    parser.add_argument("--format", choices=[*FORMATS, "parquet"], default="table", help="default: table")


def run(given: argparse.Namespace) -> int:
    """Write the history of a quantity, and its chart. Raises StoreError and OutputError."""
    threshold = QUANTITIES[given.quantity] if given.threshold is None else percent(given.threshold)
    if threshold is None:
        raise OutputError(f"--threshold {printable(given.threshold)}: allowed is a share; for example 5%")
    if given.chart is not None and given.chart.suffix not in (".svg", ".png"):
        raise OutputError(f"--chart {given.chart}: allowed is a file that ends in .svg or .png")
    with stores() as held:
        connection = held.connection(given.store)
        prepare(connection, given.quantity, selected(connection, given.filters, given.store), threshold)
        is_table = given.format == "table" and given.path is None
        print("\n".join(in_words(connection, given.quantity)), file=sys.stdout if is_table else sys.stderr)
        if is_table:
            print()
        columns = SHOWN if given.format == "table" else "*"
        write_rows(connection, f"SELECT {columns} FROM history ORDER BY {ORDER}", given.format, given.path)
        if given.chart is not None:
            _draw(connection, given.quantity, given.chart)
    return WELL


def prepare(connection: duckdb.DuckDBPyConnection, quantity: str, run_ids: Sequence[str], threshold: float) -> None:
    """Make the relation `history` of a store of `Stores`, of these runs alone.

    Raises:
        StoreError: no run has the quantity.
    """
    connection.execute("SET VARIABLE history_quantity = ?", [quantity])
    connection.execute("SET VARIABLE history_threshold = ?", [threshold])
    connection.execute(
        "CREATE OR REPLACE TEMP TABLE _history_runs AS SELECT unnest(?::VARCHAR[]) AS run_id", [list(run_ids)]
    )
    make(connection, "_names")
    make(connection, "_history")
    if quantity == CROSSOVER:
        _fill_crossovers(connection)
    if not rows_of(connection, 'SELECT 1 FROM _history WHERE "value" IS NOT NULL OR axis IS NOT NULL LIMIT 1'):
        raise StoreError(f"no run that fits has a value of {quantity}: `python -m analysis runs` lists what there is")
    make(connection, "_history_changes")
    _judge(connection)
    make(connection, "history")


def _fill_crossovers(connection: duckdb.DuckDBPyConnection) -> None:
    """Put the crossovers of each sweep, from its own runs, in `_history`."""
    sweeps = rows_of(
        connection,
        "SELECT sweep_id, min(started_at) AS started_at, list(run_id) AS run_ids "
        "FROM _every_run SEMI JOIN _history_runs USING (run_id) GROUP BY sweep_id ORDER BY started_at, sweep_id",
    )
    for sweep in sweeps:
        narrow(connection, sweep["run_ids"])
        make(connection, "side_crossovers")
        connection.execute(
            """INSERT INTO _history BY NAME
            SELECT
                series AS axes, name, axis, 'crossover' AS kind, ?::VARCHAR AS sweep_id, ?::TIMESTAMP AS started_at,
                environment_id, 0 AS runs, "value", low, high, status, reason
            FROM side_crossovers""",
            [sweep["sweep_id"], sweep["started_at"]],
        )
    widen(connection)


def _judge(connection: duckdb.DuckDBPyConnection) -> None:
    """Fill `_history_chances`: how likely each change is chance, alone and among all."""
    rows = rows_of(connection, "FROM _history_changes WHERE error IS NOT NULL AND axis IS NULL")
    chances = [chance(row["log_ratio"], row["error"], row["dof"]) for row in rows]
    connection.execute(
        "CREATE OR REPLACE TEMP TABLE _history_chances "
        "(axes VARCHAR, sweep_id VARCHAR, environment_id VARCHAR, chance DOUBLE, corrected DOUBLE)"
    )
    keys = [[row[name] for row in rows] for name in ("axes", "sweep_id", "environment_id")]
    connection.execute(
        "INSERT INTO _history_chances SELECT unnest(?::VARCHAR[]), unnest(?::VARCHAR[]), unnest(?::VARCHAR[]), "
        "unnest(?::DOUBLE[]), unnest(?::DOUBLE[])",
        [*keys, chances, holm(chances)],
    )


def in_words(connection: duckdb.DuckDBPyConnection, quantity: str) -> list[str]:
    """How many sweeps and points there are, and the greatest real changes."""
    rows = rows_of(connection, f"FROM history ORDER BY {ORDER}")
    sweeps, names = len({row["sweep_id"] for row in rows}), len({(row["name"], row["axis"]) for row in rows})
    thing = "series" if quantity == CROSSOVER else "point" if names == 1 else "points"
    changed = [row for row in rows if row["verdict"] in CHANGED]
    over = f"{names} {thing} over {sweeps} sweep{'' if sweeps == 1 else 's'}"
    told = [f"{quantity} of {over}: {len(changed)} real change{'' if len(changed) == 1 else 's'}."]
    if any(row["basis"] == "runs alone" and row["ratio"] is not None for row in rows) and quantity != CROSSOVER:
        told.append(
            "Too few sweeps repeat a point to know how much sweeps differ: changes rest on the runs' own intervals, "
            "which another session leaves more often than 1 time in 20."
        )
    changed.sort(key=lambda row: max(row["ratio"] or 1, 1 / (row["ratio"] or 1)), reverse=True)
    return told + [_change(row) for row in changed[:TOLD]]


def _change(row: Row) -> str:
    times = f"{short(row['ratio'])} times, " if row["ratio"] is not None else ""
    beside = f"{short(row['previous'])} to {short(row['value'])}" if row["ratio"] is not None else "its bracket moved"
    note = f" ({printable(row['note'])})" if row["note"] else ""
    when = row["started_at"].strftime("%Y-%m-%d %H:%M") if row["started_at"] else "at an unknown time"
    return f"{row['verdict']} since {when}, sweep {row['sweep_id']}: {printable(row['name'])}, {times}{beside}{note}."


def _draw(connection: duckdb.DuckDBPyConnection, quantity: str, path: Path) -> None:
    from analysis.comparison.history_chart import draw

    picture = draw(rows_of(connection, f"FROM history ORDER BY {ORDER}"), quantity, path.suffix.removeprefix("."))
    with whole(path) as draft:
        draft.write_bytes(picture)
    print(path, file=sys.stderr)
