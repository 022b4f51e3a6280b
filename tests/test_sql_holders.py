"""The views holders and holder_growth: who holds the device's memory, and how that grows along an axis."""

from pathlib import Path
from typing import Any

import pytest
from given import write_store

from analysis.store import add, open_store


def memory(batch: int = 1) -> list[dict[str, Any]]:
    """A training step: activations (100 an item) pile up in forward; backward is at its peak with the gradients."""
    held = {"parameters": 1000, "optimizer_state": 2000}
    activations = 100 * batch
    return [
        {"phase": "step", "parent": None, "order": 0, "start_bytes": 3000, "end_bytes": 3000,
         "peak_bytes": 4000 + activations,
         "holders_at_peak": held | {"gradients": 1000, "activations": activations}, "holders_at_end": held},
        {"phase": "forward", "parent": "step", "order": 1, "start_bytes": 3000, "end_bytes": 3000 + activations,
         "peak_bytes": 3000 + activations, "holders_at_peak": held | {"activations": activations},
         "holders_at_end": held | {"activations": activations}},
        {"phase": "backward", "parent": "step", "order": 2, "start_bytes": 3000 + activations, "end_bytes": 4000,
         "peak_bytes": 4000 + activations, "holders_at_peak": held | {"gradients": 1000, "activations": activations},
         "holders_at_end": held | {"gradients": 1000, "activations": 0}},
    ]  # fmt: skip


def run(batch: int = 1, **more: Any) -> dict[str, Any]:
    """A run of that step."""
    facts = {"phase_memory": memory(batch), "memory_sums": {"off_frac": 0.0}}
    return {
        "workload": "train_step",
        "batch": batch,
        "wall_us": 100,
        "issue_us": 50,
        "device_us": 99,
        "facts": facts,
    } | more


def test_a_row_is_a_holder_of_a_phase(tmp_path: Path) -> None:
    """Bytes and shares at the peak and at the end; shares of a phase add up to 1."""
    with open_store(write_store(tmp_path, runs=[run(10)])) as connection:
        rows = connection.execute(
            "SELECT path, holder, at_peak_bytes, at_peak_frac, at_end_bytes FROM holders "
            "WHERE phase = 'backward' ORDER BY holder"
        ).fetchall()
    assert rows == [
        ("backward", "activations", 1000, 0.2, 0),
        ("backward", "gradients", 1000, 0.2, 1000),
        ("backward", "optimizer_state", 2000, 0.4, 2000),
        ("backward", "parameters", 1000, 0.2, 1000),
    ]


def test_the_peak_of_the_step_is_marked_where_it_is(tmp_path: Path) -> None:
    """In the innermost phase that reaches it, not in the step that holds it."""
    with open_store(write_store(tmp_path, runs=[run()])) as connection:
        rows = connection.execute("SELECT DISTINCT path, peak_bytes FROM holders WHERE is_at_peak").fetchall()
    assert rows == [("backward", 4100)]


def test_a_run_that_was_not_watched_has_no_rows(tmp_path: Path) -> None:
    """Nor has one whose list is missing, null or broken."""
    given = [{"size": 1}, {"size": 2, "facts": {"phase_memory": None}}, {"size": 3, "facts": '{"phase_memory": ['}]
    with open_store(write_store(tmp_path, runs=given)) as connection:
        assert connection.execute("FROM holders").fetchall() == []


def test_what_is_unknown_stays_unknown(tmp_path: Path) -> None:
    """Bytes that were not told are NULL, and the share as well."""
    entry = {"phase": "step", "peak_bytes": None, "holders_at_peak": {"activations": None}, "holders_at_end": None}
    with open_store(write_store(tmp_path, runs=[{"facts": {"phase_memory": [entry]}}])) as connection:
        rows = connection.execute("SELECT holder, at_peak_bytes, at_peak_frac, at_end_bytes, peak_bytes FROM holders")
        assert rows.fetchall() == [("activations", None, None, None, None)]


def test_equal_names_lie_in_their_own_parents(tmp_path: Path) -> None:
    """Two phases `loss`, in forward and in backward, have paths of their own."""
    names = [("step", None), ("forward", "step"), ("loss", "forward"), ("backward", None), ("loss", "backward")]
    entries = [
        {"phase": name, "parent": parent, "order": place, "peak_bytes": place, "holders_at_peak": {"other": place}}
        for place, (name, parent) in enumerate(names)
    ]
    with open_store(write_store(tmp_path, runs=[{"facts": {"phase_memory": entries}}])) as connection:
        paths = connection.execute('SELECT path, depth FROM holders ORDER BY "order"').fetchall()
    assert paths == [("step", 0), ("forward", 1), ("forward / loss", 2), ("backward", 1), ("backward / loss", 2)]


