"""How often a 95 % interval holds the truth: `python scripts/coverage.py [REPETITIONS] [STORE]`.

Simulated runs of known truth. A host that drifts, throttles, comes in bursts or has two paces changes while it is
measured: an interval of one run tells about the time in which it was measured, so that the truth is the median of all
that a step could have taken in that time. What another time would give is told by the spread between runs, which the
last rows simulate. With a store, its repeated points are asked as well: how often the interval of one run, by the
spread of the others, holds the centre of the others (normal values would in 92 %: that centre has an error of its own).
"""

from __future__ import annotations

import math
import random
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import accumulate, repeat, takewhile
from statistics import NormalDist, median

from analysis import open_store
from runner.law import Spread, combined, spread_of
from runner.statistics import Estimate, estimate, half_width_frac

COUNTS = (3, 4, 5, 6, 8, 10, 15, 20, 30, 40)
REPETITIONS = 2000
NOISE = 0.02
"""Standard deviation of the noise of a sample, on logarithms."""
FINE = 8
"""Parts of a round in which a path may change."""
NORMAL = NormalDist()

Simulated = tuple[list[float], float]
Path = list[float]


# -- one run: samples, and the truth ----------------------------------------------------------------------------------


def quiet(chance: random.Random, count: int) -> Simulated:
    """Lognormal noise; truth: its median."""
    return [_noise(chance) for _ in range(count)], 1.0


def skewed(chance: random.Random, count: int) -> Simulated:
    """Exponential noise on top of a floor; truth: its median."""
    return [1 + 0.05 * chance.expovariate(1) for _ in range(count)], 1 + 0.05 * math.log(2)


def outliers(chance: random.Random, count: int) -> Simulated:
    """One sample in ten takes 2 to 4 times as long; truth: the median of all."""
    samples = [_noise(chance) * (chance.uniform(2, 4) if chance.random() < 0.1 else 1) for _ in range(count)]
    return samples, math.exp(NOISE * NORMAL.inv_cdf(0.5 / 0.9))


def ticking(chance: random.Random, count: int) -> Simulated:
    """A clock that ticks in steps of half the noise; truth: the median before it is rounded."""
    tick, truth = NOISE / 2, chance.uniform(1, 1 + NOISE / 2)
    return [round(truth * _noise(chance) / tick) * tick for _ in range(count)], truth


def bursts(chance: random.Random, count: int) -> Simulated:
    """One tenth of the time, 3 rounds at a time, everything takes 2.5 times as long; truth: the median of the time."""
    return _along(chance, _telegraph(chance, count, 2.5, 3, 27))


def drifting(chance: random.Random, count: int) -> Simulated:
    """5 % faster or slower from the first round to the last; truth: the median of the time."""
    end = chance.choice((-0.05, 0.05))
    return _along(chance, [1 + end * place / (FINE * count) for place in range(FINE * count)])


def wandering(chance: random.Random, count: int) -> Simulated:
    """A pace that wanders by 3 %, rounds correlated by 0.9 (autoregressive); truth: the median of the time."""
    keep = 0.9 ** (1 / FINE)
    steps = repeat(0.03 * math.sqrt(1 - keep * keep), FINE * count)
    logs = accumulate(steps, lambda log, sd: keep * log + chance.gauss(0, sd), initial=chance.gauss(0, 0.03))
    return _along(chance, [math.exp(log) for log in list(logs)[1:]])


def throttled(chance: random.Random, count: int) -> Simulated:
    """10 % slower in the last 30 % of the rounds; truth: the median of the time."""
    return _along(chance, [1.1 if place > 0.7 * FINE * count else 1.0 for place in range(FINE * count)])


def two_paces(chance: random.Random, count: int) -> Simulated:
    """A host that takes 1.6 times as long a third of the time, 10 rounds at a time; truth: the median of the time."""
    return _along(chance, _telegraph(chance, count, 1.6, 10, 20))


def stopped(chance: random.Random, count: int) -> Simulated:
    """Lognormal noise of 4 %, measured until the interval is within 2 % or the rounds are up; truth: its median."""
    samples = [math.exp(chance.gauss(0, 2 * NOISE)) for _ in range(count)]
    unfinished = takewhile(lambda taken: half_width_frac(samples[:taken]) > 0.02, range(1, count))
    return samples[: 1 + sum(1 for _ in unfinished)], 1.0


SCENARIOS = (quiet, skewed, outliers, ticking, bursts, drifting, wandering, throttled, two_paces, stopped)


def _noise(chance: random.Random) -> float:
    return math.exp(chance.gauss(0, NOISE))


def _telegraph(chance: random.Random, count: int, slow: float, slow_rounds: float, fast_rounds: float) -> Path:
    """A path of two levels, each kept for an exponential time of this mean, begun in its steady state."""
    is_slow = chance.random() < slow_rounds / (slow_rounds + fast_rounds)
    path: Path = []
    while len(path) < FINE * count:
        stay = chance.expovariate(1 / (slow_rounds if is_slow else fast_rounds))
        path += [slow if is_slow else 1.0] * round(FINE * stay)
        is_slow = not is_slow
    return path[: FINE * count]


