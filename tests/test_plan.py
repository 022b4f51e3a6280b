"""runner.plan: every point of a command once, in its order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any

import pytest
from configured import plan, values

from runner.plan import Plan
from runner.point import PointError
from runner.task import Interpreter

SIZES = [{"size": size} for size in range(1, 41)]


def order(found: Plan) -> list[int]:
    """Indices as they are handed out."""
    return list(chain(*found.batches()))


@pytest.mark.parametrize("how", ["given", "shuffled"])
def test_every_point_is_handed_out_once(how: str) -> None:
    """Also one that is there twice, and those of several interpreters."""
    found = plan(*SIZES, {"size": 1}, {"size": 2, "env": {"A": 1}}, order=how)
    assert sorted(order(found)) == list(range(42))


def test_given_is_the_order_of_the_command_line() -> None:
    """Point after point."""
    assert order(plan(*SIZES, order="given")) == list(range(40))


def test_a_shuffle_is_known_by_its_seed() -> None:
    """The same seed is the same order; another one is another; neither is the given one."""
    first, again, other = (order(plan(*SIZES, order_seed=seed)) for seed in (1, 1, 2))
    assert first == again != other
    assert first != list(range(40)) != other


def test_the_interpreters_of_a_point_take_turns() -> None:
    """A B, then for the next point B A, on one device each: what drifts meets both alike."""
    points = [{"env": {"A": value}, "size": size} for value in (1, 2) for size in (8, 16, 32)]
    found = plan(*points, order="given")
    handed = [[(found[index].point.size, found[index].interpreter.env[0][1]) for index in batch]
              for batch in found.batches()]  # fmt: skip
    assert handed == [[(8, "1"), (8, "2")], [(16, "2"), (16, "1")], [(32, "1"), (32, "2")]]
    assert found.interpreters == [Interpreter(None, (("A", "1"),)), Interpreter(None, (("A", "2"),))]


def test_shuffled_interpreters_take_turns_too() -> None:
    """Whatever the order of the points, every other one is B A."""
    points = [{"size": size, "python": python} for size in range(1, 21) for python in (None, "/bin/sh")]
    found = plan(*points)
    firsts = [found[batch[0]].interpreter.python for batch in found.batches()]
    assert firsts == [None, "/bin/sh"] * 10
    assert all(found[one].point == found[two].point for one, two in found.batches())


@pytest.mark.parametrize(
    ("key", "first", "other"),
    [
        ("store", "a", "b"), ("order", "given", "shuffled"), ("devices", [0], [1]), ("rerun", True, False),
        ("memory_limit_gb", None, 2), ("on_error", "stop", "continue"),
    ],
)  # fmt: skip
def test_a_command_has_one_value_of_a_setting(key: str, first: Any, other: Any) -> None:
    """One that is swept is refused in one sentence, since it holds for the whole command."""
    with pytest.raises(PointError) as refusal:
        plan({key: first}, {key: first}, {key: other})
    one, two = (str(each).lower() if isinstance(each, bool) else each for each in (first, other))
    assert str(refusal.value) == f"{key}={one},{two}: allowed is one value a sweep; for example {key}={one}."


def test_what_does_not_name_a_point_may_be_swept() -> None:
    """How a point is measured is its own."""
    found = plan({"max_step_s": 1}, {"max_step_s": 2}, {"measure": {"name": "quick"}}, {"point_timeout": 5})
    assert len(found) == 4 and len(list(found.batches())) == 4


def test_a_wrong_value_anywhere_refuses_all() -> None:
    """The last point is checked before the first one is handed out."""
    with pytest.raises(PointError, match="size=x"):
        plan({"size": 8}, {"size": 16}, {"size": "x"})


class Counted(Sequence[dict[str, Any]]):
    """Points that count how often they are made, and how many are alive."""

    def __init__(self, count: int) -> None:
        self.count, self.made = count, 0

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: Any) -> Any:
        self.made += 1
        return values(size=index + 1, workload={"name": "noop"})

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return (self[index] for index in range(self.count))


def test_points_are_made_when_they_are_asked_for() -> None:
    """Each once when it is checked (the first one more), then only the one that is handed out."""
    points = Counted(50)
    found = Plan(points)
    assert points.made == 51
    assert [each.index for each in found[3:6]] == [3, 4, 5]
    assert points.made == 54
    next(found.batches())
    assert points.made == 54


def test_a_plan_tells_what_is_in_it() -> None:
    """Points by the device that they ask for and by their pace, and the longest label."""
    found = plan(
        {"device": "cpu"}, {"device": "auto"}, {"workload": {"name": "noop"}}, {"compile": True},
        {"warmup": False, "size": 123456},
    )  # fmt: skip
    assert found.kinds == {"cpu": 1, "auto": 3, "none": 1}
    assert found.paces == {"eager": 2, "idle": 1, "compiled": 1, "cold": 1}
    assert found.width == max(len(each.label) for each in found)


def test_slopes_meet_all_interpreters_of_a_point() -> None:
    """Every second point of measure.slopes_every=2, with each of its variables, however they alternate."""
    measure = {"slopes_every": 2}
    given = [{"size": size, "env": {"A": env}, "measure": measure} for size in (8, 16, 32) for env in (1, 2)]
    found = plan(*given)
    assert [found[index].slopes for index in range(6)] == [True, True, False, False, True, True]
