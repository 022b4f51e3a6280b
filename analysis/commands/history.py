"""One quantity over all sweeps of a store."""

from analysis.commands.options import Parser, add_examples, add_file, add_store
from analysis.comparison import history

run = history.run


def arguments(command: Parser) -> None:
    """The quantity, which points, and its chart."""
    history.add_arguments(command)
    add_store(command)
    add_file(command)
    add_examples(command, "history wall_us workload=matmul_add dtype=bf16 --store docs/results/h200 --chart wall.svg")