def _along(chance: random.Random, path: Path) -> Simulated:
    """One noisy sample a round, taken in its middle, and the median of the whole time."""
    return [level * _noise(chance) for level in path[FINE // 2 :: FINE]], _median_of(path)


def _median_of(path: Path) -> float:
    """Median of a mixture: noise about each level of the path."""
    levels = Counter(round(math.log(level), 3) for level in path)
    low, high = min(levels) - 5 * NOISE, max(levels) + 5 * NOISE
    for _ in range(20):
        middle = (low + high) / 2
        below = sum(times * math.erfc((level - middle) / NOISE / math.sqrt(2)) for level, times in levels.items())
        low, high = (low, middle) if below > len(path) else (middle, high)
    return math.exp((low + high) / 2)


# -- several runs -----------------------------------------------------------------------------------------------------

BETWEEN = 0.03
"""Standard deviation between workers and runs, on logarithms."""
ROUNDS = 15
REPEATED = 20
"""Further points of the environment, each measured twice: what the spread is known from."""


def runs_cover(chance: random.Random, runs: int) -> bool:
    """Whether the interval of a point over so many runs holds the point's value."""
    spread = spread_of([[_run(chance).value for _ in range(2)] for _ in range(REPEATED)])
    found = combined([_run(chance) for _ in range(runs)], spread)
    return found is not None and found.low <= 1 <= found.high


def _run(chance: random.Random) -> Estimate:
    pace = math.exp(chance.gauss(0, BETWEEN))
    found = estimate([pace * _noise(chance) for _ in range(ROUNDS)])
    assert found is not None
    return found


# -- how often --------------------------------------------------------------------------------------------------------


def covers(scenario: Callable[[random.Random, int], Simulated], chance: random.Random, count: int) -> bool:
    """Whether the interval of one simulated run holds the truth."""
    samples, truth = scenario(chance, count)
    found = estimate(samples)
    return found is not None and found.low <= truth <= found.high


def coverage(scenario: Callable[[random.Random, int], Simulated], count: int, repetitions: int) -> float:
    """Share of simulated runs of so many rounds whose interval holds the truth."""
    chance = random.Random(count)
    return sum(covers(scenario, chance, count) for _ in range(repetitions)) / repetitions


def runs_coverage(runs: int, repetitions: int) -> float:
    """Share of simulated points of so many runs whose interval holds the truth."""
    chance = random.Random(runs)
    return sum(runs_cover(chance, runs) for _ in range(repetitions)) / repetitions


# -- of a store -------------------------------------------------------------------------------------------------------


def left_out(groups: Sequence[Sequence[Estimate]]) -> tuple[int, int]:
    """(held, asked): how often the interval of one run, by the spread of the others, holds the centre of the others."""
    asked = [
        (run, [other for other in group if other is not run], _spread_without(groups, run))
        for group in groups for run in group if len(group) > 2
    ]  # fmt: skip
    held = 0
    for run, others, spread in asked:
        found = combined([run], spread)
        held += found is not None and found.low <= median(other.value for other in others) <= found.high
    return held, len(asked)


def _spread_without(groups: Sequence[Sequence[Estimate]], run: Estimate) -> Spread | None:
    return spread_of([[other.value for other in group if other is not run] for group in groups])


def repeated(store: str) -> dict[tuple[str, str], list[list[Estimate]]]:
    """(time, environment) -> the runs of each point that was measured more than twice there; wall by its side."""
    query = """
        SELECT differs_as, environment_id, list({'value': "value", 'low': low, 'high': high})
        FROM _run_times WHERE low > 0 AND quantity IN ('wall', 'issue', 'device', 'replay', 'margin')
        GROUP BY differs_as, environment_id, point_id HAVING count(*) > 2
        ORDER BY ALL
    """
    found: dict[tuple[str, str], list[list[Estimate]]] = {}
    with open_store(store) as connection:
        for quantity, environment, runs in connection.sql(query).fetchall():
            found.setdefault((quantity, environment), []).append([Estimate(**run) for run in runs])
    return found


def main(repetitions: int, store: str | None) -> None:
    """Print the table, and what a store's repeated points say."""
    print("percent of 95 % intervals that hold the truth, by the number of rounds")
    print(" " * 10, *(f"{count:5}" for count in COUNTS))
    for scenario in SCENARIOS:
        shares = [f"{100 * coverage(scenario, count, repetitions):5.1f}" for count in COUNTS]
        print(f"{scenario.__name__:10}", *shares, "", scenario.__doc__)
    print(f"\nthe same of points over several runs, which differ by {BETWEEN:.0%} between workers and runs")
    for runs in (1, 2, 3):
        print(f"{runs} runs    {100 * runs_coverage(runs, repetitions):5.1f}")
    for (quantity, environment), groups in (repeated(store) if store else {}).items():
        held, asked = left_out(groups)
        print(f"{quantity:16} {100 * held / asked:5.1f}  of {asked} runs in {environment} hold the others' centre")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else REPETITIONS, sys.argv[2] if len(sys.argv) > 2 else None)
