"""A DuckDB file over the store."""

import argparse
import shlex
import sys
from pathlib import Path

from analysis.commands.options import WELL, Parser, add_examples, add_file, add_store
from analysis.commands.views import H200
from analysis.database import how_to, write_database

DATABASE = Path("outputs/crossover.duckdb")


def arguments(command: Parser) -> None:
    """Where the file goes."""
    add_store(command)
    add_file(command, f"where to write it, outside the store ({DATABASE})")
    add_examples(command, f"open {H200} -o h200.duckdb")


def run(given: argparse.Namespace) -> int:
    """Write the file or write it again, and say how to use it."""
    path = given.path or DATABASE
    loose = write_database(given.store, path)
    print(path)
    print(how_to(path), file=sys.stderr)
    if loose:
        cure = f"python -m runner.store compact --store {shlex.quote(str(given.store))}"
        print(f"Its views read {loose} small files, which is slow: `{cure}`, then `open` again.", file=sys.stderr)
    return WELL
