"""The view cures: what the same work gains under another setting, measured or predicted."""

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from given import write_store

from analysis.store import SQL, add, connect, open_store
from runner.point import WARM_SCHEDULE, Point
from runner.workloads import WORKLOADS

Row = dict[str, Any]

ROOFS = [
    {"roof": "flops", "dtype": "fp32", "value_per_s": 1e12},
    {"roof": "flops", "dtype": "bf16", "value_per_s": 1e13},
    {"roof": "dram", "value_per_s": 1e12},
]
"""1e6 FLOPs of fp32, or 1e6 bytes, take 1 us."""


def cures(folder: Path, *runs: Mapping[str, Any]) -> dict[str, Row]:
    """Cure -> its row, of the first run."""
    environment = {"device_name": "a card", "l2_bytes": 1}
    store = write_store(folder, runs=runs, environments=[environment], roofs=ROOFS)
    with open_store(store) as connection:
        add(connection, "cures")
        rows = connection.execute("SELECT * FROM cures WHERE run_id = 'r000' ORDER BY \"rank\"")
        names = [column[0] for column in rows.description or ()]
        found = [dict(zip(names, row, strict=True)) for row in rows.fetchall()]
    assert [row["rank"] for row in found] == list(range(1, len(found) + 1))
    return {row["cure"]: row for row in found}


def host_bound(issue_us: Any = 20, **more: Any) -> Row:
    """A step of 2 us on the device, which the host issues in so many."""
    return {"wall_us": issue_us, "issue_us": issue_us, "device_us": 2, **more}


def device_bound(*operations: tuple[str, float, float], bytes_min: float, device_us: float = 100, **more: Any) -> Row:
    """A step that the host issues in 10 us; operations are (name, flops, bytes)."""
    named = [{"name": name, "flops": flops, "bytes": moved} for name, flops, moved in operations]
    cost = {"operations": named, "bytes_min": bytes_min, "working_set_bytes": 1e9}
    return {"wall_us": device_us, "issue_us": 10, "device_us": device_us, "facts": {"cost": cost}, **more}


COMPILED = {"compile": "true"}


def test_a_mode_is_measured_with_its_interval(tmp_path: Path) -> None:
    """Ratio of the times; the low end is low over high, the high end high over low; of issue times as well."""
    row = cures(tmp_path, host_bound((40, 38, 42), **COMPILED), host_bound((20, 19, 21)))["eager"]
    assert (row["basis"], row["gain"], row["value"], row["command"]) == ("measured", 2, "eager", None)
    assert (row["gain_low"], row["gain_high"]) == pytest.approx((38 / 21, 42 / 19))
    assert (row["issue_gain"], row["issue_gain_low"]) == pytest.approx((2, 38 / 21))
    assert "eager takes 20.0 us a step instead of 40.0 us, 2.00 times less (1.81 to 2.21)" in row["sentence"]
    assert row["other_point_id"].startswith("matmul_add-64")


def test_a_cure_that_is_worse_is_kept_and_says_so(tmp_path: Path) -> None:
    """Best first: it comes last."""
    modes = host_bound((40, 38, 42), **COMPILED), host_bound((10, 9, 11), compile="max-autotune")
    found = cures(tmp_path, host_bound((20, 19, 21)), *modes)
    assert found["compile"]["gain"] == 0.5 and "worse: 2.00 times as long" in found["compile"]["sentence"]
    assert "the host takes 2.00 times as long to issue it" in found["compile"]["sentence"]
    assert list(found)[-1] == "compile" and found["max-autotune"]["gain"] == 2


def test_a_gain_within_the_noise_is_none(tmp_path: Path) -> None:
    """Its interval holds 1."""
    row = cures(tmp_path, host_bound((21, 19, 23)), host_bound((20, 18, 22), **COMPILED))["compile"]
    assert "which is within the noise: a gain of 1.05" in row["sentence"]


@pytest.mark.parametrize("more", [{"size": 128}, {"environment_id": "other"}, {"params": {"threads": 2}}])
def test_other_work_or_another_environment_is_no_cure(tmp_path: Path, more: Row) -> None:
    """What differs in more than one setting measures nothing."""
    found = cures(tmp_path, host_bound(40, **COMPILED), host_bound(20, **more))
    assert "eager" not in found


