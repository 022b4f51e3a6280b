"""python -m analysis NAME: ask a store for its verdicts."""

import argparse
import io
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import duckdb

from analysis.output import FORMATS, OutputError, short, write_rows, write_text
from analysis.store import ON_DEMAND, StoreError, add, document, first_line, open_store

STORE = Path("outputs/store")
REPORT = Path("outputs/report.html")
POINT = "id of a point or run, a unique beginning of one, or filters: workload=matmul_add size=64"
NARROWED = 3
"""Crossings for which a search is printed; the column has all."""
FASTEST = 1000.0
"""How many times faster or slower `whatif` may make a host or a device: beyond that no two machines differ."""
LAW_SHARE = 0.95
"""Share of points that must keep the step law within 5 %."""

AXES = (
    "workload, size, dtype, batch, compile, CASE WHEN compile <> 'false' THEN dynamic END AS dynamic, "
    "warmup, device, nullif(_settings(params), '') AS settings"
)
ORDER = "environment_id, workload, dtype, batch, compile, dynamic, warmup, device, params, size"

WELL, NOTHING_DONE, FIGURE_MISSED, INTERRUPTED = 0, 1, 2, 130


@dataclass(frozen=True)
class View:
    """A relation as a command: `shown` are the columns of its table; the other formats have all columns."""

    help: str
    order: str
    shown: str = "*"


VIEWS = {
    "bounds": View(
        "what binds each point, why, and what it would gain without overhead",
        f"{ORDER}, point_id",
        f"{AXES}, wall_us, issue_us, device_us, floor_us, bound, margin, gain, reason",
    ),
    "crossovers": View(
        "where along an axis the overhead stops binding",
        f"axis, {ORDER}",
        f'{AXES}, axis, "text" AS crossover, status, reason',
    ),
    "confidence": View(
        "how sure each verdict is, and whether one run alone would have said the same",
        f"confidence, {ORDER}, point_id",
        f"{AXES}, bound, margin, margin_low, margin_high, confidence, flips, flip_factor, ok_runs AS runs, "
        "spread_frac, spread_source, host_noise",
    ),
    "law": View(
        "how well wall = max(issue, device) holds, and who agrees with the bounds",
        f"{ORDER}, point_id",
        f"{AXES}, bound, wall_us, model_us, deviation, margin, "
        "slopes_verdict, slopes_agree, replay_verdict, replay_agrees",
    ),
    "points": View(
        "the points, their runs combined",
        f"{ORDER}, point_id",
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
        "run_id, name, grid, block, registers_per_thread AS registers, shared_memory_bytes, calls, median_us, "
        "total_us, occupancy, waves",
    ),
    "gaps": View(
        "when and why the device did no work in a trace",
        "run_id, device, start_ns",
        "run_id, device, step, round((start_ns - min(start_ns) OVER (PARTITION BY run_id)) / 1e3, 3) AS start_us, "
        "round(dur_ns / 1e3, 3) AS dur_us, cause, detail, next_event_id, launch_id",
    ),
    "audits": View(
        "what an import read of each file, and what it set aside, repaired or lost",
        "file, run_id",
        "file, events, kept, set_aside, repaired, lost_events, device_events, unlinked, overlapping, outside_steps, "
        "before_launch, suspiciously_long, step_method, steps, rank, line",
    ),
    "perturbation": View(
        "host time with and without the profiler",
        f"{ORDER}, run_id",
        f"run_id, {AXES}, profiled_host_us, unprofiled_host_us, perturbation, reason",
    ),
    "cures": View(
        "what would help each point: measured where the store holds the same work otherwise, else predicted",
        "environment_id, axes, point_id, rank",
        "axes AS point, cure, basis, gain, issue_gain, sentence",
    ),
    "host_tax": View(
        "where the host's time goes as it issues a step: Python, dispatch, allocation, launch, guards, autograd",
        "run_id, us DESC NULLS LAST, part",
        "run_id, part, profiled_us, share, us, basis",
    ),
    "roofs": View("ceilings measured on the device", "environment_id, roof, dtype"),
    "axes": View("every axis of every run", "run_id, axis"),
}

