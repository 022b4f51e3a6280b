"""Every rule of `bounds` on one small given run.

The environment `env` has round ceilings: 1e12 FLOP/s and 1e12 bytes/s of DRAM, 4e12 of the L2, which holds 1e6 bytes.
So 1e6 FLOPs or 1e6 bytes of DRAM take 1 us.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from given import write_store

from analysis.store import open_store

ROOFS = [
    {"roof": "flops", "dtype": "fp32", "value_per_s": 1e12},
    {"roof": "dram", "value_per_s": 1e12},
    {"roof": "l2", "value_per_s": 4e12},
]


def device_side(*operations: tuple[float, float], working_set_bytes: float = 1e9, **more: Any) -> dict[str, Any]:
    """A step of 100 us of device time that the host issues in 20 us; operations are (flops, bytes)."""
    named = [{"name": f"op{place}", "flops": flops, "bytes": moved} for place, (flops, moved) in enumerate(operations)]
    cost = {"operations": named, "bytes_min": 25e6, "working_set_bytes": working_set_bytes}
    facts = {"cost": cost, **more.pop("facts", {})}
    return {"wall_us": 100, "issue_us": 20, "device_us": 100, "facts": facts, **more}


CPU = {"device": "cpu"}
WAITS = {"blocking_calls": {"cudaStreamSynchronize": 1, "cudaMemcpy": 2}}

GIVEN: dict[str, dict[str, Any]] = {
    # no verdict
    "failed": {"status": "oom", "reason": "CUDA out of memory"},
    "noop": {"workload": "noop"},
    "cold": {"warmup": "false", "wall_us": 10, "issue_us": 10, "device_us": 5},
    "no times": {"facts": {"reasons": {"wall_us": "interrupted"}}},
    # asynchronous device
    "overhead": {"wall_us": 18, "issue_us": (18, 17, 19), "device_us": (5, 4, 6), "replay_us": 3},
    "overhead in rounds": {"wall_us": 18, "issue_us": 18, "device_us": 6, "margin": (3.1, 2.9, 3.2)},
    "balanced": {"wall_us": 21, "issue_us": (20, 18, 22), "device_us": (20, 19, 21)},
    "contended": {"wall_us": 18, "issue_us": 18, "device_us": 6, "facts": {"host_contended": True}},
    "mostly blocked": {"wall_us": 1040, "issue_us": 41, "device_us": 1017, "blocked_us": 990, "facts": WAITS},
    "serialized": {"wall_us": 240, "issue_us": 20, "device_us": 220, "facts": WAITS},
    "waits but keeps the law": {"wall_us": (225, 220, 230), "issue_us": 20, "device_us": 220, "facts": WAITS},
    "unexplained": {"wall_us": 40, "issue_us": 20, "device_us": 30},
    "nearly unexplained": {"wall_us": (34, 32, 36), "issue_us": 20, "device_us": 30},
    "queue full, late": {"wall_us": 30, "device_us": (10, 9, 12), "facts": {"reasons": {"issue_us": "queue-full"}}},
    "queue full, busy": {"wall_us": 10.5, "device_us": 10, "facts": {"reasons": {"issue_us": "queue-full"}}},
    "queue full, waits": {"wall_us": 30, "device_us": 10, "facts": WAITS},
    "device within noise": {"wall_us": 5, "issue_us": 5, "device_us": (0.1, 0, 0.2)},
    "no device time": {"wall_us": 30, "issue_us": 30, "facts": {"reasons": {"device_us": "several streams"}}},
    # what explains device time
    "compute": device_side((80e6, 1e6), (0, 5e6)),
    "memory": device_side((10e6, 70e6)),
    "mixed": device_side((40e6, 1e6), (0, 35e6)),
    "underfilled": device_side((30e6, 0), facts={"profile": {"underfilled_frac": 0.8}}),
    "inefficient": device_side((30e6, 0), facts={"profile": {"underfilled_frac": 0.1}}),
    "just explained": device_side((50e6, 0)),
    "no cost model": {"wall_us": 100, "issue_us": 20, "device_us": 100},
    "no roof of the dtype": device_side((80e6, 0), dtype="bf16"),
    "from the l2": device_side((0, 200e6), working_set_bytes=1e6),
    "l2 kept cold": device_side((0, 60e6), working_set_bytes=1e6, params={"l2": "cold"}),
    "above the roof": device_side((0, 120e6)),
    # CPU
    "cpu overhead": {**CPU, "wall_us": (5, 4.6, 5.1), "floor_us": (4, 3.9, 4.1)},
    "cpu work": {**CPU, "wall_us": 104, "floor_us": 4},
    "cpu noise": {**CPU, "wall_us": (4.2, 4.0, 4.4), "floor_us": (4, 3.9, 4.1)},
    "cpu hidden": {**CPU, "wall_us": (49, 35, 3220), "floor_us": (12.6, 12, 36)},
    "cpu balanced": {**CPU, "wall_us": (8, 7.5, 8.5), "floor_us": (4, 3.9, 4.1)},
    "cpu compute": {**CPU, **device_side((80e6, 0)), "wall_us": 104, "floor_us": 4},
    "cpu without floor": {**CPU, "wall_us": 104},
}


@pytest.fixture(scope="module")
def bounds(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, dict[str, Any]]]:
    """Rows of `bounds` by the name of the given run."""
    runs = [{**run, "point_id": name} for name, run in GIVEN.items()]
    folder = tmp_path_factory.mktemp("store")
    store = write_store(folder, runs=runs, environments=[{"l2_bytes": 1_000_000}], roofs=ROOFS)
    with open_store(store) as connection:
        result = connection.execute("FROM bounds")
        names = [column[0] for column in result.description]
        yield {row[0]: dict(zip(names, row, strict=True)) for row in result.fetchall()}


@pytest.mark.parametrize(
    ("name", "bound", "reason"),
    [
        ("failed", "unknown", "oom: CUDA out of memory"),
        ("noop", "unknown", "noop does no work, so it has no times"),
        ("cold", "unknown", "a first call has no steady state"),
        ("no times", "unknown", "no time was measured: interrupted"),
        ("overhead", "overhead-bound", "issue / device = 3.60 (2.83 to 4.75)"),
        ("overhead in rounds", "overhead-bound", "issue / device = 3.10 (2.90 to 3.20)"),
        ("balanced", "balanced", "issue / device = 1.00 (0.857 to 1.16)"),
        ("mostly blocked", "serialized", "the host waits inside the step: cudaStreamSynchronize, cudaMemcpy"),
        ("serialized", "serialized", "the host waits inside the step: cudaStreamSynchronize, cudaMemcpy"),
        ("waits but keeps the law", "device-bound", "no cost model"),
        (
            "unexplained",
            "unknown",
            "issue and device time are both smaller than the wall time by 25.0 %, and no synchronizing call was seen",
        ),
        ("nearly unexplained", "device-bound", "no cost model"),
        (
            "queue full, late",
            "overhead-bound",
            "the issue time is unknown (queue-full), but a step takes 3.00 times its device time "
            "and nothing in it waits",
        ),
        ("queue full, busy", "unknown", "no issue time was measured: queue-full"),
        ("queue full, waits", "unknown", "no issue time was measured"),
        ("device within noise", "overhead-bound", "issue / device = 50.0 (25.0 to infinity)"),
        ("no device time", "unknown", "no device time was measured: several streams"),
        ("compute", "compute-bound", "at 80.0 % of the fp32 FLOP/s roof"),
        ("memory", "memory-bound", "at 70.0 % of the DRAM bytes/s roof"),
        (
            "mixed",
            "device-bound",
            "mixed: 40.0 % of it at the FLOP/s roof and 35.0 % at the bytes/s roof",
        ),
        (
            "underfilled",
            "device-bound",
            "underfilled: 80.0 % of the busy time is in kernels of fewer blocks than the device has multiprocessors",
        ),
        ("inefficient", "device-bound", "inefficient: the roofs explain 30.0 % of it"),
        ("just explained", "compute-bound", "at 50.0 % of the fp32 FLOP/s roof"),
        ("no cost model", "device-bound", "no cost model"),
        ("no roof of the dtype", "device-bound", "no roof was measured for its operations in bf16"),
        ("from the l2", "memory-bound", "at 50.0 % of the L2 bytes/s roof"),
        ("l2 kept cold", "memory-bound", "at 60.0 % of the DRAM bytes/s roof"),
        (
            "above the roof",
            "memory-bound",
            "at 120 % of the DRAM bytes/s roof; 120 % of the roofs is more than there can be: "
            "data that stays in the L2, or a roof that was measured too low",
        ),
        ("cpu overhead", "overhead-bound", "floor / work = 4.00 (3.25 to 8.20)"),
        ("cpu work", "device-bound", "no cost model"),
        ("cpu noise", "overhead-bound", "the work is within the noise of the floor"),
        ("cpu hidden", "balanced", "the noise hides whether the work is above or below the floor"),
        ("cpu balanced", "balanced", "floor / work = 1.00 (0.848 to 1.21)"),
        ("cpu compute", "compute-bound", "at 80.0 % of the fp32 FLOP/s roof"),
        ("cpu without floor", "unknown", "no floor was measured"),
    ],
)
def test_bound_and_reason(bounds: dict[str, dict[str, Any]], name: str, bound: str, reason: str) -> None:
    """Each rule gives its bound, and the figures that it rests on."""
    assert (bounds[name]["bound"], bounds[name]["reason"]) == (bound, reason)


@pytest.mark.parametrize(
    ("name", "margin"),
    [
        ("failed", (None, None, None)),
        ("overhead", (18 / 5, 17 / 6, 19 / 4)),
        ("overhead in rounds", (3.1, 2.9, 3.2)),
        ("queue full, late", (30 / 10, 30 / 12, 30 / 9)),
        ("cpu overhead", (4 / 1, 3.9 / 1.2, 4.1 / 0.5)),
        ("cpu noise", (None, None, None)),
        ("cpu hidden", (None, None, None)),
        ("no device time", (None, None, None)),
    ],
)
def test_margin_and_its_interval(bounds: dict[str, dict[str, Any]], name: str, margin: tuple[float | None]) -> None:
    """Rounds decide where there are any, else the widest ratio of the two intervals; NULL where it means nothing."""
    row = bounds[name]
    assert (row["margin"], row["margin_low"], row["margin_high"]) == pytest.approx(margin)


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        (
            "overhead",
            "The host needs 18.0 us to issue a step that the device finishes in 5.00 us: overhead-bound; "
            "without launch overhead it would take 3.00 us, 6.00 times less.",
        ),
        (
            "contended",
            "The host needs 18.0 us to issue a step that the device finishes in 6.00 us: overhead-bound. "
            "Something else used the host meanwhile.",
        ),
        (
            "compute",
            "The device works 100 us on a step that the host issues in 20.0 us: compute-bound "
            "at 80.0 % of the fp32 FLOP/s roof.",
        ),
        (
            "inefficient",
            "The device works 100 us on a step that the host issues in 20.0 us: device-bound, "
            "inefficient: the roofs explain 30.0 % of it.",
        ),
        (
            "serialized",
            "A step takes 240 us, more than its issue time of 20.0 us or its device time of 220 us: "
            "serialized by cudaStreamSynchronize, cudaMemcpy.",
        ),
        (
            "balanced",
            "The device works 20.0 us on a step that the host issues in 20.0 us: balanced, "
            "the difference is within the noise.",
        ),
        (
            "queue full, late",
            "A step takes 30.0 us although the device needs 10.0 us and nothing in it waits: overhead-bound.",
        ),
        (
            "cpu overhead",
            "Of 5.00 us a step 4.00 us are overhead and 1.00 us are work: overhead-bound; "
            "the work alone takes 1.00 us, 5.00 times less.",
        ),
        ("cpu noise", "A step takes 4.20 us and its floor 4.00 us: overhead-bound, the work is within the noise."),
        (
            "cpu hidden",
            "A step takes 49.0 us and its floor 12.6 us: balanced, "
            "the noise hides whether the work is above or below it.",
        ),
        ("failed", "Unknown: oom: CUDA out of memory."),
    ],
)
def test_sentence(bounds: dict[str, dict[str, Any]], name: str, sentence: str) -> None:
    """The verdict as one plain sentence with numbers and units."""
    assert bounds[name]["sentence"] == sentence


@pytest.mark.parametrize(
    ("busy_us", "launches", "left_us"), [(6, 2, 8), (9, 2, 9), (6, 8, 6), (None, 2, 8), (6, None, 10), (12, 2, 10)]
)
def test_gain_without_a_replay(tmp_path: Path, busy_us: float | None, launches: int | None, left_us: float) -> None:
    """Launches cost the device 1 us more than in a graph, as another point shows: held device time less that, not below
    the busy time and not above itself."""
    held = {"wall_us": 40, "issue_us": 40, "device_us": 10}
    facts = {"device_method": "held", "profile": {"launches": launches}}
    other = {**held, "replay_us": 8, "facts": {"device_method": "held", "profile": {"launches": 2}}}
    given = {**held, "busy_us": busy_us, "facts": facts}
    store = write_store(tmp_path, runs=[{**other, "point_id": "other"}, {**given, "point_id": "given"}])
    with open_store(store) as connection:
        (told,) = connection.sql("SELECT without_overhead_us, gain FROM bounds WHERE point_id = 'given'").fetchall()
    assert told == pytest.approx((left_us, 40 / left_us))


def test_roof_time_adds_the_operations(bounds: dict[str, dict[str, Any]]) -> None:
    """Roof time = sum over operations of the larger of its two times; a fused step's bytes give the headroom."""
    row = bounds["compute"]
    assert (row["roof_us"], row["flops_share"], row["bytes_share"]) == pytest.approx((85, 0.80, 0.05))
    assert row["fusion_headroom"] == pytest.approx(6e6 / 25e6)
    assert bounds["from the l2"]["bytes_roof"] == "l2"
    assert bounds["no roof of the dtype"]["roof_us"] is None


