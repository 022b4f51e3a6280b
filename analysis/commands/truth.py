"""Whether the verdicts are true."""

import argparse
import sys

from analysis import store
from analysis.commands.options import FIGURE_MISSED, FORMATS, WELL, Parser, add_examples, add_file, add_store
from analysis.commands.views import H200
from analysis.naming import ORDER
from analysis.output import write_rows, write_text
from analysis.truth import MISSED, gather, targets
from analysis.truth_report import in_words


def arguments(command: Parser) -> None:
    """The usual, and a report in markdown."""
    add_store(command)
    add_file(command)
    formats = [FORMATS[0], "markdown", *FORMATS[1:]]
    told = "the report (table, markdown) or its points (default: table)"
    command.add_argument("--format", choices=formats, default="table", help=told)
    add_examples(command, f"truth {H200}", f"truth {H200} --format markdown -o truth.md")


def run(given: argparse.Namespace) -> int:
    """Write the report, or the points that it rests on; 2 where a target is missed."""
    evidence = gather(given.store)
    if given.format in ("table", "markdown"):
        write_text(in_words(evidence), given.path)
    else:
        with store.open_store(given.store) as connection:
            write_rows(connection, f"FROM truth ORDER BY {ORDER}, point_id", given.format, given.path)
    missed = [f"{each.name} ({each.reached})" for each in targets(evidence) if each.state == MISSED]
    if missed:
        print(f"python -m analysis truth: missed: {'; '.join(missed)}", file=sys.stderr)
    return FIGURE_MISSED if missed else WELL
