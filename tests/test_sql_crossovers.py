"""Every status of `crossovers` on small given series: each is a workload of its own."""

import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from given import write_store

from analysis.store import open_store
from runner.composition import compose
from runner.plan import Searches, plan_of


def run(size: int, margin: float | tuple[float, float, float], **more: Any) -> dict[str, Any]:
    """A point whose device time is 10 us and whose issue time is margin x 10 us; margin may have an interval."""
    ratio = margin if isinstance(margin, float) else margin[0]
    times = {"wall_us": 10 * max(ratio, 1), "issue_us": 10 * ratio, "device_us": 10}
    return {"size": size, "margin": margin, **times, **more}


FAILED = {"status": "failed", "reason": "no"}
WAITS = {"wall_us": 100, "facts": {"blocking_calls": {"cudaStreamSynchronize": 1}}}
NOISE = {"device": "cpu", "wall_us": (4.2, 4.0, 4.4), "floor_us": 4}
CPU_WORK = {"device": "cpu", "wall_us": 12, "floor_us": 4}
NEAR_ONE = (1.0, 0.9, 1.1)

GIVEN: dict[str, list[dict[str, Any]]] = {
    "found": [run(64, 4.0), run(1024, 2.0), run(2048, 0.5), run(4096, 0.25)],
    "bracketed": [run(64, 4.0), run(4096, 0.25)],
    "narrow": [run(64, 2.0), run(128, 0.5)],
    "balanced between": [run(64, 2.0), run(96, NEAR_ONE), run(128, 0.5)],
    "wide for balance": [run(64, 2.0), run(96, NEAR_ONE), run(256, 0.5)],
    "above": [run(64, 4.0), run(128, 2.0), run(256, NEAR_ONE)],
    "below": [run(64, 0.5), run(128, 0.25)],
    "several": [run(64, 2.0), run(128, 0.5), run(256, 2.0), run(512, 0.5)],
    "reversed": [run(64, 0.5), run(128, 2.0)],
    "step": [run(64, 1.5), run(128, 1.4), run(136, 0.7), run(256, 0.6)],
    "steep": [run(64, 4.0), run(128, 2.0), run(256, 0.5), run(512, 0.125)],
    "noisy step": [run(64, 1.5), run(128, (1.4, 1.05, 1.8)), run(136, (0.7, 0.5, 0.95)), run(256, 0.6)],
    "serialized beyond": [run(64, 2.0), run(128, 2.0, **WAITS)],
    "serialized between": [run(64, 2.0), run(96, 1.5, **WAITS), run(128, 1.5)],
    "only serialized": [run(64, 2.0, **WAITS), run(128, 2.0, **WAITS)],
    "only balanced": [run(64, NEAR_ONE), run(128, NEAR_ONE)],
    "left out": [run(64, 2.0), run(128, 0.5), run(256, 0.5, **FAILED), run(512, 0.5, status="skipped", reason="slow")],
    "one left": [run(64, 2.0), run(128, 0.5, **FAILED)],
    "none left": [run(64, 2.0, **FAILED), run(128, 0.5, **FAILED)],
    "no margin": [{"size": 32, **NOISE}, {"size": 64, **CPU_WORK}],
    "no margin, far": [{"size": 8, **NOISE}, {"size": 32, **NOISE}, {"size": 256, **CPU_WORK}],
    "cold": [run(64, 2.0, warmup="false"), run(128, 0.5, warmup="false")],
    "one value": [run(64, 2.0)],
    "close": [run(1000, 1.1), run(1008, 0.9)],
    "one multiple": [run(16, 1.1), run(17, 0.9)],
    "two values": [run(1, 2.0), run(2, 0.5)],
    "from nothing": [run(0, 2.0), run(64, 0.5)],
}


