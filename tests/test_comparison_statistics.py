"""How often a comparison says that something changed: where nothing did, and where it did."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest
from compared_given import Time, baseline_of

from analysis.comparison.compared import chance, compare
from analysis.comparison.significance import holm, tail

REPEATS, POINTS, SD = 200, 100, 0.02


@pytest.mark.parametrize(
    ("t", "dof"), [(12.7062, 1), (4.30265, 2), (3.18245, 3), (2.77645, 4), (2.22814, 10), (2.00030, 60), (1.97190, 200)]
)
def test_the_tail_of_students_t(t: float, dof: int) -> None:
    """The printed 97.5 % quantiles have 5 % outside of them."""
    assert tail(t, dof) == pytest.approx(0.05, abs=1e-5)
    assert tail(-t, dof) == tail(t, dof)


def test_the_tail_far_out() -> None:
    """The probability falls with t, from 1 at 0, and never below 0; beyond 200 degrees it changes no more."""
    chances = [tail(t, 7) for t in (0, 1, 2, 5, 50, 5000)]
    assert chances[0] == 1 and chances == sorted(chances, reverse=True) and chances[-1] >= 0
    assert tail(5, 7) == pytest.approx(0.001565, rel=1e-3)
    assert tail(3, 1000) == tail(3, 200)


def test_holms_correction() -> None:
    """The least value counts for all, the next for one fewer, and none lies below a lesser one's."""
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.5, 0.9]) == [1.0, 1.0]
    assert holm([]) == []


def test_without_error_a_difference_is_no_chance() -> None:
    """Counted values without any spread are the same, or are not."""
    assert (chance(0.0, 0.0, 10), chance(0.001, 0.0, 10)) == (1.0, 0.0)


def falsely(folder: Path, is_known: bool, session_sd: float = 0.0) -> int:
    """Of REPEATS comparisons of a sweep of POINTS points with its repeat, those with any FASTER or SLOWER.

    is_known: the spread between runs is, from 60 degrees of freedom, with an error of its own. session_sd: of a shift
    that all points of one side share; a known spread holds it. All comparisons are made as one, of points that are
    told apart by their quantity, and corrected each for itself.
    """
    draw = random.Random(7)
    sides = [
        baseline_of(folder / f"{name}.parquet", (
            time
            for repeat in range(REPEATS)
            for time in repeated(draw, repeat, session_sd, is_known)
        ))
        for name in "ab"
    ]  # fmt: skip
    with compare(*sides) as connection:
        correct_each(connection)
        query = "SELECT count(DISTINCT size // 1000) FROM changes WHERE verdict IN ('FASTER', 'SLOWER')"
        (wrong,) = connection.execute(query).fetchall()[0]
    return int(wrong)


def repeated(draw: random.Random, repeat: int, session_sd: float, is_known: bool) -> Iterator[Time]:
    """One side's times of one comparison; sizes say which one."""
    session = draw.gauss(0, session_sd)
    spread = math.hypot(SD, session_sd) * math.sqrt(sum(draw.gauss(0, 1) ** 2 for _ in range(60)) / 60)
    for point in range(POINTS):
        value = 10 * math.exp(session + draw.gauss(0, SD))
        yield Time(1000 * repeat + point, value, *((spread, 60) if is_known else (None, None)), kind=f"wall {repeat}")


def correct_each(connection: duckdb.DuckDBPyConnection) -> None:
    """Correct every comparison for its own number of points alone."""
    rows = connection.execute("SELECT axes, chance FROM _chances").fetchall()
    groups: dict[int, list[tuple[str, float]]] = {}
    for axes, alone in rows:
        groups.setdefault(int(axes) // 1000, []).append((axes, alone))
    corrected = {
        axes: value
        for group in groups.values()
        for (axes, _), value in zip(group, holm([alone for _, alone in group]), strict=True)
    }
    connection.execute(
        "UPDATE _chances SET corrected = n.corrected "
        "FROM (SELECT unnest(?::VARCHAR[]) AS axes, unnest(?::DOUBLE[]) AS corrected) AS n "
        "WHERE n.axes = _chances.axes",
        [list(corrected), list(corrected.values())],
    )


@pytest.mark.parametrize(("is_known", "session_sd"), [(True, 0.0), (False, 0.0), (True, 0.03)])
def test_a_repeat_changes_nothing(tmp_path: Path, is_known: bool, session_sd: float) -> None:
    """At most 5 % of comparisons of a sweep with its repeat say that anything changed (19 of 200: luck of 1 in 200)."""
    assert falsely(tmp_path, is_known, session_sd) <= 19


@pytest.mark.parametrize("known", [True, False])
def test_real_changes_are_found(tmp_path: Path, known: bool) -> None:
    """Points that really are 20 % slower are told among a hundred that are not, and no other one is."""
    draw = random.Random(3)
    slow = {10, 50, 90}
    spread = (SD, 60) if known else (None, None)
    paths = [
        baseline_of(tmp_path / f"{name}.parquet", (
            Time(size, 10 * math.exp(draw.gauss(0, SD)) * (by if size in slow else 1), *spread)
            for size in range(POINTS)
        ))
        for name, by in (("a", 1), ("b", 1.2))
    ]  # fmt: skip
    with compare(*paths) as connection:
        rows = connection.execute("SELECT size, verdict FROM changes WHERE verdict IN ('FASTER', 'SLOWER')").fetchall()
    assert {size for size, verdict in rows if verdict == "SLOWER"} == slow
    assert len(rows) == 3


def test_a_few_points_without_a_known_spread(tmp_path: Path) -> None:
    """Three points cannot tell the spread: their verdicts rest on the runs' own intervals, and say so."""
    sides = {"a": (10.0, 20.0, 30.0), "b": (10.01, 20.0, 45.0)}
    paths = [
        baseline_of(tmp_path / f"{name}.parquet", (Time(size, value) for size, value in enumerate(values, 1)))
        for name, values in sides.items()
    ]
    with compare(*paths) as connection:
        rows = connection.execute("SELECT size, verdict, basis FROM changes ORDER BY size").fetchall()
    assert rows == [(1, "SAME", "runs alone"), (2, "SAME", "runs alone"), (3, "SLOWER", "runs alone")]
