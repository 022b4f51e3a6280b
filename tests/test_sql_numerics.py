"""The view numerics: how far results are from float64, at the worst point of a workload, dtype and compile mode."""

from pathlib import Path
from typing import Any

from given import write_store

from analysis.store import open_store


def run(size: int, error: float | None, passed: bool | None = True, **more: Any) -> dict[str, Any]:
    """A checked run: eager is 0.001 off, twice that is allowed."""
    numerics = {"passed": passed, "error": error, "eager_error": 0.001, "allowed": 0.002, "size": size}
    return {"size": size, "facts": {"numerics": numerics | {"reason": more.pop("why", None)}}, **more}


def numerics(folder: Path, *runs: dict[str, Any]) -> list[dict[str, Any]]:
    """The rows of the view."""
    with open_store(write_store(folder, runs=runs)) as connection:
        result = connection.execute("FROM numerics ORDER BY workload, dtype, compile")
        names = [column[0] for column in result.description or ()]
        return [dict(zip(names, row, strict=True)) for row in result.fetchall()]


def test_the_worst_point_speaks_for_all(tmp_path: Path) -> None:
    """Three sizes: the one nearest to what is allowed, and how many were checked."""
    [row] = numerics(tmp_path, run(64, 0.0005), run(128, 0.0015), run(256, 0.001))
    assert (row["passed"], row["error"], row["size"], row["checks"], row["passes"]) == (True, 0.0015, 128, 3, 3)
    assert row["allowed_frac"] == 0.75


def test_a_failed_check_comes_first_with_its_reason(tmp_path: Path) -> None:
    """Of a fast wrong answer the point is failed, and one wrong size makes the row a failure."""
    bad = run(64, 0.5, False, why="error 0.5, allowed 0.002", status="failed", reason="wrong results")
    [row] = numerics(tmp_path, run(128, 0.0019), bad)
    assert (row["passed"], row["size"], row["failures"]) == (False, 64, 1)
    assert row["reason"] == "error 0.5, allowed 0.002"


def test_infinite_results_are_worse_than_wrong_ones(tmp_path: Path) -> None:
    """An error that is no number has no share of what is allowed, and still comes first."""
    nan = run(64, None, False, why="not finite")
    [row] = numerics(tmp_path, run(128, 0.5, False), nan)
    assert (row["size"], row["error"], row["allowed_frac"]) == (64, None, None)


def test_dtypes_compile_modes_and_settings_have_rows_of_their_own(tmp_path: Path) -> None:
    """Settings that change no result (l2, the profiler's schedule) do not."""
    rows = numerics(
        tmp_path,
        run(1, 0.001),
        run(1, 0.001, dtype="bf16"),
        run(1, 0.001, compile="true"),
        run(1, 0.001, params={"causal": True}),
        run(2, 0.001, params={"l2": "cold"}),
    )
    found = [(row["dtype"], row["compile"], row["settings"], row["checks"]) for row in rows]
    assert set(found) == {
        ("bf16", "false", "{}", 1), ("fp32", "false", "{}", 2), ("fp32", "false", '{"causal":true}', 1),
        ("fp32", "true", "{}", 1),
    }  # fmt: skip


def test_the_latest_check_of_a_point_counts(tmp_path: Path) -> None:
    """A point that was wrong once and is right now has passed."""
    [row] = numerics(tmp_path, run(64, 0.5, False), run(64, 0.001))
    assert (row["passed"], row["checks"]) == (True, 1)


def test_what_could_not_be_checked_is_unknown(tmp_path: Path) -> None:
    """Not passed, not failed: with its reason; a checked point beside it is what the row tells."""
    [row] = numerics(tmp_path / "alone", run(64, None, None, why="no reference in float64"))
    assert (row["passed"], row["reason"]) == (None, "no reference in float64")
    [row] = numerics(tmp_path / "beside", run(64, None, None, why="no reference in float64"), run(128, 0.001))
    assert (row["passed"], row["size"], row["passes"], row["checks"]) == (True, 128, 1, 2)


def test_runs_without_a_check_have_no_row(tmp_path: Path) -> None:
    """Nor has one whose fact is null."""
    assert numerics(tmp_path, {"size": 1}, {"size": 2, "facts": {"numerics": None}}) == []
