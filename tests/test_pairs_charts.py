"""Charts of pairs, by their specification."""

from __future__ import annotations

from typing import Any

import pytest

from analysis import pairs
from analysis.charts import MEDIUM


def pair(size: int = 64, ratio: float | None = 2.0, **changes: Any) -> dict[str, Any]:
    """A row of `pairs`, eager against compiled, with an interval of 10 %."""
    known = ratio is not None
    return {
        "kind": "compile", "a": "eager", "b": "compiled", "quantity": "wall", "unit": "us", "point_id": f"p{size}",
        "environment_id": "env", "workload": "matmul_add", "size": size, "dtype": "bf16", "batch": None,
        "compile": "true", "dynamic": "false", "warmup": "true", "device": "cuda", "params": "{}",
        "a_value": 40.0, "b_value": 40.0 / ratio if ratio else None, "ratio": ratio,
        "ratio_low": 0.9 * ratio if ratio else None, "ratio_high": 1.1 * ratio if ratio else None,
        "change": "less" if known else None, "reason": None if known else "compiled: oom", **changes,
    }  # fmt: skip


def chart(rows: list[dict[str, Any]], kind: str = "compile", axis: str = "size") -> dict[str, Any]:
    """Specification of the chart of one series."""
    return pairs.pair_chart(rows, kind, axis, pairs.pair_names(rows, kind, axis)).to_dict()


def overview(rows: list[dict[str, Any]], kind: str = "compile") -> dict[str, Any]:
    """Specification of the strip of all series."""
    return pairs.pair_overview(rows, kind, pairs.pair_names(rows, kind)).to_dict()


def rows_of(spec: dict[str, Any], mark: str) -> list[dict[str, Any]]:
    """The data of the first layer that draws the mark named."""
    layer = next(layer for layer in spec["layer"] if layer["mark"]["type"] == mark)
    return spec["datasets"][layer["data"]["name"]]


def test_a_pair_has_its_ratio_interval_and_the_point_of_its_second_side() -> None:
    """The row carries the key of side B, six digits, and both values in words."""
    (row,) = rows_of(chart([pair()]), "point")
    assert (row["p"], row["x"], row["value"], row["low"], row["high"]) == ("p64|env", 64, 2, 1.8, 2.2)
    assert row["says"] == "2.00× (1.80 to 2.20)"
    assert row["note"] == "eager 40.0 µs, compiled 20.0 µs"


def test_the_axis_names_both_sides_and_the_words_say_which_takes_less() -> None:
    """Above the line at 1 side B takes less."""
    spec = chart([pair(), pair(128)])
    (level,) = [row for rows in spec["datasets"].values() for row in rows if "level" in row]
    words = {row["words"] for rows in spec["datasets"].values() for row in rows if "words" in row}
    titles = {layer["encoding"]["y"]["axis"]["title"] for layer in spec["layer"] if "axis" in layer["encoding"]["y"]}
    assert level["level"] == 1 and titles == {"eager ÷ compiled"}
    assert words == {"↑ compiled takes less", "↓ eager takes less"}


def test_quantities_are_lines_of_their_own() -> None:
    """Wall first, then the host's and the device's side; what the kind does not draw is left out."""
    rows = [pair(quantity=each) for each in ("device", "issue", "wall", "peak memory")]
    spec = chart(pairs.pair_series(rows, "compile", "size")[0])
    assert [row["quantity"] for row in rows_of(spec, "point")] == ["wall", "issue", "device"]


def test_a_pair_without_a_ratio_is_not_drawn_and_none_at_all_is_an_error() -> None:
    """A failed side has no place on a logarithmic axis; a chart of nothing is refused."""
    assert len(rows_of(chart([pair(), pair(128, None)]), "point")) == 1
    with pytest.raises(ValueError, match="no compile pair has a ratio"):
        chart([pair(ratio=None)])


def test_an_interval_that_noise_lets_reach_zero_does_not_press_the_rest_flat() -> None:
    """Rulers hold intervals a few times beyond the ratios; what reaches further ends at the ruler's edge."""
    rows = [pair(), pair(128, 0.5, ratio_low=1e-9, ratio_high=1e9)]
    on = pairs.pair_rulers(rows, "size", MEDIUM)
    assert on.y.low > 0.05 and on.y.high < 20
    wide = next(row for row in rows_of(chart(rows), "point") if row["x"] == 128)
    assert wide["low"] >= on.y.low and wide["high"] <= on.y.high


