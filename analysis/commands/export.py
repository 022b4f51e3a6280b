"""A store or a sweep as one file to take away."""

import argparse
import sys
from pathlib import Path

from analysis import store
from analysis.commands.options import WELL, Parser, add_examples, add_file, add_points, add_store, named_path, word
from analysis.commands.views import H200
from analysis.database import refuse_inside
from analysis.export import format_of, prepare, write, write_dictionary
from analysis.store import StoreError


def arguments(command: Parser) -> None:
    """Which points, and where they and their dictionary go."""
    add_points(command)
    told = "the runs of this sweep alone, as if no other had been made (default: all)"
    command.add_argument("--sweep", type=word, metavar="ID", help=told)
    add_store(command)
    add_file(command, "FILE.parquet, FILE.csv or FILE.json (default: csv on stdout)")
    command.add_argument("--format", choices=["csv", "json", "parquet"], help="default: by the name of FILE")
    told = "what each column is, in Markdown (default: FILE.md beside FILE)"
    command.add_argument("--dictionary", type=named_path, metavar="FILE", help=told)
    add_examples(
        command,
        f"export {H200} -o h200.parquet",
        f"export workload=matmul_add dtype=bf16 {H200} > bf16.csv",
    )


def run(given: argparse.Namespace) -> int:
    """Write the rows and the dictionary, and say what was written."""
    format = format_of(given.format, given.path)
    dictionary = given.dictionary or (given.path and given.path.with_name(f"{given.path.name}.md"))
    if dictionary is not None:
        refuse_inside(given.store, dictionary)
    by_sweep = given.sweep is not None and given.store.is_dir()  # where there is no store, open_store says so
    sweep_id = sweep_named(given.store, given.sweep) if by_sweep else None
    with store.open_store(given.store, sweep_id=sweep_id) as connection:
        columns = prepare(connection, given.point)
        write(connection, columns, format, given.path)
        [[rows]] = connection.execute("SELECT count(*) FROM export_rows").fetchall()
    if dictionary is not None:
        write_dictionary(columns, given.path.name if given.path else "Columns", dictionary)
    files = " and ".join(str(path) for path in (given.path, dictionary) if path)
    print(f"{rows} points, {len(columns)} columns{': ' if files else ''}{files}", file=sys.stderr)
    return WELL


def sweep_named(folder: Path, beginning: str) -> str:
    """The one sweep of the store whose id begins so. Raises StoreError: there is none, or several."""
    runs = folder / "runs"
    sweeps = sorted(path.name for path in runs.iterdir() if path.is_dir()) if runs.is_dir() else []
    fitting = [name for name in sweeps if name == beginning] or [name for name in sweeps if name.startswith(beginning)]
    if len(fitting) != 1:
        told = f"there are {', '.join(sweeps[-5:])}" if sweeps else "the store holds none"
        raise StoreError(f"--sweep {beginning} names {len(fitting)} sweeps: {told}; give a longer beginning")
    return fitting[0]
