"""Runs, points, axes, samples, environments and roofs on small given rows."""

import math
from pathlib import Path

import pytest
from given import write_store

from analysis.store import open_store
from runner.statistics import t_quantile


def test_runs_of_a_point_are_combined(tmp_path: Path) -> None:
    """Settings of the latest ok run; each time the median of the ok runs, from their least low to their greatest high
    where the spread between runs is unknown."""
    runs = [
        {"point_id": "p", "wall_us": (10, 9, 11), "facts": {"rounds": 1}},
        {"point_id": "p", "wall_us": (12, 11, 15), "margin": (2, 1.9, 2.1), "facts": {"rounds": 2}},
        {"point_id": "p", "wall_us": (11, 8, 12), "facts": {"rounds": 3}},
        {"point_id": "p", "status": "crashed", "reason": "gone", "wall_us": (99, 1, 99), "facts": {"rounds": 4}},
        {"point_id": "p", "environment_id": "other", "wall_us": (50, 50, 50), "facts": {"rounds": 5}},
        {"point_id": "q", "status": "failed", "reason": "first"},
        {"point_id": "q", "status": "oom", "reason": "second", "wall_us": (7, 7, 7)},
    ]
    query = """
        SELECT point_id, environment_id, run_id, runs, ok_runs, status, reason, rounds,
            wall_us, wall_us_low, wall_us_high, margin
        FROM points ORDER BY ALL
    """
    with open_store(write_store(tmp_path, runs=runs)) as connection:
        assert connection.sql(query).fetchall() == [
            ("p", "env", "r002", 4, 3, "ok", None, 3, 11.0, 8.0, 15.0, 2.0),
            ("p", "other", "r004", 1, 1, "ok", None, 5, 50.0, 50.0, 50.0, None),
            ("q", "env", "r006", 2, 0, "oom", "second", None, None, None, None, None),
        ]


def test_the_spread_between_runs_is_that_about_each_point(tmp_path: Path) -> None:
    """Three points of two runs, each 1.1 times apart: a variance of ln(1.1)^2 / 2 with 3 degrees of freedom."""
    runs = [{"point_id": str(place), "wall_us": wall} for place in range(3) for wall in (100, 110)]
    alone = [{"point_id": "alone", "wall_us": (100, 99, 101)}, {"point_id": "wide", "wall_us": (100, 50, 200)}]
    other = [{"point_id": "other", "wall_us": wall, "environment_id": "other"} for wall in (100, 120)]
    query = "SELECT quantity, points, runs, dof, sd_frac FROM _spread ORDER BY environment_id"
    with open_store(write_store(tmp_path, runs=[*runs, *alone, *other])) as connection:
        assert connection.sql(query).fetchall() == [
            ("wall", 3, 6, 3, pytest.approx(math.log(1.1) / math.sqrt(2))),
            ("wall", 1, 2, 1, None),
        ]
        intervals = {
            name: (low, high)
            for name, low, high in connection.sql("SELECT point_id, wall_us_low, wall_us_high FROM points").fetchall()
        }
    reach = t_quantile(3) * math.log(1.1) / math.sqrt(2)
    assert intervals["alone"] == pytest.approx((100 * math.exp(-reach), 100 * math.exp(reach)))
    assert intervals["wide"] == (50, 200)
    of_two = reach * math.sqrt(math.pi / (2 + math.pi))
    assert intervals["0"] == pytest.approx((105 * math.exp(-of_two), 105 * math.exp(of_two)))
    assert intervals["other"] == (100, 120)


