"""What commands share on the command line: the store, the result's format and file, how points are named, examples."""

import argparse
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

from analysis.commands import completing

STORE = Path("outputs/store")
FORMATS = ("table", "csv", "json", "parquet")

WELL, NOTHING_DONE, FIGURE_MISSED, SLOWER, INTERRUPTED = 0, 1, 2, 3, 130
"""Exit codes."""

POINT = "id of a point or run, a beginning of one, or filters: workload=matmul_add size=64"


class Parser(argparse.ArgumentParser):
    """A parser whose usage errors end with 1: nothing could be done."""

    def error(self, message: str) -> NoReturn:
        self.exit(NOTHING_DONE, f"{self.prog}: {message} (--help lists what is allowed)\n")


def add_store(command: Parser) -> None:
    """--store DIR."""
    told = f"folder of the store ({STORE})"
    command.add_argument("--store", type=named_path, default=STORE, metavar="DIR", help=told)


def add_file(command: Parser, told: str = "write to FILE instead of stdout") -> None:
    """-o FILE; `path` is None where it is not given."""
    command.add_argument("-o", dest="path", type=named_path, metavar="FILE", help=told)


def add_result(command: Parser) -> None:
    """What every command has whose result is rows: the store, the file, the format."""
    add_store(command)
    add_file(command)
    command.add_argument("--format", choices=FORMATS, default="table", help="default: table")


def add_point(command: Parser) -> None:
    """POINT that names one point."""
    _completed(command.add_argument("point", nargs="+", metavar="POINT", help=POINT), completing.points)


def add_points(command: Parser, default: str = "all") -> None:
    """POINT that may name several, or none: all of them."""
    told = f"{POINT}; default: {default}"
    _completed(command.add_argument("point", nargs="*", metavar="POINT", help=told), completing.points)


def add_word(command: Parser, name: str, values: Callable[..., Any], **settings: Any) -> None:
    """An argument whose values `values` completes."""
    _completed(command.add_argument(name, **settings), values)


def add_examples(command: Parser, *examples: str) -> None:
    """Command lines behind `python -m analysis`, shown at the end of --help; tests run each of them."""
    lines = [f"  python -m analysis {example}" for example in examples]
    command.epilog = "\n".join(["examples:" if len(lines) > 1 else "example:", *lines])


def count(text: str) -> int:
    """A whole number from 0, as a type of an argument."""
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text}: allowed is a whole number from 0")
    return int(text)


def word(text: str) -> str:
    """A text that is not empty, as a type of an argument: an empty one is mostly a shell's variable that is not set."""
    if not text.strip():
        raise argparse.ArgumentTypeError("it is empty: give it a value, or leave it out")
    return text


def named_path(text: str) -> Path:
    """A path, as a type of an argument; an empty text is none, though to Path it is the current folder."""
    return Path(word(text))


def elsewhere(store: Path) -> str:
    """What a command that is told to the user needs to read the same store: nothing for the usual one."""
    return "" if store == STORE else f" --store {shlex.quote(str(store))}"


def is_told(given: argparse.Namespace) -> bool:
    """Whether the result is a table on stdout, where words may stand beside it."""
    return given.format == "table" and given.path is None


def _completed(argument: argparse.Action, values: Callable[..., Any]) -> None:
    argument.completer = values  # type: ignore[attr-defined]  # where argcomplete looks for it
