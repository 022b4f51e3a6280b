"""The phases on the page of a point as data: their order, what is left out, and what holds memory."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from given import write_store
from rule_given import H200, Trace
from test_sql_holders import memory
from test_sql_phases import training

from analysis.report.point import point_pages
from analysis.report.point_phases import MOST_PHASES, phases_part
from analysis.store import open_store

FACTS = {"phase_memory": memory(10), "memory_sums": {"method": "allocator events", "off_frac": 0.0004}}


def page_of(folder: Path, trace: Trace, run: dict[str, Any] | None = None) -> dict[str, Any]:
    """The page of a run with this trace."""
    given = {"workload": "train_step", "wall_us": 100, "issue_us": 90, "device_us": 60, **(run or {})}
    store = write_store(folder, runs=[given], events=trace.events(), environments=[H200])
    with open_store(store) as connection:
        return point_pages(connection, ["r000"])["r000"]


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The page of four training steps whose memory was watched."""
    return page_of(tmp_path_factory.mktemp("point") / "store", training(), {"facts": FACTS})


def test_phases_are_columns_in_the_order_of_the_step(page: dict[str, Any]) -> None:
    """Names, depths and figures, fit for strict JSON."""
    phases = page["phases"]
    assert phases["phase"] == ["step", "forward", "attention", "backward", "optimizer", "outside"]
    assert phases["depth"] == [0, 1, 2, 1, 1, 1]
    assert phases["device_us"] == [60, 23, 10, 30, 4, 3]
    assert phases["steps"] == 3
    assert json.loads(json.dumps(phases, allow_nan=False)) == phases


def test_holders_stand_by_phase_with_the_peak_marked(page: dict[str, Any]) -> None:
    """The step first, the largest holder first, and how well they add up in words."""
    phases = page["phases"]
    held = {one["path"]: one for one in phases["memory"]}
    assert list(held) == ["step", "forward", "backward"]
    assert [path for path, one in held.items() if one["is_at_peak"]] == ["backward"]
    assert held["forward"]["holders"][0] == ["optimizer_state", 2000]
    assert phases["sums"].startswith("The holders' sum is 0.04")
    assert phases["sums"].endswith("they agree with the total that was counted. Taken from allocator events.")


def test_sums_that_are_off_say_so(tmp_path: Path) -> None:
    """Two per cent is no agreement; what could not be counted has its reason."""
    off = {**FACTS, "memory_sums": {"off_frac": -0.02}}
    assert "do not agree" in page_of(tmp_path / "off", Trace(), {"facts": off})["phases"]["sums"]
    unknown = {**FACTS, "memory_sums": {"off_frac": None, "reason": "no allocator"}}
    told = page_of(tmp_path / "unknown", Trace(), {"facts": unknown})["phases"]["sums"]
    assert told == "Whether the holders add up is unknown: no allocator."


def test_a_run_without_phases_has_no_part(tmp_path: Path) -> None:
    """Its page has no section for them."""
    trace = Trace("train_step")
    trace.step(0, 0, 10)
    assert page_of(tmp_path, trace)["phases"] is None


def row(kind: str | None, order: int, part: str = "phase", **more: Any) -> dict[str, Any]:
    """A row of the view phases."""
    given = {
        "kind": kind,
        "order": order,
        "part": part,
        "phase": f"p{order}",
        "path": f"p{order}",
        "depth": 1,
        "steps": 2,
    }
    figures = dict.fromkeys(
        ("host_us", "device_us", "launches", "kernels", "idle_us", "wait_us", "calls", "host_frac", "device_frac",
         "peak_bytes"), 1.0
    )  # fmt: skip
    return given | figures | more


def test_of_several_kinds_the_one_that_takes_most_time_is_shown() -> None:
    """And the note says that there are others."""
    notes: list[str] = []
    few = [row("A", 1, "step", host_us=10), row("A", 2)]
    many = [row("B", 1, "step", host_us=9, steps=5), row("B", 2)]
    part = phases_part([*few, *many], [], [], notes)
    assert part is not None and part["kind"] == "B"
    assert notes == ["Shown are the steps B, which take most time; 1 other kind of step have phases too."]


def test_very_many_phases_are_cut_and_the_note_says_so() -> None:
    """A range for every operator would fill the page."""
    notes: list[str] = []
    part = phases_part([row(None, place) for place in range(MOST_PHASES + 50)], [], [], notes)
    assert part is not None and len(part["phase"]) == MOST_PHASES
    assert notes == [f"The first {MOST_PHASES} of {MOST_PHASES + 50} phases are shown."]


def test_the_queries_shown_give_what_is_drawn(tmp_path: Path) -> None:
    """Each runs as it stands, on the store with all relations."""
    store = write_store(
        tmp_path, runs=[{"workload": "train_step", "facts": FACTS}], events=training().events(), environments=[H200]
    )
    with open_store(store, whole=True) as connection:
        page = point_pages(connection, ["r000"])["r000"]
        counts = {name: len(connection.execute(page["sql"][name]).fetchall()) for name in ("phases", "holders")}
    assert counts["phases"] == len(page["phases"]["phase"])
    assert counts["holders"] == sum(len(one["holders"]) for one in page["phases"]["memory"])
