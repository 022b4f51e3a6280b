"""How sure a verdict is: spread between runs, issue times that points share, and what one run alone would say."""

import math
from collections.abc import Iterator
from pathlib import Path
from statistics import NormalDist
from typing import Any

import pytest
from given import write_store

from analysis.store import open_store
from runner.statistics import t_quantile

ALIKE = {"facts": {"profile": {"launch_sequence": "mm add"}}}


def run(size: int, issue: float, device: float, width: float = 0.02, **more: Any) -> dict[str, Any]:
    """A run of this issue and device time, its margin formed in rounds, known within so much either way."""
    margin = tuple(issue / device * factor for factor in (1, 1 - width, 1 + width))
    device_us = tuple(device * factor for factor in (1, 0.999, 1.001))
    times = {"wall_us": max(issue, device), "issue_us": issue, "device_us": device_us, "margin": margin}
    return {"size": size, **times, **more}


GIVEN = [
    # three repeated points, 4 % apart: the spread of this environment
    *[run(size, issue, 5, environment_id="noisy") for size in (8, 16, 32) for issue in (19.6, 20.4)],
    run(64, 20, 19, environment_id="noisy"),
    run(128, 20, 10, environment_id="noisy"),
    # nobody has measured twice
    run(64, 20, 19, environment_id="once"),
    run(128, 20, 20, environment_id="once"),
    run(256, 20, 40, environment_id="once"),
    run(512, 20, 40, environment_id="once", status="failed", reason="no"),
    # one pair alone
    *[run(64, issue, 5, environment_id="pair") for issue in (19.6, 20.4)],
    # five points that launch the same, one of them on a slow host, and one with the queue full
    *[run(*times, 5, environment_id="alike", **ALIKE) for times in ((8, 20), (16, 20.2), (32, 19.8), (64, 20.1))],
    run(1024, 36, 30, environment_id="alike", **ALIKE),
    {"size": 2048, "environment_id": "alike", "wall_us": 40, "device_us": 40, **ALIKE},
    run(4096, 36, 30, environment_id="alike", facts={"profile": {"launch_sequence": "bmm add"}}),
]


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A store of the given runs."""
    with open_store(write_store(tmp_path_factory.mktemp("store"), runs=GIVEN)) as connection:
        yield connection


def test_the_measured_spread_widens_an_interval(opened: Any) -> None:
    """One run alone decides 1.05 within 2 %; runs that differ by 2.8 % do not."""
    query = """
        SELECT size, bound, run_side, flips, round(spread_frac, 4), spread_source
        FROM confidence WHERE environment_id = 'noisy' AND size > 32 ORDER BY size
    """
    assert opened.sql(query).fetchall() == [
        (64, "balanced", "overhead-bound", True, 0.0283, "6 runs of 3 points"),
        (128, "overhead-bound", "overhead-bound", False, 0.0283, "6 runs of 3 points"),
    ]


def test_an_unknown_spread_is_said(opened: Any) -> None:
    """The interval is then the run's own; failed points have no confidence."""
    query = """
        SELECT size, bound, flips, spread_frac, spread_source, margin_low = run_margin_low
        FROM confidence WHERE environment_id = 'once' ORDER BY size
    """
    unknown = "unknown: no point of this environment was measured twice"
    assert opened.sql(query).fetchall() == [
        (64, "overhead-bound", False, None, unknown, True),
        (128, "balanced", False, None, unknown, True),
        (256, "device-bound", False, None, unknown, True),
    ]
    sources = opened.sql("SELECT spread_source FROM confidence WHERE environment_id = 'pair'").fetchall()
    assert sources == [("unknown: 1 repeated run in this environment, 3 are needed",)]


