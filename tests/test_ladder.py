"""The page of the ladder: what its queries say of the results in the repository."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import util
from pathlib import Path
from typing import Any

import duckdb
import pytest

from analysis.store import add, open_store

ROOT = Path(__file__).parents[1]
STORE = ROOT / "docs" / "results" / "h200_ladder"
PAGE = ROOT / "docs" / "results" / "h200" / "ladder.md"
QUERIES = ROOT / "scripts" / "ladder"


@pytest.fixture(scope="module")
def ladder() -> Iterator[duckdb.DuckDBPyConnection]:
    """The store of the ladder, with the words for settings."""
    with open_store(STORE) as connection:
        add(connection, "phases", "pairs")
        connection.execute((QUERIES / "settings.sql").read_text())
        yield connection


def asked(ladder: duckdb.DuckDBPyConnection, name: str) -> list[dict[str, Any]]:
    """The rows of a query of the page."""
    found = ladder.execute((QUERIES / f"{name}.sql").read_text())
    names = [each[0] for each in found.description or ()]
    return [dict(zip(names, row, strict=True)) for row in found.fetchall()]


def test_the_page_is_what_the_script_writes(capsys: pytest.CaptureFixture[str]) -> None:
    """Nobody has edited it, and the store has not changed since."""
    spec = util.spec_from_file_location("ladder", ROOT / "scripts" / "ladder.py")
    assert spec is not None and spec.loader is not None
    script = util.module_from_spec(spec)
    spec.loader.exec_module(script)
    assert script.main([str(STORE)]) == 0
    assert capsys.readouterr().out == PAGE.read_text()


def test_the_holders_of_every_step_add_up_to_its_peak(ladder: duckdb.DuckDBPyConnection) -> None:
    """A row is one run: points of two dtypes are not added up."""
    rows = asked(ladder, "memory")
    assert len(rows) == 47
    for row in rows:
        held = sum(row[name] or 0 for name in list(row)[list(row).index("peak_mib") + 1 :])
        assert held == pytest.approx(row["peak_mib"], rel=0.01), row


@pytest.mark.parametrize(
    ("name", "keys"),
    [
        ("crossings", ("workload", "dtype", "mode", "axis")),
        ("memory", ("dtype", "settings", "batch")),
        ("decode", ("batch", "cache", "mode")),
        ("optimizers", ("optimizer", "impl", "mode", "batch")),
        ("attention", ("dtype", "length", "impl")),
        ("dynamic", ("op", "size", "shapes", "choice", "against")),
        ("allocator", ("size", "pattern", "spread", "pool", "settings")),
        ("numerics", ("workload", "dtype", "mode")),
    ],
)
def test_no_two_rows_go_by_the_same_words(ladder: duckdb.DuckDBPyConnection, name: str, keys: tuple[str, ...]) -> None:
    """Whatever tells two rows apart is in their first columns."""
    rows = [tuple(row[key] for key in keys) for row in asked(ladder, name)]
    assert rows and len(set(rows)) == len(rows)
