"""Charts of the roofs, by their specification."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from analysis import roofline, theme
from analysis.theme import SeriesNames

ROOFS = [
    {"roof": "flops", "dtype": "bf16", "value_per_s": 7e14},
    {"roof": "flops", "dtype": "fp16", "value_per_s": 6.9e14},
    {"roof": "flops", "dtype": "fp32", "value_per_s": 5e13},
    {"roof": "dram", "dtype": None, "value_per_s": 4e12},
    {"roof": "l2", "dtype": None, "value_per_s": 6e12},
]


def point(size: int = 64, dtype: str = "bf16", **changes: Any) -> dict[str, Any]:
    """A row of `roofline`: 100 FLOPs a byte at 350 TFLOP/s, half of its roof, and nothing to fuse."""
    return {
        "point_id": f"p{size}{dtype}", "environment_id": "env", "series": f"series {dtype}", "workload": "matmul_add",
        "size": size, "dtype": dtype, "batch": None, "compile": "false", "dynamic": "false", "warmup": "true",
        "device": "cuda", "params": "{}", "status": "ok", "bound": "compute-bound", "intensity": 100.0,
        "flops_per_s": 3.5e14, "bytes_per_s": 3.5e12, "roof": "flops", "roof_share": 0.5, "wall_us": 100.0,
        "overhead_us": 10.0, "work_us": 100.0, "fused_roof_us": 50.0, "fused_us": 100.0, "fused_wall_us": 100.0,
        "fusion_gain": 1.0, "reason": None, **changes,
    }  # fmt: skip


def drawn(rows: list[dict[str, Any]], roofs: list[dict[str, Any]] = ROOFS) -> dict[str, Any]:
    """Specification of the roofline of these rows."""
    return roofline.roofline(rows, roofs, SeriesNames(rows, "size")).to_dict()


def rows_of(spec: dict[str, Any], mark: str) -> list[list[dict[str, Any]]]:
    """The data of each layer that draws the mark named."""
    layers = [layer for layer in spec["layer"] if layer["mark"]["type"] == mark]
    return [spec["datasets"][layer.get("data", spec.get("data"))["name"]] for layer in layers]


def words(spec: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Fixed words of a chart, each with its encoding."""
    texts = [layer for layer in spec["layer"] if layer["mark"]["type"] == "text"]
    return {spec["datasets"][layer["data"]["name"]][0]["words"]: layer["encoding"] for layer in texts}


def test_every_point_has_its_place_its_bound_and_its_key() -> None:
    """A marker at intensity and rate, with its bound's letter, the point it belongs to and its figures in words."""
    ((row,),) = rows_of(drawn([point()]), "point")
    assert (row["p"], row["x"], row["value"]) == ("p64bf16|env", 100, 3.5e14)
    assert row["key"] == "C  compute-bound"
    assert row["rate"] == "350 TFLOP/s, 3.50 TB/s" and row["share"] == "50.0 % of bf16 FLOP/s"


def test_the_path_of_a_series_follows_its_size() -> None:
    """Sizes in any order are joined by size, and the markers grow along the way."""
    spec = drawn([point(4096), point(64), point(512), point(64, "fp32")])
    places = {(row["size"], row["path"]): (row["place"], row["grown"]) for row in rows_of(spec, "line")[0]}
    path = "series b"
    assert places["64", path] == (0, 0) and places["512", path] == (1, 0.5) and places["4,096", path] == (2, 1)
    (line,) = [layer for layer in spec["layer"] if layer["mark"]["type"] == "line"]
    assert (line["encoding"]["order"]["field"], line["encoding"]["detail"]["field"]) == ("place", "path")


def test_roofs_are_those_of_the_number_formats_that_occur() -> None:
    """Two slopes and the level of bf16; that of fp32 is not drawn without a point of it."""
    stretches = {row["roof"]: row for row in rows_of(drawn([point()]), "rule")[0]}
    assert set(stretches) == {"bf16 arithmetic", "device memory", "second-level cache"}
    level, slope = stretches["bf16 arithmetic"], stretches["device memory"]
    assert level["low"] == level["high"] == 7e14
    assert slope["high"] / slope["to"] == pytest.approx(4e12, rel=1e-4) == slope["low"] / slope["from"]
    assert (slope["high"], slope["says"]) == (7e14, "4.00 TB/s")


