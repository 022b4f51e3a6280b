"""The events of a point as a Chrome trace."""

import argparse
import sys

from analysis import store
from analysis.commands.options import NOTHING_DONE, WELL, Parser, add_examples, add_file, add_point, add_store
from analysis.naming import named_run
from analysis.perfetto import show
from analysis.trace import default_path, export, span_of


def arguments(command: Parser) -> None:
    """The point, and whether to look at it at once."""
    add_point(command)
    command.add_argument("--open", action="store_true", help="serve it to ui.perfetto.dev in the browser")
    told = "with --open: show this event, as findings name it"
    command.add_argument("--at", type=int, metavar="EVENT_ID", help=told)
    add_store(command)
    add_file(command, "where to write it (outputs/traces/NAME.json.gz)")
    add_examples(
        command, "trace workload=matmul_add size=64 dtype=bf16 compile=false batch=null --store docs/results/h200"
    )


def run(given: argparse.Namespace) -> int:
    """Write the trace; with --open serve it until the browser has it."""
    with store.open_store(given.store) as connection:
        run = named_run(connection, " ".join(given.point))
        path = given.path or default_path(run)
        span_ns = span_of(connection, run, given.at) if given.at is not None else None
        events = export(connection, run, path)
    print(path)
    print(f"{events} events of run {run.run_id} ({run.label})", file=sys.stderr)
    return WELL if not given.open or show(path, span_ns=span_ns) else NOTHING_DONE
