"""What the rules found."""

import argparse

from analysis import store
from analysis.commands.options import WELL, Parser, add_examples, add_points, add_result, elsewhere
from analysis.findings import write_of_run, write_of_store, write_outcomes
from analysis.naming import named_run


def arguments(command: Parser) -> None:
    """A point or none, and whether to tell what was not found as well."""
    add_points(command, "all, a row a rule")
    told = "what every rule says, also where it found nothing, and why"
    command.add_argument("--outcomes", action="store_true", help=told)
    add_result(command)
    add_examples(command, "findings --store docs/results/h200_findings")


def run(given: argparse.Namespace) -> int:
    """Write the findings of one point in prose, or of all as rows."""
    with store.open_store(given.store) as connection:
        run = named_run(connection, " ".join(given.point)) if given.point else None
        if given.outcomes:
            write_outcomes(connection, run, given.format, given.path)
        elif run is not None:
            write_of_run(connection, run, given.format, given.path, elsewhere(given.store))
        else:
            write_of_store(connection, given.format, given.path)
    return WELL
