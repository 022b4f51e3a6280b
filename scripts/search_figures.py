"""What a search takes and how often it is right, on simulated curves: `python scripts/search_figures.py [SEEDS]`.

Curves of five forms that cross in nine places of a range of 256x, each with so many seeds of its noise, as the tests
have them (tests/seeking.py). Of all searches, percent: `found` a value, `within` the tolerance of 2 %; of those with a
bracket: `hold` the truth in it.
"""

from __future__ import annotations

import runpy
import statistics
import sys
from pathlib import Path

SEEKING = runpy.run_path(str(Path(__file__).parent.parent / "tests/seeking.py"))
NOISES = ((0.0, 0.0), (0.01, 0.005), (0.02, 0.01), (0.03, 0.02))
"""Within a run and between runs, as standard deviations of logarithms."""
SEEDS = 20


def figures(within: float, between: float, seeds: int) -> tuple[float, ...]:
    """Points and runs on average; percent found, within the tolerance, and right."""
    ended = [
        (at, SEEKING["searched"](SEEKING["Series"](curve(at), within, between, seed)).outcome)
        for curve in SEEKING["CURVES"].values()
        for at in SEEKING["CROSSINGS"]
        for seed in range(seeds)
    ]
    crossings = [(at, outcome.search, outcome.crossing) for at, outcome in ended]
    found = [(search, each) for _, search, each in crossings if each.status == "found"]
    held = [each.low <= at <= each.high for at, _, each in crossings if each.low is not None]
    return (
        statistics.fmean(outcome.points for _, outcome in ended),
        statistics.fmean(outcome.runs for _, outcome in ended),
        100 * len(found) / len(ended),
        100 * sum(search.is_within(each.low, each.value, each.high) for search, each in found) / len(ended),
        100 * statistics.fmean(held),
    )


def main(seeds: int) -> None:
    """Print the table."""
    print("noise: within, between   points  runs  found  within  hold")
    for within, between in NOISES:
        points, runs, found, close, held = figures(within, between, seeds)
        noise = f"{within:.0%}, {between:.1%}"
        print(f"{noise:24} {points:6.1f} {runs:5.1f} {found:6.1f} {close:7.1f} {held:5.1f}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else SEEDS)
