"""The relations recompiles and payback on small given rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from given import write_store

from analysis.store import open_store

FRAMES = [
    {"frame": "0/0", "name": "mlp", "seconds": 2.0, "reason": None, "guards": 14, "cycle": 1, "phase": "length 4"},
    {"frame": "0/1", "name": "mlp", "seconds": 1.5, "reason": "size mismatch", "guards": 15, "cycle": 1,
     "phase": "length 8"},
    {"frame": "1/0", "name": "norm", "seconds": 0.5, "reason": None, "guards": 3},
]  # fmt: skip


def rows(folder: Path, runs: list[dict[str, Any]], query: str) -> list[tuple[Any, ...]]:
    """What a query says of a store of these runs."""
    with open_store(write_store(folder, runs=runs)) as connection:
        return connection.execute(query).fetchall()


def choice(compile: str, wall: Any, first: list[float], dynamic: str = "false", **changes: Any) -> dict[str, Any]:
    """A run of the same work, with the times of its first cycles."""
    return {
        "workload": "shape_sequence", "compile": compile, "dynamic": dynamic, "wall_us": wall,
        "facts": {"first_cycles_us": first, "first_call_us": first[0]}, **changes,
    }  # fmt: skip


def test_a_row_a_compilation(tmp_path: Path) -> None:
    """Its place, whether it was made again, when and why; a run of an older store has no cycle; eager ones no row."""
    runs: list[dict[str, Any]] = [{"compile": "true", "facts": {"compile": {"frames": FRAMES}}}, {"compile": "false"}]
    query = (
        "SELECT run_id, compilation, frame, is_again, seconds, cycle, phase, reason, guards FROM recompiles ORDER BY 2"
    )
    assert rows(tmp_path, runs, query) == [
        ("r000", 1, "0/0", False, 2.0, 1, "length 4", None, 14),
        ("r000", 2, "0/1", True, 1.5, 1, "length 8", "size mismatch", 15),
        ("r000", 3, "1/0", False, 0.5, None, None, None, 3),
    ]


def test_a_choice_pays_where_the_totals_meet(tmp_path: Path) -> None:
    """It loses 1 s more and saves 100 us a step: after 10,000 steps both have taken the same."""
    runs = [choice("false", 300, [1300, 300]), choice("true", 200, [1_001_200, 200])]
    query = "SELECT choice, against, lost_s, against_lost_s, wall_ratio, steps, ahead_steps, reason FROM payback"
    ((*named, lost, other_lost, ratio, steps, ahead, reason),) = rows(tmp_path, runs, query)
    assert named == ["compiled dynamic=false", "eager"]
    assert (lost, other_lost, ratio) == (pytest.approx(1.001), pytest.approx(0.001), pytest.approx(2 / 3))
    assert (steps, ahead, reason) == (10_000, None, None)


def test_choices_are_compared_with_each_other(tmp_path: Path) -> None:
    """Specialised against generic: it pays after the difference of both losses; the generic one is ahead until then."""
    runs = [
        choice("true", 100, [8_000_100], dynamic="false"),
        choice("true", 110, [1_000_110], dynamic="mark", device_us=88),
    ]
    query = "SELECT choice, steps, ahead_steps, reason FROM payback ORDER BY choice"
    assert rows(tmp_path, runs, query) == [
        ("compiled dynamic=false", 700_000, None, None),
        ("compiled dynamic=mark", None, 700_000, "it loses less at the start and takes longer a step"),
    ]


@pytest.mark.parametrize(
    ("wall", "first", "steps", "reason"),
    [
        (200, [1_000_000], None, "never: it loses no less at the start and takes longer a step"),
        (100, [100], 0, None),
        ((100, 80, 200), [1_000_000], None, "the steady times do not differ beyond their intervals"),
    ],
)
def test_a_choice_that_never_pays_says_why(
    tmp_path: Path, wall: Any, first: list[float], steps: int | None, reason: str | None
) -> None:
    """Slower in both ways: never; faster in both: from the beginning; within the noise: nobody knows."""
    runs = [choice("false", 150, [1000]), choice("true", wall, first)]
    assert rows(tmp_path, runs, "SELECT steps, reason FROM payback") == [(steps, reason)]


def test_a_failed_choice_is_a_row_with_its_reason(tmp_path: Path) -> None:
    """What became of it is told where its steps would stand."""
    failed = choice("true", None, [5_000_000], status="failed", reason="torch gave up")
    found = rows(tmp_path, [choice("false", 150, [1000]), failed], "SELECT steps, reason FROM payback")
    assert found == [(None, "compiled dynamic=false failed: torch gave up")]


def test_only_the_same_work_is_compared(tmp_path: Path) -> None:
    """Another size, other parameters and cold points are other work; eager, dynamic says nothing and counts once."""
    runs = [
        choice("true", 100, [1000]),
        choice("false", 150, [1000], dynamic="null"), choice("false", 140, [1000], dynamic="true"),
        choice("false", 150, [1000], size=128), choice("false", 150, [1000], params={"shapes": 4}),
        choice("false", 150, [1000], warmup="false"), choice("false", 150, [1000], environment_id="other"),
    ]  # fmt: skip
    assert rows(tmp_path, runs, "SELECT against, against_wall_us FROM payback") == [("eager", 140.0)]


def test_a_run_without_first_cycles_is_judged_by_its_first_call(tmp_path: Path) -> None:
    """A store made before first cycles were recorded tells the first call alone."""
    runs = [
        choice("false", 150, [0], facts={"first_call_us": 150}),
        choice("true", 50, [0], facts={"first_call_us": 1_000_050}),
    ]
    assert rows(tmp_path, runs, "SELECT steps FROM payback") == [(10_000,)]
