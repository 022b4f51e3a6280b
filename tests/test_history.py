"""One quantity over the sweeps of a store: its rows, what is a real change, its words and its chart."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from compared_given import SIZES, noise, run_history, swept
from given import Row, write_store

from analysis.comparison.compared import Row as Found
from analysis.comparison.compared import rows_of
from analysis.comparison.history import QUANTITIES, prepare
from analysis.comparison.history_chart import MOST, chart, draw
from analysis.comparison.sides import SideError, selected, stores
from analysis.output import OutputError
from analysis.store import StoreError

START = datetime(2026, 5, 1, 3)


def nightly(count: int, slow_from: int | None = None, **changes: Any) -> list[Row]:
    """A sweep a night; from a night on size 256 takes twice as long."""
    rows = []
    for night in range(count):
        for row in swept(f"s{night}", noise=noise(night), started_at=START + timedelta(days=night), **changes):
            is_slow = slow_from is not None and night >= slow_from and row["size"] == 256
            rows.append({**row, "wall_us": [2 * part for part in row["wall_us"]]} if is_slow else row)
    return rows


def history_rows(store: Path, quantity: str, *filters: str) -> list[Found]:
    """Rows of `history`, in time order."""
    with stores() as held:
        connection = held.connection(store)
        prepare(connection, quantity, selected(connection, filters, store), QUANTITIES[quantity])
        return rows_of(connection, "FROM history ORDER BY name, axis, started_at")


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six nights; size 256 is slower from the fourth on; one point failed once."""
    failed = {"run_id": "f", "sweep_id": "s2", "size": 99, "status": "oom", "reason": "out of memory"}
    return write_store(tmp_path_factory.mktemp("nights"), runs=[*nightly(6, 3), {**failed, "started_at": START}])


def test_a_real_change_is_flagged_once(store: Path) -> None:
    """The night on which a point got slower, and no other row."""
    rows = history_rows(store, "wall_us")
    assert [(row["name"], row["sweep_id"]) for row in rows if row["verdict"] in ("SLOWER", "FASTER")] == [
        ("matmul_add size=256 fp32 eager", "s3")
    ]
    (row,) = [row for row in rows if row["verdict"] == "SLOWER"]
    assert row["ratio"] == pytest.approx(2, rel=0.1) and row["ratio_low"] < row["ratio"] < row["ratio_high"]
    assert (row["previous"], row["basis"]) == (pytest.approx(20, rel=0.1), "sweeps among each other")


def test_a_row_a_point_and_sweep(store: Path) -> None:
    """In time order, the first without a change, and a failed point with its reason."""
    rows = history_rows(store, "wall_us")
    assert len(rows) == 6 * len(SIZES) + 1
    assert [row["sweep_id"] for row in rows if row["name"] == "matmul_add size=64 fp32 eager"] == [
        f"s{night}" for night in range(6)
    ]
    assert sum(row["verdict"] == "FIRST" for row in rows) == len(SIZES)
    (failed,) = [row for row in rows if row["verdict"] == "NOT MEASURED"]
    assert (failed["value"], failed["status"], failed["note"]) == (None, "oom", "out of memory")


def test_filters_choose_points_and_sweeps(store: Path) -> None:
    """Filters are those of a side."""
    rows = history_rows(store, "device_us", "size=64", "sweep=s1")
    assert [(row["sweep_id"], row["runs"]) for row in rows] == [("s1", 1)]
    with pytest.raises(SideError, match="'sweep=x' names no sweep"):
        history_rows(store, "device_us", "sweep=x")


def test_a_changed_environment_is_told(tmp_path: Path) -> None:
    """The note of a row names what changed since the sweep before."""
    environments = [{"environment_id": f"e{place}", "torch": version} for place, version in enumerate(("2.9", "2.11"))]
    runs = [row | {"environment_id": f"e{int(row['sweep_id'] == 's1')}"} for row in nightly(2)]
    rows = history_rows(write_store(tmp_path, runs=runs, environments=environments), "wall_us")
    assert {row["note"] for row in rows if row["sweep_id"] == "s1"} == {"torch 2.9 to 2.11"}


