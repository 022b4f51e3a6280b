"""Rules of data quality: each with a case where it fires, and a near miss."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from given import write_store
from rule_given import H200, Trace, outcome

from analysis.rules import all_rules, judge
from analysis.store import open_store


def trace_of(steps: range | list[int] = range(4), early_us: float = 0, lost: int = 0) -> Trace:
    """Steps of one kernel: 4 us after its launch, or `early_us` before it; and of `lost` launches without work."""
    trace = Trace()
    for step in steps:
        at = 100.0 * step
        trace.step(step, at, 60)
        trace.host("aten::mm", at + 5, 50, step)
        trace.launched("gemm", at + 10, at + 10 - early_us if early_us else at + 14, 20, step)
        for number in range(lost):
            trace.call("cudaLaunchKernel", at + 15 + 3 * number, 2, step)
    return trace


def measured(**facts: Any) -> dict[str, Any]:
    """A run of the H200 with these facts, its times 100 us for the host and 40 us for the device."""
    return {"wall_us": 100, "issue_us": 100, "device_us": 40, "facts": facts}


def imported(audit: Mapping[str, Any], method: str = "profiler") -> dict[str, Any]:
    """An imported run with this audit."""
    counts = {"kept": 20, "lost_events": 0, "lost_bytes": 0, "truncated": False, "before_launch": 0, "unlinked": 0}
    facts = {"audit": {**counts, "unlinked_dur_ns": 0, "device_dur_ns": 80_000, **audit}, "steps": {"method": method}}
    return {"source": "import", "compile": None, "warmup": None, "facts": facts}


def test_trace_incomplete_fires(tmp_path: Path) -> None:
    """Three launches and one kernel."""
    found = outcome(tmp_path, "trace_incomplete", trace_of(lost=2))
    assert found["outcome"] == "fired"
    assert "launches 3 kernels and the trace shows 1 of them" in found["sentence"]


def test_trace_incomplete_near_miss(tmp_path: Path) -> None:
    """A kernel for each launch."""
    assert outcome(tmp_path, "trace_incomplete", trace_of())["outcome"] == "clear"


def test_trace_incomplete_names_a_recorded_graph(tmp_path: Path) -> None:
    """Launches into a graph that is recorded run nothing, and are not lost."""
    trace = trace_of(lost=2)
    trace.call("cudaStreamBeginCapture", 1, 1, 0)
    found = outcome(tmp_path, "trace_incomplete", trace)
    assert "launches 3 kernels into a graph that it records" in found["sentence"]


def test_no_fence_fires(tmp_path: Path) -> None:
    """A tenth of the device's time has no launch in the file."""
    found = outcome(tmp_path, "no_fence", trace_of(), imported({"unlinked": 3, "unlinked_dur_ns": 8_000}))
    assert found["outcome"] == "fired"
    assert "3 device events (8.00 us, 10.0 % of the device's time)" in found["sentence"]


def test_no_fence_near_miss(tmp_path: Path) -> None:
    """A hundredth is let pass; of a sweep the share of unattributed work is what counts."""
    few = imported({"unlinked": 1, "unlinked_dur_ns": 800})
    assert outcome(tmp_path / "import", "no_fence", trace_of(), few)["outcome"] == "clear"
    swept = measured(profile={"unattributed_frac": 0.0})
    assert outcome(tmp_path / "sweep", "no_fence", trace_of(), swept)["outcome"] == "clear"


def test_steps_missing_fires(tmp_path: Path) -> None:
    """Step 2 of 0 to 4 is not there; or fewer steps than the schedule asks for."""
    found = outcome(tmp_path / "hole", "steps_missing", trace_of([0, 1, 3, 4]))
    assert found["outcome"] == "fired"
    assert "Of the steps 0 to 4 the trace holds 4: 1 step is missing, the first is 2" in found["sentence"]
    cut = outcome(tmp_path / "cut", "steps_missing", trace_of(), {"params": {"schedule": "1/1/6/1"}})
    assert "asks for 6 steps and the trace holds 4" in cut["sentence"]


def test_steps_missing_near_miss(tmp_path: Path) -> None:
    """All steps in their order, as many as asked for."""
    found = outcome(tmp_path, "steps_missing", trace_of(), {"params": {"schedule": "1/1/4/1"}})
    assert found["outcome"] == "clear"


