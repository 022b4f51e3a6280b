"""The rules behind the findings."""

import argparse

from analysis.commands import completing
from analysis.commands.options import WELL, Parser, add_examples, add_result, add_word
from analysis.findings import write_rules


def arguments(command: Parser) -> None:
    """A rule, or none for all of them."""
    add_word(command, "rule", completing.rules, nargs="?", metavar="RULE", help="one of them in full; default: all")
    add_result(command)
    add_examples(command, "rules", "rules host_far_above_device")


def run(given: argparse.Namespace) -> int:
    """Write the rules; reads no store."""
    write_rules(given.rule, given.format, given.path)
    return WELL
