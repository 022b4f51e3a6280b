"""Run a command, and turn what went wrong into one sentence and an exit code."""

import argparse
import io
import os
import re
import sys
from pathlib import Path

import duckdb

from analysis.commands.options import INTERRUPTED, NOTHING_DONE, WELL
from analysis.database import refuse_inside
from analysis.output import OutputError
from analysis.store import StoreError

READ = ("store", "file")
"""Options whose paths are only read; every other one is written."""


def run(given: argparse.Namespace) -> int:
    """Run a command; the result goes to stdout, talk to stderr. Returns the exit code."""
    if sys.stdout is None:
        return _say("stdout is closed: leave it open, or send it to a file")
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # names of a store may hold what a terminal cannot show
    try:
        code = _run(given)
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return WELL
    except Exception as error:
        if is_interrupt(error):
            return INTERRUPTED
        told = in_words(error)
        if told is None:
            raise
        return _say(told)


def refuse_to_write_in(store: Path, given: argparse.Namespace) -> None:
    """Raises OutputError where an option names a place in the store to write to."""
    for path in _written(given):
        refuse_inside(store, path)


def _refuse_one_file_for_two(given: argparse.Namespace) -> None:
    """Raises OutputError where two options name the same file: one would overwrite the other."""
    files = [path.resolve() for path in _written(given) if path.is_file() or not path.exists()]
    for path in files:
        if files.count(path) > 1:
            raise OutputError(f"two results cannot both be written to {path}: name two files")


def _written(given: argparse.Namespace) -> list[Path]:
    """The paths that options name to write to. Raises OutputError: links of one lead in a circle."""
    paths = [value for option, value in vars(given).items() if isinstance(value, Path) and option not in READ]
    for path in paths:
        try:
            path.resolve()
        except (OSError, RuntimeError) as error:
            raise OutputError(f"{path} cannot be written: its links lead in a circle; name another file") from error
    return paths


def _run(given: argparse.Namespace) -> int:
    """Run the command, and again where a file that was live when the store was opened has vanished since."""
    if "store" in given and given.store.is_dir():
        refuse_to_write_in(given.store, given)
    _refuse_one_file_for_two(given)
    try:
        code: int = given.run(given)
    except duckdb.IOException:
        code = given.run(given)
    return code


def is_interrupt(error: BaseException) -> bool:
    """Whether Ctrl-C is behind an error. DuckDB tells it by an error of its own, which others may have wrapped."""
    behind = error.__cause__ or error.__context__
    return (
        isinstance(error, (KeyboardInterrupt, duckdb.InterruptException))
        or (isinstance(error, RuntimeError) and str(error) == "Query interrupted")
        or (behind is not None and is_interrupt(behind))
    )


def in_words(error: Exception) -> str | None:
    """One sentence on an error that is the user's to cure; None for a fault of this program."""
    if isinstance(error, (StoreError, OutputError)):
        return str(error)
    if isinstance(error, duckdb.Error):
        return in_one_line(error)
    if isinstance(error, OSError):
        return f"the result cannot be written: {error.strerror or error}"
    return None


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
    if sys.stderr is not None:
        print(f"python -m analysis: {message}", file=sys.stderr)
    return NOTHING_DONE
