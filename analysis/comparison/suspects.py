"""What makes a comparison fail, and how to measure again what made it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import duckdb

from analysis.comparison.compared import QUANTITIES, Row, rows_of
from analysis.comparison.sides import make
from analysis.output import OutputError, printable

VERDICTS = {"slower": ("SLOWER",), "failed": ("NEWLY FAILED",), "unclear": ("UNCLEAR",)}
KINDS = (*VERDICTS, "crossover")
MOST_COMMANDS = 5
"""Commands that are printed; how many more there are is told."""


@dataclass(frozen=True)
class Condition:
    """One --fail-on. kind: of KINDS. quantity: this one alone; None for all. frac: only ratios beyond 1 + frac."""

    kind: str
    quantity: str | None = None
    frac: float = 0.0

    def fits(self, row: Row) -> bool:
        """Whether a row of `changes` is what the condition speaks of."""
        return (
            row["verdict"] in VERDICTS.get(self.kind, ())
            and self.quantity in (None, row["quantity"])
            and (not self.frac or (row["ratio"] is not None and row["ratio"] > 1 + self.frac))
        )

    def __str__(self) -> str:
        beyond = f" by more than {100 * self.frac:g} %" if self.frac else ""
        of = f" in {self.quantity}" if self.quantity else ""
        return f"{self.kind}{of}{beyond}"


def condition(text: str) -> Condition:
    """Read a --fail-on: KIND, KIND:PERCENT, KIND:QUANTITY or KIND:QUANTITY:PERCENT. Raises OutputError."""
    kind, *rest = text.split(":")
    quantities = [part for part in rest if part in QUANTITIES]
    fracs = [percent(part) for part in rest if part not in QUANTITIES]
    takes_more = kind in ("slower", "unclear")
    if kind not in KINDS or len(quantities) > 1 or len(fracs) > 1 or None in fracs or (rest and not takes_more):
        raise OutputError(
            f"--fail-on {printable(text)}: allowed are failed, crossover, and slower or unclear with a quantity "
            f"({', '.join(QUANTITIES)}) and a share or without; for example slower:5% or slower:issue:10%"
        )
    return Condition(kind, quantities[0] if quantities else None, (fracs[0] if fracs else None) or 0.0)


def thresholds(given: Iterable[str], defaults: dict[str, float]) -> dict[str, float]:
    """The defaults, changed by texts QUANTITY=PERCENT. Raises OutputError."""
    found = dict(defaults)
    for text in given:
        quantity, _, share = text.partition("=")
        frac = percent(share)
        if quantity not in defaults or frac is None:
            raise OutputError(
                f"--threshold {printable(text)}: allowed is QUANTITY=PERCENT with a quantity of "
                f"{', '.join(defaults)}; for example wall=5%"
            )
        found[quantity] = frac
    return found


def percent(text: str) -> float | None:
    """`5%` or `5` as a fraction; None where it is no share from 0 to 1000 %."""
    try:
        share = float(text.strip().removesuffix("%"))
    except ValueError:
        return None
    return share / 100 if 0 <= share <= 1000 else None


def failures(connection: duckdb.DuckDBPyConnection, conditions: Sequence[Condition], store: Path | None) -> list[str]:
    """What the conditions speak of, in words, with the commands that measure it again; nothing where none holds.

    store: of side b, None where that is a baseline.
    """
    rows = rows_of(connection, "FROM changes")
    told, suspects = [], set[str]()
    for each in conditions:
        fitting = [row for row in rows if each.fits(row)]
        moved = _moved(connection) if each.kind == "crossover" else []
        if fitting or moved:
            told.append(f"--fail-on {each}: {_counted(len(fitting) or len(moved), each)}")
        suspects |= {row["axes"] for row in fitting}
    if not told:
        return []
    return [*told, *_commands(connection, suspects, store)]


def _counted(number: int, each: Condition) -> str:
    if each.kind == "crossover":
        return f"{number} crossover{'s' if number > 1 else ''} moved"
    return f"{number} time{'s' if number > 1 else ''}" if each.kind != "failed" else f"{number} newly failed"


def _moved(connection: duckdb.DuckDBPyConnection) -> list[Row]:
    return rows_of(connection, "FROM moved_crossovers WHERE verdict IN ('HIGHER', 'LOWER')")


def _one_line(command: str) -> str:
    """A command that steers no terminal: what cannot be shown stands as the shell's $'...' writes it."""
    return "".join(letter if letter.isprintable() else f"'$'\\x{ord(letter):02x}''" for letter in command)


def _commands(connection: duckdb.DuckDBPyConnection, axes: Iterable[str], store: Path | None) -> list[str]:
    connection.execute("CREATE OR REPLACE TEMP TABLE _suspects AS SELECT unnest(?::VARCHAR[]) AS axes", [sorted(axes)])
    connection.execute("SET VARIABLE remeasure_store = ?", [None if store is None else str(store)])
    make(connection, "remeasure")
    rows = rows_of(connection, "FROM remeasure ORDER BY points DESC, command")
    more = len(rows) - MOST_COMMANDS
    told = [f"  {_one_line(row['command'])}" for row in rows[:MOST_COMMANDS]]
    if not told:
        return []
    return ["measure the suspects again:", *told, *([f"  and {more} commands more"] if more > 0 else [])]
