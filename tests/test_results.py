"""The results that the repository holds say what the documents say of them."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

from analysis import open_store

RESULTS = Path(__file__).parent.parent / "docs" / "results"
STORES = ("h200", "h200_article", "h200_dtypes")


def one(connection: duckdb.DuckDBPyConnection, query: str) -> tuple[object, ...]:
    """The only row of a query."""
    (row,) = connection.execute(query).fetchall()
    return tuple(row)


@pytest.mark.parametrize("store", STORES)
def test_the_law_holds(store: str) -> None:
    """wall = max(issue, device) within 5 % on at least 95 % of the warm points that are not serialized."""
    with open_store(RESULTS / store) as connection:
        within, points = one(connection, "SELECT sum(points_within), sum(points) FROM law_summary")
    assert isinstance(within, int) and isinstance(points, int)
    assert points >= 50
    assert within >= 0.95 * points


@pytest.mark.parametrize("store", STORES)
def test_slopes_and_replay_agree_outside_the_band(store: str) -> None:
    """Farther than 10 % from the crossing no slope and no replay contradicts a bound."""
    with open_store(RESULTS / store) as connection:
        against = connection.execute(
            "SELECT workload, size, bound FROM law WHERE NOT in_band AND (NOT slopes_agree OR NOT replay_agrees)"
        ).fetchall()
        slopes, replays = one(connection, "SELECT count(slopes_agree), count(replay_agrees) FROM law WHERE NOT in_band")
    assert against == []
    assert isinstance(slopes, int) and isinstance(replays, int)
    assert slopes >= 10 and replays >= 50


def test_a_step_that_waits_is_serialized_where_the_device_is_slow() -> None:
    """matmul_item at large sizes is serialized, and its sentence names the call."""
    with open_store(RESULTS / "h200") as connection:
        rows = connection.execute(
            "SELECT bound, sentence FROM bounds WHERE workload = 'matmul_item' AND size >= 3072"
        ).fetchall()
    assert len(rows) >= 3
    assert all(bound == "serialized" and "Tensor.item" in sentence for bound, sentence in rows)


def test_the_crossovers_of_the_readme() -> None:
    """The two crossings that the README's picture shows."""
    with open_store(RESULTS / "h200") as connection:
        rows = connection.execute(
            "SELECT compile, round(value) FROM crossovers WHERE workload = 'matmul_add' AND status = 'found' ORDER BY 1"
        ).fetchall()
    assert rows == [("false", 1756), ("true", 2487)]