def test_clock_skew_fires(tmp_path: Path) -> None:
    """Kernels that begin 3 us before their launch."""
    found = outcome(tmp_path, "clock_skew", trace_of(early_us=3))
    assert found["outcome"] == "fired"
    assert "by 3.00 us in the median" in found["sentence"]


def test_clock_skew_near_miss(tmp_path: Path) -> None:
    """Kernels that begin behind their launch."""
    assert outcome(tmp_path, "clock_skew", trace_of())["outcome"] == "clear"


@pytest.mark.parametrize(("profiled_us", "expected"), [(260.0, "fired"), (240.0, "clear")])
def test_high_perturbation(tmp_path: Path, profiled_us: float, expected: str) -> None:
    """2.6 times is too much, 2.4 times is let pass."""
    found = outcome(tmp_path, "high_perturbation", trace_of(), measured(profile={"profiled_host_us": profiled_us}))
    assert found["outcome"] == expected
    if expected == "fired":
        assert "260 us and without it 100 us, a factor of 2.60: 61.5 %" in found["sentence"]


@pytest.mark.parametrize(("contended", "expected"), [(True, "fired"), (False, "clear"), (None, "not applicable")])
def test_host_contended(tmp_path: Path, contended: bool | None, expected: str) -> None:
    """As the run says; where that could not be told, the rule does not apply."""
    facts = measured(host_contended=contended, condition={"involuntary_switches": 12, "cpu_pressure_frac": 0.02})
    found = outcome(tmp_path, "host_contended", trace_of(), facts)
    assert found["outcome"] == expected
    if expected == "fired":
        assert "pushed off its core 12 times" in found["sentence"]
        assert "in 2.00 % of the time" in found["sentence"]


@pytest.mark.parametrize(
    ("clock_mhz", "reasons", "expected"),
    [(1500, ["sw_power_cap"], "fired"), (1975, ["sw_power_cap"], "clear"), (345, ["gpu_idle"], "clear")],
)
def test_throttled(tmp_path: Path, clock_mhz: float, reasons: list[str], expected: str) -> None:
    """A reason and a lower clock; neither a reason alone nor an idle device counts."""
    condition = {"sm_clock_mhz": [clock_mhz] * 3, "throttle_reasons": reasons, "power_w": [600.0] * 3}
    environment = {"sm_clock_max_mhz": 1980.0, "power_limit_w": 700.0}
    found = outcome(tmp_path, "throttled", trace_of(), measured(condition=condition), environment)
    assert found["outcome"] == expected
    if expected == "fired":
        assert "1500 of 1980 MHz because of sw_power_cap, at 600 W of 700 W" in found["sentence"]


@pytest.mark.parametrize(("others", "expected"), [(2, "fired"), (0, "clear"), (None, "not applicable")])
def test_other_processes(tmp_path: Path, others: int | None, expected: str) -> None:
    """Two others, none, unknown."""
    found = outcome(tmp_path, "other_processes", trace_of(), measured(condition={"other_processes": others}))
    assert found["outcome"] == expected
    if expected == "fired":
        assert found["sentence"].startswith("2 other processes had a context")


def above_roof(folder: Path, moved_bytes: float, working_set_bytes: float) -> tuple[str, str]:
    """Outcome, and sentence or reason, of a step of 100 us of device time that moves so many bytes at 1 TB/s."""
    operation = {"name": "add", "flops": 0, "bytes": moved_bytes}
    cost = {"operations": [operation], "bytes_min": moved_bytes, "working_set_bytes": working_set_bytes}
    run = {"wall_us": 100, "issue_us": 20, "device_us": 100, "facts": {"cost": cost}}
    roofs = [{"roof": "dram", "value_per_s": 1e12}, {"roof": "flops", "dtype": "fp32", "value_per_s": 1e12}]
    store = write_store(folder, [run], environments=[{**H200, "l2_bytes": 60 * 2**20}], roofs=roofs)
    with open_store(store) as connection:
        judge(connection, rules=[rule for rule in all_rules() if rule.rule == "above_roof"])
        query = "SELECT outcome, coalesce(f.sentence, o.reason) FROM rule_outcomes AS o"
        ((found, said),) = connection.execute(f"{query} LEFT JOIN findings AS f USING (run_id)").fetchall()
    return found, said