def test_the_profilers_schedule_is_no_difference(tmp_path: Path) -> None:
    """It changes no times, and the point with this one's own schedule comes first."""
    here, other = {"params": {"schedule": "0/0/20/1"}}, {"params": {"schedule": "1/1/20/1"}}
    found = cures(tmp_path / "a", host_bound(40, **COMPILED, **here), host_bound(20, **other))
    assert found["eager"]["gain"] == 2
    both = host_bound(10, **here), host_bound(20, **other)
    assert cures(tmp_path / "b", host_bound(40, **COMPILED, **here), *both)["eager"]["gain"] == 4


def test_a_batch_is_measured_an_item(tmp_path: Path) -> None:
    """8 items in 32 us against one in 20: five times less; of two larger batches the better one stands."""
    found = cures(tmp_path, host_bound(20), host_bound(32, batch=8), host_bound(20, batch=2))
    row = found["larger batch"]
    assert (row["gain"], row["value"], row["basis"]) == (5, "8", "measured")
    assert "larger batch (8) takes 4.00 us an item instead of 20.0 us" in row["sentence"]


def test_a_smaller_batch_is_no_cure(tmp_path: Path) -> None:
    """Work is not saved by cutting it up."""
    assert cures(tmp_path, host_bound(20, batch=8), host_bound(1))["larger batch"]["basis"] == "predicted"


def test_where_size_is_the_batch_a_larger_one_is_a_larger_size(tmp_path: Path) -> None:
    """Measured beside points of another size, and asked for by its command: such a workload takes no other batch."""
    found = cures(tmp_path / "a", train(20) | {"size": 4}, train(32) | {"size": 32}, train(4) | {"size": 2})
    row = found["larger batch"]
    assert (row["gain"], row["value"], row["basis"]) == (5, "32", "measured")
    assert "larger batch (32) takes 1.00 us an item instead of 5.00 us" in row["sentence"]
    row = cures(tmp_path / "b", host_bound(workload="llm_decode", size=4))["larger batch"]
    assert (row["gain"], row["basis"]) == (8, "predicted")
    assert "size=32" in row["command"].split() and "batch=" not in row["command"]


def test_the_workloads_whose_size_is_the_batch() -> None:
    """Those that refuse one."""
    refusing = set()
    for name, workload in WORKLOADS.items():
        params = tuple(sorted(workload.defaults.items()))
        given = Point(
            name, params, 4, "fp32", 2, False, False, True, "cpu", WARM_SCHEDULE, "warm", None, 0
        )  # fmt: skip
        if "batch=2" in (workload.refusal(given) or ""):
            refusing.add(name)
    connection = connect()
    connection.execute((SQL / "_macros.sql").read_text(encoding="utf-8"))
    told = connection.execute("SELECT n FROM (SELECT unnest(?) AS n) WHERE _size_is_batch(n)", [list(WORKLOADS)])
    assert {row[0] for row in told.fetchall()} == refusing


def test_replay_of_the_point_itself_is_measured(tmp_path: Path) -> None:
    """It needs no other point, and has no issue time."""
    row = cures(tmp_path, host_bound(20, replay_us=(4, 3, 5)))["CUDA graph"]
    assert (row["basis"], row["gain"], row["issue_gain"], row["other_point_id"]) == ("measured", 5, None, None)
    assert (row["gain_low"], row["gain_high"]) == pytest.approx((4, 20 / 3))


def test_addmm_is_the_same_arithmetic_with_a_full_bias_alone(tmp_path: Path) -> None:
    """A bias of one row is another sum."""
    full, row = ({"workload": "addmm", "params": {"bias": bias}} for bias in (2, 1))
    assert cures(tmp_path / "a", host_bound(20), host_bound(10, **full))["addmm"]["basis"] == "measured"
    assert cures(tmp_path / "b", host_bound(20, **full), host_bound(10))["matmul_add"]["gain"] == 2
    assert "addmm" not in cures(tmp_path / "c", host_bound(20), host_bound(10, **row))


