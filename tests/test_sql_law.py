"""The step law on given points: who is asked, how far they lie from it, and who agrees with their bounds."""

from collections.abc import Iterator
from typing import Any

import pytest
from given import write_store

from analysis.store import open_store

OVERHEAD = {"wall_us": 20.4, "issue_us": 20, "device_us": 10}
DEVICE = {"wall_us": 20, "issue_us": 10, "device_us": 20}
NEAR = {"wall_us": 20, "issue_us": 20, "device_us": 19, "margin": (20 / 19, 1.01, 1.09)}
SERIALIZED = {
    "wall_us": 30,
    "issue_us": 15,
    "device_us": 18,
    "facts": {"blocking_calls": {"cudaStreamSynchronize": 1}},
}
OF_REPLAY = {"facts": {"device_method": "replay"}}

GIVEN: dict[str, dict[str, Any]] = {
    "overhead": {**OVERHEAD, "host_slope": 1.0, "device_slope": 0.1, "replay_us": 8},
    "device": {**DEVICE, "host_slope": 0.1, "device_slope": 1.0, "replay_us": 19},
    "near": {**NEAR, "host_slope": 0.4, "device_slope": 0.7, "replay_us": 21},
    "contradicted": {**OVERHEAD, "replay_us": 30},
    "noisy slopes": {**DEVICE, "host_slope": (0.1, -0.5, 0.7), "device_slope": (0.3, -0.2, 0.6)},
    "six percent": {"wall_us": 21.2, "issue_us": 20, "device_us": 10, "host_slope": 0.2, "device_slope": 0.2},
    "short": {"wall_us": 18, "issue_us": 20, "device_us": 10},
    "unexplained": {"wall_us": 40, "issue_us": 20, "device_us": 30},
    "serialized": {**SERIALIZED, "host_slope": 1.2, "device_slope": 0.8},
    "serialized, device": {**SERIALIZED, "size": 128, "host_slope": 0.1, "device_slope": 0.8},
    "replayed": {**OVERHEAD, **OF_REPLAY, "replay_us": 10},
    "no issue": {"wall_us": 40, "device_us": 20},
    "cold": {**OVERHEAD, "warmup": "false"},
    "failed": {**OVERHEAD, "status": "failed"},
    "noop": {**OVERHEAD, "workload": "noop"},
    "cpu": {"device": "cpu", "wall_us": 5, "floor_us": 4},
}


@pytest.fixture(scope="module")
def relations(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """Rows of `law` by the name of the given point, and the one row of `law_summary`."""
    runs = [{**run, "point_id": name} for name, run in GIVEN.items()]
    with open_store(write_store(tmp_path_factory.mktemp("store"), runs=runs)) as connection:
        law = connection.execute("FROM law")
        columns = [column[0] for column in law.description]
        rows = {row[0]: dict(zip(columns, row, strict=True)) for row in law.fetchall()}
        summary = connection.execute("FROM law_summary")
        columns = [column[0] for column in summary.description]
        yield {"law": rows, "summary": [dict(zip(columns, row, strict=True)) for row in summary.fetchall()]}


def test_who_is_asked(relations: dict[str, Any]) -> None:
    """Cold, failed, CPU and noop points take no part."""
    assert set(GIVEN) - set(relations["law"]) == {"cold", "failed", "noop", "cpu"}


@pytest.mark.parametrize(
    ("name", "larger_term", "deviation", "within"),
    [
        ("overhead", "issue", 0.02, True),
        ("device", "device", 0.0, True),
        ("six percent", "issue", 0.06, False),
        ("short", "issue", -0.10, False),
        ("unexplained", "device", 1 / 3, False),
        ("serialized", "device", None, None),
        ("no issue", None, None, None),
    ],
)
def test_deviation(
    relations: dict[str, Any], name: str, larger_term: str | None, deviation: float | None, within: bool | None
) -> None:
    """wall / max(issue, device) - 1, either way; serialized points and unknown terms have none."""
    row = relations["law"][name]
    assert (row["larger_term"], row["within_5_percent"]) == (larger_term, within)
    assert row["deviation"] == (None if deviation is None else pytest.approx(deviation))


@pytest.mark.parametrize(
    ("name", "verdict", "agrees"),
    [
        ("overhead", "overhead-bound", True),
        ("device", "device", True),
        ("near", "device", False),
        ("six percent", "none", False),
        ("short", None, None),
        ("serialized", "serialized", True),
        ("serialized, device", "device", False),
        ("noisy slopes", None, None),
    ],
)
def test_slopes(relations: dict[str, Any], name: str, verdict: str | None, agrees: bool | None) -> None:
    """Which slope exceeds 0.5 decides; no slopes, or intervals that leave it open, no opinion."""
    row = relations["law"][name]
    assert (row["slopes_verdict"], row["slopes_agree"]) == (verdict, agrees)


@pytest.mark.parametrize(
    ("name", "verdict", "agrees"),
    [
        ("overhead", "overhead-bound", True),
        ("device", "device", True),
        ("near", None, None),
        ("contradicted", "device", False),
        ("replayed", None, None),
        ("short", None, None),
    ],
)
def test_replay(relations: dict[str, Any], name: str, verdict: str | None, agrees: bool | None) -> None:
    """issue > replay is overhead-bound, where they are 10 % apart; a device time that is the replay proves nothing."""
    row = relations["law"][name]
    assert (row["replay_verdict"], row["replay_agrees"]) == (verdict, agrees)


def test_band(relations: dict[str, Any]) -> None:
    """Within 10 % of the crossing a disagreement is no surprise."""
    assert [name for name, row in relations["law"].items() if row["in_band"]] == ["near"]


def test_summary(relations: dict[str, Any]) -> None:
    """Counts, share, median and worst of the environment; agreement over all points and outside the band."""
    (summary,) = relations["summary"]
    assert (summary["points"], summary["points_within"], summary["within_frac"]) == (9, 6, pytest.approx(6 / 9))
    assert summary["median_deviation"] == pytest.approx(0.02)
    assert summary["worst_deviation"] == pytest.approx(1 / 3)
    assert (summary["worst_point_id"], summary["worst_point"]) == (
        "unexplained",
        "matmul_add size=64 dtype=fp32 compile=false",
    )
    assert (summary["slopes_points"], summary["slopes_agreeing"]) == (6, 3)
    assert (summary["slopes_points_outside"], summary["slopes_agreeing_outside"]) == (5, 3)
    assert (summary["replay_points"], summary["replay_agreeing"]) == (3, 2)
    assert (summary["replay_points_outside"], summary["replay_agreeing_outside"]) == (3, 2)
