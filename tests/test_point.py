"""runner.point: what an axis may be, and what names a point."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from runner.point import COLD_SCHEDULE, WARM_SCHEDULE, Point, PointError, Schedule
from runner.workloads import WORKLOADS, MatmulAdd

DEFAULTS: dict[str, Any] = {
    "workload": {"name": "matmul_add"}, "size": 1024, "dtype": "auto", "batch": None, "compile": False,
    "dynamic": False, "warmup": True, "device": "auto", "schedule": None, "l2": "warm", "threads": None, "seed": 0,
    "static_inputs": False,
}  # fmt: skip


def point(**changes: Any) -> Point:
    """The checked point of the default axes with some changed."""
    return Point.checked({**DEFAULTS, **changes})


def resolved(**changes: Any) -> Point:
    """The same on a CUDA machine."""
    return point(**changes).resolved("cuda")


ALLOWED: dict[str, list[Any]] = {
    "workload": [
        {"name": "matmul_add"}, {"name": "matmul_item"}, {"name": "noop"},
        {"name": "addmm", "bias": 1}, {"name": "addmm", "bias": 2},
        {"name": "elementwise", "ops": 1}, {"name": "elementwise", "ops": 1024},
        {"name": "fault", "how": "raise"}, {"name": "fault", "how": "hang"},
    ],
    "size": [1, 64, 2**31 - 1],
    "dtype": ["auto", "fp32", "tf32", "bf16", "fp16"],
    "batch": [None, 1, 8],
    "compile": [False, True, "default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs"],
    "dynamic": [False, True, None],
    "warmup": [True, False, 1, 25],
    "device": ["auto", "cpu", "cuda"],
    "schedule": [None, "1/1/20", "0/0/3", "0/0/20/2", "5/0/1/1"],
    "l2": ["warm", "cold"],
    "threads": [None, 1, 16],
    "seed": [0, 7, 2**31 - 1],
    "static_inputs": [False],
}  # fmt: skip

REFUSED: dict[str, list[Any]] = {
    "workload": [
        {"name": "matmul"}, {"name": None}, {"name": ["noop"]}, {}, "matmul",
        {"name": "addmm"}, {"name": "addmm", "bias": 3}, {"name": "addmm", "bias": True},
        {"name": "addmm", "bias": "1"},
        {"name": "elementwise", "ops": 0}, {"name": "matmul_add", "bias": 1}, {"name": "noop", "ops": 1},
    ],
    "size": [0, -1, 1e3, 2.5, True, None, "64", [64], 2**31],
    "dtype": ["float32", "bfloat16", "FP32", None, 32, ""],
    "batch": [0, -8, 2.0, False, "8"],
    "compile": [None, 1, "reduce_overhead", "eager", []],
    "dynamic": ["auto", 1, "false"],
    "warmup": [0, -1, None, 2.0, "yes", 2**31],
    "device": ["gpu", "cuda:1", None, 0],
    "schedule": ["1/1", "1/1/0", "1/1/20/0", "a/b/c", "1/1/20/1/1", "-1/1/20", 20, "1,1,20", "1/1/20 "],
    "l2": [True, None, "hot"],
    "threads": [0, 2.0, "2", True],
    "seed": [-1, None, 1.5, 2**31],
    "static_inputs": [None, "true", 1, True],  # true for a compiled point alone
}  # fmt: skip


def cases(table: dict[str, list[Any]]) -> list[Any]:
    """One test a value, named after it."""
    return [pytest.param(key, value, id=f"{key}={value}") for key, values in table.items() for value in values]


@pytest.mark.parametrize(("key", "value"), cases(ALLOWED))
def test_allowed_values_are_accepted(key: str, value: Any) -> None:
    """Every value that conf/config.yaml's comments allow makes a point."""
    assert isinstance(point(**{key: value}), Point)


@pytest.mark.parametrize(("key", "value"), cases(REFUSED))
def test_other_values_are_refused_in_one_sentence(key: str, value: Any) -> None:
    """The key, what came, what is allowed, and the cure, on one line."""
    with pytest.raises(PointError) as refusal:
        point(**{key: value})
    sentence = str(refusal.value)
    assert re.match(rf"{key}[.\w]*=.*: allowed is .+; .+\.$", sentence), sentence
    assert "\n" not in sentence


