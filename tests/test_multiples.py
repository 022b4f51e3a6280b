"""Small multiples, by their specification."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from analysis import multiples, theme


@dataclass
class Series:
    """A row of `crossovers` and its points."""

    crossing: dict[str, Any]
    points: list[dict[str, Any]]


def series(
    value: float | None = 500.0, status: str = "found", sizes: tuple[int, ...] = (64, 4096), **axes: Any
) -> Series:
    """A series that is issued in 20 us and works for a tenth of its size in us."""
    common = {
        "environment_id": "env", "workload": "matmul_add", "dtype": "bf16", "batch": None, "compile": "false",
        "dynamic": "false", "warmup": "true", "device": "cuda", "params": "{}", **axes,
    }  # fmt: skip
    bracket = {"low": 64, "high": 4096} if status in ("found", "bracketed") else {"low": None, "high": None}
    crossing = {**common, "size": None, "axis": "size", "value": value, "status": status, "reason": None, **bracket}
    points = [
        {**common, "size": size, "point_id": f"p{size}", "status": "ok", "bound": "overhead-bound",
         "overhead_us": 20.0, "work_us": size / 10}
        for size in sizes
    ]  # fmt: skip
    return Series(crossing, points)


def drawn(*given: Series) -> dict[str, Any]:
    """Specification of the grid."""
    return multiples.small_multiples(given, "matmul_add").to_dict()


def cells(spec: dict[str, Any]) -> dict[tuple[str, str, str], list[dict[str, Any]]]:
    """Rows of each cell, by (block, row, column)."""
    found: dict[tuple[str, str, str], list[dict[str, Any]]] = {}
    for block in spec["vconcat"]:
        for row in spec["datasets"][block.get("data", spec.get("data"))["name"]]:
            found.setdefault((block["title"]["text"], row["row"], row["column"]), []).append(row)
    return found


def test_a_cell_holds_both_lines_and_the_crossing_of_its_series() -> None:
    """Overhead and work of every point with the key of the point, and one crossing with its value and bracket."""
    (rows,) = cells(drawn(series())).values()
    lines = {(row["kind"], row["x"]): row["value"] for row in rows if "value" in row}
    assert lines == {("overhead", 64): 20, ("overhead", 4096): 20, ("work", 64): 6.4, ("work", 4096): 409.6}
    (crossing,) = [row for row in rows if row["kind"] == "crossing"]
    assert (crossing["at"], crossing["low"], crossing["high"], crossing["label"]) == (500, 64, 4096, "500")
    assert all(row["p"] in ("p64|env", "p4096|env") for row in rows)


def test_rows_are_number_formats_columns_modes_and_blocks_batches() -> None:
    """Exact formats first, eager first, no batch first; nothing else is part of a place."""
    spec = drawn(series(dtype="bf16", compile="true"), series(dtype="fp32"), series(batch=8))
    first, second = spec["vconcat"]
    assert (first["title"]["text"], second["title"]["text"]) == ("no batch", "batch 8")
    assert first["facet"]["row"]["sort"] == ["fp32", "bf16"] and second["facet"]["row"]["sort"] == ["bf16"]
    assert first["facet"]["column"]["sort"] == ["eager", "compiled"]


def test_a_cell_without_a_series_says_so() -> None:
    """A gap of the grid is no empty plot: it reads `not measured`, and belongs to no point."""
    found = cells(drawn(series(), series(dtype="fp32", compile="true")))
    assert found["no batch", "fp32", "eager"] == [
        {"row": "fp32", "column": "eager", "kind": "empty", "says": "not measured"}
    ]


def test_all_cells_share_their_scales() -> None:
    """Every block has the domains that hold all series."""
    spec = drawn(series(), series(batch=8, sizes=(8, 16384)))
    domains = {
        (channel, tuple(layer["encoding"][channel]["scale"]["domain"]))
        for block in spec["vconcat"]
        for layer in block["spec"]["layer"]
        for channel in ("x", "y")
        if "scale" in layer["encoding"].get(channel, {})
    }
    assert len(domains) == 2
    low, high = next(domain for channel, domain in domains if channel == "x")
    assert low < 8 and high > 16384


@pytest.mark.parametrize(
    ("status", "label"),
    [("above", theme.OVERHEAD_REGIME), ("below", theme.DEVICE_REGIME), ("unknown", "no crossing stated")],
)
def test_a_series_that_never_crosses_says_what_binds(status: str, label: str) -> None:
    """No rule is drawn; the words stand in its place."""
    (rows,) = cells(drawn(series(None, status))).values()
    assert [row["label"] for row in rows if row["kind"] == "words"] == [label]
    assert not [row for row in rows if row["kind"] == "crossing"]


def test_a_bracket_has_no_rule() -> None:
    """Where no value is stated the band and its ends are all there is."""
    (rows,) = cells(drawn(series(None, "bracketed"))).values()
    (crossing,) = [row for row in rows if row["kind"] == "crossing"]
    assert (crossing["at"], crossing["label"]) == (None, "64 … 4,096")


def test_failed_points_are_marked() -> None:
    """A point that failed has no time and is still in its cell, with the reason."""
    given = series()
    given.points[1] |= {"status": "oom", "reason": "out of memory", "overhead_us": None, "work_us": None}
    (rows,) = cells(drawn(given)).values()
    assert [(row["x"], row["says"]) for row in rows if row["kind"] == "failed"] == [(4096, "out of memory")]


def test_a_grid_stays_one_that_can_be_read() -> None:
    """Beyond MOST_COLUMNS settings the rest is counted in the subtitle."""
    given = [series(params=f'{{"ops": {ops}}}') for ops in range(multiples.MOST_COLUMNS + 2)]
    spec = drawn(*given)
    assert len(spec["vconcat"][0]["facet"]["column"]["sort"]) == multiples.MOST_COLUMNS
    assert "2 more are left out of the grid" in " ".join(spec["title"]["subtitle"])


def test_along_batch_the_blocks_are_sizes() -> None:
    """What varies in a series cannot part the blocks."""
    given = series()
    given.crossing |= {"axis": "batch", "size": 512}
    given.points = [point | {"batch": batch, "size": 512} for point, batch in zip(given.points, (1, 8), strict=True)]
    (block,) = drawn(given)["vconcat"]
    assert block["title"]["text"] == "size 512"


def test_nothing_to_draw_is_an_error() -> None:
    """A grid without a series is refused."""
    with pytest.raises(ValueError, match="no series"):
        multiples.small_multiples([], "matmul_add")
