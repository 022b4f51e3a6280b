"""The live verdicts of the runner and the public ones of the analysis, on the same rows."""

from pathlib import Path
from typing import Any

import pytest
from given import write_store
from test_sql_bounds import GIVEN as POINTS
from test_sql_crossovers import GIVEN as SERIES

from analysis.store import open_store
from runner.law import Run, Times, Verdict, crossing, decide, judged, step
from runner.statistics import Estimate

DEVICE_SIDE = ("compute-bound", "memory-bound", "device-bound")
WARM = [name for name, run in POINTS.items() if name not in ("failed", "noop", "cold")]


def estimate(value: Any) -> Estimate | None:
    """A given time as the runner holds it."""
    if value is None:
        return None
    return Estimate(*map(float, value)) if isinstance(value, tuple) else Estimate(*[float(value)] * 3)


def live(run: dict[str, Any]) -> Verdict:
    """The runner's verdict of a given run."""
    times = {name: estimate(run.get(f"{name}_us")) for name in ("wall", "issue", "device", "floor", "blocked")}
    margin = estimate(run.get("margin"))
    return decide(Times(**times, margin=margin, blocks=bool(run.get("facts", {}).get("blocking_calls"))))


def test_bounds_agree(tmp_path: Path) -> None:
    """Every warm given point gets the same bound from both; the roofs are the analysis's alone."""
    runs = [{**POINTS[name], "point_id": name} for name in WARM if name != "cpu without floor"]
    with open_store(write_store(tmp_path, runs=runs)) as connection:
        public = dict(connection.sql("SELECT point_id, bound FROM bounds").fetchall())
    told = {name: "device-bound" if bound in DEVICE_SIDE else bound for name, bound in public.items()}
    assert told == {run["point_id"]: live(run).bound for run in runs}


def test_crossovers_agree(tmp_path: Path) -> None:
    """Every series whose points were all measured and decided has the same crossing in both."""
    names = [name for name, rows in SERIES.items() if all(_has_a_side(row) for row in rows) and len(rows) > 1]
    runs = [{**row, "workload": name} for name in names for row in SERIES[name]]
    with open_store(write_store(tmp_path, runs=runs)) as connection:
        rows = connection.sql('SELECT workload, status, "value" FROM crossovers').fetchall()
    expected = {name: crossing([(row["size"], live(row)) for row in SERIES[name]]) for name in names}
    assert {name: status for name, status, _ in rows} == {name: found.status for name, found in expected.items()}
    assert {name: value for name, _, value in rows} == {
        name: None if found.value is None else pytest.approx(found.value) for name, found in expected.items()
    }


def test_steps_agree(tmp_path: Path) -> None:
    """One rule tells a step, live and in the analysis: of the given series one has it."""
    names = [name for name, rows in SERIES.items() if all(_has_a_side(row) for row in rows) and len(rows) > 1]
    runs = [{**row, "workload": name} for name in names for row in SERIES[name]]
    with open_store(write_store(tmp_path, runs=runs)) as connection:
        public = connection.sql("SELECT workload FROM crossovers WHERE contains(reason, 'a step: ')").fetchall()
    live_steps = [name for name in names if step([(row["size"], live(row)) for row in SERIES[name]])]
    assert [name for (name,) in public] == live_steps == ["step"]


def test_repeated_runs_agree(tmp_path: Path) -> None:
    """Three runs of each point, 3 % apart, each series in an environment of its own, which then has a spread.

    tests/test_law.py does the same with issue times that points share.
    """
    names = [name for name, rows in SERIES.items() if all(_has_a_side(row) for row in rows) and len(rows) > 1]
    runs = {name: [again(row, pace) for row in SERIES[name] for pace in (1.0, 1.03, 0.97)] for name in names}
    stored = [{**row, "workload": name, "environment_id": name} for name, rows in runs.items() for row in rows]
    with open_store(write_store(tmp_path, runs=stored)) as connection:
        rows = connection.sql('SELECT workload, status, "value" FROM crossovers').fetchall()
        spreads = connection.sql("SELECT bool_and(spread_frac > 0.02) FROM confidence").fetchall()
    found = {name: crossing(judged([as_run(row) for row in runs[name]])) for name in names}
    assert {name: status for name, status, _ in rows} == {name: each.status for name, each in found.items()}
    assert {name: value for name, _, value in rows} == {
        name: None if each.value is None else pytest.approx(each.value) for name, each in found.items()
    }
    assert spreads == [(True,)]


def again(row: dict[str, Any], pace: float) -> dict[str, Any]:
    """The same run on a host of another pace."""
    slower = {name: _times(row[name], pace) for name in ("issue_us", "floor_us", "margin") if row.get(name) is not None}
    longer = {"wall_us": _times(row["wall_us"], max(pace, 1.0))}
    return {**row, **slower, **longer}


def _times(value: Any, factor: float) -> Any:
    return tuple(factor * each for each in value) if isinstance(value, tuple) else factor * value


def as_run(row: dict[str, Any]) -> Run:
    """A given run as the runner has it."""
    times = {name: estimate(row.get(f"{name}_us")) for name in ("wall", "issue", "device", "floor")}
    return Run(row["size"], Times(**times, margin=estimate(row.get("margin"))))


def _has_a_side(row: dict[str, Any]) -> bool:
    measured = row.get("status", "ok") == "ok" and row.get("warmup") != "false"
    return measured and live(row).bound not in ("serialized", "unknown")
