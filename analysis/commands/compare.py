"""Two sides of many points, or two profiled points, side by side."""

from analysis.commands import completing
from analysis.commands.options import Parser, add_examples, add_file, add_store
from analysis.comparison import command as comparison

run = comparison.run


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
