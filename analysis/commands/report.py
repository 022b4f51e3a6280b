"""The report."""

import argparse
from pathlib import Path

from analysis import store
from analysis.commands import completing
from analysis.commands.options import POINT, WELL, Parser, add_examples, add_file, add_store, add_word, named_path
from analysis.naming import named_runs
from analysis.output import OutputError, whole
from analysis.report import write_charts, write_report

REPORT = Path("outputs/report.html")


def arguments(command: Parser) -> None:
    """Where the report goes, which points get a page, where the charts go as pictures."""
    told = f"{POINT}; each in quotes. These points get a page of their own (default: representative ones)"
    add_word(command, "--points", completing.points, nargs="+", metavar="POINT", help=told)
    command.add_argument("--charts", type=named_path, metavar="DIR", help="write every chart as PNG and SVG as well")
    add_store(command)
    add_file(command, f"where to write it ({REPORT})")
    command.set_defaults(path=REPORT)
    add_examples(
        command,
        "report --store docs/results/h200 -o h200.html",
        "report --store docs/results/h200 --points 'workload=matmul_add size=64 dtype=bf16' -o h200.html",
    )


def run(given: argparse.Namespace) -> int:
    """Write the report and what else was asked for, and say where."""
    with store.open_store(given.store) as connection:
        runs = [run for point in given.points or () for run in named_runs(connection, point)]
        try:
            with whole(given.path) as draft:
                write_report(connection, draft, runs if given.points else None)
            print(given.path)
            for path in write_charts(connection, given.charts) if given.charts else ():
                print(path)
        except OSError as error:
            raise OutputError(f"{error.filename or given.path} cannot be written: {error.strerror}") from error
    return WELL
