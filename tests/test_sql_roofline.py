"""The view roofline: where a point stands under the measured roofs, and what fusing it would gain."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from given import write_store

from analysis.store import add, open_store

Row = dict[str, Any]

ROOFS = [
    {"roof": "flops", "dtype": "fp32", "value_per_s": 1e12},
    {"roof": "dram", "value_per_s": 1e11},
    {"roof": "l2", "value_per_s": 4e11},
]
"""1e6 FLOPs take 1 us, 1e6 bytes 10 us from memory and 2.5 us from the L2: the ridge lies at 10 FLOPs a byte."""


def roofline(folder: Path, *runs: Mapping[str, Any], roofs: list[Row] = ROOFS) -> list[Row]:
    """Rows of the view, in the order of their runs."""
    environment = {"device_name": "a card", "l2_bytes": 1000}
    store = write_store(folder, runs=runs, environments=[environment], roofs=roofs)
    with open_store(store) as connection:
        add(connection, "roofline")
        found = connection.execute("FROM roofline ORDER BY run_id")
        names = [column[0] for column in found.description or ()]
        return [dict(zip(names, row, strict=True)) for row in found.fetchall()]


def step(*operations: tuple[float, float], bytes_min: float = 0, device_us: float = 100, **more: Any) -> Row:
    """A step that the host issues in 10 us; operations are (FLOPs, bytes moved)."""
    named = [{"name": "op", "flops": flops, "bytes": moved} for flops, moved in operations]
    cost = {
        "operations": named,
        "bytes_min": bytes_min or sum(moved for _, moved in operations),
        "working_set_bytes": 1e9,
    }
    return {"wall_us": device_us, "issue_us": 10, "device_us": device_us, "facts": {"cost": cost}, **more}


def test_a_point_below_the_level_roof(tmp_path: Path) -> None:
    """80 MFLOP and 1 MB in 100 us: 80 FLOPs a byte, 0.8 TFLOP/s, 80 % of the FLOP/s roof."""
    (row,) = roofline(tmp_path, step((80e6, 1e6)))
    assert (row["intensity"], row["flops_per_s"], row["bytes_per_s"]) == pytest.approx((80, 0.8e12, 1e10))
    assert (row["roof"], row["roof_share"], row["bytes_roof"]) == ("flops", pytest.approx(0.8), "dram")
    assert (row["bound"], row["reason"]) == ("compute-bound", None)
    assert "80.0 % of the fp32 FLOP/s roof." in row["sentence"]


def test_a_point_below_the_slope_of_memory(tmp_path: Path) -> None:
    """Left of the ridge the memory is the lower roof: 8 MB in 100 us are 80 % of it."""
    (row,) = roofline(tmp_path, step((8e6, 8e6)))
    assert (row["intensity"], row["roof"], row["roof_share"]) == (1, "dram", pytest.approx(0.8))
    assert "80.0 % of the DRAM bytes/s roof." in row["sentence"]


def test_a_small_working_set_lies_under_the_roof_of_the_l2(tmp_path: Path) -> None:
    """What the L2 holds is measured against the L2."""
    given = step((8e6, 8e6))
    given["facts"]["cost"]["working_set_bytes"] = 1000
    (row,) = roofline(tmp_path, given)
    assert (row["roof"], row["roof_share"]) == ("l2", pytest.approx(0.2))


@pytest.mark.parametrize(
    ("operation", "why"), [((8e6, 12e6), "part of its data stays in the L2"), ((120e6, 1e6), "is too low for this")]
)
def test_a_share_above_105_percent_is_shown_and_explained(
    tmp_path: Path, operation: tuple[float, float], why: str
) -> None:
    """120 % of a roof cannot be: the sentence says what is behind it."""
    (row,) = roofline(tmp_path, step(operation))
    assert row["roof_share"] == pytest.approx(1.2)
    assert "120 % of the" in row["sentence"] and why in row["sentence"]


def test_fusing_a_chain_moves_its_bytes_once(tmp_path: Path) -> None:
    """Four passes of 2 MB in 100 us, at 80 % of memory: fused 25 us, a quarter of the time."""
    (row,) = roofline(tmp_path, step(*[(1e6, 2e6)] * 4, bytes_min=2e6))
    assert (row["fused_roof_us"], row["fused_us"], row["fusion_gain"]) == pytest.approx((20, 25, 4))
    assert row["fused_wall_us"] == pytest.approx(25)
    assert (row["intensity"], row["fused_intensity"]) == (0.5, 2)


def test_the_overhead_limits_what_fusing_gains(tmp_path: Path) -> None:
    """Issued in 50 us, the fused step takes 50 us and no less."""
    (row,) = roofline(tmp_path, step(*[(1e6, 2e6)] * 4, bytes_min=2e6) | {"issue_us": 50})
    assert (row["fused_us"], row["fusion_gain"]) == pytest.approx((25, 2))


def test_an_overhead_bound_step_gains_nothing_from_fusing(tmp_path: Path) -> None:
    """Its wall time is the host's."""
    (row,) = roofline(tmp_path, step(*[(1e6, 2e6)] * 4, bytes_min=2e6) | {"issue_us": 150, "wall_us": 150})
    assert (row["bound"], row["fusion_gain"]) == ("overhead-bound", 1)