@pytest.fixture(scope="module")
def crossovers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, dict[str, Any]]]:
    """Rows of `crossovers` by the name of the given series."""
    runs = [{**row, "workload": name} for name, rows in GIVEN.items() for row in rows]
    with open_store(write_store(tmp_path_factory.mktemp("store"), runs=runs)) as connection:
        yield {row["workload"]: row for row in _rows(connection, "FROM crossovers")}


def _rows(connection: Any, query: str) -> list[dict[str, Any]]:
    result = connection.execute(query)
    names = [column[0] for column in result.description]
    return [dict(zip(names, row, strict=True)) for row in result.fetchall()]


@pytest.mark.parametrize(
    ("name", "status", "value", "low", "high", "text"),
    [
        ("found", "found", 1448.15, 1024, 2048, "1448 (1024 to 2048)"),
        ("bracketed", "bracketed", None, 64, 4096, "between 64 and 4096"),
        ("narrow", "found", 90.51, 64, 128, "90.51 (64 to 128)"),
        ("balanced between", "found", 92.30, 64, 128, "92.3 (64 to 128)"),
        ("wide for balance", "bracketed", None, 64, 256, "between 64 and 256"),
        ("above", "above", None, 128, None, "above 128"),
        ("below", "below", None, None, 64, "below 64"),
        ("several", "several", None, 64, 512, "3 changes between 64 and 512"),
        ("reversed", "found", 90.51, 64, 128, "90.51 (64 to 128)"),
        ("step", "found", 131.83, 128, 136, "132 (128 to 136)"),
        ("serialized beyond", "unknown", None, None, None, "unknown"),
        ("serialized between", "above", None, 128, None, "above 128"),
        ("only serialized", "unknown", None, None, None, "unknown"),
        ("only balanced", "unknown", None, None, None, "unknown"),
        ("left out", "found", 90.51, 64, 128, "90.51 (64 to 128)"),
        ("one left", "unknown", None, None, None, "unknown"),
        ("none left", "unknown", None, None, None, "unknown"),
        ("no margin", "found", 45.25, 32, 64, "45.25 (32 to 64)"),
        ("no margin, far", "bracketed", None, 32, 256, "between 32 and 256"),
    ],
)
def test_status_and_interval(
    crossovers: dict[str, dict[str, Any]],
    name: str,
    status: str,
    value: float | None,
    low: float | None,
    high: float | None,
    text: str,
) -> None:
    """One change of side is a crossover, on a straight line through the points there, on logarithms."""
    row = crossovers[name]
    assert (row["status"], row["low"], row["high"], row["text"]) == (status, low, high, text)
    assert row["value"] == pytest.approx(value, abs=0.01) if value else row["value"] is None


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("found", "one change of side"),
        ("bracketed", "the bracket is wider than 2 x"),
        ("balanced between", "one change of side; 1 balanced point"),
        ("above", "every decided point is overhead-bound; 1 balanced point"),
        ("below", "every decided point is bound by the device"),
        ("several", "the side changes 3 times"),
        ("step", "one change of side; a step: the margin changes from 1.40 to 0.7 between 128 and 136"),
        ("steep", "one change of side"),
        ("noisy step", "one change of side"),
        ("reversed", "one change of side; overhead binds above the crossing, the device below it"),
        (
            "serialized beyond",
            "every decided point is overhead-bound, but points beyond them are not decided; 1 undecided point, "
            "the first at 128: serialized (the host waits inside the step: cudaStreamSynchronize)",
        ),
        ("only balanced", "every point is balanced"),
        ("left out", "one change of side; 2 failed or skipped points left out"),
        ("one left", "only one point was measured; 1 failed or skipped point left out"),
        ("none left", "no point was measured; 2 failed or skipped points left out"),
        ("no margin", "one change of side, in the middle of its bracket: a margin beside it has no value"),
    ],
)
def test_reason(crossovers: dict[str, dict[str, Any]], name: str, reason: str) -> None:
    """A crossing that cannot be told says why, and points that took no part are counted."""
    assert crossovers[name]["reason"] == reason