def test_confidence_reads_the_interval_as_a_normal_one(opened: Any) -> None:
    """Of the half towards 1; on the crossing itself it is a toss of a coin."""
    query = """
        SELECT margin, margin_low, margin_high, confidence, flip_factor
        FROM confidence WHERE environment_id = 'once' ORDER BY size
    """
    above, level, below = opened.sql(query).fetchall()
    assert above[3] == pytest.approx(sureness(above[0], above[0] / above[1]), abs=1e-6)
    assert (level[3], level[4]) == (pytest.approx(0.5), 1)
    assert below[3] == pytest.approx(sureness(1 / below[0], below[2] / below[0]), abs=1e-6)
    assert below[4] == pytest.approx(2)


def sureness(ratio: float, reach: float) -> float:
    """Probability that a value this ratio beyond 1 lies beyond it, when the end of its interval is this ratio away."""
    return NormalDist().cdf(1.959964 * math.log(ratio) / math.log(reach))


def test_points_that_launch_the_same_share_an_issue_time(opened: Any) -> None:
    """A slow host is flagged and its margin moved; a hidden issue time is that of its kind; others keep their own."""
    query = """
        SELECT size, bound, issue_us, own_issue_us, issue_points, host_noise, round(margin, 3)
        FROM bounds WHERE environment_id = 'alike' AND size >= 64 ORDER BY size
    """
    assert opened.sql(query).fetchall() == [
        (64, "overhead-bound", 20.1, 20.1, 5, False, 4.02),
        (1024, "device-bound", 20.1, 36.0, 5, True, 0.67),
        (2048, "device-bound", 20.1, None, 5, None, 0.503),
        (4096, "overhead-bound", 36.0, 36.0, None, None, 1.2),
    ]
    assert opened.sql("SELECT sentence FROM bounds WHERE host_noise").fetchall() == [
        (
            "The device works 30.0 us on a step that the host issues in 20.1 us: device-bound, no cost model. "
            "Host noise: here the step was issued in 36.0 us, while 5 points that launch the same take 20.1 us.",
        )
    ]


def test_sweeps_that_differ_widen_the_shared_issue_time(tmp_path: Path) -> None:
    """The interval reaches to the farthest of two sweeps; within one it is that of the points."""
    first = [run(size, 20, 5, sweep_id="a", **ALIKE) for size in (8, 16, 32, 64)]
    second = [run(size, 26, 5, sweep_id="b", **ALIKE) for size in (128, 256, 512)]
    query = "SELECT issue_us, issue_us_high FROM _issue_times"
    with open_store(write_store(tmp_path / "two", runs=[*first, *second])) as two:
        assert two.sql(query).fetchall() == [(20, pytest.approx(26))]
    with open_store(write_store(tmp_path / "one", runs=first)) as one:
        assert one.sql(query).fetchall() == [(20, 20)]


def test_one_sweep_is_worth_as_many_runs_as_its_points_have(tmp_path: Path) -> None:
    """Three points measured twice, 4 % apart: what a worker does to one point it does to all, and there were two."""
    runs = [run(size, issue, 5, sweep_id="a", **ALIKE) for size in (8, 16, 32) for issue in (19.6, 20.4)]
    with open_store(write_store(tmp_path, runs=runs)) as connection:
        ((issue, high),) = connection.sql("SELECT issue_us, issue_us_high FROM _issue_times").fetchall()
    assert issue == 20
    share = math.pi / (2 * 2 + math.pi - 2)  # of the variance of one run, for the median of two
    assert high == pytest.approx(20 * math.exp(t_quantile(3) * math.log(20.4 / 19.6) * math.sqrt(share / 2)))


def test_settings_part_points_that_launch_the_same(tmp_path: Path) -> None:
    """Numbers may differ, words may not."""
    numbers = [run(64, 20, 5, params={"ops": ops}, **ALIKE) for ops in (1, 2, 3)]
    words = [run(64, 20, 5, params={"l2": l2, "ops": 4}, **ALIKE) for l2 in ("warm", "cold")]
    with open_store(write_store(tmp_path, runs=[*numbers, *words])) as connection:
        assert connection.sql("SELECT points FROM _issue_times").fetchall() == [(3,)]