def test_a_point_of_two_number_formats_has_both_roofs() -> None:
    """Products of bf16 in a step of fp32: both levels are drawn, and its share is of both."""
    spec = drawn([point(dtype="fp32", flops_dtypes="bf16 and fp32")])
    stretches = {row["roof"] for row in rows_of(spec, "rule")[0]}
    assert {"bf16 arithmetic", "fp32 arithmetic"} < stretches
    ((row,),) = rows_of(spec, "point")
    assert "of bf16 and fp32 FLOP/s" in row["share"]


def test_the_roof_of_the_l2_is_dashed() -> None:
    """The slopes differ in their dashes, and the words say which is which."""
    spec = drawn([point()])
    (rule,) = [layer for layer in spec["layer"] if layer["mark"]["type"] == "rule"]
    (dashed,) = rule["encoding"]["strokeDash"]["condition"]
    assert dashed == {"test": "(datum.roof === 'second-level cache')", "value": [6, 4]}
    assert {"L2 (dashed) 6.00 TB/s", "DRAM 4.00 TB/s", "bf16 700 TFLOP/s"} == set(words(spec))


def test_no_roof_leaves_the_plot() -> None:
    """Both ends of every roof lie within the domains of the axes."""
    spec = drawn([point(), point(64, "fp32", intensity=0.2, flops_per_s=1e11)])
    (rule,) = [layer for layer in spec["layer"] if layer["mark"]["type"] == "rule"]
    across, up = (rule["encoding"][channel]["scale"]["domain"] for channel in ("x", "y"))
    for row in rows_of(spec, "rule")[0]:
        assert across[0] <= row["from"] < row["to"] <= across[1]
        assert up[0] <= row["low"] <= row["high"] <= up[1]


def test_names_of_levels_never_touch() -> None:
    """bf16 and fp16 lie 2 % apart: their names still stand a line apart."""
    spec = drawn([point(), point(dtype="fp16"), point(dtype="fp32")])
    tops = sorted(each["y"]["value"] for text, each in words(spec).items() if "FLOP/s" in text)
    assert len(tops) == 3
    assert all(below - above >= roofline.LABEL_HEIGHT for above, below in pairwise(tops))


def test_a_share_above_the_roof_says_why() -> None:
    """More than 105 % is counted in the subtitle and explained on hover."""
    spec = drawn([point(roof_share=1.2)])
    ((row,),) = rows_of(spec, "point")
    assert row["share"].startswith("120 % of bf16 FLOP/s (that roof, the speed of a large product,")
    assert "1 read above 105 % of it" in " ".join(spec["title"]["subtitle"])


def test_points_without_a_place_are_counted() -> None:
    """What has no rate or no FLOPs is not drawn, and the subtitle says how many that are."""
    spec = drawn([point(), point(128, flops_per_s=None), point(256, intensity=None), point(512, intensity=0.0)])
    assert [len(rows) for rows in rows_of(spec, "point")] == [1]
    assert "3 more have no place" in " ".join(spec["title"]["subtitle"])


def test_without_roofs_the_points_are_drawn() -> None:
    """The subtitle says that no roof was measured."""
    spec = drawn([point(roof=None, roof_share=None, reason="no roof")], roofs=[])
    assert rows_of(spec, "rule") == [] and words(spec) == {}
    assert "no roof was measured in this environment" in " ".join(spec["title"]["subtitle"])


def test_nothing_to_draw_is_an_error() -> None:
    """A chart without a point would say nothing: both refuse."""
    with pytest.raises(ValueError, match="nothing to draw under the roofs"):
        drawn([point(flops_per_s=None)])
    with pytest.raises(ValueError, match="no point would be 10 % faster"):
        roofline.fusion_headroom([point()], SeriesNames([point()], ""))


