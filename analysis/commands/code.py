"""The code that torch.compile generated."""

import argparse

from analysis import store
from analysis.code import write
from analysis.commands.options import WELL, Parser, add_examples, add_file, add_point, add_store


def arguments(command: Parser) -> None:
    """The point."""
    add_point(command)
    add_store(command)
    add_file(command)
    add_examples(command, "code 0fc3b6c4 --store docs/results/h200_findings")


def run(given: argparse.Namespace) -> int:
    """Write the generated files of a point."""
    with store.open_store(given.store) as connection:
        write(connection, " ".join(given.point), given.path)
    return WELL
