"""What would bind on another host or card."""

import argparse
import sys

from analysis.commands.options import WELL, Parser, add_examples, add_result, is_told
from analysis.commands.views import AXES, H200
from analysis.naming import ORDER
from analysis.output import without_empty_columns, write_rows
from analysis.whatif import in_words, open_whatif

FASTEST = 1000.0
"""How many times faster or slower a host or a device may be made: beyond that no two machines differ."""

SHOWN = {
    "bounds": f"{AXES}, bound, then_bound, margin, then_margin, wall_us, then_wall_us, speed_up",
    "crossovers": f"{AXES}, axis, crossover, then_crossover, status, then_status",
}
"""Columns of the tables."""


def arguments(command: Parser) -> None:
    """How much faster, and what to show of it."""
    command.add_argument("of", nargs="?", choices=[*SHOWN], default="bounds", help="default: bounds")
    for name in ("host", "device"):
        told = f"how many times as fast a {name} (1)"
        command.add_argument(f"--{name}", type=_factor, default=1.0, metavar="TIMES", help=told)
    add_result(command)
    add_examples(command, f"whatif --host 1.5 {H200}", f"whatif crossovers --device 2 {H200}")


def run(given: argparse.Namespace) -> int:
    """Say what moves, then write the rows, those that move first."""
    with open_whatif(given.store, given.host, given.device) as connection:
        told, words = is_told(given), in_words(connection, given.host, given.device)
        print("\n".join(words), end="\n\n" if told else "\n", file=sys.stdout if told else sys.stderr)
        columns = SHOWN[given.of] if given.format == "table" else "*"
        query = f"SELECT {columns} FROM whatif_{given.of} ORDER BY moves DESC, {ORDER}"
        if given.format == "table":
            query = without_empty_columns(connection, query)
        write_rows(connection, query, given.format, given.path)
    return WELL


def _factor(text: str) -> float:
    try:
        factor = float(text)
    except ValueError:
        factor = 0.0
    if not FASTEST**-1 <= factor <= FASTEST:
        limits = f"{1 / FASTEST:g} to {FASTEST:g}"
        raise argparse.ArgumentTypeError(f"{text}: allowed is a number from {limits}; for example 1.5")
    return factor
