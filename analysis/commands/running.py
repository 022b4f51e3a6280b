"""Run a command, and turn what went wrong into one sentence and an exit code."""

import argparse
import io
import os
import re
import sys

import duckdb

from analysis.commands.options import INTERRUPTED, NOTHING_DONE, WELL
from analysis.output import OutputError
from analysis.store import StoreError


def run(given: argparse.Namespace) -> int:
    """Run a command; the result goes to stdout, talk to stderr. Returns the exit code."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # names of a store may hold what a terminal cannot show
    try:
        code = _run(given)
        sys.stdout.flush()
        return code
    except (StoreError, OutputError) as error:
        return _say(str(error))
    except duckdb.Error as error:
        return _say(in_one_line(error))
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return WELL
    except OSError as error:
        return _say(f"the result cannot be written: {error.strerror or error}")
    except KeyboardInterrupt:
        return INTERRUPTED


def _run(given: argparse.Namespace) -> int:
    """Run the command, and again where a file that was live when the store was opened has vanished since."""
    try:
        code: int = given.run(given)
    except duckdb.IOException:
        code = given.run(given)
    return code


def in_one_line(error: duckdb.Error) -> str:
    """DuckDB's message in one line: what is wrong, what it proposes, the line of the query, and where to look it up."""
    told, _, shown = str(error).partition("\n\nLINE ")
    sentence = " ".join(told.split())
    if place := re.match(r"(\d+): (.*)", shown):
        sentence += f" In line {place[1]}: {place[2].strip()}"
    return sentence + _CURES.get(type(error), "")


_CURES: dict[type[duckdb.Error], str] = {
    duckdb.CatalogException: " (python -m analysis describe lists the relations)",
    duckdb.BinderException: " (python -m analysis describe RELATION lists its columns)",
}


def _say(message: str) -> int:
    print(f"python -m analysis: {message}", file=sys.stderr)
    return NOTHING_DONE