@pytest.mark.parametrize("name", ["cold", "one value"])
def test_no_series(crossovers: dict[str, dict[str, Any]], name: str) -> None:
    """Cold points have no bound and so no series; one value of an axis is none either."""
    assert name not in crossovers


@pytest.mark.parametrize(
    ("name", "ends"),
    [
        ("bracketed", ["search.low=64", "search.high=4096", "search.multiple=8"]),
        ("found", ["search.low=1024", "search.high=2048", "search.multiple=8"]),
        ("step", ["search.low=128", "search.high=136"]),
        ("close", None),
        ("one multiple", None),
        ("two values", None),
        ("from nothing", None),
        ("above", None),
        ("several", None),
    ],
)
def test_a_wide_bracket_has_the_search_that_narrows_it(
    crossovers: dict[str, dict[str, Any]], name: str, ends: list[str] | None
) -> None:
    """Whole numbers, of 8 where the ends are and lie 16 apart; nothing within 2 % or one multiple, or below three."""
    words = ["python", "-m", "runner", "-m", "hydra/sweeper=crossover", "search.axis=size", *(ends or [])]
    given = [f"workload={name}", "dtype=fp32", "compile=false", "device=cuda"]
    command = crossovers[name]["command"]
    assert (command and shlex.split(command)) == (ends and [*words, *given])


SEARCHED: dict[str, tuple[str, list[dict[str, Any]], list[str]]] = {
    "size": (
        "addmm",
        [run(256, 2.0, params={"bias": 1}), run(896, 0.5, params={"bias": 1})],
        ["search.low=256", "search.high=896", "search.multiple=8", "workload=addmm", "workload.bias=1"],
    ),
    "batch": (
        "matmul_add",
        [run(64, 2.0, batch=1, compile="true"), run(64, 0.5, batch=9, compile="true")],
        ["search.low=1", "search.high=9", "workload=matmul_add", "size=64", "compile=true"],
    ),
    "ops": (
        "intensity",
        [
            run(64, 2.0, params={"ops": 16, "reads": 2, "l2": "cold"}),
            run(64, 0.5, params={"ops": 64, "reads": 2, "l2": "cold"}),
        ],
        ["search.low=16", "search.high=64", "search.multiple=8", "workload=intensity", "l2=cold", "workload.reads=2"],
    ),
    "threads": (
        "matmul_add",
        [run(64, 2.0, params={"threads": 1}), run(64, 0.5, params={"threads": 3})],
        ["search.low=1", "search.high=3", "workload=matmul_add", "size=64"],
    ),
}


