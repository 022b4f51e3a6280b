"""python -m analysis NAME: ask a store for its verdicts."""

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import duckdb

from analysis.output import FORMATS, OutputError, short, write_rows
from analysis.store import StoreError, first_line, open_store

STORE = Path("outputs/store")
REPORT = Path("outputs/report.html")
LAW_SHARE = 0.95
"""Share of points that must keep the step law within 5 %."""

AXES = "workload, size, dtype, batch, compile, dynamic, warmup, device, params"
ORDER = "environment_id, workload, dtype, batch, compile, dynamic, warmup, device, params, size"

WELL, NOTHING_DONE, FIGURE_MISSED, INTERRUPTED = 0, 1, 2, 130


@dataclass(frozen=True)
class View:
    """A relation as a command: `shown` are the columns of its table, all columns go to the other formats."""

    help: str
    order: str
    shown: str = "*"


VIEWS = {
    "bounds": View(
        "what binds each point, why, and what it would gain without overhead",
        ORDER,
        f"{AXES}, wall_us, issue_us, device_us, floor_us, bound, margin, gain, reason",
    ),
    "crossovers": View(
        "where along an axis the overhead stops binding",
        f"axis, {ORDER}",
        f'{AXES}, axis, "text" AS crossover, status, reason, command',
    ),
    "law": View(
        "how well wall = max(issue, device) holds, and who agrees with the bounds",
        ORDER,
        f"{AXES}, bound, wall_us, model_us, deviation, margin, slopes_verdict, slopes_agree, replay_verdict, replay_agrees",
    ),
    "points": View(
        "the points, their runs combined",
        ORDER,
        f"{AXES}, runs, ok_runs, status, wall_us, issue_us, device_us, replay_us, single_us, busy_us, floor_us, reason",
    ),
    "runs": View(
        "every measurement of a point",
        "run_id",
        f"run_id, {AXES}, status, wall_us, issue_us, device_us, replay_us, single_us, busy_us, floor_us, reason",
    ),
    "environments": View(
        "where the runs were measured",
        "environment_id",
        "environment_id, device, device_name, host_cpu, threads, torch, python, driver, multiprocessors",
    ),
    "steps": View("profiled steps: host time, busy device time, launches", "run_id, step"),
    "kernels": View(
        "kernels of each run: launch parameters, times, occupancy",
        "run_id, total_us DESC, name, grid, block",
        "run_id, name, grid, block, registers_per_thread, shared_memory_bytes, calls, median_us, total_us, occupancy, waves",
    ),
    "perturbation": View(
        "host time with and without the profiler",
        f"{ORDER}, run_id",
        f"run_id, {AXES}, profiled_host_us, unprofiled_host_us, perturbation, reason",
    ),
    "roofs": View("ceilings measured on the device", "environment_id, roof, dtype"),
    "axes": View("every axis of every run", "run_id, axis"),
}


class Parser(argparse.ArgumentParser):
    """A parser whose usage errors end with 1: nothing could be done."""

    def error(self, message: str) -> NoReturn:
        self.exit(NOTHING_DONE, f"{self.prog}: {message} (--help lists what is allowed)\n")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; the result goes to stdout, talk to stderr. Returns the exit code."""
    try:
        given = parser().parse_args(arguments)
        code: int = given.run(given)
        sys.stdout.flush()
        return code
    except (StoreError, OutputError) as error:
        return _say(str(error))
    except duckdb.Error as error:
        return _say(first_line(error))
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return WELL
    except KeyboardInterrupt:
        return INTERRUPTED


def parser() -> argparse.ArgumentParser:
    """The command line."""
    top = Parser(prog="python -m analysis", description="Verdicts of a store of measured points.")
    commands = top.add_subparsers(metavar="NAME", required=True)
    for name, view in VIEWS.items():
        run = _run_law if name == "law" else _run_view
        _add(commands, name, view.help, run, formats=True).set_defaults(name=name)
    query = _add(commands, "sql", "the result of a query; DESCRIBE runs lists columns", _run_sql, formats=True)
    query.add_argument("query", help="a query over the relations above, events and samples")
    _add(commands, "report", "one HTML file that needs no network", _run_report, formats=False)
    return top


def _add(
    commands: "argparse._SubParsersAction[Parser]",
    name: str,
    help: str,
    run: Callable[[argparse.Namespace], int],
    formats: bool,
) -> argparse.ArgumentParser:
    command = commands.add_parser(name, help=help, description=help)
    command.add_argument("--store", type=Path, default=STORE, metavar="DIR", help=f"folder of the store ({STORE})")
    command.add_argument("-o", dest="path", type=Path, metavar="FILE", help="write to FILE instead of stdout")
    if formats:
        command.add_argument("--format", choices=[*FORMATS, "parquet"], default="table", help="default: table")
    command.set_defaults(run=run)
    return command


def _run_view(given: argparse.Namespace) -> int:
    with open_store(given.store) as connection:
        write_rows(connection, _query(connection, given.name, given.format), given.format, given.path)
    return WELL


def _run_sql(given: argparse.Namespace) -> int:
    with open_store(given.store) as connection:
        write_rows(connection, given.query, given.format, given.path)
    return WELL
