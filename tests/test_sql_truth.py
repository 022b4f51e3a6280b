"""The proof on given points: who is checked, what the check says, gains, explanations, interventions on the roofs."""

from __future__ import annotations

from pathlib import Path

import pytest
from given import write_store
from truth_given import ELEMENTS, ROOFS, Row, around, device_bound, fused, point

from analysis.store import open_store

NEAR = {"wall_us": 20.5, "device_us": 19.5, "margin": around(1.05, 0.03)}
WAITING = {"blocking_calls": {"cudaStreamSynchronize": 1}}
ON_THE_CPU = {"device": "cpu", "issue_us": None, "device_us": None, "replay_us": None, "busy_us": None, "floor_us": 4,
              "host_slope": None, "device_slope": None}  # fmt: skip

GIVEN: dict[str, Row] = {
    "overhead": point(),
    "device": device_bound(),
    "wrong": point(host_slope=around(0.0), device_slope=around(1.0)),
    "blurred": point(host_slope=around(0.6, 0.5), device_slope=around(0.4, 0.5)),
    "sure of the side alone": point(device_slope=around(0.4, 0.3)),
    "both": point(device_slope=around(0.9)),
    "neither": point(host_slope=around(0.1)),
    "near": point(**NEAR, device_slope=around(0.7)),
    "near, alike": point(**NEAR, device_slope=around(0.9)),
    "serialized": device_bound(
        wall_us=45, facts=WAITING, host_slope=around(1.1), device_slope=around(0.8), replay_us=None
    ),
    "balanced": point(wall_us=20, device_us=19.8, margin=around(1.01, 0.05)),
    "unknown": point(wall_us=40),
    "no slopes": point(host_slope=None),
    "cold": point(warmup="false"),
    "failed": point(status="failed"),
    "cpu, work": point(**ON_THE_CPU, wall_us=40, margin=around(0.11, 0.01), facts={"work_share": [0.9, 0.8, 1.0]}),
    "cpu, floor": point(**ON_THE_CPU, wall_us=5, margin=around(4.0), facts={"work_share": [0.2, 0.1, 0.3]}),
    "cpu, wrong": point(**ON_THE_CPU, wall_us=5, margin=around(4.0), facts={"work_share": [0.7, 0.6, 0.8]}),
    "cpu, blurred": point(**ON_THE_CPU, wall_us=8.5, margin=around(0.9, 0.05), facts={"work_share": [0.5, 0.4, 0.6]}),
    "cpu, unchecked": point(**ON_THE_CPU, wall_us=40),
}


def rows_of(store: Path, relation: str) -> list[Row]:
    """All rows of a relation."""
    with open_store(store) as connection:
        result = connection.execute(f"FROM {relation}")
        names = [column[0] for column in result.description]
        return [dict(zip(names, row, strict=True)) for row in result.fetchall()]


def truth_of(folder: Path, given: dict[str, Row]) -> dict[str, Row]:
    """Rows of `truth` by the name of the given point."""
    runs = [{**run, "point_id": name} for name, run in given.items()]
    return {row["point_id"]: row for row in rows_of(write_store(folder, runs=runs), "truth")}


@pytest.fixture(scope="module")
def truth(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Row]:
    """Rows of `truth` of all given points."""
    return truth_of(tmp_path_factory.mktemp("store"), GIVEN)


def test_who_is_checked(truth: dict[str, Row]) -> None:
    """Warm, ok points with slopes, or with twice the work on the CPU."""
    assert set(GIVEN) - set(truth) == {"no slopes", "cold", "failed", "cpu, unchecked"}


@pytest.mark.parametrize(
    ("name", "side", "checked_side", "agrees"),
    [
        ("overhead", "overhead-bound", "overhead-bound", True),
        ("device", "device", "device", True),
        ("wrong", "overhead-bound", "device", False),
        ("blurred", "overhead-bound", "undecided", None),
        ("sure of the side alone", "overhead-bound", "overhead-bound", True),
        ("both", "overhead-bound", "serialized", False),
        ("neither", "overhead-bound", "none", False),
        ("near", "overhead-bound", "overhead-bound", True),
        ("near, alike", "overhead-bound", "undecided", None),
        ("serialized", "serialized", "serialized", True),
        ("balanced", "balanced", "overhead-bound", None),
        ("unknown", "unknown", "overhead-bound", None),
        ("cpu, work", "device", "device", True),
        ("cpu, floor", "overhead-bound", "overhead-bound", True),
        ("cpu, wrong", "overhead-bound", "device", False),
        ("cpu, blurred", "device", "undecided", None),
    ],
)
def test_the_check(truth: dict[str, Row], name: str, side: str, checked_side: str, agrees: bool | None) -> None:
    """Slopes and doubled work with their intervals; what either side leaves open is neither yes nor no."""
    row = truth[name]
    assert (row["side"], row["checked_side"], row["agrees"]) == (side, checked_side, agrees)
    assert row["checked_by"] == ("doubled work" if name.startswith("cpu") else "slopes")


