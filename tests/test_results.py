"""The results that the repository holds say what the documents say of them."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

from analysis.store import open_store
from analysis.truth import MET, gather, targets
from analysis.truth_report import in_words

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "docs" / "results"
DTYPES = ("bf16", "fp16", "fp32", "tf32")
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
    """The table of the README, whose first line its picture shows."""
    lines = (ROOT / "README.md").read_text().splitlines()
    printed = {cells[0]: cells[1:] for cells in (_cells(line) for line in lines) if cells[:1] in ([d] for d in DTYPES)}
    with open_store(RESULTS / "h200") as connection:
        rows = connection.execute(
            """SELECT dtype, "text" FROM crossovers
            WHERE workload = 'matmul_add' AND axis = 'size'
                AND (compile = 'false' OR compile = 'true' AND batch IS NULL)
            ORDER BY dtype, compile, batch NULLS FIRST"""
        ).fetchall()
    assert printed == {dtype: [text for other, text in rows if other == dtype] for dtype in DTYPES}


def test_the_ladder_of_the_readme() -> None:
    """Each workload's crossing, and how long a token takes in each mode."""
    text = (ROOT / "README.md").read_text()
    ladder = text.split("docs/results/h200_ladder`")[1].split("\n\n")[0].splitlines()[2:]
    printed = {cells[0].split("`")[1]: cells[2] for cells in map(_cells, ladder)}
    with open_store(RESULTS / "h200_ladder") as connection:
        found = connection.execute(
            """SELECT workload, "text" FROM crossovers
            WHERE dtype = 'bf16' AND compile = 'false' AND axis = 'size'
                AND coalesce(params->>'cache', 'static') = 'static'
                AND (workload <> 'attention' OR params->>'impl' = 'sdpa' AND params->>'causal' = 'false')"""
        ).fetchall()
        tokens = connection.execute(
            """SELECT compile, wall_us / 1e3 FROM bounds
            WHERE workload = 'llm_decode' AND size = 1 AND params->>'cache' = 'static'"""
        ).fetchall()
    assert len(printed) == 7
    assert printed == {workload: crossing for workload, crossing in found if workload in printed}
    took = {mode: f"{ms:.2g} ms" for mode, ms in tokens}
    assert f"{took['false']} eager, {took['true']} compiled and {took['reduce-overhead']} with CUDA" in text


def _cells(line: str) -> list[str]:
    """The cells of a line of a table."""
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def test_the_proof_stands_as_it_is_written() -> None:
    """docs/results/h200/truth.md is what the command writes from the store beside it, and no target is missed."""
    evidence = gather(RESULTS / "h200")
    assert (RESULTS / "h200" / "truth.md").read_text().strip() == in_words(evidence).strip()
    assert {target.state for target in targets(evidence)} == {MET}