def test_a_refusal_says_what_came_and_how_to_write_it() -> None:
    """A float that is a whole number is shown as the number to write; words are written as the user writes them."""
    with pytest.raises(PointError, match=r"size=1000\.0: allowed is a whole number from 1 on; write size=1000\."):
        point(size=1e3)
    with pytest.raises(PointError, match="size=null"):
        point(size=None)
    with pytest.raises(PointError, match="batch=false: allowed is null or a whole number"):
        point(batch=False)
    with pytest.raises(PointError, match=r"workload\.bias=null: allowed is a whole number from 1 to 2"):
        point(workload={"name": "addmm"})


def test_true_and_false_as_text_are_booleans() -> None:
    """Inside a preset's quotes `true` is text."""
    assert point(compile="true").compile is True
    assert point(compile="false").compile is False


def test_the_schedule_follows_the_warmup() -> None:
    """Not given it is 1/1/20/1, for cold points 0/0/20/1; given it is kept exactly."""
    assert point().schedule == WARM_SCHEDULE == Schedule(1, 1, 20, 1)
    assert point(warmup=False).schedule == COLD_SCHEDULE == Schedule(0, 0, 20, 1)
    assert point(schedule="0/0/3").schedule == Schedule(0, 0, 3, 1)
    assert point(schedule="2/3/4/5").schedule == Schedule(2, 3, 4, 5)
    assert str(point(schedule="2/3/4").schedule) == "2/3/4/1"


def test_a_cold_point_has_no_profiler_warmup() -> None:
    """Another warm-up with warmup=false is refused, and the cure is the schedule to write."""
    assert point(warmup=False, schedule="0/0/5").schedule == Schedule(0, 0, 5, 1)
    for schedule in ("1/0/20", "0/1/20"):
        with pytest.raises(PointError, match="write schedule=0/0/20 or warmup=true"):
            point(warmup=False, schedule=schedule)


CHANGES: dict[str, Any] = {
    "workload": {"name": "matmul_item"}, "size": 64, "dtype": "fp16", "batch": 1, "compile": True, "dynamic": None,
    "warmup": 5, "schedule": "0/0/20", "l2": "cold", "threads": 1, "seed": 1,
}  # fmt: skip


@pytest.mark.parametrize("axis", CHANGES)
def test_every_axis_names_the_point(axis: str) -> None:
    """Another value of any axis is another point."""
    assert resolved(**{axis: CHANGES[axis]}).point_id != resolved().point_id


def test_close_values_name_different_points() -> None:
    """Values that look alike as text or as numbers are told apart; so are the workload's own axes and the device."""
    different = [
        resolved(), resolved(warmup=1), resolved(warmup=False), resolved(compile="default"), resolved(compile=True),
        resolved(dynamic=None), resolved(dynamic=True), resolved(batch=1), point().resolved("cpu"),
        resolved(workload={"name": "addmm", "bias": 1}), resolved(workload={"name": "addmm", "bias": 2}),
    ]  # fmt: skip
    assert len({each.point_id for each in different}) == len(different)