def test_two_sweeps_cannot_tell_how_much_sweeps_differ(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With few pairs changes rest on the runs' own intervals, and the words say so."""
    assert run_history(write_store(tmp_path, runs=nightly(2, 1)), "wall_us") == 0
    assert "Too few sweeps repeat a point" in capsys.readouterr().out


def test_device_times_of_two_methods_are_no_change(tmp_path: Path) -> None:
    """A device time that was taken otherwise is UNCLEAR, with the reason."""
    facts = [{"device_method": method} for method in ("held", "replay")]
    runs = [{**row, "facts": facts[int(row["sweep_id"] == "s1")]} for row in nightly(2)]
    rows = history_rows(write_store(tmp_path, runs=runs), "device_us")
    assert {(row["verdict"], row["note"]) for row in rows if row["sweep_id"] == "s1"} == {
        ("UNCLEAR", "taken otherwise: held before, replay now")
    }


def test_crossovers_over_sweeps(tmp_path: Path) -> None:
    """Each sweep's crossing from its own runs: HIGHER where the brackets lie apart."""
    hosts = (20.0, 20.0, 60.0)
    runs = [
        {**row, "issue_us": hosts[night], "wall_us": max(hosts[night], row["size"] / 32), "device_us": row["size"] / 32,
         "started_at": START + timedelta(days=night)}
        for night in range(3)
        for row in swept(f"s{night}")
    ]  # fmt: skip
    rows = history_rows(write_store(tmp_path, runs=runs), "crossover")
    assert [(row["axis"], row["verdict"], round(row["value"])) for row in rows] == [
        ("size", "FIRST", 640), ("size", "SAME", 640), ("size", "HIGHER", 1920)]  # fmt: skip


def test_the_command(store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Words, a table, whole rows as json, and a chart as a file."""
    assert run_history(store, "wall_us") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "wall_us of 7 points over 6 sweeps: 1 real change."
    assert lines[1].startswith("SLOWER since 2026-05-04 03:00, sweep s3: matmul_add size=256 fp32 eager, ")
    picture = tmp_path / "made" / "h.svg"
    assert run_history(store, "peak_bytes", "--format", "json", "--chart", str(picture)) == 0
    rows = json.loads(capsys.readouterr().out)
    assert {row["verdict"] for row in rows if row["verdict"] not in ("FIRST", "NOT MEASURED")} == {"SAME"}
    assert picture.read_text().startswith("<svg")


@pytest.mark.parametrize(
    ("arguments", "error", "told"),
    [
        (["wall_us", "--threshold", "x"], OutputError, "--threshold x: allowed is a share; for example 5%"),
        (["wall_us", "--chart", "x.pdf"], OutputError, "allowed is a file that ends in .svg or .png"),
        (["compile_s"], StoreError, "no run that fits has a value of compile_s"),
    ],
)
def test_wrong_usage(store: Path, arguments: list[str], error: type[Exception], told: str) -> None:
    """One sentence with what is allowed."""
    with pytest.raises(error, match=told):
        run_history(store, *arguments)


# --- the chart


def drawn_row(name: str, place: int, value: float | None, **changes: Any) -> Found:
    """A row of `history`."""
    row = {
        "name": name, "axis": None, "sweep_id": f"s{place}", "started_at": START + timedelta(days=place),
        "value": value, "low": value and 0.98 * value, "high": value and 1.02 * value, "ratio": 1.0, "verdict": "SAME",
        "note": "",
    }  # fmt: skip
    return {**row, **changes}


def plots(rows: list[Found]) -> list[dict[str, Any]]:
    """The plots of the chart's specification, each with the rows that it draws."""
    specification = chart(rows, "wall_us").to_dict()
    found = []
    for plot in specification["concat"]:
        data = plot.get("data") or plot["layer"][0].get("data") or specification["data"]
        found.append({"title": plot["title"]["text"], "rows": specification["datasets"][data["name"]]})
    return found


def test_the_chart_draws_every_sweep(store: Path) -> None:
    """A plot a point, in time order; a real change is a triangle; what was not measured has no mark."""
    rows = [drawn_row("p", 0, 10.0), drawn_row("p", 1, 20.0, verdict="SLOWER", ratio=2.0), drawn_row("p", 2, None)]
    (plot,) = plots(rows)
    assert [(row["value"], row["shape"]) for row in plot["rows"]] == [(10, "circle"), (20, "triangle-up")]
    assert plot["rows"][1]["started"] == "05-02 03:00"


def test_the_chart_shows_what_changed_most() -> None:
    """Of many points those with real changes come first, then the greatest ratios, and the title counts the rest."""
    rows = [drawn_row(f"p{place:02d}", 0, 10.0, ratio=1 + place / 100) for place in range(20)]
    rows.append(drawn_row("real", 0, 10.0, ratio=1.05, verdict="SLOWER"))
    found = plots(rows)
    assert [plot["title"] for plot in found][:2] == [["real"], ["p19"]]
    assert len(found) == MOST
    assert f"The {MOST} of 21 that changed most." in " ".join(chart(rows, "wall_us").to_dict()["title"]["subtitle"])


def test_the_chart_is_a_picture() -> None:
    """SVG and PNG; a name with markup is text."""
    rows = [drawn_row("<script>x</script>", 0, 1.0), drawn_row("<script>x</script>", 1, 50.0)]
    svg = draw(rows, "wall_us", "svg").decode()
    assert svg.startswith("<svg") and "<script>" not in svg
    assert draw(rows, "wall_us", "png").startswith(b"\x89PNG")
    with pytest.raises(ValueError, match="no sweep has a value of wall_us"):
        chart([drawn_row("p", 0, None)], "wall_us")
