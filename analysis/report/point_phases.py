"""Rows of phases and holders -> the part of a point's page that tells what each phase of a step costs and holds."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from analysis.theme import number, plural

Row = Mapping[str, Any]
Part = dict[str, Any]

MOST_PHASES = 120
FIGURES = (
    "host_us", "device_us", "launches", "kernels", "idle_us", "wait_us", "calls", "host_frac", "device_frac",
    "peak_bytes",
)  # fmt: skip
OFF_FRAC = 0.01
"""How far the holders may be off the allocator's own count before the page says so."""


def phases_part(phases: Sequence[Row], holders: Sequence[Row], sums: Sequence[Row], notes: list[str]) -> Part | None:
    """Columns of the phases of the steps that take most time, in their order, and who holds memory in them; None where
    no phase is known.

    phases: rows of the view of that name, of one run; holders: the same; sums: its row of stg_memory, if it has one.
    """
    kinds = _by_time(phases)
    if not kinds:
        return None
    rows = kinds[0]
    notes.extend(_left_out(kinds))
    kept = rows[:MOST_PHASES]
    return {
        "kind": rows[0]["kind"],
        "steps": rows[0]["steps"],
        "phase": [row["phase"] for row in kept],
        "path": [row["path"] for row in kept],
        "part": [row["part"] for row in kept],
        "depth": [row["depth"] for row in kept],
        **{name: [_plain(row[name]) for row in kept] for name in FIGURES},
        "memory": _memory(holders),
        "sums": _sums_words(sums),
    }


def _by_time(phases: Sequence[Row]) -> list[list[Row]]:
    """The rows of each kind of step in their order, that kind first whose steps take most time in all."""
    kinds: dict[str | None, list[Row]] = defaultdict(list)
    for row in sorted(phases, key=lambda row: row["order"]):
        kinds[row["kind"]].append(row)
    return sorted(kinds.values(), key=lambda rows: (-_total_us(rows), str(rows[0]["kind"])))


def _total_us(rows: Sequence[Row]) -> float:
    whole = next((row for row in rows if row["part"] == "step"), rows[0])
    return float((whole["steps"] or 0) * max(whole["host_us"] or 0, whole["device_us"] or 0))


def _left_out(kinds: Sequence[Sequence[Row]]) -> list[str]:
    told = []
    if len(kinds) > 1:
        others = plural(len(kinds) - 1, "other kind")
        told.append(
            f"Shown are the steps {kinds[0][0]['kind']}, which take most time; {others} of step have phases too."
        )
    if len(kinds[0]) > MOST_PHASES:
        told.append(f"The first {MOST_PHASES} of {len(kinds[0]):,} phases are shown.")
    return told


def _memory(holders: Sequence[Row]) -> list[Part]:
    """Of each phase in order: its peak, whether the step is at its peak there, and bytes by holder at that moment."""
    found: dict[str, Part] = {}
    for row in holders:
        one = found.setdefault(
            row["path"],
            {
                "path": row["path"],
                "phase": row["phase"],
                "depth": row["depth"],
                "peak_bytes": row["peak_bytes"],
                "is_at_peak": row["is_at_peak"],
                "holders": [],
            },
        )
        if row["at_peak_bytes"]:
            one["holders"].append([row["holder"], row["at_peak_bytes"]])
    return [one for one in found.values() if one["holders"]]


def _sums_words(sums: Sequence[Row]) -> str | None:
    """How well the holders add up to what the allocator counted, in a sentence; None where nothing was counted."""
    for row in sums:
        way = f" Taken from {row['memory_method']}." if row["memory_method"] else ""
        if row["off_frac"] is None:
            return row["memory_reason"] and f"Whether the holders add up is unknown: {row['memory_reason']}."
        off = f"{number(100 * abs(row['off_frac']))} %" if row["off_frac"] else "0 %"
        agree = "agree with" if abs(row["off_frac"]) <= OFF_FRAC else "do not agree with"
        return f"The holders' sum is {off} off: they {agree} the total that was counted.{way}"
    return None


def _plain(value: Any) -> Any:
    """A number as JSON has it: whole ones whole, others to a thousandth."""
    if isinstance(value, float):
        if not math.isfinite(value):
            return None
        value = round(value, 4)
        return int(value) if value == int(value) else value
    return value