OF_A_RUN = ("steps", "kernels", "gaps", "cures", "host_tax")
"""Views that may be asked for one point alone."""


class Parser(argparse.ArgumentParser):
    """A parser whose usage errors end with 1: nothing could be done."""

    def error(self, message: str) -> NoReturn:
        self.exit(NOTHING_DONE, f"{self.prog}: {message} (--help lists what is allowed)\n")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; the result goes to stdout, talk to stderr. Returns the exit code."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # names of a store may hold what a terminal cannot show
    try:
        given = parser().parse_args(arguments)
        code = _run(given)
        sys.stdout.flush()
        return code
    except (StoreError, OutputError) as error:
        return _say(str(error))
    except duckdb.Error as error:
        return _say(first_line(error))
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return WELL
    except OSError as error:
        return _say(f"the result cannot be written: {error.strerror or error}")
    except KeyboardInterrupt:
        return INTERRUPTED


def parser() -> argparse.ArgumentParser:
    """The command line."""
    top = Parser(prog="python -m analysis", description="Verdicts of a store of measured points.")
    commands = top.add_subparsers(metavar="NAME", required=True)
    for name, view in VIEWS.items():
        run = {"law": _run_law, "crossovers": _run_crossovers}.get(name, _run_view)
        command = _add(commands, name, view.help, run, formats=True)
        command.set_defaults(name=name, point=[])
        if name in OF_A_RUN:
            command.add_argument("point", nargs="*", metavar="POINT", help=f"{POINT}; default: all")
    truth = _add(commands, "truth", "whether the verdicts are true, by independent measurements", _run_truth, False)
    formats = ["table", "markdown", "csv", "json", "parquet"]
    truth.add_argument("--format", choices=formats, default="table", help="the report (table, markdown) or its points")
    whatif = _add(commands, "whatif", "what would bind on a faster host, or on another card", _run_whatif, formats=True)
    whatif.add_argument("of", nargs="?", choices=["bounds", "crossovers"], default="bounds", help="default: bounds")
    for name in ("host", "device"):
        told = f"how many times as fast a {name} (1)"
        whatif.add_argument(f"--{name}", type=_factor, default=1.0, metavar="TIMES", help=told)
    trace = _add(commands, "trace", "the events of a point as a Chrome trace, for Perfetto", _run_trace, formats=False)
    trace.add_argument("point", nargs="+", metavar="POINT", help=POINT)
    trace.add_argument("--open", action="store_true", help="serve it to ui.perfetto.dev in the browser")
    trace.add_argument("--at", type=int, metavar="EVENT_ID", help="with --open: show this event, as findings name it")
    found = _add(commands, "findings", "what an expert would read in the traces, and what helps", _run_findings, True)
    found.add_argument("point", nargs="*", metavar="POINT", help=f"{POINT}; default: all, a row a rule")
    found.add_argument(
        "--outcomes", action="store_true", help="what every rule says, also where it found nothing, and why"
    )
    rules = _add(commands, "rules", "the rules behind the findings; needs no store", _run_rules, formats=True)
    rules.add_argument("rule", nargs="?", metavar="RULE", help="one of them in full; default: all")
    told = "the profiler's operator table, and what its totals are worth"
    table = _add(commands, "table", told, _run_table, formats=True)
    table.add_argument("point", nargs="+", metavar="POINT", help=POINT)
    table.add_argument(
        "--sort", metavar="KEY", help="a key of torch's, such as cpu_time_total, self_cuda_time_total, count"
    )
    table.add_argument("--limit", type=_count, metavar="N", help="rows (100 in a table, else all)")
    table.add_argument("--shapes", action="store_true", help="tell operators apart by their input shapes")
    told = "the code that torch.compile generated for a point, its kernels included"
    code = _add(commands, "code", told, _run_code, formats=False)
    code.add_argument("point", nargs="+", metavar="POINT", help=POINT)
    compare = _add(commands, "compare", "two profiled points side by side", _run_compare, formats=True)
    for side in ("a", "b"):
        compare.add_argument(side, metavar=side.upper(), help=f"{POINT}; several filters in one pair of quotes")
    compare.add_argument("--by", choices=["step", "operator", "kernel"], help="one table, whole (15 rows of each)")
    compare.add_argument("--shapes", action="store_true", help="tell operators apart by their input shapes")
    query = _add(commands, "sql", "the result of a query; DESCRIBE runs lists columns", _run_sql, formats=True)
    query.add_argument("query", help="a query over the views that are commands here, events and samples")
    report = _add(commands, "report", "one HTML file that needs no network", _run_report, formats=False)
    report.add_argument("--png", type=Path, metavar="FILE", help="write the main chart as a picture as well")
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


