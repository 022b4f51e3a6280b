"""Another host, another card: what the two-term law makes of given times, and what the command says of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import duckdb
import pytest
from given import write_store

from analysis.__main__ import main
from analysis.store import RELATIONS, SQL, document, open_store
from analysis.whatif import in_words, open_whatif

WAITS = {"blocking_calls": {"Tensor.item": 1}}
CPU = {"device": "cpu"}

# name: the run, how many times as fast host and device are, what the wall time becomes (None: it cannot be told)
WALLS: dict[str, tuple[dict[str, Any], float, float, float | None]] = {
    "a faster host, overhead": ({"wall_us": 18, "issue_us": 18, "device_us": 6}, 2, 1, 9),
    "so fast that the device binds": ({"wall_us": 18, "issue_us": 18, "device_us": 6}, 4, 1, 6),
    "a faster card, overhead": ({"wall_us": 18, "issue_us": 18, "device_us": 6}, 1, 2, 18),
    "a slower card": ({"wall_us": 18, "issue_us": 18, "device_us": 6}, 1, 0.25, 24),
    "what the law is off by stays": ({"wall_us": 21, "issue_us": 20, "device_us": 5}, 10, 1, 5.25),
    "waits for all of the device": ({"wall_us": 240, "issue_us": 20, "device_us": 220, "facts": WAITS}, 2, 1, 230),
    "waits, on a faster card": ({"wall_us": 240, "issue_us": 20, "device_us": 220, "facts": WAITS}, 1, 10, 42),
    "a quarter of issuing is not hidden": (
        {"wall_us": 105, "issue_us": 20, "device_us": 100, "facts": WAITS}, 2, 1, 102.5,
    ),
    "waiting itself is the host's": ({"wall_us": 30, "issue_us": 20, "device_us": 4, "facts": WAITS}, 2, 1, 17),
    "queue full, late": ({"wall_us": 30, "device_us": 10}, 2, 1, 15),
    "queue full, late, now busy": ({"wall_us": 30, "device_us": 10}, 6, 1, 10),
    "queue full, busy, a faster host": ({"wall_us": 10.5, "device_us": 10}, 2, 1, 10.5),
    "queue full, busy, a faster card": ({"wall_us": 10.5, "device_us": 10}, 1, 2, None),
    "all twice as fast": ({"wall_us": 10.5, "device_us": 10}, 2, 2, 5.25),
    "no device time": ({"wall_us": 30, "issue_us": 30}, 2, 1, None),
    "cpu, faster work": ({**CPU, "wall_us": 104, "floor_us": 4}, 1, 2, 54),
    "cpu, faster host": ({**CPU, "wall_us": 104, "floor_us": 4}, 2, 1, 102),
    "cpu, a slower device and no work": ({**CPU, "wall_us": 3.8, "floor_us": 4}, 1, 0.01, 3.8),
    "cpu without floor": ({**CPU, "wall_us": 104}, 1, 2, None),
}  # fmt: skip


def moved(tmp_path: Path, run: dict[str, Any], host: float, device: float) -> dict[str, Any]:
    """The row of `bounds` of one run at another speed."""
    with open_store(write_store(tmp_path, runs=[run]), host=host, device=device) as connection:
        return rows_of(connection, "bounds")[0]


def rows_of(connection: duckdb.DuckDBPyConnection, relation: str) -> list[dict[str, Any]]:
    """Rows of a relation by column."""
    result = connection.execute(f"FROM {relation}")
    names = [column[0] for column in result.description]
    return [dict(zip(names, row, strict=True)) for row in result.fetchall()]


@pytest.mark.parametrize("name", WALLS)
def test_wall_follows_the_law(name: str, tmp_path: Path) -> None:
    """max(issue, device) where nothing waits, both in turn where it does, floor + work on the CPU; else unknown."""
    run, host, device, wall_us = WALLS[name]
    row = moved(tmp_path, run, host, device)
    assert row["wall_us"] == (None if wall_us is None else pytest.approx(wall_us))
    assert wall_us is not None or row["bound"] == "unknown"


@pytest.mark.parametrize("name", WALLS)
def test_almost_the_same_speed_changes_almost_nothing(name: str, tmp_path: Path) -> None:
    """A host faster by a billionth: the times are the measured ones, but a wall time of unknown terms."""
    run, *_ = WALLS[name]
    row = moved(tmp_path, run, 1 + 1e-9, 1)
    known = [column for column in ("issue_us", "device_us", "floor_us") if column in run]
    told = name not in ("no device time", "cpu without floor")
    for column in [*known, *(["wall_us"] if told else [])]:
        assert row[column] == pytest.approx(run[column]), column


def test_an_unknown_wall_time_says_why(tmp_path: Path) -> None:
    """Busy by the law, issue time unknown, the card twice as fast: the host may or may not be fast enough."""
    row = moved(tmp_path, {"wall_us": 10.5, "device_us": 10}, 1, 2)
    assert row["reason"] == "no time was measured: unknown at another speed, since a term of the step is"


def test_every_time_moves_with_its_side(tmp_path: Path) -> None:
    """Host times by the host's factor, device times by the device's, intervals with them."""
    run = {
        "wall_us": (18, 17, 19), "issue_us": (18, 17, 19), "device_us": (6, 5, 7), "replay_us": 4, "busy_us": 3,
        "single_us": 28, "margin": (3, 2.8, 3.2),
    }  # fmt: skip
    row = moved(tmp_path, run, 2, 0.5)
    assert [row[f"issue_us{end}"] for end in ("", "_low", "_high")] == [9, 8.5, 9.5]
    assert [row[f"device_us{end}"] for end in ("", "_low", "_high")] == [12, 10, 14]
    assert [row[f"wall_us{end}"] for end in ("", "_low", "_high")] == pytest.approx([12, 12 * 17 / 18, 12 * 19 / 18])
    assert (row["replay_us"], row["busy_us"]) == (8, 6)
    assert [row[f"margin{end}"] for end in ("", "_low", "_high")] == pytest.approx([0.75, 0.7, 0.8])
    assert row["single_us"] == pytest.approx(9 + 12 + 4 / 2)  # 4 us beyond both terms are the host's
    assert row["gain"] == pytest.approx(12 / 8)
    assert (row["bound"], row["host_slope"], row["device_slope"]) == ("device-bound", None, None)


def test_a_faster_host_is_a_slower_device(tmp_path: Path) -> None:
    """Ratios do not tell them apart: host x 3 and device / 3 give the same margins, for issue and for floor."""
    runs = [
        {"wall_us": 18, "issue_us": (18, 17, 19), "device_us": (6, 5, 7), "margin": (3, 2.9, 3.1)},
        {"size": 128, "wall_us": 18, "issue_us": (18, 17, 19), "device_us": (6, 5, 7)},
        {**CPU, "wall_us": 104, "floor_us": 4},
    ]
    store = write_store(tmp_path, runs=runs)
    with open_store(store, host=3) as faster, open_store(store, device=1 / 3) as slower:
        query = "SELECT margin, margin_low, margin_high, bound FROM bounds ORDER BY device, size"
        one, other = faster.execute(query).fetchall(), slower.execute(query).fetchall()
    for left, right in zip(one, other, strict=True):
        assert left[:3] == pytest.approx(right[:3]) and left[3] == right[3]


def test_roofs_move_with_the_device(tmp_path: Path) -> None:
    """A card twice as fast in everything: the share of the roof is what it was, and so is the bound."""
    cost = {"operations": [{"name": "mm", "flops": 80e6, "bytes": 1e6}], "bytes_min": 1e6, "working_set_bytes": 1e9}
    runs = [{"wall_us": 100, "issue_us": 20, "device_us": 100, "facts": {"cost": cost}}]
    roofs = [{"roof": "flops", "dtype": "fp32", "value_per_s": 1e12}, {"roof": "dram", "value_per_s": 1e12}]
    with open_store(write_store(tmp_path, runs=runs, roofs=roofs), device=2) as connection:
        (row,) = rows_of(connection, "bounds")
    assert (row["bound"], row["wall_us"], row["flops_share"]) == ("compute-bound", 50, pytest.approx(0.8))


SERIES = [
    {"size": 100, "wall_us": 20, "issue_us": 20, "device_us": 5},
    {"size": 200, "wall_us": 80, "issue_us": 20, "device_us": 80},
]
"""Margins 4 and 1/4: they meet half way on logarithms, at 141."""


def test_crossovers_move_along_their_curve(tmp_path: Path) -> None:
    """With a host twice as fast the margins are 2 and 1/8: a quarter of the way; 8 times as fast, below all points."""
    store = write_store(tmp_path, runs=SERIES)
    with open_whatif(store, 2, 1) as connection:
        (row,) = rows_of(connection, "whatif_crossovers")
    assert row["value"] == pytest.approx(100 * 2**0.5) and row["then_value"] == pytest.approx(100 * 2**0.25)
    assert (row["crossover"], row["then_crossover"], row["moves"]) == ("141 (100 to 200)", "119 (100 to 200)", True)
    with open_whatif(store, 8, 1) as connection:
        (row,) = rows_of(connection, "whatif_crossovers")
        told = in_words(connection, 8, 1)
    assert (row["then_status"], row["then_value"]) == ("below", None)
    assert told == [
        "With a host 8x as fast and the same device 1 of 2 bounds move; a step becomes 2.5x as fast (median of 2; 1x "
        "to 4x).",
        "The crossover of matmul_add fp32 eager along size moves from 141 (100 to 200) to below 100.",
    ]


def test_what_is_measured_stands_beside_what_would_be(tmp_path: Path) -> None:
    """One row a point; those that move are marked."""
    with open_whatif(write_store(tmp_path, runs=SERIES), 8, 1) as connection:
        rows = {row["size"]: row for row in rows_of(connection, "whatif_bounds")}
    assert [(rows[100][name]) for name in ("bound", "then_bound", "moves")] == ["overhead-bound", "device-bound", True]
    assert [rows[100][name] for name in ("wall_us", "then_wall_us", "speed_up")] == pytest.approx([20, 5, 4])
    assert [rows[200][name] for name in ("bound", "then_bound", "moves")] == ["device-bound", "device-bound", False]


def test_the_command_prints_words_and_a_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Words first, then what moves; other formats hold rows alone on stdout, every column, and the words on stderr."""
    store = str(write_store(tmp_path, runs=SERIES))
    assert main(["whatif", "--host", "8", "--store", store]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("With a host 8x as fast and the same device 1 of 2 bounds move")
    assert lines[3].split()[:3] == ["workload", "size", "dtype"] and lines[4].split()[1] == "100"
    assert main(["whatif", "crossovers", "--device", "2", "--store", store, "--format", "json"]) == 0
    captured = capsys.readouterr()
    assert [row["then_value"] for row in json.loads(captured.out)] == [pytest.approx(100 * 2**0.75)]
    assert "moves from" in captured.err


@pytest.mark.parametrize("factor", ["0", "-1", "nan", "inf", "fast", "1e-308", "1e9"])
def test_a_factor_is_a_number_within_reason(factor: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Anything else is one line and exit code 1."""
    with pytest.raises(SystemExit) as end:
        main(["whatif", f"--host={factor}"])
    assert end.value.code == 1
    assert f"argument --host: {factor}: allowed is a number from 0.001 to 1000" in capsys.readouterr().err


def test_a_time_of_nothing_stays_nothing(tmp_path: Path) -> None:
    """A wall time of 0 is some other program's; it moves to no number, and nothing fails."""
    row = moved(tmp_path, {**CPU, "wall_us": 0, "floor_us": 0}, 2, 1)
    assert row["wall_us"] == 0 and row["bound"] in ("unknown", "overhead-bound", "balanced")


def test_an_empty_store_moves_nothing(tmp_path: Path) -> None:
    """No point: a sentence, and no rows."""
    with open_whatif(tmp_path, 2, 1) as connection:
        assert rows_of(connection, "whatif_bounds") == []
        assert in_words(connection, 2, 1) == ["With a host 2x as fast and the same device 0 of 0 bounds move."]


def test_every_column_is_documented_and_every_grain_stated(tmp_path: Path) -> None:
    """As of all relations: those of their own here, and the measured columns that other relations describe."""
    with open_whatif(tmp_path, 2, 1) as connection:
        document(connection)
        columns = connection.sql("SELECT table_name, column_name, comment FROM duckdb_columns()").fetchall()
    known = {column for table, column, comment in columns if table in RELATIONS and comment}
    views = [row for row in columns if row[0] in ("whatif_bounds", "whatif_crossovers")]
    assert views and [row for row in views if not row[2] and row[1] not in known] == []
    for name in ("bounds", "crossovers"):
        assert (SQL / "whatif" / f"whatif_{name}.sql").read_text().startswith("-- Grain: one row a")
