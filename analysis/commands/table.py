"""The profiler's operator table."""

import argparse
import sys

from analysis import store
from analysis.commands import completing
from analysis.commands.options import WELL, Parser, add_examples, add_point, add_result, add_word, count
from analysis.table import in_words, prepare, write


def arguments(command: Parser) -> None:
    """The point, and the rows to show."""
    add_point(command)
    told = "a key of torch's, such as cpu_time_total, self_cuda_time_total, count"
    add_word(command, "--sort", completing.sort_keys, metavar="KEY", help=told)
    command.add_argument("--limit", type=count, metavar="N", help="rows (100 in a table, else all)")
    command.add_argument("--shapes", action="store_true", help="tell operators apart by their input shapes")
    add_result(command)
    point = "workload=matmul_add size=64 dtype=bf16 compile=false batch=null --store docs/results/h200"
    add_examples(command, f"table {point}", f"table {point} --sort self_cuda_time_total --limit 5")


def run(given: argparse.Namespace) -> int:
    """Write the operators, and what the totals say."""
    with store.open_store(given.store) as connection:
        prepare(connection, " ".join(given.point), given.shapes)
        write(connection, given.sort, given.limit, given.format, given.path)
        if given.format != "table":
            print("\n".join(in_words(connection)), file=sys.stderr)
    return WELL
