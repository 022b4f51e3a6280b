"""What sweeps cost, from their stores alone: `python scripts/engine_figures.py STORE...`.

A line a sweep: points, cards, seconds from the first point handed out to the last answer, and what became of them. Then
each sweep of one card against every later one of the same points in the same environment, measured alike.
"""

from __future__ import annotations

import statistics
import sys
from dataclasses import dataclass
from typing import Any

from analysis import open_store

QUERY = """
SELECT sweep_id, point_id, environment_id, measure, device_index, started_at, taken_s, measured_s, waited_s,
       worker_bytes, status, device_us, wall_us, wall_us_low, wall_us_high, issue_us, host_contended
FROM runs WHERE source = 'sweep' ORDER BY sweep_id, started_at
"""


@dataclass(frozen=True)
class Sweep:
    """The runs of one sweep in the order in which they were handed out."""

    sweep_id: str
    runs: list[dict[str, Any]]

    @property
    def cards(self) -> int:
        """How many devices took part."""
        return len({run["device_index"] for run in self.runs})

    @property
    def span_s(self) -> float:
        """From the first point handed out to the last answer."""
        starts = [run["started_at"].timestamp() for run in self.runs]
        return max(start + run["taken_s"] for start, run in zip(starts, self.runs, strict=True)) - starts[0]

    @property
    def kind(self) -> set[tuple[str, str]]:
        """Where and how it was measured."""
        return {(run["environment_id"], run["measure"]) for run in self.runs}

    @property
    def by_point(self) -> dict[str, dict[str, Any]]:
        """The latest ok run of each point."""
        return {run["point_id"]: run for run in self.runs if run["status"] == "ok"}


def sweeps(store: str) -> list[Sweep]:
    """All sweeps of a store."""
    with open_store(store) as connection:
        names = [each[0] for each in connection.sql(f"DESCRIBE {QUERY}").fetchall()]
        rows = [dict(zip(names, row, strict=True)) for row in connection.sql(QUERY).fetchall()]
    ids = dict.fromkeys(row["sweep_id"] for row in rows)
    return [Sweep(each, [row for row in rows if row["sweep_id"] == each]) for each in ids]


def told(sweep: Sweep) -> str:
    """One sweep in a line."""
    measured = sum(run["measured_s"] or 0.0 for run in sweep.runs)
    waits = [run["waited_s"] * 1e3 for run in sweep.runs if run["waited_s"] is not None]
    memory = [run["worker_bytes"] / 1e6 for run in sweep.runs if run["worker_bytes"]]
    bad = sum(run["status"] not in ("ok", "skipped") for run in sweep.runs)
    short = [run["taken_s"] for run in sweep.runs if run["wall_us"] is not None and run["wall_us"] <= 100]
    parts = [
        f"{len(sweep.runs)} points ({bad} failed) on {sweep.cards} in {sweep.span_s:.1f} s",
        f"{sweep.span_s / len(sweep.runs):.3f} s each",
        f"median of steps up to 100 us {statistics.median(short):.2f} s" if short else "no step below 100 us",
        f"{measured / sweep.cards / sweep.span_s:.0%} in measured steps",
        f"a device waits {statistics.median(waits or [0]):.1f} ms, at most {max(waits[1:], default=0):.1f}",
        f"worker {memory[0]:.0f} MB at the first point, {memory[-1]:.0f} MB at the last" if memory else "",
    ]
    return f"{sweep.sweep_id}: " + "; ".join(parts)


def against(one: Sweep, many: Sweep) -> str:
    """A sweep of one card and one of several, point by point."""
    pairs = [(one.by_point[point], many.by_point[point]) for point in one.by_point if point in many.by_point]
    device = [b["device_us"] / a["device_us"] for a, b in pairs if a["device_us"] and b["device_us"]]
    near = sum(abs(ratio - 1) <= 0.03 for ratio in device)
    overlap = sum(a["wall_us_low"] <= b["wall_us_high"] and b["wall_us_low"] <= a["wall_us_high"] for a, b in pairs)
    wall = [b["wall_us"] / a["wall_us"] for a, b in pairs]
    return (
        f"{many.sweep_id} on {many.cards} against {one.sweep_id} on {one.cards}: "
        f"{one.span_s / many.span_s:.2f} times as fast; device_us within 3 % at {near} of {len(device)} points "
        f"(median ratio {statistics.median(device or [0]):.3f}); wall intervals overlap at {overlap} of {len(pairs)} "
        f"(median ratio {statistics.median(wall):.3f})"
    )


def main(stores: list[str]) -> None:
    """Print all."""
    found = [sweep for store in stores for sweep in sweeps(store) if any(run["worker_bytes"] for run in sweep.runs)]
    for sweep in found:
        print(told(sweep))
    for place, one in enumerate(found):
        for other in found[place + 1 :]:
            if one.cards == 1 and one.kind == other.kind and len({*one.by_point} & {*other.by_point}) > 100:
                print(against(one, other))


if __name__ == "__main__":
    main(sys.argv[1:])
