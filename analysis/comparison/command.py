"""python -m analysis compare A B: two points, or two sides of many points."""

import argparse
import sys
from pathlib import Path

from analysis import compare
from analysis.comparison.compared import THRESHOLDS, comparison
from analysis.comparison.formats import FORMATS, TABLES, write
from analysis.comparison.sides import Side, SideError, Stores, named_side, stores, write_side
from analysis.comparison.suspects import condition, failures, thresholds
from analysis.comparison.words import in_words
from analysis.output import FORMATS as POINT_FORMATS
from analysis.output import OutputError, printable, whole

HELP = "two sweeps, stores, environments or baselines, or two profiled points, side by side"
SIDE = (
    "a store's folder, a baseline file, or sweep=ID, environment=ID, torch=, card=, commit= and other filters "
    "KEY=VALUE in one pair of quotes (of --store, or of a folder that stands before them); or a POINT"
)
WELL, SLOWER = 0, 3
OF_POINTS = ("step", "operator", "kernel")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command line of `compare`, but for --store and -o."""
    parser.add_argument("a", metavar="A", help=SIDE)
    parser.add_argument("b", metavar="B", nargs="?", help="the other side: what is SLOWER is so in B")
    parser.add_argument("--save", type=Path, metavar="FILE", help="write A, without B, as a baseline file")
    kinds = dict.fromkeys((*TABLES, *OF_POINTS))
    parser.add_argument("--by", choices=list(kinds), help=f"one table, whole; of two points: {', '.join(OF_POINTS)}")
    parser.add_argument("--shapes", action="store_true", help="two points: tell operators apart by their input shapes")
    parser.add_argument(
        "--threshold", action="append", default=[], metavar="QUANTITY=PERCENT",
        help="up to which a change is none; may be repeated (default: "
        + ", ".join(f"{quantity}={100 * frac:g}%%" for quantity, frac in THRESHOLDS.items()) + ")",
    )  # fmt: skip
    parser.add_argument(
        "--fail-on", action="append", default=[], metavar="WHAT",
        help="end with 3 where it holds, and print how to measure again: slower, slower:5%%, slower:issue:10%%, "
        "failed, unclear, crossover; may be repeated",
    )  # fmt: skip
    parser.add_argument("--format", choices=FORMATS, default="table", help="default: table")


def run(given: argparse.Namespace) -> int:
    """Compare; 3 where a condition of --fail-on holds. Raises StoreError and OutputError."""
    conditions = [condition(text) for text in given.fail_on]
    limits = thresholds(given.threshold, THRESHOLDS)
    with stores() as held:
        a = named_side(given.a, given.store, held)
        if given.save is not None:
            return _save(a, given, held)
        if given.b is None:
            raise OutputError("compare takes two sides, A and B; or A and --save FILE, which writes a baseline")
        b = named_side(given.b, given.store, held)
        if a.point and b.point:
            return _compare_points(given, held)
        if (given.by in OF_POINTS and given.by not in TABLES) or given.shapes:
            raise OutputError(f"--by {' and '.join(OF_POINTS[:2])}, and --shapes, are for two points: A or B has many")
        if a.is_same_as(b):
            raise SideError(f"A ({printable(given.a)}) and B ({printable(given.b)}) are the same runs: name two sides")
        with comparison(a, b, held, limits) as connection:
            words = in_words(connection, a, b)
            if given.format != "markdown":
                print("\n".join(words), file=sys.stdout if _on_stdout(given) else sys.stderr)
            write(connection, words, given.by, given.format, given.path)
            failed = failures(connection, conditions, b.store)
            nothing = not connection.execute("SELECT count(*) FROM matched_points WHERE state = 'compared'").fetchall()[
                0
            ][0]
    if nothing and conditions:
        raise SideError("no point was measured on both sides, so that --fail-on has nothing to judge")
    if failed:
        sys.stdout.flush()
        print("\n".join(failed), file=sys.stderr)
    return SLOWER if failed else WELL


def _save(side: Side, given: argparse.Namespace, held: Stores) -> int:
    """Write one side as a baseline file, which appears whole or not at all."""
    if given.b is not None:
        raise OutputError("--save writes one side: leave B out")
    if side.baseline is not None:
        raise SideError(f"{side.label} is a baseline already")
    if given.save.name == "":
        raise OutputError("--save needs the name of a file; for example --save base.parquet")
    with whole(given.save) as draft:
        write_side(side, held, draft)
    print(given.save)
    return WELL


def _compare_points(given: argparse.Namespace, held: Stores) -> int:
    """Two profiled points by step, operator and kernel (analysis/compare.py)."""
    if given.format not in (*POINT_FORMATS, "parquet"):
        raise OutputError(f"--format {given.format} is for sides of many points: two points have no verdicts")
    if given.by is not None and given.by not in OF_POINTS:
        raise OutputError(f"--by {given.by} is for sides of many points; of two points: {', '.join(OF_POINTS)}")
    if given.fail_on:
        raise OutputError("--fail-on is for sides of many points: name a sweep, an environment or a store with a point")
    connection = held.connection(given.store)
    runs = compare.prepare(connection, given.a, given.b, given.shapes)
    print("\n".join(compare.in_words(connection, runs)), file=sys.stdout if _on_stdout(given) else sys.stderr)
    compare.write(connection, given.by, given.format, given.path)
    return WELL


def _on_stdout(given: argparse.Namespace) -> bool:
    return given.format == "table" and given.path is None