def test_wall_times_differ_as_their_larger_term_does(tmp_path: Path) -> None:
    """Three points of a host 1.3 times apart, three of a device 1.01 times apart: each single run has its side's."""
    host = [{"issue_us": wall, "device_us": 5, "wall_us": wall} for wall in (20, 26)]
    device = [{"issue_us": 20, "device_us": wall, "wall_us": wall} for wall in (100, 101)]
    runs = [
        {**run, "point_id": f"{place} {run['issue_us'] > run['device_us']}"}
        for place in range(3)
        for run in [*host, *device]
    ]
    alone = [{**host[0], "point_id": "host"}, {**device[0], "point_id": "device"}]
    spreads = "SELECT quantity, sd_frac FROM _spread WHERE quantity LIKE 'wall%' ORDER BY quantity"
    with open_store(write_store(tmp_path, runs=[*runs, *alone])) as connection:
        found = dict(connection.sql(spreads).fetchall())
        highs = dict(connection.sql("SELECT point_id, wall_us_high FROM points WHERE ok_runs = 1").fetchall())
    sd = {"wall": math.log(1.01) / math.sqrt(2), "wall by the host": math.log(1.3) / math.sqrt(2)}
    assert found == pytest.approx(sd)
    assert highs == pytest.approx(
        {
            "host": 20 * math.exp(t_quantile(3) * sd["wall by the host"]),
            "device": 100 * math.exp(t_quantile(3) * sd["wall"]),
        }
    )


def test_facts_are_unfolded(tmp_path: Path) -> None:
    """Rare facts become columns; what is missing or torn is NULL."""
    facts = {
        "rank": 1,
        "reasons": {"issue_us": "queue-full"},
        "blocking_calls": {"cudaStreamSynchronize": 1},
        "condition": {"sm_clock_mhz": [1000, 1500, 1980]},
        "compile": {"seconds": 2.5, "region_ran": True},
        "measure": {"name": "quick"},
    }
    runs = [{"facts": facts}, {"facts": "{torn"}, {"facts": {"blocking_calls": {}}}]
    query = """
        SELECT rank, reasons, blocking_calls, sm_clock_mhz, compile_s, region_ran, measure, host_contended
        FROM runs ORDER BY run_id
    """
    with open_store(write_store(tmp_path, runs=runs)) as connection:
        assert connection.sql(query).fetchall() == [
            (1, '{"issue_us":"queue-full"}', '{"cudaStreamSynchronize":1}', 1500.0, 2.5, True, "quick", None),
            (None,) * 8,
            (None,) * 8,
        ]


def test_axes_hold_the_further_ones_too(tmp_path: Path) -> None:
    """Every axis that the run has is a row; an axis that it does not have is none."""
    run = {"params": {"threads": 4, "bias": True, "seed": None}, "batch": 8, "size": None}
    with open_store(write_store(tmp_path, runs=[run])) as connection:
        rows = connection.sql("SELECT axis, value FROM axes ORDER BY ALL").fetchall()
        params = connection.sql("SELECT params FROM runs").fetchall()
    assert rows == [
        ("batch", "8"),
        ("bias", "true"),
        ("compile", "false"),
        ("device", "cuda"),
        ("dtype", "fp32"),
        ("dynamic", "false"),
        ("threads", "4"),
        ("warmup", "true"),
        ("workload", "matmul_add"),
    ]
    assert params == [('{"bias":true,"seed":null,"threads":4}',)]


def test_samples_are_one_row_each(tmp_path: Path) -> None:
    """The raw samples keep their order."""
    samples = [
        {"quantity": "wall", "round": 0, "position": 0, "value": 18.0},
        {"quantity": "issue", "round": 0, "position": 1, "value": 17.5},
    ]
    with open_store(write_store(tmp_path, runs=[{"samples": samples}, {}])) as connection:
        rows = connection.sql("FROM samples ORDER BY position").fetchall()
    assert rows == [("r000", "wall", 0, 0, 18.0), ("r000", "issue", 0, 1, 17.5)]


def test_environments_and_roofs_pass_through(tmp_path: Path) -> None:
    """What an environment does not know stays NULL; a roof keeps its reason."""
    store = write_store(
        tmp_path,
        environments=[{"device_name": "H200", "multiprocessors": 132}],
        roofs=[
            {"roof": "dram", "value_per_s": 4e12, "low_per_s": 3.9e12, "high_per_s": 4.1e12},
            {"roof": "l2", "reason": "too small to time"},
        ],
    )
    with open_store(store) as connection:
        environment = connection.sql("SELECT environment_id, device_name, multiprocessors, l2_bytes FROM environments")
        assert environment.fetchall() == [("env", "H200", 132, None)]
        assert connection.sql("SELECT roof, value_per_s, reason FROM roofs ORDER BY roof").fetchall() == [
            ("dram", 4e12, None),
            ("l2", None, "too small to time"),
        ]