def test_a_point_is_named_by_what_is_measured() -> None:
    """auto and what it stands for are the same point, in this process and in any other."""
    assert resolved(dtype="auto").point_id == resolved(dtype="bf16", device="cuda").point_id
    assert re.fullmatch(r"[0-9a-f]{12}", resolved().point_id)
    code = (
        "from runner.point import Point, WARM_SCHEDULE;"
        "print(Point('matmul_add', (), 1024, 'bf16', None, False, False, True, 'cuda', WARM_SCHEDULE, 'warm', None, 0)"
        ".point_id)"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == resolved().point_id


class Fixed(MatmulAdd):
    """matmul_add with a source that no edit changes."""

    source = "a source"


def test_ids_stay_what_they_were(monkeypatch: pytest.MonkeyPatch) -> None:
    """Points of older stores keep their ids: static_inputs is part of the identity where it is true alone."""
    monkeypatch.setitem(WORKLOADS, "matmul_add", Fixed())
    assert resolved().point_id == "b5b31e29ccc2"
    graphed = resolved(compile="reduce-overhead")
    assert graphed.point_id == "156c516fed03" and "static_inputs" not in graphed.axes["params"]
    static = resolved(compile="reduce-overhead", static_inputs=True)
    assert static.point_id != graphed.point_id and static.axes["params"]["static_inputs"] is True
    assert "static_inputs=true" in static.label


def test_static_inputs_need_something_to_compile_and_to_stay() -> None:
    """Eager points and rotating inputs have no use for them, and the cure says what to write."""
    assert point(compile=True, static_inputs=True).static_inputs
    with pytest.raises(
        PointError, match=r"static_inputs=true: allowed is false with compile=false, .*; write compile="
    ):
        point(static_inputs=True)
    with pytest.raises(PointError, match=r"static_inputs=true: allowed is false with l2=cold, .*; write l2=warm"):
        point(compile=True, l2="cold", static_inputs=True)
    assert not point(workload={"name": "noop"}, compile=True, static_inputs=True).static_inputs


def test_the_workloads_source_names_the_point(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same axes of a step whose source has changed are another point."""
    before = resolved().point_id

    class Changed(MatmulAdd):
        """Another step."""

    monkeypatch.setitem(WORKLOADS, "matmul_add", Changed())
    assert resolved().point_id != before


def test_settings_do_not_name_the_point() -> None:
    """measure, profiler, artifacts, store and max_step_s are no part of it."""
    assert point(store="elsewhere", max_step_s=1, artifacts=True, measure={}, profiler={}) == point()


def test_auto_is_resolved_by_the_device() -> None:
    """auto is bf16 on an accelerator and fp32 on the CPU; a given dtype stays."""
    assert (point().resolved("cuda").dtype, point().resolved("cuda").device) == ("bf16", "cuda")
    assert (point().resolved("cpu").dtype, point().resolved("cpu").device) == ("fp32", "cpu")
    assert point(dtype="fp16").resolved("cpu").dtype == "fp16"


def test_axes_are_the_stores_words() -> None:
    """Plain values: false, true, null as text, further axes in params."""
    axes = resolved(workload={"name": "elementwise", "ops": 3}, warmup=5, dynamic=None, compile="max-autotune").axes
    assert axes == {
        "workload": "elementwise", "size": 1024, "dtype": "bf16", "batch": None, "compile": "max-autotune",
        "dynamic": "null", "warmup": "5", "device": "cuda",
        "params": {"ops": 3, "l2": "warm", "threads": None, "seed": 0, "schedule": "1/1/20/1"},
    }  # fmt: skip


def test_a_point_that_does_nothing_has_no_size() -> None:
    """noop: neither size nor batch exists, nothing is compiled, and it needs no device."""
    idle = point(workload={"name": "noop"}, size=64, batch=8, compile=True, dtype="fp16", device="cuda")
    assert (idle.size, idle.batch, idle.compile, idle.dtype, idle.device) == (None, None, False, "fp32", "cpu")
    assert idle.point_id == point(workload={"name": "noop"}).point_id


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({}, "matmul_add_1024_bf16_warm_eager_bnone"),
        ({"warmup": False, "batch": 8, "compile": True}, "matmul_add_1024_bf16_cold_compile_b8"),
        ({"size": 64, "dtype": "tf32", "compile": "max-autotune"}, "matmul_add_64_tf32_warm_max-autotune_bnone"),
        ({"workload": {"name": "noop"}}, "noop_none_fp32_warm_eager_bnone"),
    ],
)
def test_artifacts_are_named_by_the_point(changes: dict[str, Any], name: str) -> None:
    """workload_size_dtype_warm|cold_mode_bN."""
    assert resolved(**changes).file_name == name


def test_the_documented_axes_are_all_checked() -> None:
    """Every axis of conf/config.yaml has allowed and refused values above."""
    text = (Path(__file__).parent.parent / "conf" / "config.yaml").read_text()
    axes = re.findall(r"^(\w+):", text.split("# -- axes")[1].split("# -- where a point runs")[0], re.MULTILINE)
    assert {*axes, "workload"} == set(ALLOWED) == set(REFUSED)