def test_a_narrower_dtype_says_that_it_is_less_exact(tmp_path: Path) -> None:
    """The way back is none."""
    found = cures(tmp_path / "a", host_bound(20), host_bound(10, dtype="bf16"))
    assert found["bf16"]["gain"] == 2 and found["bf16"]["sentence"].endswith("its results are less exact.")
    assert "fp32" not in cures(tmp_path / "b", host_bound(20, dtype="bf16"), host_bound(10))


def test_a_cold_point_has_one_cure(tmp_path: Path) -> None:
    """Its first call against a warm step."""
    cold = {"warmup": "false", "params": {"schedule": "0/0/20/1"}, "facts": {"first_call_us": 90_000}}
    found = cures(tmp_path / "a", cold, host_bound(30), host_bound(10, warmup="false", compile="true"))
    assert list(found) == ["warm up"] and found["warm up"]["gain"] == 3000
    assert "the first call took 90.0 ms, 3000 times as long" in found["warm up"]["sentence"]
    alone = cures(tmp_path / "b", cold)["warm up"]
    assert (alone["basis"], alone["gain"]) == ("predicted", None)
    assert alone["command"] == ("python -m runner -m workload=matmul_add size=64 dtype=fp32 compile=false device=cuda")


def test_what_a_mode_does_to_the_overhead_is_learnt_from_other_points(tmp_path: Path) -> None:
    """Compiling halved it at another size: max(10, 2) of 20 us."""
    pair = host_bound(40, size=128), host_bound(20, size=128, **COMPILED)
    row = cures(tmp_path, host_bound(20), *pair)["compile"]
    assert (row["basis"], row["gain"], row["then_wall_us"]) == ("predicted", 2, 10)
    assert "at most 2.00 times less" in row["sentence"]
    assert "the overhead becomes 0.5 times what it is (median of 1 pair of this workload's points)" in row["sentence"]
    assert row["command"].startswith("python -m runner -m workload=matmul_add size=64 dtype=fp32 compile=true")


def test_a_mode_that_no_pair_tells_of_is_not_predicted(tmp_path: Path) -> None:
    """Nothing says what compiling would do to the overhead, and there is nothing to fuse; what it does to another
    workload says nothing."""
    other = {"workload": "linear"}
    pair = host_bound(40, **other), host_bound(20, **other, **COMPILED)
    assert "compile" not in cures(tmp_path, host_bound(20), *pair)


def test_a_graph_mode_gains_at_most_the_overhead(tmp_path: Path) -> None:
    """As bounds.gain, here by the replay; the command is the one that measures it."""
    row = cures(tmp_path, host_bound(20, replay_us=1))["reduce-overhead static_inputs"]
    assert (row["basis"], row["gain"]) == ("predicted", 20)
    words = shlex.split(row["command"])
    assert {"compile=reduce-overhead", "static_inputs=true", "size=64"} < set(words)


def test_fusion_is_predicted_by_the_bytes_that_it_leaves(tmp_path: Path) -> None:
    """100 us for 80e6 bytes, of which 20e6 stay: a quarter of the time at the same share of the roof."""
    pair = host_bound(40, size=128), host_bound(40, size=128, **COMPILED)
    run = device_bound(("add", 0, 40e6), ("mul", 0, 40e6), bytes_min=20e6)
    row = cures(tmp_path, run, *pair)["compile"]
    assert row["gain"] == pytest.approx(4) and "one kernel touches every byte once" in row["sentence"]


def test_fusion_promises_nothing_below_the_roofs(tmp_path: Path) -> None:
    """Where the roofs explain a tenth of the time, their bytes say nothing about it."""
    pair = host_bound(40, size=128), host_bound(40, size=128, **COMPILED)
    run = device_bound(("add", 0, 5e6), ("mul", 0, 5e6), bytes_min=5e6)
    assert "compile" not in cures(tmp_path, run, *pair)


def test_a_dtype_is_predicted_by_its_roofs(tmp_path: Path) -> None:
    """80e6 FLOPs at ten times the roof are 8 us, but the host needs 10."""
    row = cures(tmp_path, device_bound(("matmul", 80e6, 1e6), bytes_min=1e6))["bf16"]
    assert (row["basis"], row["gain"], row["then_wall_us"]) == ("predicted", 10, 10)
    assert "at most 10.0 times less" in row["sentence"] and "dtype=bf16" in row["command"]


