"""runner.doubling: twice the rows of a step, the same results in each half."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import torch

from runner.device import open_device
from runner.doubling import doubled_step, refusal, twice_the_rows
from runner.measure import measure
from runner.point import WARM_SCHEDULE, Point
from runner.rounds import Target
from runner.task import Measurement, Recorder, Task
from runner.workloads import WORKLOADS


def point(workload: str = "matmul_add", **changes: Any) -> Point:
    """A small point on the CPU."""
    values = {
        "params": (), "size": 4, "dtype": "fp32", "batch": None, "compile": False, "dynamic": False, "warmup": True,
        "device": "cpu", "schedule": WARM_SCHEDULE, "l2": "warm", "threads": None, "seed": 0, **changes,
    }  # fmt: skip
    return Point(workload=workload, **values)


POINTS = [
    point(), point(batch=3), point("addmm", params=(("bias", 1),)), point("addmm", params=(("bias", 2),)),
    point("addmm", params=(("bias", 2),), batch=3), point("elementwise", params=(("ops", 3),)),
    point("intensity", params=(("ops", 16), ("reads", 2)), batch=2),
]  # fmt: skip


def once(given: Point) -> torch.Tensor:
    """The point's own step."""
    inputs = given.spec.inputs(given, torch.device("cpu"), torch.Generator().manual_seed(given.seed))
    result: torch.Tensor = given.spec.function(given)(*inputs)
    return result


@pytest.mark.parametrize("given", POINTS, ids=lambda each: each.label)
def test_every_row_is_computed_twice(given: Point) -> None:
    """The result is the step's own, twice, one below the other."""
    own, twice = once(given), doubled_step(given, open_device("cpu"))()
    torch.testing.assert_close(twice, torch.cat((own, own), dim=-2))


def test_item_of_twice_the_rows_is_that_of_once() -> None:
    """A number is still one number."""
    given = point("matmul_item")
    assert doubled_step(given, open_device("cpu"))() == pytest.approx(once(given))


def test_what_all_rows_share_stays() -> None:
    """The weights, and a bias of one axis."""
    rows, weights, bias = torch.ones(2, 3), torch.ones(3, 3), torch.ones(3)
    shapes = [tuple(each.shape) for each in twice_the_rows((bias, rows, weights), (2,))]
    assert shapes == [(3,), (4, 3), (3, 3)]


def test_unknown_rows_are_refused_with_the_reason() -> None:
    """What has no rows, or inputs that rotate, is not measured on twice of them."""
    assert "rows of noop are not known" in str(refusal(point("noop")))
    assert "l2=cold" in str(refusal(point(l2="cold")))


def test_every_workload_with_a_cost_can_be_doubled() -> None:
    """The check covers all whose rows are independent of each other, or whose sequences are."""
    refused = {name for name in WORKLOADS if refusal(point(name)) is not None}
    assert refused <= {"noop", "fault", "custom", "train_step", "shape_sequence", "llm_prefill", "llm_decode"}


def measured(given: Point, slopes: bool, folder: Path) -> Measurement:
    """The point, measured for an instant."""
    return measure(
        Task(given, Target("instant", 1.0, 0.02), 1.0, slopes, Recorder(), False, {}, str(folder)), open_device("cpu")
    )


def test_twice_the_rows_are_sampled_in_every_round_where_slopes_are(tmp_path: Path) -> None:
    """As often as wall and floor, in the same rounds; without slopes not at all, with the reason."""
    done = measured(point(size=16), True, tmp_path)
    taken = Counter(sample.quantity for sample in done.samples)
    assert taken["doubled"] == taken["wall"] == taken["floor"] > 0
    assert "doubled_us" not in done.facts["reasons"]
    without = measured(point(size=16), False, tmp_path)
    assert "doubled" not in {sample.quantity for sample in without.samples}
    assert "measure.slopes_every" in without.facts["reasons"]["doubled_us"]