def test_above_roof_fires(tmp_path: Path) -> None:
    """120 % of the DRAM roof: by the L2 where part of the data fits into it."""
    found, sentence = above_roof(tmp_path / "l2", 120e6, working_set_bytes=100 * 2**20)
    assert found == "fired"
    assert "takes 100 us where its roofs allow no less than 120 us (120 %)" in sentence
    assert "part of its 100 MiB stays in the L2 cache of 60.0 MiB" in sentence
    assert "bytes/s roof was measured too low" in above_roof(tmp_path / "dram", 120e6, working_set_bytes=1e9)[1]


def test_above_roof_near_miss(tmp_path: Path) -> None:
    """104 % is within the error of a roof."""
    assert above_roof(tmp_path, 104e6, working_set_bytes=1e9)[0] == "clear"


@pytest.mark.parametrize(
    ("run", "expected"),
    [
        ({"wall_us": (100, 90, 115), "issue_us": (99, 98, 100), "device_us": (40, 40, 40)}, "fired"),
        ({"wall_us": (100, 98, 103), "issue_us": (99, 98, 100), "device_us": (40, 40, 40)}, "clear"),
        ({"source": "import"}, "not applicable"),
    ],
)
def test_wide_interval(tmp_path: Path, run: dict[str, Any], expected: str) -> None:
    """25 % of the wall time is too wide, 5 % is not."""
    found = outcome(tmp_path, "wide_interval", trace_of(), run)
    assert found["outcome"] == expected
    if expected == "fired":
        assert "wall time of a step is only known to lie between 90.0 us and 115 us" in found["sentence"]


def test_queue_full_fires(tmp_path: Path) -> None:
    """The reason that the runner gives for an unknown issue time."""
    run = {"wall_us": 900, "device_us": 900, "facts": {"reasons": {"issue_us": "queue-full: the launch queue fills"}}}
    found = outcome(tmp_path, "queue_full", trace_of(), run)
    assert found["outcome"] == "fired"
    assert "all in all it takes 900 us" in found["sentence"]


def test_queue_full_near_miss(tmp_path: Path) -> None:
    """An issue time is known; it is unknown for another reason; or the device waits for the host: no queue was full.

    A profile's device time is no witness of that: it lacks what passes between kernels.
    """
    assert outcome(tmp_path / "known", "queue_full", trace_of(), measured())["outcome"] == "clear"
    uneven = {"wall_us": 900, "device_us": 500, "facts": {"reasons": {"issue_us": "queue-full: the queue fills"}}}
    found = outcome(tmp_path / "uneven", "queue_full", trace_of(), uneven)
    assert (found["outcome"], found["reason"][:16]) == ("clear", "the device waits")
    uneven["facts"]["device_method"] = "profile"
    assert outcome(tmp_path / "profile", "queue_full", trace_of(), uneven)["outcome"] == "fired"
    other = {"wall_us": 900, "facts": {"reasons": {"issue_us": "the step waits"}}}
    assert outcome(tmp_path / "other", "queue_full", trace_of(), other)["outcome"] == "not applicable"


@pytest.mark.parametrize(
    ("audit", "said"),
    [
        ({"lost_events": 2, "lost_bytes": 512}, "2 pieces of the file, 512 bytes, could not be read"),
        ({"truncated": True}, "The file ends before its JSON does: 20 events were saved"),
    ],
)
def test_lost_events_fires(tmp_path: Path, audit: dict[str, Any], said: str) -> None:
    """Pieces that could not be read; a file that was cut."""
    found = outcome(tmp_path, "lost_events", trace_of(), imported(audit))
    assert found["outcome"] == "fired"
    assert said in found["sentence"]


def test_lost_events_near_miss(tmp_path: Path) -> None:
    """A whole file; a sweep read no file."""
    assert outcome(tmp_path / "whole", "lost_events", trace_of(), imported({}))["outcome"] == "clear"
    assert outcome(tmp_path / "sweep", "lost_events", trace_of(), measured())["outcome"] == "not applicable"


@pytest.mark.parametrize(("method", "expected"), [("profile", "fired"), ("held", "clear")])
def test_device_time_from_profile(tmp_path: Path, method: str, expected: str) -> None:
    """By the profile, or by a held stream."""
    facts = measured(device_method=method, reasons={"replay_us": "the step waits for the device"})
    found = outcome(tmp_path, "device_time_from_profile", trace_of(), facts)
    assert found["outcome"] == expected
    if expected == "fired":
        assert "40.0 us a step comes from the profile, because the step waits for the device" in found["sentence"]