def test_no_dtype_is_predicted_under_autocast(tmp_path: Path) -> None:
    """Products have autocast's already, and the runner refuses weights in another one than fp32 or tf32."""
    copying = {"workload": "train_step", "bytes_min": 80e6}
    plain = device_bound(("gelu", 1e6, 80e6), **copying, params=TRAIN)
    cast = device_bound(("gelu", 1e6, 80e6), **copying, params={**TRAIN, "autocast": "bf16"})
    assert cures(tmp_path / "a", plain)["bf16"]["basis"] == "predicted"
    assert "bf16" not in cures(tmp_path / "b", cast)


def test_the_roof_of_products_is_no_roof_of_sums(tmp_path: Path) -> None:
    """Elementwise FLOPs do not run where the roof was measured."""
    names = {"intensity": False, "adamw update": False, "linear backward": True, "mm x12": True}
    for name, is_product in names.items():
        found = cures(tmp_path / name.replace(" ", "_"), device_bound((name, 80e6, 1e6), bytes_min=1e6))
        assert ("bf16" in found) == is_product, name


def test_a_step_that_waits_inside_is_cured_in_the_code(tmp_path: Path) -> None:
    """max(issue, device) of 240 us; no setting does it, and no mode is promised anything."""
    waits = {"facts": {"blocking_calls": {"cudaStreamSynchronize": 1}}}
    found = cures(tmp_path, {"wall_us": 240, "issue_us": 20, "device_us": 200, **waits})
    assert list(found) == ["wait for nothing"]
    assert (found["wait for nothing"]["gain"], found["wait for nothing"]["command"]) == (1.2, None)


def test_a_failed_point_has_no_cures(tmp_path: Path) -> None:
    """Nor has the one beside it a measured one."""
    failed = {"status": "oom", "reason": "CUDA out of memory", "compile": "true"}
    assert cures(tmp_path / "a", failed) == {}
    assert "compile" not in cures(tmp_path / "b", host_bound(20), failed)


# -- ways to the same result -------------------------------------------------------------------------------------------

TRAIN = {"optimizer": "adamw", "impl": "loop", "checkpoint": False, "autocast": None, "width": 64}
WORK = {
    "bias", "causal", "context", "factor", "features", "head_dim", "heads", "hidden", "how", "kind", "layers", "model",
    "op", "ops", "overrides", "pattern", "reads", "scaler", "shapes", "spread", "target", "tokens", "width",
}  # fmt: skip
"""Settings of workloads that change the work, or guard its result."""


def train(wall_us: Any = 20, facts: Row | None = None, **params: Any) -> Row:
    """An overhead-bound training step with these settings."""
    given = host_bound(wall_us, workload="train_step", params={**TRAIN, **params})
    return given | {"facts": facts or {}}


def holding(other: int = 0, **holders: int) -> Row:
    """Facts of a step whose holders at its peak have so many MiB; other: libraries' workspaces."""
    held = {name: mib * 2**20 for name, mib in {"other": other, **holders}.items()}
    peak = {"phase": "step", "parent": None, "order": 0, "peak_bytes": sum(held.values()), "holders_at_peak": held}
    return {"phase_memory": [peak]}


def test_another_way_to_the_same_result_is_measured(tmp_path: Path) -> None:
    """fused in place of loop: the ratio with its interval, and the sentence names both."""
    row = cures(tmp_path, train((30, 29, 31)), train((20, 19, 21), impl="fused"))["impl=fused"]
    assert (row["setting"], row["value"], row["basis"], row["gain"]) == ("impl", "fused", "measured", 1.5)
    assert (row["gain_low"], row["gain_high"]) == pytest.approx((29 / 21, 31 / 19))
    assert "impl=fused takes 20.0 us a step instead of 30.0 us with impl=loop, 1.50 times less (1.38" in row["sentence"]
    assert row["command"] is None and row["other_point_id"].startswith("train_step")


@pytest.mark.parametrize(
    "more", [{"width": 128}, {"optimizer": "sgd"}, {"scaler": True}, {"impl": "fused", "checkpoint": True}]
)
def test_other_work_is_no_way_to_the_same_result(tmp_path: Path, more: Row) -> None:
    """Nor are two settings at once, which measure neither."""
    assert not [cure for cure in cures(tmp_path, train(30), train(20, **more)) if "=" in cure]