def test_decided_points(truth: dict[str, Row]) -> None:
    """All but balanced and unknown ones."""
    assert {name for name, row in truth.items() if not row["decided"]} == {"balanced", "unknown"}


def test_confidence_grows_with_the_distance(truth: dict[str, Row]) -> None:
    """Farther from 1 in its own interval: surer; no side, no confidence."""
    assert 0.98 < truth["near"]["confidence"] < truth["overhead"]["confidence"] <= 1
    assert truth["balanced"]["confidence"] is truth["serialized"]["confidence"] is None


def test_replay_and_naive_rule(truth: dict[str, Row]) -> None:
    """Issue against replay; the profile's host total, inflated, against its device total, judged by the same check."""
    assert (truth["overhead"]["replay_agrees"], truth["overhead"]["naive_agrees"]) == (True, True)
    assert truth["device"]["replay_agrees"] is True
    assert (truth["device"]["naive_side"], truth["device"]["naive_agrees"]) == ("overhead-bound", False)
    assert truth["serialized"]["naive_agrees"] is False
    assert truth["blurred"]["naive_agrees"] is None


def test_distance_in_the_axis(tmp_path: Path) -> None:
    """How many times larger or smaller than the crossing of its series a size is."""
    given = {"low": point(size=64), "high": device_bound(size=128), "far": device_bound(size=1024)}
    rows = truth_of(tmp_path, given)
    crossing = rows["low"]["crossing"]
    assert 64 < crossing < 128
    assert rows["low"]["times_from_crossing"] == pytest.approx(crossing / 64)
    assert rows["far"]["times_from_crossing"] == pytest.approx(1024 / crossing)


def test_gains_rest_on_other_points(tmp_path: Path) -> None:
    """The gap of a launch is 1 us everywhere; a point whose own replay is odd is predicted like the rest."""
    given = {f"p{each}": point(device_us=10 + each, replay_us=8 + each, size=each + 2) for each in range(12)}
    given["odd"] = point(device_us=10, replay_us=4, size=999)
    rows = truth_of(tmp_path, given)
    for each in range(12):
        row = rows[f"p{each}"]
        assert row["predicted_gain"] == pytest.approx(20 / (8 + each)) == pytest.approx(row["achieved_gain"])
    assert rows["odd"]["predicted_gain"] == pytest.approx(20 / 8)
    assert (rows["odd"]["achieved_gain"], rows["odd"]["gain_error"]) == (pytest.approx(5), pytest.approx(-0.5))


def test_a_predicted_gain_stops_at_the_busy_time(tmp_path: Path) -> None:
    """The gap of a launch is 1 us, yet the device was seen busy 9 of its 10 us; without a gap nothing is taken off."""
    given = {f"p{each}": point(size=each + 2) for each in range(12)}
    rows = truth_of(tmp_path / "gap", given | {"busy": point(busy_us=9, size=99)})
    assert rows["busy"]["predicted_gain"] == pytest.approx(20 / 9)
    assert truth_of(tmp_path / "alone", {"alone": point()})["alone"]["predicted_gain"] == pytest.approx(20 / 10)


@pytest.mark.parametrize(
    ("replay_us", "side"), [(8, "overhead-bound"), (19, "undecided"), (28, "device"), (None, None)]
)
def test_the_replay_as_a_check(tmp_path: Path, replay_us: float | None, side: str | None) -> None:
    """Held against an issue time of 20 us, undecided within 10 %."""
    assert truth_of(tmp_path, {"p": point(replay_us=replay_us)})["p"]["replay_side"] == side


def bursts(issue_half_us: float) -> list[dict[str, object]]:
    """Samples of two rounds: bursts of a step of 20 us, and half as long ones."""
    times = {"issue": 20.0, "issue_half": issue_half_us}
    return [
        {"quantity": quantity, "round": each, "position": each, "value": value}
        for quantity, value in times.items()
        for each in range(2)
    ]