def test_no_gain_is_told_where_the_roofs_explain_little(tmp_path: Path) -> None:
    """At 8 % of memory something else binds: what fusing would do is unknown."""
    (row,) = roofline(tmp_path, step(*[(1e5, 2e5)] * 4, bytes_min=2e5))
    assert (row["roof_share"], row["fused_us"], row["fusion_gain"]) == (pytest.approx(0.08), None, None)


def test_on_the_cpu_overhead_and_work_add_up(tmp_path: Path) -> None:
    """Rates are those of the work, wall - floor = 80 us; fused it takes 20 + 20 us of 100."""
    given = step(*[(1e6, 2e6)] * 4, bytes_min=2e6)
    given |= {"device": "cpu", "issue_us": None, "device_us": None, "floor_us": 20, "wall_us": 100, "margin": 0.25}
    (row,) = roofline(tmp_path, given)
    assert (row["work_us"], row["bytes_per_s"], row["fused_us"]) == pytest.approx((80, 1e11, 20))
    assert row["fusion_gain"] == pytest.approx(2.5)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"facts": {}}, "no cost model: what it computes and moves is not stated"),
        ({"device_us": None}, "no time of its work was measured: no device time was measured"),
        ({"status": "oom", "reason": "out of memory"}, "oom: out of memory"),
        ({"dtype": "bf16"}, "no roof was measured for bf16 FLOP/s in this environment"),
    ],
)
def test_what_is_unknown_says_why(tmp_path: Path, change: Row, reason: str) -> None:
    """A point without a place under the roofs is a row, without a share and with the reason."""
    (row,) = roofline(tmp_path, step((80e6, 1e6)) | change)
    assert (row["roof_share"], row["fusion_gain"], row["reason"]) == (None, None, reason)
    assert row["sentence"] == f"Unknown: {reason}."


def mixed(*operations: tuple[float, float, str | None], **more: Any) -> Row:
    """A step of fp32 whose operations are (FLOPs, bytes moved, a dtype of their own or None)."""
    given = step(*((flops, moved) for flops, moved, _ in operations), **more)
    for told, (*_, dtype) in zip(given["facts"]["cost"]["operations"], operations, strict=True):
        told |= {} if dtype is None else {"dtype": dtype}
    return given


BF16 = {"roof": "flops", "dtype": "bf16", "value_per_s": 4e12}


def test_operations_of_two_dtypes_have_a_roof_each(tmp_path: Path) -> None:
    """240 MFLOP of bf16 take 60 us at its roof, 20 MFLOP of fp32 another 20: 80 us of 100."""
    given = mixed((240e6, 1e6, "bf16"), (20e6, 1e6, None))
    (row,) = roofline(tmp_path, given, roofs=[*ROOFS, BF16])
    assert (row["roof"], row["roof_share"], row["flops_dtypes"]) == ("flops", pytest.approx(0.8), "bf16 and fp32")
    assert row["flops_roof_per_s"] == pytest.approx(260e6 / 80e-6)
    assert (row["bound"], row["dtype"]) == ("compute-bound", "fp32")
    assert "80.0 % of the bf16 and fp32 FLOP/s roof." in row["sentence"]


def test_a_roof_of_one_dtype_that_was_not_measured_leaves_the_share_unknown(tmp_path: Path) -> None:
    """fp32 has a roof, bf16 has none: nothing is told of the step but what lacks."""
    (row,) = roofline(tmp_path, mixed((80e6, 1e6, "bf16"), (1e6, 1e6, None)))
    assert (row["roof_share"], row["flops_roof_per_s"], row["bound"]) == (None, None, "device-bound")
    assert row["reason"] == "no roof was measured for bf16 FLOP/s in this environment"


def test_without_roofs_the_rates_are_known(tmp_path: Path) -> None:
    """A point has its place, though nothing to be held against."""
    (row,) = roofline(tmp_path, step((80e6, 1e6)), roofs=[])
    assert (row["intensity"], row["flops_per_s"], row["roof"]) == (80, pytest.approx(0.8e12), None)


def test_a_step_that_computes_nothing_has_bytes_alone(tmp_path: Path) -> None:
    """A copy lies under the roof of memory, and has no intensity to be drawn at."""
    (row,) = roofline(tmp_path, step((0, 8e6)))
    assert (row["intensity"], row["roof"], row["roof_share"]) == (0, "dram", pytest.approx(0.8))
    assert row["sentence"] == "It moves 80.0 GB/s, 80.0 % of the DRAM bytes/s roof."


def test_a_series_is_all_that_differs_by_size_alone(tmp_path: Path) -> None:
    """Two sizes share a series; another mode has one of its own; cold points and imports have no row."""
    rows = roofline(
        tmp_path,
        step((80e6, 1e6)),
        step((80e6, 1e6), size=128),
        step((80e6, 1e6), compile="true"),
        step((80e6, 1e6), warmup="false"),
        step((80e6, 1e6), source="import", point_id="trace"),
    )
    first, second, compiled = (row["series"] for row in rows)
    assert first == second != compiled


def test_a_cost_that_does_not_say_what_it_computes_is_unknown(tmp_path: Path) -> None:
    """No share of any roof, and the reason."""
    cost = {"operations": [{"name": "op", "flops": None, "bytes": None}], "bytes_min": 1, "working_set_bytes": 1}
    (row,) = roofline(tmp_path, step((1, 1), facts={"cost": cost}))
    assert (row["roof"], row["roof_share"]) == (None, None)
    assert row["sentence"] == "Unknown: no cost model: what it computes and moves is not stated."