def test_a_way_that_is_less_exact_leads_there_alone(tmp_path: Path) -> None:
    """autocast and 8-bit states are cures that cost exactness; to leave them is none, and AdamW is no Adam."""
    found = cures(tmp_path / "a", train(30), train(20, autocast="bf16"))
    assert found["autocast=bf16"]["gain"] == 1.5
    assert found["autocast=bf16"]["sentence"].endswith("its results are less exact.")
    assert "autocast=null" not in cures(tmp_path / "b", train(30, autocast="bf16"), train(20))
    eight_bit = train(20, optimizer="adam8bit")
    found = cures(tmp_path / "c", train(30, optimizer="adam"), eight_bit)
    assert "what it saves of memory was not recorded; its results are less" in found["optimizer=adam8bit"]["sentence"]
    assert "optimizer=adam8bit" not in cures(tmp_path / "d", train(30), eight_bit)


def test_the_ways_of_somebodys_own_function(tmp_path: Path) -> None:
    """A keyword named impl or backend is one, whatever its values; what else it is called with may be the work."""
    own = {"workload": "custom"}
    found = cures(
        tmp_path,
        host_bound(30, params={"impl": "torch", "pool": 2}, **own),
        host_bound(10, params={"impl": "mine", "pool": 2}, **own),
        host_bound(20, params={"impl": "torch", "pool": 4}, **own),
    )
    assert found["impl=mine"]["gain"] == 3 and not [cure for cure in found if cure.startswith("pool")]


def test_a_cure_of_memory_says_what_it_saves_before_what_it_costs(tmp_path: Path) -> None:
    """Peaks without libraries' workspaces, and the holder that fell most; the way back says both as well."""
    plain = train((20, 19, 21), holding(other=64, parameters=100, activations=300))
    checkpointed = train((40, 38, 42), holding(other=32, parameters=100, activations=60), checkpoint=True)
    row = cures(tmp_path / "a", plain, checkpointed)["checkpoint=true"]
    assert (row["gain"], row["memory_gain"]) == (0.5, 2.5)
    assert (row["peak_bytes"], row["then_peak_bytes"]) == (400 * 2**20, 160 * 2**20)
    assert row["sentence"] == (
        "Measured, a cure of memory: with checkpoint=true it holds 160 MiB at its peak instead of 400 MiB, 2.50 times "
        "less (activations 60.0 MiB instead of 300 MiB); it takes 40.0 us a step instead of 20.0 us with "
        "checkpoint=false, 2.00 times as long (1.81 to 2.21)."
    )
    back = cures(tmp_path / "b", checkpointed, plain)["checkpoint=false"]
    assert back["gain"] == 2 and back["memory_gain"] == 0.4
    assert "it holds 400 MiB at its peak instead of 160 MiB, 2.50 times as much (activations" in back["sentence"]


def test_a_checkpoint_that_saves_nothing_says_so(tmp_path: Path) -> None:
    """It costs time alone, and workspaces that come and go are no saving."""
    less = train((40, 38, 42), holding(parameters=100), checkpoint=True)
    row = cures(tmp_path, train((20, 19, 21), holding(other=64, parameters=101)), less)["checkpoint=true"]
    assert "worse: 2.00 times as long" in row["sentence"]
    assert row["sentence"].endswith("its peak stays, 100 MiB.")


def test_a_peak_that_one_side_lacks_is_no_peak_that_stays(tmp_path: Path) -> None:
    """What it saves is unknown then, whichever side lacks it."""
    known, unknown = {"peak_bytes": 30 * 2**20}, {}
    for name, before, after in (("a", unknown, known), ("b", known, unknown)):
        row = cures(tmp_path / name, train(20, before), train(40, after, checkpoint=True))["checkpoint=true"]
        assert row["memory_gain"] is None and "what it saves of memory was not recorded" in row["sentence"]


