"""Is what the tool says true? The evidence of a store, held against what is to be reached.

`gather` reads the evidence, `targets` holds it against what is to be reached; analysis/truth_report.py tells all of it.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from analysis.output import short
from analysis.store import open_store

Row = Mapping[str, Any]

LIKELY = 0.05
"""Probability below which so many wrong verdicts are more than the stated confidence allows."""
DECIDED_SHARE, GAIN_SHARE, OVERLAP_SHARE, LAW_SHARE = 0.95, 0.90, 0.95, 0.95
GAIN_ERROR, VALUE_DIFFERENCE, LAW_DEVIATION = 0.10, 0.05, 0.05
MET, MISSED, UNMEASURED = "met", "missed", "not measured"
NO_POINT = "no checked point of a device that works beside its host"
NO_PAIR = "no two points differ in FLOPs at equal bytes, or in bytes at equal FLOPs"
NO_SEARCH = "no series was searched twice"
ABOVE_ROOF = 1.05
"""Share of a roof above which a point is named: more than there can be."""

SERIES = (
    "concat_ws(' ', workload, 'size=' || size, dtype, 'batch=' || batch, "
    "CASE WHEN compile = 'false' THEN 'eager' ELSE 'compile=' || compile END, "
    "CASE WHEN compile <> 'false' AND dynamic <> 'false' THEN 'dynamic=' || dynamic END, nullif(_settings(params), ''))"
)


@dataclass(frozen=True, slots=True)
class Search:
    """What one search found for one series, from its own runs. low, high: None where that side is open."""

    sweep_id: str
    series: str
    axis: str
    status: str
    value: float | None
    low: float | None
    high: float | None
    points: int
    runs: int

    @property
    def has_interval(self) -> bool:
        """Whether it says where the one crossing lies, or beyond which end of the range; several or unknown do not."""
        return self.status in ("found", "bracketed", "above", "below")


@dataclass(frozen=True, slots=True)
class Compared:
    """Two searches for the same series in the same environment, the earlier first."""

    first: Search
    second: Search

    @property
    def overlap(self) -> bool:
        """Whether the two intervals share a value, or both searches find the crossing beyond the same end of the range.
        A search without an interval shares none."""
        both = (self.first, self.second)
        if all(each.status in ("found", "bracketed") for each in both):
            return max(each.low or 0.0 for each in both) <= min(each.high or math.inf for each in both)
        return self.first.status == self.second.status and self.first.has_interval

    @property
    def difference(self) -> float | None:
        """Difference of the two values as a share of the smaller; None where one of them is missing."""
        values = [each.value for each in (self.first, self.second) if each.value]
        return max(values) / min(values) - 1 if len(values) == 2 else None


@dataclass(frozen=True, slots=True)
class Evidence:
    """Rows of the views truth, interventions and environments, the points of the interventions that lie above a roof,
    and all pairs of searches."""

    points: Sequence[Row]
    pairs: Sequence[Row]
    above_roofs: Sequence[Row]
    environments: Sequence[Row]
    searches: Sequence[Compared]

    @property
    def asynchronous(self) -> list[Row]:
        """Points of devices that work beside the host: the targets are asked of these."""
        return [row for row in self.points if row["device"] != "cpu"]


@dataclass(frozen=True, slots=True)
class Target:
    """A figure to reach, what was reached, and the state: met, missed, or not measured."""

    name: str
    reached: str
    state: str


# -- the evidence ------------------------------------------------------------------------------------------------------


def gather(folder: str | Path) -> Evidence:
    """All evidence of a store. Raises StoreError as `open_store` does."""
    with open_store(folder) as connection:
        points = _rows(connection, f"SELECT *, {SERIES} AS label FROM truth ORDER BY distance, label, environment_id")
        pairs = _rows(connection, f"SELECT *, {SERIES} AS label FROM interventions ORDER BY ALL")
        above = _above_roofs(connection)
        used = {row["environment_id"] for row in points}
        environments = [row for row in _rows(connection, "FROM environments") if row["environment_id"] in used]
        sweeps = _rows(
            connection,
            "SELECT sweep_id, any_value(search->>'$.axis') AS axis, any_value((search->>'$.low')::DOUBLE) AS low, "
            "any_value((search->>'$.high')::DOUBLE) AS high "
            "FROM stg_runs WHERE search IS NOT NULL GROUP BY sweep_id ORDER BY sweep_id",
        )
    found = [each for sweep in sweeps for each in _searched(folder, **sweep)]
    return Evidence(points, pairs, above, environments, _compared(found))


def _above_roofs(connection: Any) -> list[dict[str, Any]]:
    """Points of the interventions that are faster than the roof that is said to bind them."""
    return _rows(
        connection,
        f"""
        SELECT {SERIES} AS label, bound,
            CASE bound WHEN 'compute-bound' THEN dtype || ' FLOP/s' ELSE upper(bytes_roof) || ' bytes/s' END AS roof,
            CASE bound WHEN 'compute-bound' THEN flops_share ELSE bytes_share END AS roof_share
        FROM bounds
        SEMI JOIN (
            SELECT environment_id, unnest([less_point_id, more_point_id]) AS point_id FROM interventions
        ) USING (point_id, environment_id)
        WHERE roof_share > $least
        ORDER BY bound, roof_share, label
        """,
        least=ABOVE_ROOF,
    )


def _rows(connection: Any, query: str, **given: object) -> list[dict[str, Any]]:
    result = connection.execute(query, given)
    names = [column[0] for column in result.description or ()]
    return [dict(zip(names, row, strict=True)) for row in result.fetchall()]


def _searched(folder: str | Path, sweep_id: str, axis: str, low: float, high: float) -> list[tuple[str, Search]]:
    """What a search found for each of its series, with the series' environment.

    A series of which it has not measured both ends itself goes on where an earlier command stopped, and is left out.
    """
    query = f"""
        WITH counted AS (
            SELECT environment_id, {SERIES} AS series, count(*) AS points, sum(runs)::BIGINT AS runs
            FROM _series_points
            JOIN (SELECT point_id, environment_id, runs FROM bounds) USING (point_id, environment_id)
            WHERE axis = $axis
            GROUP BY ALL
            HAVING min(axis_value) <= $low AND max(axis_value) >= $high
        ),
        crossed AS (FROM crossovers SELECT *, {SERIES} AS series WHERE axis = $axis)
        SELECT environment_id, series, status, "value", low, high, counted.points, runs
        FROM crossed JOIN counted USING (environment_id, series)
    """
    with open_store(folder, sweep_id=sweep_id) as connection:
        rows = _rows(connection, query, axis=axis, low=low, high=high)
    return [(row.pop("environment_id"), Search(sweep_id, axis=axis, **row)) for row in rows]


def _compared(found: Iterable[tuple[str, Search]]) -> list[Compared]:
    """The last two searches of every series that was searched twice."""
    series: dict[tuple[str, str, str], list[Search]] = {}
    for environment_id, each in found:
        series.setdefault((environment_id, each.axis, each.series), []).append(each)
    return [Compared(*searches[-2:]) for _, searches in sorted(series.items()) if len(searches) > 1]


# -- the targets -------------------------------------------------------------------------------------------------------


def targets(evidence: Evidence) -> list[Target]:
    """Every figure to reach with what was reached. The CPU has none: there the libraries gain on larger work."""
    rows = evidence.asynchronous
    moved = known_of(evidence.pairs, "agrees")
    overlaps = [each.overlap for each in evidence.searches]
    return [
        _far_disagreements(rows),
        _allowed_disagreements(rows),
        _share("points decided", [row["decided"] for row in rows], DECIDED_SHARE, NO_POINT),
        _share("predicted gains within 10 %", within(rows, "gain_error", GAIN_ERROR), GAIN_SHARE, "no replay"),
        _share("step law within 5 %", within(rows, "deviation", LAW_DEVIATION), LAW_SHARE, NO_POINT),
        _share("changed work moves the points that it binds, and no others", moved, 1.0, NO_PAIR),
        _share("intervals of two searches overlap", overlaps, OVERLAP_SHARE, NO_SEARCH),
        _median_difference(evidence.searches),
    ]


def _far_disagreements(rows: Sequence[Row]) -> Target:
    name = "no disagreement farther than 10 % from a crossing"
    far = [row for row in rows if row["agrees"] is not None and not row["in_band"]]
    wrong = [row for row in far if not row["agrees"]]
    return _target(name, f"{len(wrong)} of {len(far)}", not wrong) if far else Target(name, NO_POINT, UNMEASURED)


def _allowed_disagreements(rows: Sequence[Row]) -> Target:
    name = "no more disagreements than the stated confidence allows"
    stated = [row for row in rows if row["agrees"] is not None and row["confidence"] is not None]
    if not stated:
        return Target(name, NO_POINT, UNMEASURED)
    wrong, expected = calibration(stated)
    chance = chance_of_so_many(stated)
    return _target(name, f"{wrong} of {len(stated)}, {short(expected)} expected, p = {chance:.2g}", chance >= LIKELY)


def calibration(rows: Sequence[Row]) -> tuple[int, float]:
    """Wrong verdicts, and how many the stated confidences let expect."""
    return sum(not row["agrees"] for row in rows), sum(1 - row["confidence"] for row in rows)


def chance_of_so_many(rows: Sequence[Row]) -> float:
    """Probability of so many wrong verdicts, or more, if every confidence is as stated."""
    return chance_of(calibration(rows)[0], [1 - row["confidence"] for row in rows])


def chance_of(least: int, chances: Sequence[float]) -> float:
    """Probability of `least` or more successes in independent trials of unequal chances (Poisson binomial)."""
    fewer = [1.0] + [0.0] * max(0, least - 1)  # probability of exactly so many, below `least`
    if least <= 0:
        return 1.0
    for chance in chances:
        fewer = [
            kept * (1 - chance) + (fewer[place - 1] * chance if place else 0.0) for place, kept in enumerate(fewer)
        ]
    return max(0.0, 1 - sum(fewer))


def _median_difference(searches: Sequence[Compared]) -> Target:
    name = "values of two searches differ by less than 5 % (median)"
    differences = [each.difference for each in searches if each.difference is not None]
    if not differences:
        return Target(name, NO_SEARCH, UNMEASURED)
    middle = statistics.median(differences)
    return _target(name, f"{percent(middle)} over {len(differences)} series", middle < VALUE_DIFFERENCE)


def _share(name: str, held: Sequence[bool], least: float, missing: str) -> Target:
    """A share of cases that must hold, `least` or more. missing: why there is no case."""
    wanted = f"{name}: all" if least == 1 else f"{name}: at least {percent(least)}"
    if not held:
        return Target(wanted, missing, UNMEASURED)
    share = sum(held) / len(held)
    return _target(wanted, f"{sum(held)} of {len(held)} ({percent(share)})", share >= least)


def _target(name: str, reached: str, met: bool) -> Target:
    return Target(name, reached, MET if met else MISSED)


def within(rows: Sequence[Row], column: str, most: float) -> list[bool]:
    """Whether a figure is at most so large either way, for the rows that have it."""
    return [abs(row[column]) <= most for row in rows if row[column] is not None]


def known_of(rows: Sequence[Row], column: str) -> list[bool]:
    """The column's values without those that are NULL."""
    return [row[column] for row in rows if row[column] is not None]


def percent(share: float) -> str:
    """A share in words."""
    return f"{short(round(100 * share, 2))} %"