@pytest.mark.parametrize("axis", SEARCHED)
def test_the_runner_accepts_the_search(axis: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One series over the axis, whose ends and settings are those of the crossing."""
    workload, given, settings = SEARCHED[axis]
    store = write_store(tmp_path, runs=[{**row, "workload": workload} for row in given])
    with open_store(store) as connection:
        (row,) = _rows(connection, f"SELECT low, high, command FROM crossovers WHERE axis = '{axis}'")
    words = shlex.split(row["command"])[3:]
    assert {f"search.axis={axis}", *settings} <= set(words)
    assert not any(word.startswith((f"{axis}=", f"workload.{axis}=")) for word in words)
    monkeypatch.setattr(sys, "argv", ["runner", *words])
    found = plan_of(compose().points)
    assert isinstance(found, Searches) and len(list(found)) == 1
    assert (found.search.axis, found.search.low, found.search.high) == (axis, row["low"], row["high"])


def test_fractions_are_searched_in_thousandths_of_the_range(tmp_path: Path) -> None:
    """Between 0.5 and 2.5 two thousandths are a multiple."""
    runs = [run(64, 2.0, params={"ratio": 0.5}), run(64, 0.5, params={"ratio": 2.5})]
    with open_store(write_store(tmp_path, runs=runs)) as connection:
        (row,) = _rows(connection, "SELECT command FROM crossovers")
    assert "search.axis=ratio search.low=0.5 search.high=2.5 search.multiple=0.002 workload=" in row["command"]


def test_any_numeric_axis_makes_a_series(tmp_path: Path) -> None:
    """Size, batch and numeric params are axes, seed and schedule not; batch=null never joins a series over batch."""
    runs = [
        run(64, 4.0),
        run(64, 2.0, batch=8, params={"ops": 1, "seed": 1, "bias": "1d"}),
        run(64, 0.5, batch=16, params={"ops": 1, "seed": 1, "bias": "1d"}),
        run(64, 0.25, batch=8, params={"ops": 6, "seed": 1, "bias": "1d"}),
        run(64, 4.0, params={"seed": 1}),
        run(64, 0.5, params={"seed": 2}),
    ]
    with open_store(write_store(tmp_path, runs=runs)) as connection:
        rows = _rows(connection, "SELECT axis, size, batch, params, text, command FROM crossovers ORDER BY axis")
    assert [(row["axis"], row["size"], row["batch"], row["params"], row["text"]) for row in rows] == [
        ("batch", 64, None, '{"bias":"1d","ops":1,"seed":1}', "11.31 (8 to 16)"),
        ("ops", 64, 8, '{"bias":"1d","seed":1}', "between 1 and 6"),
    ]
    assert shlex.split(rows[1]["command"])[4:] == [
        *("hydra/sweeper=crossover", "search.axis=ops", "search.low=1", "search.high=6"),
        *("workload=matmul_add", "size=64", "dtype=fp32", "batch=8"),
        *("compile=false", "device=cuda", "workload.bias=1d", "seed=1"),
    ]


def test_environments_and_settings_are_never_mixed(tmp_path: Path) -> None:
    """Two environments, or two settings of another axis, are two series."""
    runs = [
        run(64, 4.0),
        run(128, 0.25, environment_id="other"),
        run(256, 0.25, dtype="bf16"),
        run(512, 0.25, warmup="20"),
    ]
    with open_store(write_store(tmp_path, runs=runs)) as connection:
        assert connection.sql("SELECT count(*) FROM crossovers").fetchall() == [(0,)]


def test_the_latest_point_of_a_value_counts(tmp_path: Path) -> None:
    """Where the workload's source has changed two points are alike in every axis: the later one is in the series."""
    runs = [run(64, 4.0, point_id="old"), run(64, 2.0, point_id="new"), run(128, 0.5)]
    with open_store(write_store(tmp_path, runs=runs)) as connection:
        assert connection.sql("SELECT points, text FROM crossovers").fetchall() == [(2, "90.51 (64 to 128)")]


def test_any_key_of_the_params_is_read(tmp_path: Path) -> None:
    """A key that holds quotes, slashes or tildes is a key like any other, and names an axis."""
    hostile = 'a"b/c~d'
    runs = [run(64, 4.0, params={hostile: 1}), run(64, 0.5, params={hostile: 2})]
    with open_store(write_store(tmp_path, runs=runs)) as connection:
        rows = _rows(connection, "SELECT axis, low, high FROM crossovers")
        values = _rows(connection, f"SELECT value FROM axes WHERE axis = '{hostile}' ORDER BY value")
    assert rows == [{"axis": hostile, "low": 1.0, "high": 2.0}]
    assert [row["value"] for row in values] == ["1", "2"]


def test_a_bracket_reaches_over_balanced_points_beside_it(tmp_path: Path) -> None:
    """The value lies between the nearest decided points, the bracket beyond the balanced neighbour of either."""
    margins = {64: 4.0, 96: (1.0, 0.9, 1.1), 104: 2.0, 112: 0.5, 120: (1.0, 0.9, 1.1), 128: 0.25}
    runs = [run(size, margin) for size, margin in margins.items()]
    with open_store(write_store(tmp_path, runs=runs)) as connection:
        (row,) = _rows(connection, "SELECT status, value, low, high FROM crossovers")
    assert (row["status"], row["low"], row["high"]) == ("found", 64.0, 128.0)
    assert 104 < row["value"] < 112
