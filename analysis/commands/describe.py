"""What can be queried."""

import argparse

from analysis.commands import completing
from analysis.commands.options import WELL, Parser, add_examples, add_result, add_word, is_told
from analysis.describe import check, documented, write_columns, write_relations


def arguments(command: Parser) -> None:
    """A relation, or none for all of them."""
    told = "one of them, with its columns; default: all, with what a row of each is"
    add_word(command, "relation", completing.relations, nargs="?", metavar="RELATION", help=told)
    add_result(command)
    add_examples(command, "describe", "describe bounds", "describe kernels --format json")


def run(given: argparse.Namespace) -> int:
    """Write the relations, or the columns of one; reads no store."""
    if given.relation is None:
        write_relations(given.format, given.path)
        return WELL
    check(given.relation)
    if is_told(given):
        about = documented(given.relation)
        print(f"{about.name}: {about.grain}\n{about.holds}\n")
    write_columns(given.relation, given.format, given.path)
    return WELL