@pytest.fixture(scope="module")
def growth(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """Holder -> how it grows with the batch at the peak of the step, over three points."""
    store = write_store(tmp_path_factory.mktemp("growth") / "store", runs=[run(batch) for batch in (1, 4, 16)])
    with open_store(store) as connection:
        add(connection, "holder_growth")
        result = connection.execute("FROM holder_growth WHERE axis = 'batch' AND path = 'step'")
        names = [column[0] for column in result.description or ()]
        rows = [dict(zip(names, row, strict=True)) for row in result.fetchall()]
    return {row["holder"]: row for row in rows}


def test_activations_grow_with_the_batch(growth: dict[str, dict[str, Any]]) -> None:
    """100 bytes an item, in proportion."""
    row = growth["activations"]
    assert (row["slope_bytes"], row["fixed_bytes"], row["points"]) == pytest.approx((100, 0, 3))
    assert row["power"] == pytest.approx(1)
    assert row["sentence"] == (
        "activations grow from 100 B to 1.56 KiB while batch goes from 1 to 16, with the power 1.00 of it."
    )


def test_parameters_and_their_states_stay(growth: dict[str, dict[str, Any]]) -> None:
    """Whatever the batch."""
    for holder, held, told in (("parameters", 1000, "1000 B"), ("optimizer_state", 2000, "1.95 KiB")):
        assert (growth[holder]["slope_bytes"], growth[holder]["fixed_bytes"]) == pytest.approx((0, held))
        assert growth[holder]["power"] == pytest.approx(0)
        assert growth[holder]["sentence"] == f"{holder} stay at {told}."


def test_a_peak_that_moves_to_another_phase_makes_no_line(tmp_path: Path) -> None:
    """At batch 1 the step is at its peak in the optimizer, at 64 in forward: what it makes has no power there."""
    runs = []
    for batch, peak in ((1, "optimizer"), (64, "forward")):
        given = {
            "forward": {"parameters": 1000, "activations": 100 * batch, "temporaries": 50},
            "optimizer": {"parameters": 1000, "activations": 10, "temporaries": 2000},
        }
        phases = [
            {"phase": name, "parent": parent, "order": place, "peak_bytes": sum(given[of].values()),
             "holders_at_peak": given[of], "holders_at_end": {}}
            for place, (name, parent, of) in enumerate(
                [("step", None, peak), ("forward", "step", "forward"), ("optimizer", "step", "optimizer")])
        ]  # fmt: skip
        runs.append(run(batch) | {"facts": {"phase_memory": phases}})
    with open_store(write_store(tmp_path, runs=runs)) as connection:
        add(connection, "holder_growth")
        rows = connection.execute(
            "SELECT path, holder, slope_bytes, power, reason IS NULL FROM holder_growth WHERE axis = 'batch'"
        ).fetchall()
        [(sentence,)] = connection.execute(
            "SELECT sentence FROM holder_growth WHERE axis = 'batch' AND path = 'step' AND holder = 'temporaries'"
        ).fetchall()
    told = {(path, holder): rest for path, holder, *rest in rows}
    assert told["step", "activations"] == told["step", "temporaries"] == [None, None, False]
    assert told["step", "parameters"] == [0, 0, True]
    assert told["forward", "activations"] == [100, pytest.approx(1), True]
    assert sentence.endswith("; the peak of the step is not in the same phase at all values.")


def test_failed_and_lone_points_make_no_line(tmp_path: Path) -> None:
    """One good point is no series, whatever failed beside it."""
    store = write_store(tmp_path, runs=[run(1), run(2, status="oom")])
    with open_store(store) as connection:
        add(connection, "holder_growth")
        assert connection.execute("FROM holder_growth").fetchall() == []


def test_a_holder_that_is_not_named_has_nothing(tmp_path: Path) -> None:
    """Where others are named at that moment; where nobody is, it is unknown."""
    held = {"holders_at_peak": {"temporaries": 5}, "holders_at_end": {"parameters": 3}}
    entry = {"phase": "step", "peak_bytes": 5, **held}
    with open_store(write_store(tmp_path, runs=[{"facts": {"phase_memory": [entry]}}])) as connection:
        rows = connection.execute("SELECT holder, at_peak_bytes, at_end_bytes FROM holders ORDER BY holder").fetchall()
    assert rows == [("parameters", 0, 3), ("temporaries", 5, 0)]