def test_many_points_are_counted_in_cells() -> None:
    """Beyond MOST_MARKS Vega counts them by cells, so that each row still belongs to its point; paths are left out."""
    spec = drawn([point(size, flops_per_s=3.5e14 + size) for size in range(roofline.MOST_MARKS + 1)])
    (rows,) = rows_of(spec, "point")
    assert len(rows) == roofline.MOST_MARKS + 1 and set(rows[0]) == {"p", "x", "value", "key"}
    assert len({(row["x"], row["value"]) for row in rows}) == 1
    assert rows_of(spec, "line") == []
    (layer,) = [layer for layer in spec["layer"] if layer["mark"]["type"] == "point"]
    assert layer["encoding"]["size"]["aggregate"] == "count"
    assert "counted in cells" in " ".join(spec["title"]["subtitle"])


def test_edges_are_left_out_where_there_are_many_points() -> None:
    """Strokes cost most of the time to draw."""
    few, many = (
        [layer for layer in drawn([point(size) for size in range(count)])["layer"] if layer["mark"]["type"] == "point"]
        for count in (2, roofline.MARKS_WITH_EDGES + 1)
    )
    assert few[0]["mark"]["stroke"] == theme.PAPER and "stroke" not in many[0]["mark"]


def fused(size: int, gain: float, **changes: Any) -> dict[str, Any]:
    """A point that fusing makes so many times as fast."""
    return point(size, fusion_gain=gain, fused_wall_us=100 / gain, **changes)


def headroom(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Specification of the chart of fusion."""
    return roofline.fusion_headroom(rows, SeriesNames(rows, "")).to_dict()


def test_fusion_shows_those_that_gain_the_most_first() -> None:
    """Less than 10 % is not told; a row holds the step now, fused, and the least by the roofs."""
    spec = headroom([fused(64, 1.05), fused(128, 1.5), fused(256, 2.0)])
    rows = rows_of(spec, "text")[0]
    assert [(row["p"], row["gain"]) for row in rows] == [("p256bf16|env", "2.00×"), ("p128bf16|env", "1.50×")]
    assert (rows[0]["now"], rows[0]["fused"], rows[0]["roof"]) == (100, 50, 50)
    assert "2 of 3 points would be 10 % faster or more, up to 2.00 times" in " ".join(spec["title"]["subtitle"])


def test_fusion_on_the_cpu_adds_the_floor_to_the_roofs() -> None:
    """There floor and work add up: the least is the floor and what the roofs allow."""
    (row,) = rows_of(headroom([fused(64, 2.0, device="cpu")]), "text")[0]
    assert row["roof"] == 60


def test_fusion_draws_a_number_that_can_be_read() -> None:
    """Beyond MOST_BARS the rest is counted."""
    spec = headroom([fused(size, 2.0 + size) for size in range(1, roofline.MOST_BARS + 6)])
    assert len(rows_of(spec, "text")[0]) == roofline.MOST_BARS
    assert f"the {roofline.MOST_BARS} that gain most are shown" in " ".join(spec["title"]["subtitle"])


def test_equal_names_are_told_apart() -> None:
    """Two points of one name (a source that has changed) have a row each."""
    rows = [fused(64, 2.0, point_id="aaaaaaaa"), fused(64, 1.5, point_id="bbbbbbbb")]
    names = [row["point"] for row in rows_of(headroom(rows), "text")[0]]
    assert len(set(names)) == 2 and names[0].endswith("aaaaaa")


@pytest.mark.parametrize(
    ("rate", "text"),
    [(7.12e14, "712 TFLOP/s"), (4.5e10, "45.0 GFLOP/s"), (2e6, "2.00 MFLOP/s"), (5e4, "0.0500 MFLOP/s")],
)
def test_rates_read_in_their_unit(rate: float, text: str) -> None:
    """Powers of a thousand, three digits."""
    assert roofline.flops_rate(rate) == text
