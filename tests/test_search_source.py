"""runner.seeking and the plan of a search: series in turn, further runs last, what the store holds is not measured."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import pytest
from configured import values
from seeking import Series, power_law
from test_resume import run_row

from runner import tables
from runner.config import Job, Search, Settings
from runner.plan import Plan, Searches, plan_of
from runner.point import PointError
from runner.resume import Fates, Measured
from runner.seeking import Seeking, answered

QUICK = {"target_frac": 0.1, "limit_s": 0.2, "slopes_every": 8}
SEARCH = {"axis": "size", "low": 8, "high": 2048}
AT = {"fp32": 50.5, "bf16": 300.5, "fp16": 1000.5}


def plan(*points: dict[str, Any], **search: Any) -> Searches:
    """A search over these points."""
    found = plan_of([values(device="cpu", measure=QUICK, search={**SEARCH, **search}, **each) for each in points])
    assert isinstance(found, Searches)
    return found


def three() -> Searches:
    """Three series, one for each dtype."""
    return plan(*({"dtype": dtype} for dtype in AT))


def row(job: Job, run_id: str, noise: float = 0.0) -> dict[str, Any]:
    """A run's row as a CPU leaves it: its dtype's power law."""
    times = Series(power_law(AT[job.point.dtype]), within=0.002 + noise).run(job.point.size, job.point.size).times
    margin = times.margin
    measure = {"name": job.target.name, "target_frac": job.target.target_frac, "limit_s": job.target.limit_s}
    floor, work = 10.0, 10.0 / margin.value
    return run_row(
        job, run_id, facts={"measure": measure, "stopped": "target"}, dtype=job.point.dtype, sweep_id="s1",
        warmup="true", wall_us=[floor + work, 0.999 * (floor + work), 1.001 * (floor + work)],
        floor_us=[floor, 0.999 * floor, 1.001 * floor], margin=margin.as_list(),
    )  # fmt: skip


class Found:
    """A search run by hand: batches as they were handed out, rows as they were made, lines as they were told."""

    def __init__(self, found: Searches) -> None:
        self.lines: dict[int, str] = {}
        self.source = Seeking(found, range(len(found)), lambda job: job, self.lines.__setitem__)
        self.batches: list[Sequence[Job]] = []
        self.rows: list[dict[str, Any]] = []

    def to_the_end(self) -> Found:
        """Measure all that is asked for."""
        while (batch := self.source.take()) is not None:
            self.batches.append(batch)
            for job in batch:
                self.rows.append(row(job, f"r{len(self.rows):03d}"))
                self.source.learn(job, self.rows[-1:])
        return self


def test_series_take_turns() -> None:
    """As long as all of them search, each comes once in three; every one is decided within its budget."""
    found = Found(three()).to_the_end()
    assert found.source.finished and sorted(found.lines) == [0, 1, 2]
    first = [batch[0].index for batch in found.batches[:12]]
    assert first == [0, 1, 2] * 4
    for index, (dtype, at) in enumerate(AT.items()):
        assert found.lines[index].startswith(f"matmul_add {dtype} eager: {at:.{0 if at > 100 else 1}f} (")
    counts = defaultdict(list)
    for batch in found.batches:
        counts[batch[0].index] += [job.repeat for job in batch]
    assert all(each.count(0) <= 10 and len(each) <= 14 for each in counts.values())


def test_further_runs_come_last_and_are_longer() -> None:
    """The first ones of all series before the second ones, both edges together, with half the target in four times
    the limit: so each of the two needs one new worker for all series."""
    found = Found(three()).to_the_end()
    repeats = [batch[0].repeat for batch in found.batches]
    assert repeats == sorted(repeats) and repeats[-6:] == [1, 1, 1, 2, 2, 2]
    for batch in found.batches[-6:]:
        assert len(batch) == 2
        assert {(job.target.target_frac, job.target.limit_s) for job in batch} == {(0.05, 0.8)}


def test_several_devices_get_different_series() -> None:
    """While one series' points are out the next one's are handed out, and nothing when all are out."""
    source = Found(three()).source
    batches = [source.take() for _ in range(4)]
    assert [batch and batch[0].index for batch in batches] == [0, 1, 2, None]
    job = batches[1][0]
    source.learn(job, [row(job, "r1")])
    assert source.take() is None  # its other end is out
    source.learn(batches[1][1], [row(batches[1][1], "r2")])
    assert [job.index for job in source.take()] == [1]


def fates(rows: list[dict[str, Any]], **changes: Any) -> Fates:
    """What becomes of a point by a store of these rows."""
    return Fates(Settings.checked(values(**changes)), Measured(tables.runs_frame(rows)))


def test_the_store_answers_what_it_holds() -> None:
    """All runs of an earlier search: nothing is left, by the same lines; rerun=true, or a run less: something is."""
    first = Found(three()).to_the_end()
    again = Found(three())
    assert answered(again.source, fates(first.rows), lambda _: "e1")
    assert again.lines == first.lines
    assert not answered(Found(three()).source, fates(first.rows, rerun=True), lambda _: "e1")
    assert not answered(Found(three()).source, fates(first.rows[:-1]), lambda _: "e1")
    assert not answered(Found(three()).source, fates(first.rows), lambda _: "e2")


def test_all_good_runs_of_a_point_count() -> None:
    """The earliest first; looser ones and failures do not, unless there is nothing else."""
    job = three().at(0, 64)
    loose = row(job, "r3") | {"facts": json.dumps({"measure": {"target_frac": 0.5, "limit_s": 0.1}})}
    rows = [row(job, "r2"), row(job, "r1"), loose, run_row(job, "r4", "failed")]
    assert [each["run_id"] for each in fates(rows).rows(job, "e1")] == ["r1", "r2"]
    assert [each["run_id"] for each in fates(rows[3:]).rows(job, "e1")] == ["r4"]


def test_a_failure_is_no_end() -> None:
    """Its reason is told where nothing else is known."""
    found = Found(plan({"dtype": "fp32"}))
    while (batch := found.source.take()) is not None:
        for job in batch:
            found.source.learn(job, [run_row(job, "r1", "oom", reason="no memory left")])
    assert found.lines[0] == (
        "matmul_add fp32 eager: unknown: nothing measured at 8, 128 and 2048 (oom: no memory left), 3 points, 3 runs"
    )


# -- the plan of a search ----------------------------------------------------------------------------------------------


def test_a_plan_of_a_search_has_a_job_a_series() -> None:
    """At the lower end; at any place the job is that of the point alone, but for its slopes."""
    found = three()
    assert [(job.point.dtype, job.point.size, job.slopes) for job in found] == [(d, 8, False) for d in AT]
    assert found.at(1, 300).point == Job.checked(values(device="cpu", dtype="bf16", size=300)).point
    assert found.at(1, 300).index == 1 and found.name(found.at(1, 300)) == "matmul_add bf16 eager"
    assert isinstance(plan_of([values()]), Plan) and not isinstance(plan_of([values()]), Searches)


def test_slopes_are_taken_where_all_points_have_them() -> None:
    """measure.slopes_every=1 asks for them at every point."""
    every = plan_of([values(search=SEARCH, measure={"slopes_every": 1})])
    assert isinstance(every, Searches) and every.at(0, 64).slopes


@pytest.mark.parametrize("axis", ["ops", "workload.ops"])
def test_a_parameter_of_the_workload_is_an_axis(axis: str) -> None:
    """With its group's name or without."""
    elementwise = {"workload": {"name": "elementwise", "ops": 4}, "size": 64}
    found = plan(elementwise, axis=axis, low=1, high=1024)
    job = found.at(0, 100)
    assert dict(job.point.params)["ops"] == 100 and found.search.place(job.point) == 100
    assert found.name(job) == "elementwise size=64 auto eager"