SHORT = {"law": [0.92, 0.91, 0.93]}
SLOWER = "the start of a burst costs extra: half as long ones took 20.0 % more a step"

EXPLAINED: dict[str, tuple[Row, str | None]] = {
    "holds": (point(facts={"law": [1.04, 1.03, 1.05]}), None),
    "contended": (point(facts={"law": [1.08, 1.07, 1.09], "host_contended": True}), "something else used the host"),
    "wide": (point(facts={"law": [1.08, 1.04, 1.2]}), "within its own interval"),
    "short": (point(facts={"law": [0.92, 0.91, 0.96]}), "within its own interval"),
    "near": (
        point(**NEAR, facts={"law": [1.08, 1.07, 1.09]}),
        "near the crossing, where both terms share the step",
    ),
    "waits": (point(facts={"law": [1.08, 1.07, 1.09], **WAITING}), "the step waits for the device"),
    "throttled": (
        point(facts={"law": [1.08, 1.07, 1.09], "condition": {"throttle_reasons": ["sw_power_cap"]}}),
        "the clock was lowered: sw_power_cap",
    ),
    "open": (point(facts={"law": [1.08, 1.07, 1.09]}), "none known"),
    "burst": (point(facts=SHORT, samples=bursts(24.0)), SLOWER),
    "burst of too little": (point(facts=SHORT, samples=bursts(21.0)), "none known"),
    "burst, but above the law": (point(facts={"law": [1.08, 1.07, 1.09]}, samples=bursts(24.0)), "none known"),
    "burst, but device": (device_bound(facts=SHORT, samples=bursts(24.0)), "none known"),
    "medians": (point(wall_us=21.4), "none known"),
}


def test_deviations_are_explained(tmp_path: Path) -> None:
    """Of each round where the run tells it, else of the medians; every one above 5 % has a reason or says that it has
    none."""
    rows = truth_of(tmp_path, {name: run for name, (run, _) in EXPLAINED.items()})
    assert {name: row["explanation"] for name, row in rows.items()} == {
        name: why for name, (_, why) in EXPLAINED.items()
    }
    assert (rows["open"]["deviation"], rows["medians"]["deviation"]) == (pytest.approx(0.08), pytest.approx(0.07))


# -- interventions -----------------------------------------------------------------------------------------------------


def test_interventions(tmp_path: Path) -> None:
    """Memory-bound points answer to bytes, compute-bound ones to FLOPs; the last one to what it should not."""
    runs = [
        fused(16, 1, 140), fused(32, 1, 143), fused(16, 2, 205), fused(512, 1, 700), fused(1024, 1, 1390),
        fused(512, 2, 704), fused(1024, 2, 2100),
    ]  # fmt: skip
    rows = rows_of(write_store(tmp_path, runs=runs, environments=[{}], roofs=ROOFS), "interventions")
    told = {(row["changed"], row["axis"], row["params"], row["less_value"]): row for row in rows}
    assert {key: (row["bound"], row["should_move"], row["agrees"]) for key, row in told.items()} == {
        ("flops", "ops", '{"reads":1}', 16): ("memory-bound", False, True),
        ("flops", "ops", '{"reads":1}', 512): ("compute-bound", True, True),
        ("flops", "ops", '{"reads":2}', 512): ("compute-bound", True, True),
        ("bytes", "reads", '{"ops":16}', 1): ("memory-bound", True, True),
        ("bytes", "reads", '{"ops":512}', 1): ("compute-bound", False, True),
        ("bytes", "reads", '{"ops":1024}', 1): ("compute-bound", False, False),
    }
    assert told[("bytes", "reads", '{"ops":16}', 1)]["elasticity"] == pytest.approx(0.94, abs=0.01)


def test_changes_of_both_are_no_intervention(tmp_path: Path) -> None:
    """A larger size changes FLOPs and bytes alike."""
    small, large = fused(512, 1, 700), fused(512, 1, 1400)
    operation = {"name": "fused", "flops": 1024 * ELEMENTS, "bytes": 16 * ELEMENTS}
    large |= {"size": 131072, "facts": {"cost": {"operations": [operation]}}}
    assert rows_of(write_store(tmp_path, runs=[small, large], environments=[{}], roofs=ROOFS), "interventions") == []