def _run(given: argparse.Namespace) -> int:
    """Run the command, and again where a file that was live when the store was opened has vanished since."""
    try:
        code: int = given.run(given)
    except duckdb.IOException:
        code = given.run(given)
    return code


def _run_view(given: argparse.Namespace) -> int:
    with open_store(given.store) as connection:
        if given.name in ON_DEMAND:
            add(connection, given.name)
        _write_view(connection, given)
    return WELL


def _run_crossovers(given: argparse.Namespace) -> int:
    with open_store(given.store) as connection:
        _write_view(connection, given)
        if _on_stdout(given):
            print("".join(f"\n{sentence}" for sentence in narrowing(connection)), end="")
    return WELL


def _run_law(given: argparse.Namespace) -> int:
    with open_store(given.store) as connection:
        sentences, holds = law_in_words(connection)
        stdout = _on_stdout(given)
        print("\n".join(sentences), end="\n\n" if stdout else "\n", file=sys.stdout if stdout else sys.stderr)
        _write_view(connection, given)
    return WELL if holds else FIGURE_MISSED


def _run_sql(given: argparse.Namespace) -> int:
    with open_store(given.store) as connection:
        _refuse_all_but_one_reading(connection, given.query)
        add(connection, *(name for name in ON_DEMAND if name in given.query))
        if "duckdb_" in given.query:
            document(connection)
        write_rows(connection, given.query, given.format, given.path)
    return WELL


def _run_truth(given: argparse.Namespace) -> int:
    from analysis.truth import MISSED, gather, targets
    from analysis.truth_report import in_words

    evidence = gather(given.store)
    if given.format in ("table", "markdown"):
        write_text(in_words(evidence), given.path)
    else:
        with open_store(given.store) as connection:
            write_rows(connection, f"FROM truth ORDER BY {ORDER}, point_id", given.format, given.path)
    missed = [f"{each.name} ({each.reached})" for each in targets(evidence) if each.state == MISSED]
    if missed:
        print(f"python -m analysis truth: missed: {'; '.join(missed)}", file=sys.stderr)
    return FIGURE_MISSED if missed else WELL


def _count(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text}: allowed is a whole number from 0")
    return int(text)


def _factor(text: str) -> float:
    try:
        factor = float(text)
    except ValueError:
        factor = 0.0
    if not FASTEST**-1 <= factor <= FASTEST:
        limits = f"{1 / FASTEST:g} to {FASTEST:g}"
        raise argparse.ArgumentTypeError(f"{text}: allowed is a number from {limits}; for example 1.5")
    return factor


WHATIF = {
    "bounds": f"{AXES}, bound, then_bound, margin, then_margin, wall_us, then_wall_us, speed_up",
    "crossovers": f"{AXES}, axis, crossover, then_crossover, status, then_status",
}
"""Columns of the tables of `whatif`."""


def _run_whatif(given: argparse.Namespace) -> int:
    from analysis.whatif import in_words, open_whatif

    with open_whatif(given.store, given.host, given.device) as connection:
        stdout = _on_stdout(given)
        told = in_words(connection, given.host, given.device)
        print("\n".join(told), end="\n\n" if stdout else "\n", file=sys.stdout if stdout else sys.stderr)
        columns = WHATIF[given.of] if given.format == "table" else "*"
        query = f"SELECT {columns} FROM whatif_{given.of} ORDER BY moves DESC, {ORDER}"
        if given.format == "table":
            query = _without_empty_columns(connection, query)
        write_rows(connection, query, given.format, given.path)
    return WELL


