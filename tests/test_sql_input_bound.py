"""Watched programs that wait for their input: the public verdict on small given runs, and the runner's on the same."""

from collections.abc import Iterator
from typing import Any

import pytest
from given import write_store

from analysis.store import open_store
from runner.law import Times, Verdict, decide
from runner.statistics import Estimate

WAITS = {"blocking_calls": {"cudaStreamSynchronize": 1.0}}


def watched(data: Any, facts: dict[str, Any] | None = None, **times: Any) -> dict[str, Any]:
    """A run of a watched program; data_us is a fact of it."""
    listed = None if data is None else [float(each) for each in (data if isinstance(data, tuple) else (data,) * 3)]
    return {"source": "watch", "size": None, "facts": {"data_us": listed, **(facts or {})}, **times}


GIVEN: dict[str, tuple[dict[str, Any], str]] = {
    # issue, device and data of a step; what is left without the wait is max(issue, device)
    "waits": (watched(200, wall_us=220, issue_us=20, device_us=100), "input-bound"),
    "waits a little": (watched(50, wall_us=110, issue_us=60, device_us=100), "device-bound"),
    "waits, and is hidden by the device": (watched(70, wall_us=100, issue_us=20, device_us=100), "device-bound"),
    "issues longer than it waits": (watched(50, wall_us=150, issue_us=100, device_us=80), "unknown"),
    "waits while the device works": (watched(90, wall_us=140, issue_us=50, device_us=100), "input-bound"),
    "wait explains too little": (watched(20, wall_us=200, issue_us=20, device_us=100), "unknown"),
    "noise": (watched((180, 150, 210), wall_us=(200, 105, 230), issue_us=20, device_us=100), "device-bound"),
    "no device time": (watched(200, wall_us=220, issue_us=20), "unknown"),
    "blocks and waits": (
        watched(200, WAITS, wall_us=300, issue_us=20, device_us=100, blocked_us=80), "input-bound",
    ),
    "blocks": (watched(5, WAITS, wall_us=245, issue_us=20, device_us=220, blocked_us=215), "serialized"),
    "no wait was measured": (watched(None, wall_us=220, issue_us=20, device_us=100), "unknown"),
    # the CPU: the wait is more than half of a step, or it is not
    "cpu waits": (watched((60, 55, 65), device="cpu", wall_us=(100, 95, 105)), "input-bound"),
    "cpu works": (watched((40, 35, 45), device="cpu", wall_us=(100, 95, 105)), "unknown"),
    "cpu, undecided": (watched((52, 45, 60), device="cpu", wall_us=(100, 95, 105)), "unknown"),
}  # fmt: skip


@pytest.fixture(scope="module")
def bounds(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, dict[str, Any]]]:
    """Rows of `bounds` by the name of the given run."""
    runs = [{**run, "point_id": name} for name, (run, _) in GIVEN.items()]
    with open_store(write_store(tmp_path_factory.mktemp("store"), runs=runs)) as connection:
        relation = connection.sql("SELECT * FROM bounds")
        yield {row[0]: dict(zip(relation.columns, row, strict=True)) for row in relation.fetchall()}


def estimate(value: Any) -> Estimate | None:
    """A given time as the runner holds it."""
    if value is None:
        return None
    return Estimate(*map(float, value)) if isinstance(value, tuple | list) else Estimate(*[float(value)] * 3)


def live(run: dict[str, Any]) -> Verdict:
    """The runner's verdict of a given run."""
    times = {name: estimate(run.get(f"{name}_us")) for name in ("wall", "issue", "device", "blocked")}
    facts = run["facts"]
    blocks, data = bool(facts.get("blocking_calls")), estimate(facts["data_us"])
    return decide(Times(**times, blocks=blocks, data=data, synchronous=run.get("device") == "cpu"))


@pytest.mark.parametrize("name", GIVEN)
def test_bound(bounds: dict[str, dict[str, Any]], name: str) -> None:
    """A given run has the bound that its times ask for."""
    assert bounds[name]["bound"] == GIVEN[name][1]


@pytest.mark.parametrize("name", GIVEN)
def test_the_runner_agrees(bounds: dict[str, dict[str, Any]], name: str) -> None:
    """The live verdict of the same run has the same bound."""
    assert live(GIVEN[name][0]).bound == bounds[name]["bound"]


def test_gain_is_the_step_without_the_wait(bounds: dict[str, dict[str, Any]]) -> None:
    """It compares with max(issue, device), with their sum where the step blocks, on the CPU with the step itself."""
    gains = {name: round(bounds[name]["gain"], 3) for name in ("waits", "blocks and waits", "cpu waits")}
    assert gains == {"waits": 2.2, "blocks and waits": 2.5, "cpu waits": 2.5}


def test_sentence_names_the_wait_and_the_gain(bounds: dict[str, dict[str, Any]]) -> None:
    """The sentences of both kinds of device, in full."""
    assert bounds["waits"]["sentence"] == (
        "A step comes every 220 us although the host issues it in 20.0 us and the device works 100 us, and for 200 us "
        "of that the host waits for its input: input-bound; without that wait it would take 100 us, 2.20 times less."
    )
    assert bounds["cpu waits"]["sentence"] == (
        "A step comes every 100 us, and for 60.0 us of that the host waits for its input: input-bound; without that "
        "wait it would take 40.0 us, 2.50 times less."
    )
    assert bounds["cpu waits"]["reason"] == "the host waits 60.0 % of a step for its input (55.0 us to 65.0 us)"


def test_a_wait_that_does_not_bind_is_told(bounds: dict[str, dict[str, Any]]) -> None:
    """A wait of more than a tenth of a step that is bound by something else stands behind its sentence."""
    assert bounds["cpu works"]["sentence"].endswith(" In 40.0 us of a step of 100 us it waits for its input.")
    assert "its input" not in bounds["blocks"]["sentence"]
