# PYTHON_ARGCOMPLETE_OK
"""python -m analysis NAME: ask a store for its verdicts."""

import argparse
import io
import os
import sys
from collections.abc import Sequence
from difflib import get_close_matches
from importlib import import_module

from analysis.commands.options import INTERRUPTED, NOTHING_DONE, Parser

COMMANDS = {
    "verdicts": {
        "bounds": ("views", "what binds each point, why, and what it would gain without overhead"),
        "crossovers": ("crossovers", "where along an axis the overhead stops binding"),
        "cures": ("views", "what would help each point: measured where the store holds it, else predicted"),
        "confidence": ("views", "how sure each verdict is, and whether one run alone would have said the same"),
        "law": ("law", "how well wall = max(issue, device) holds, and who agrees with the bounds"),
        "truth": ("truth", "whether the verdicts are true, by independent measurements"),
        "whatif": ("whatif", "what would bind on a faster host, or on another card"),
        "compare": ("compare", "two sweeps, stores, environments or baselines, or two profiled points, side by side"),
        "history": ("history", "one quantity over many sweeps, and where it changed"),
    },
    "measurements": {
        "points": ("views", "the points, their runs combined"),
        "runs": ("views", "every measurement of a point"),
        "axes": ("views", "every axis of every run"),
        "environments": ("views", "where the runs were measured"),
        "roofs": ("views", "ceilings measured on the device"),
        "perturbation": ("views", "host time with and without the profiler"),
        "host_tax": ("views", "where the host's time goes as it issues a step"),
        "holders": ("views", "who holds the device's memory in each phase of a step"),
        "holder_growth": ("views", "how the memory of each holder grows along an axis"),
        "numerics": ("views", "how far results are from float64, and whether that is allowed"),
        "recompiles": ("views", "what torch compiled for each run: seconds, when and why"),
        "payback": ("views", "after how many steps each way to compile has paid"),
        "allocator": ("views", "calls of cudaMalloc, what they cost, and fragmentation"),
    },
    "traces": {
        "findings": ("findings", "what an expert would read in the traces, and what helps"),
        "rules": ("rules", "the rules behind the findings; needs no store"),
        "table": ("table", "the profiler's operator table, and what its totals are worth"),
        "kernels": ("views", "kernels of each run: launch parameters, times, occupancy"),
        "steps": ("views", "profiled steps: host time, busy device time, launches"),
        "phases": ("views", "forward, backward, optimizer and your own ranges: what each costs a step"),
        "gaps": ("views", "when and why the device did no work in a trace"),
        "audits": ("views", "what an import read of each file, and what it set aside, repaired or lost"),
        "code": ("code", "the code that torch.compile generated for a point, its kernels included"),
        "trace": ("trace", "the events of a point as a Chrome trace, for Perfetto"),
    },
    "SQL": {
        "sql": ("sql", "the result of a query"),
        "describe": ("describe", "the relations to query and their columns, documented; needs no store"),
        "open": ("open", "a DuckDB file over the store, for DuckDB's client and its UI, notebooks and BI tools"),
    },
    "sharing": {
        "report": ("report", "one HTML file that needs no network"),
        "export": ("export", "every point as one flat Parquet, CSV or JSON file, with a data dictionary"),
    },
}
"""Command -> its module in analysis/commands, and what it tells; by what one is after."""

NAMES = {name: told for group in COMMANDS.values() for name, told in group.items()}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; the result goes to stdout, talk to stderr. Returns the exit code."""
    if sys.stderr is None:  # closed: print would talk into stdout
        sys.stderr = io.StringIO()
    try:
        return _main(sys.argv[1:] if arguments is None else list(arguments))
    except KeyboardInterrupt:
        return INTERRUPTED


def _main(words: Sequence[str]) -> int:
    if "_ARGCOMPLETE" in os.environ:
        _complete(parser(os.environ.get("COMP_LINE", "").split()))
    top = parser(words)
    if not words:
        print(top.format_help(), end="")
        return NOTHING_DONE
    _check_name(top, words[0])
    given = top.parse_args(words)

    from analysis.commands.running import run  # imports DuckDB: --help does without

    return run(given)


def parser(words: Sequence[str]) -> Parser:
    """The command line. Only the commands that are among `words` know their arguments: the others are not imported."""
    top = Parser(
        prog="python -m analysis",
        usage="python -m analysis NAME [POINT ...] [--store DIR] [--format FORMAT] [-o FILE]",
        description=_overview(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = top.add_subparsers(prog=top.prog, metavar="NAME", required=True, help=argparse.SUPPRESS)
    for name, (module, told) in NAMES.items():
        command = commands.add_parser(
            name, help=told, description=told, formatter_class=argparse.RawDescriptionHelpFormatter
        )
        if name in words:
            itself = import_module(f"analysis.commands.{module}")
            command.set_defaults(name=name, run=itself.run)
            itself.arguments(command)
    return top


def _overview() -> str:
    """The commands in their groups."""
    width = max(map(len, NAMES)) + 2
    lines = ["Verdicts of a store of measured points. `NAME --help` has its options and examples."]
    for group, commands in COMMANDS.items():
        lines += ["", f"{group}:", *(f"  {name:{width}}{told}" for name, (_, told) in commands.items())]
    return "\n".join(lines)


def _check_name(top: Parser, name: str) -> None:
    if name not in NAMES and not name.startswith("-"):
        near = get_close_matches(name, NAMES, 3) or ["python -m analysis lists all"]
        top.error(f"there is no command {name!r}; nearest: {', '.join(near)}")


def _complete(top: Parser) -> None:
    """Answer the shell, which asks by this environment variable, and end."""
    import argcomplete

    argcomplete.autocomplete(top)


if __name__ == "__main__":
    sys.exit(main())