def _run_trace(given: argparse.Namespace) -> int:
    from analysis.naming import named_run
    from analysis.perfetto import show
    from analysis.trace import default_path, export, span_of

    with open_store(given.store) as connection:
        run = named_run(connection, " ".join(given.point))
        path = given.path or default_path(run)
        span_ns = span_of(connection, run, given.at) if given.at is not None else None
        events = export(connection, run, path)
    print(path)
    print(f"{events} events of run {run.run_id} ({run.label})", file=sys.stderr)
    return WELL if not given.open or show(path, span_ns=span_ns) else NOTHING_DONE


def _run_table(given: argparse.Namespace) -> int:
    from analysis.table import in_words, prepare, write

    with open_store(given.store) as connection:
        prepare(connection, " ".join(given.point), given.shapes)
        write(connection, given.sort, given.limit, given.format, given.path)
        if given.format != "table":
            print("\n".join(in_words(connection)), file=sys.stderr)
    return WELL


def _run_code(given: argparse.Namespace) -> int:
    from analysis.code import write

    with open_store(given.store) as connection:
        write(connection, " ".join(given.point), given.path)
    return WELL


def _run_findings(given: argparse.Namespace) -> int:
    from analysis.findings import write_of_run, write_of_store, write_outcomes
    from analysis.naming import named_run

    with open_store(given.store) as connection:
        run = named_run(connection, " ".join(given.point)) if given.point else None
        if given.outcomes:
            write_outcomes(connection, run, given.format, given.path)
        elif run is not None:
            write_of_run(connection, run, given.format, given.path)
        else:
            write_of_store(connection, given.format, given.path)
    return WELL


def _run_rules(given: argparse.Namespace) -> int:
    from analysis.findings import write_rules

    write_rules(given.rule, given.format, given.path)
    return WELL


def _run_compare(given: argparse.Namespace) -> int:
    from analysis.compare import in_words, prepare, write

    with open_store(given.store) as connection:
        runs = prepare(connection, given.a, given.b, given.shapes)
        print("\n".join(in_words(connection, runs)), file=sys.stdout if _on_stdout(given) else sys.stderr)
        write(connection, given.by, given.format, given.path)
    return WELL


def _refuse_all_but_one_reading(connection: duckdb.DuckDBPyConnection, query: str) -> None:
    """A query must be one statement that reads: DuckDB itself would write files, into the store as well."""
    statements = connection.extract_statements(query)
    if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
        raise OutputError("a query is one statement that reads: SELECT, FROM, WITH, DESCRIBE or SUMMARIZE")


def _run_report(given: argparse.Namespace) -> int:
    from analysis.report import write_png, write_report

    with open_store(given.store) as connection:
        try:
            print(write_report(connection, given.path or REPORT))
            if given.png is not None:
                print(write_png(connection, given.png))
        except OSError as error:
            raise OutputError(f"{error.filename or given.path} cannot be written: {error.strerror}") from error
        except ValueError as error:  # no series that could be drawn
            raise OutputError(str(error)) from error
    return WELL


def _on_stdout(given: argparse.Namespace) -> bool:
    """The result is a table on stdout, where words may stand beside it."""
    return given.format == "table" and given.path is None


def _write_view(connection: duckdb.DuckDBPyConnection, given: argparse.Namespace) -> None:
    view = VIEWS[given.name]
    columns = view.shown if given.format == "table" else "*"
    chosen = f"WHERE run_id = '{_run_id(connection, given.point)}'" if given.point else ""
    if given.name == "gaps" and _on_stdout(given):
        print("".join(f"{line}\n" for line in gaps_in_words(connection, chosen)))
    query = f"SELECT {columns} FROM {given.name} {chosen} ORDER BY {view.order}"
    if given.format == "table":
        query = _without_empty_columns(connection, query)
    write_rows(connection, query, given.format, given.path)


def _run_id(connection: duckdb.DuckDBPyConnection, point: Sequence[str]) -> str:
    from analysis.naming import named_run

    return named_run(connection, " ".join(point)).run_id