def test_gain_without_overhead(tmp_path: Path) -> None:
    """wall / replay, else wall / held device time, else wall / (busy + measured gap x launches); unknown stays NULL.

    The gap is measured on the two points of held device time: (10 - 6) / 2 and (20 - 12) / 4, so 2 us a launch.
    """
    held = {"wall_us": 40, "issue_us": 40}
    two, four = {"launches": 2}, {"launches": 4}
    runs = {
        "replay": {**held, "device_us": 10, "replay_us": 8, "facts": {"device_method": "replay"}},
        "held": {**held, "device_us": 10, "busy_us": 6, "facts": {"device_method": "held", "profile": two}},
        "held too": {**held, "device_us": 20, "busy_us": 12, "facts": {"device_method": "held", "profile": four}},
        "profile": {**held, "device_us": 6, "busy_us": 6, "facts": {"device_method": "profile", "profile": two}},
        "no launches": {**held, "device_us": 6, "busy_us": 6, "facts": {"device_method": "profile"}},
        "unknown": {"wall_us": 40, "replay_us": 8},
        "cpu": {**CPU, "wall_us": 12, "floor_us": 4},
        "cpu noise": {**CPU, "wall_us": (4.2, 4.0, 4.4), "floor_us": (4, 3.9, 4.1)},
    }
    store = write_store(tmp_path, runs=[{**run, "point_id": name} for name, run in runs.items()])
    with open_store(store) as connection:
        gains = dict(connection.sql("SELECT point_id, gain FROM bounds").fetchall())
    assert gains == {
        "replay": 40 / 8,
        "held": 40 / 10,
        "held too": 40 / 20,
        "profile": 40 / (6 + 2 * 2),
        "no launches": None,
        "unknown": None,
        "cpu": 12 / 8,
        "cpu noise": None,
    }
