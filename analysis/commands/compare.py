"""Two sides of many points, or two profiled points, side by side."""

import argparse
from pathlib import Path

from analysis.commands import completing
from analysis.commands.options import Parser, add_examples, add_file, add_store
from analysis.commands.running import refuse_to_write_in
from analysis.comparison import command as comparison
from analysis.naming import BETWEEN_WORDS


def arguments(command: Parser) -> None:
    """The two sides, what counts as a change, and what ends with 3."""
    comparison.add_arguments(command)
    for action in command._actions:
        if action.dest in ("a", "b"):
            action.completer = completing.points  # type: ignore[attr-defined]  # argcomplete reads it
    add_store(command)
    add_file(command)
    point = "workload=matmul_add size=64 dtype=bf16 batch=null compile"
    add_examples(
        command,
        "compare docs/results/h200 docs/results/h200_findings",
        "compare sweep=1a22986f sweep=1a229891 --store docs/results/h200 --fail-on slower:wall:20%",
        f"compare '{point}=false' '{point}=true' --store docs/results/h200",
    )


def run(given: argparse.Namespace) -> int:
    """Compare, once it is sure that nothing will be written in a store that A or B names."""
    for folder in filter(None, map(_folder, (given.a, given.b))):
        refuse_to_write_in(folder, given)
    return comparison.run(given)


def _folder(side: str | None) -> Path | None:
    """The folder that a side names, alone or before its filters."""
    text = (side or "").strip()
    places = (Path(text), Path(BETWEEN_WORDS.split(text)[0])) if text else ()
    return next((place for place in places if place.is_dir()), None)