def gaps_in_words(connection: duckdb.DuckDBPyConnection, chosen: str = "") -> list[str]:
    """How much of a device's idle time each cause took, over all gaps or those that a WHERE clause chooses."""
    causes = connection.execute(
        "SELECT cause, count(*), _time(sum(dur_ns) / 1e3), _percent(sum(dur_ns) / sum(sum(dur_ns)) OVER ()) "
        f"FROM gaps {chosen} GROUP BY cause ORDER BY sum(dur_ns) DESC, cause"
    ).fetchall()
    return [f"{cause}: {time} in {number:,} gaps, {share}" for cause, number, time, share in causes]


def _without_empty_columns(connection: duckdb.DuckDBPyConnection, query: str) -> str:
    """A query for the same rows without the columns that are NULL in every row: they only widen a table."""
    connection.execute(f"CREATE TEMP TABLE shown AS {query}")
    columns = [f'"{row[0]}"' for row in connection.execute("DESCRIBE shown").fetchall()]
    filled = connection.execute(f"SELECT {', '.join(f'count({column})' for column in columns)} FROM shown").fetchall()[
        0
    ]
    kept = [column for column, count in zip(columns, filled, strict=True) if count] or columns
    return f"SELECT {', '.join(kept)} FROM shown"


def narrowing(connection: duckdb.DuckDBPyConnection) -> list[str]:
    """The searches that narrow the first crossings of a wide bracket, those without a value before all others."""
    rows = connection.execute(
        'SELECT axis, "text", command FROM crossovers WHERE command IS NOT NULL '
        f"ORDER BY status <> 'bracketed', axis, {ORDER}"
    ).fetchall()
    told = [f"to narrow the crossing {text} of {axis}:\n  {command}\n" for axis, text, command in rows[:NARROWED]]
    more = len(rows) - NARROWED
    return told + ([f"and {more} more: column command of `--format csv`\n"] if more > 0 else [])


def law_in_words(connection: duckdb.DuckDBPyConnection) -> tuple[list[str], bool]:
    """Sentences on how well the step law holds in each environment, and whether it does.

    It does where 95 % of all its points keep it, and no slope or replay contradicts a bound outside the 10 % band.
    """
    result = connection.execute("FROM law_summary ORDER BY environment_id")
    names = [column[0] for column in result.description or ()]
    summaries = [dict(zip(names, row, strict=True)) for row in result.fetchall()]
    points = sum(summary["points"] for summary in summaries)
    within = sum(summary["points_within"] for summary in summaries)
    if not summaries:
        return [
            "The law wall = max(issue, device) needs an asynchronous device; no point here was measured on one."
        ], True
    against = sum(
        summary[f"{check}_points_outside"] - summary[f"{check}_agreeing_outside"]
        for summary in summaries
        for check in ("slopes", "replay")
    )
    return [_law_sentence(summary) for summary in summaries], within >= LAW_SHARE * points and not against


def _law_sentence(summary: dict[str, Any]) -> str:
    checks = [_agreement(summary, check) for check in ("slopes", "replay") if summary[f"{check}_points"]]
    return " ".join([f"{summary['environment_id']}:", _deviations(summary), *checks])


def _deviations(summary: dict[str, Any]) -> str:
    if not summary["points"]:
        return "no point has both terms of the law."
    return (
        f"wall = max(issue, device) holds within 5 % on {summary['points_within']} of {summary['points']} points "
        f"({short(100 * summary['within_frac'])} %); median {short(100 * summary['median_deviation'])} %, "
        f"worst {short(100 * summary['worst_deviation'])} % ({summary['worst_point']})."
    )


def _agreement(summary: dict[str, Any], check: str) -> str:
    return (
        f"The bound agrees with the {check} on {summary[f'{check}_agreeing']} of {summary[f'{check}_points']} points, "
        f"farther than 10 % from the crossing on {summary[f'{check}_agreeing_outside']} of "
        f"{summary[f'{check}_points_outside']}."
    )


def _say(message: str) -> int:
    print(f"python -m analysis: {message}", file=sys.stderr)
    return NOTHING_DONE


if __name__ == "__main__":
    sys.exit(main())
