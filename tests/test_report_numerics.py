"""Numerics in the report: how many kinds are right, the worst first, and nothing where nothing was checked."""

from __future__ import annotations

from pathlib import Path

from given import write_store
from test_sql_numerics import run

from analysis.report.numerics import numerics_parts
from analysis.report.tables import read
from analysis.store import open_store


def parts(folder: Path, *runs: dict[str, object]) -> list[str]:
    """The parts of the section for a store of these runs."""
    with open_store(write_store(folder, runs=runs)) as connection:
        return numerics_parts(read(connection).numerics)


def test_counts_and_rows(tmp_path: Path) -> None:
    """Three kinds: wrong ones first, with the reason; the worst point is a link."""
    told = parts(
        tmp_path,
        run(64, 0.0015, wall_us=10),
        run(64, 0.5, False, dtype="bf16", why="error 0.5 <b>"),
        run(64, None, None, dtype="fp16", why="no float64 here"),
    )
    assert told[0] == (
        '<p class="numerics">Of 3 kinds of points (workload, settings, dtype, compile mode) the results of 1 are '
        "right, of 1 wrong and of 1 not known.</p>"
    )
    table = told[2]
    assert table.index("bf16") < table.index("fp32") < table.index("fp16")
    assert "error 0.5 &lt;b&gt;" in table and "no float64 here" in table
    assert "75.0 %" in table and '<a href="#point=' in table


def test_nothing_was_checked(tmp_path: Path) -> None:
    """No words about it."""
    assert parts(tmp_path, {"size": 64, "wall_us": 10}) == []


def test_settings_that_all_kinds_of_a_workload_share_are_left_out(tmp_path: Path) -> None:
    """A row names what tells it from the others of its workload, not a dozen settings that nobody has changed."""
    kinds = ({"layers": 2, "optimizer": "adam"}, {"layers": 2, "optimizer": "sgd"})
    table = parts(tmp_path, *(run(64, 0.0015, wall_us=10, params=each) for each in kinds))[2]
    assert "<small>optimizer adam</small>" in table and "<small>optimizer sgd</small>" in table
    assert "layers 2" not in table