@pytest.mark.parametrize("mode", ["reduce-overhead", "max-autotune"])
def test_a_replayed_graph_saves_no_memory_that_can_be_told(tmp_path: Path, mode: str) -> None:
    """Its temporaries lie in the graph's pool and are nobody's; compiled without a graph they are counted."""
    eager, graph = holding(parameters=100, temporaries=50), holding(parameters=100)
    found = cures(tmp_path / "a", host_bound(20, facts=eager), host_bound(5, compile=mode, facts=graph))
    assert found[mode]["memory_gain"] is None and "it holds" not in found[mode]["sentence"]
    found = cures(tmp_path / "b", host_bound(20, facts=eager), host_bound(5, facts=graph, **COMPILED))
    assert found["compile"]["memory_gain"] == 1.5


def test_memory_that_nobody_watched_is_the_allocators(tmp_path: Path) -> None:
    """Of eager points; that of a compiled one is the compiler's as well, and a batch is not to be compared."""
    naive, fused = {"params": {"impl": "naive"}}, {"params": {"impl": "sdpa"}}
    large, small = ({"facts": {"peak_bytes": mib * 2**20}} for mib in (90, 30))
    row = cures(tmp_path / "a", host_bound(20, **naive, **large), host_bound(10, **fused, **small))["impl=sdpa"]
    assert row["memory_gain"] == 3
    assert row["sentence"].endswith("the allocator's peak is 30.0 MiB instead of 90.0 MiB, 3.00 times less.")
    found = cures(
        tmp_path / "b", host_bound(20, **large), host_bound(10, **COMPILED, **small), host_bound(batch=2, **small)
    )
    assert found["compile"]["memory_gain"] is found["larger batch"]["memory_gain"] is None


def test_what_ran_out_of_memory_is_cured_by_what_runs(tmp_path: Path) -> None:
    """There is no time to compare with, and nothing is predicted of it; the fastest that runs comes first."""
    failed = train(None, checkpoint=False) | {"status": "oom", "reason": "CUDA out of memory"}
    found = cures(tmp_path, failed, train(40, checkpoint=True), train(30, autocast="bf16"))
    assert list(found) == ["autocast=bf16", "checkpoint=true"]
    row = found["checkpoint=true"]
    assert (row["gain"], row["then_wall_us"], row["basis"]) == (None, 40, "measured")
    assert row["sentence"] == "Measured: checkpoint=true runs, a step in 40.0 us; this point ran out of memory."


def test_a_way_that_makes_a_graph_possible_says_so(tmp_path: Path) -> None:
    """That is what capturable=true is for: it gains nothing by itself."""
    capturable = train(21, capturable=True) | {"replay_us": 4}
    row = cures(tmp_path, train(20, capturable=False), capturable)["capturable=true"]
    assert "it can be replayed as a CUDA graph, in 4.00 us a step" in row["sentence"]


def test_every_setting_of_a_workload_is_a_way_or_the_work() -> None:
    """Who adds a setting says which: here, or in _ways of the macros."""
    files = (Path(__file__).parents[1] / "conf" / "workload").glob("*.yaml")
    lines = [line for file in files for line in file.read_text(encoding="utf-8").splitlines()]
    settings = {line.partition(":")[0] for line in lines if ":" in line and line[0].isalpha()} - {"name"}
    connection = connect()
    connection.execute((SQL / "_macros.sql").read_text(encoding="utf-8"))
    ways = {row[0] for row in connection.execute("SELECT w.setting FROM (SELECT unnest(_ways()) AS w)").fetchall()}
    assert settings - WORK == ways and not ways & WORK


def test_a_watched_program_is_measured_by_no_command(tmp_path: Path) -> None:
    """The runner has no workload of its name; what is predicted stays true."""
    row = cures(tmp_path, host_bound(20, workload="generate", source="watch"))["larger batch"]
    assert (row["basis"], row["command"]) == ("predicted", None)


def test_what_is_unknown_leaves_a_sentence(tmp_path: Path) -> None:
    """A first call without a time, and a replay of a step without one."""
    cold = {"warmup": "false", "facts": {}}
    row = cures(tmp_path / "a", cold, host_bound(30))["warm up"]
    assert row["sentence"] == "A warm step takes 30.0 us, the first call took an unknown time."
    assert "CUDA graph" not in cures(tmp_path / "b", host_bound(20, replay_us=4, wall_us=None))