def test_places_are_multiples_within_the_range() -> None:
    """Rounded inwards; whole numbers stay whole, and fractions are what a user would write."""
    search = Search.checked({**values()["search"], "axis": "size", "low": 10, "high": 100, "multiple": 8})
    assert search is not None
    assert (search.low, search.high, list(search.places)) == (16, 96, list(range(2, 13)))
    assert [repr(search.value(place)) for place in (2, 3)] == ["16", "24"]
    fine = Search.checked({**values()["search"], "axis": "scale", "low": 0.1, "high": 1, "multiple": 0.1})
    assert fine is not None and [repr(fine.value(place)) for place in (1, 3, 7)] == ["0.1", "0.3", "0.7"]


REFUSED: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    ({"axis": "dtype", "low": 1, "high": 9}, {}, "search.axis=dtype: allowed is size, batch, threads; for example"),
    ({"axis": "ops", "low": 1, "high": 9}, {}, "search.axis=ops: allowed is size, batch, threads; for example"),
    ({"axis": 3}, {}, "search.axis=3: allowed is a text"),
    ({"axis": "batch", "low": None}, {}, "search.low=null: allowed is a number above 0, since batch has no range"),
    ({"low": 0}, {}, "search.low=0: allowed is a number from 1e-09 to 1e+15"),
    ({"high": "x"}, {}, "search.high=x: allowed is a number from 1e-09 to 1e+15"),
    ({"low": 8, "high": 9}, {}, "search.low=8 search.high=9: allowed is a range that holds three multiples"),
    ({"low": 9, "high": 8}, {}, "search.low=9 search.high=8: allowed is a range that holds three multiples"),
    ({"multiple": 0}, {}, "search.multiple=0: allowed is a number from 1e-09 to 1e+15"),
    ({"multiple": 0.5}, {}, "size=8.0: allowed is a whole number from 1 on; write size=8."),
    ({"high": 1e300}, {}, "search.high=1e+300: allowed is a number from 1e-09 to 1e+15"),
    ({"tolerance_frac": -1}, {}, "search.tolerance_frac=-1: allowed is a number from 1e-06 to 0.5"),
    ({"tolerance_frac": 5}, {}, "search.tolerance_frac=5: allowed is a number from 1e-06 to 0.5; for example"),
    ({"most_points": 3}, {}, "search.most_points=3: allowed is a whole number from 4 on"),
    ({"most_runs": 9}, {}, "search.most_runs=9: allowed is a whole number from 10 on"),
    ({"steps": 9}, {}, "search.steps: there is no such key; allowed are axis, low"),
    ({}, {"workload": {"name": "noop"}}, "search.axis=size: noop has no such axis"),
    ({}, {"warmup": False}, "warmup=false: a cold point has no bound that could change; write warmup=true."),
    ({"axis": "ops", "low": 1, "high": 2000}, {"workload": {"name": "elementwise", "ops": 1}}, "workload.ops=2000:"),
]  # fmt: skip


@pytest.mark.parametrize(("search", "changes", "sentence"), REFUSED, ids=[sentence[:40] for *_, sentence in REFUSED])
def test_what_cannot_be_searched_is_one_sentence(
    search: dict[str, Any], changes: dict[str, Any], sentence: str
) -> None:
    """What came, what is allowed, the cure: before the first point is measured."""
    with pytest.raises(PointError) as refusal:
        plan(changes, **search)
    assert str(refusal.value).startswith(sentence)