def test_series_have_all_but_the_axis_in_common() -> None:
    """Number formats, sides and further settings part series; those with most points come first."""
    rows = [pair(), pair(dtype="fp32"), pair(128, dtype="fp32"), pair(b="max-autotune"), pair(params='{"ops": 4}')]
    found = pairs.pair_series([*rows, pair(kind="dtype"), pair(quantity="compilation")], "compile", "size")
    assert [len(series) for series in found] == [2, 1, 1, 1]


def test_series_run_along_any_axis() -> None:
    """Along batch, and along a further axis, sizes part the series."""
    rows = [pair(size, batch=batch) for size in (64, 128) for batch in (1, 8)]
    assert [len(series) for series in pairs.pair_series(rows, "compile", "batch")] == [2, 2]
    rows = [pair(params=f'{{"ops": {ops}}}') for ops in (1, 4, 16)]
    (series,) = pairs.pair_series(rows, "compile", "ops")
    assert [row["x"] for row in rows_of(chart(series, axis="ops"), "point")] == [1, 4, 16]


def test_names_leave_out_what_the_sides_say() -> None:
    """The setting that differs and the schedule stand in no name; sides only where they differ between rows."""
    rows = [pair(params='{"schedule": "1/1/20/1"}'), pair(dtype="fp32", params='{"schedule": "0/0/20/1"}')]
    assert pairs.pair_names(rows, "compile")(rows[0]) == "matmul_add · bf16"
    several = [*rows, pair(b="max-autotune")]
    assert pairs.pair_names(several, "compile")(several[2]) == "eager → max-autotune · matmul_add · bf16"
    formats = [pair(kind="dtype", a="fp32", b="bf16", compile="false")]
    assert pairs.pair_names(formats, "dtype")(formats[0]) == "matmul_add · eager"


def test_an_overview_has_a_row_a_series_sorted_by_its_median() -> None:
    """Ticks are the pairs; Vega takes median and range, so that chosen points change them."""
    rows = [pair(64, 0.5, change="more"), pair(128, 1.0, change="same"), pair(64, 4.0, dtype="fp32")]
    spec = overview(rows)
    ticks = rows_of(spec, "tick")
    assert {(row["series"], row["value"], row["change"]) for row in ticks} == {
        ("matmul_add · fp32", 4, "takes less"),
        ("matmul_add · bf16", 0.5, "takes more"),
        ("matmul_add · bf16", 1, "within the noise"),
    }
    assert all(row["p"].endswith("|env") for row in ticks)
    dots = next(layer for layer in spec["layer"] if layer["mark"]["type"] == "point")
    assert dots["encoding"]["x"]["aggregate"] == "median"
    assert dots["encoding"]["y"]["sort"] == ["matmul_add · fp32", "matmul_add · bf16"]


def test_an_overview_shows_the_leading_quantity_alone() -> None:
    """Wall of a compile pair; its issue time is left to the single charts."""
    assert len(rows_of(overview([pair(), pair(quantity="issue")]), "tick")) == 1


def test_an_overview_of_many_series_keeps_those_farthest_from_1() -> None:
    """The rest is counted in the subtitle."""
    rows = [pair(ratio=1 + step / 100, workload=f"w{step}") for step in range(pairs.MOST_ROWS + 3)]
    spec = overview(rows)
    shown = {row["series"] for row in rows_of(spec, "tick")}
    assert len(shown) == pairs.MOST_ROWS and "w0 · bf16" not in shown
    assert "3 series nearer to 1× are left out" in " ".join(spec["title"]["subtitle"])


def test_an_overview_of_many_pairs_has_no_ticks() -> None:
    """Beyond MOST_MARKS only median and range are drawn, and the subtitle says so."""
    spec = overview([pair(size) for size in range(1, pairs.MOST_MARKS + 2)])
    assert not [layer for layer in spec["layer"] if layer["mark"]["type"] == "tick"]
    assert "not drawn one by one" in " ".join(spec["title"]["subtitle"])


def test_an_overview_of_nothing_is_an_error() -> None:
    """No ratio, no strip."""
    with pytest.raises(ValueError, match="no compile pair has a ratio of wall"):
        overview([pair(ratio=None)])


@pytest.mark.parametrize("kind", list(pairs.KINDS.values()), ids=lambda kind: kind.name)
def test_every_kind_says_how_to_read_it_and_where_its_rows_come_from(kind: pairs.Kind) -> None:
    """A sentence, a query of its own kind, and a look for every quantity that it draws."""
    assert kind.title and kind.reading.endswith(".")
    assert f"kind = '{kind.name}'" in kind.sql and f"'{kind.leading}'" in kind.sql
    rows = [pair(kind=kind.name, quantity=quantity) for quantity in kind.quantities]
    assert {row["quantity"] for row in rows_of(chart(rows, kind.name), "point")} == set(kind.quantities)
