"""What host and card did while a point was measured, and when a host counts as contended."""

import os
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import cast

import pytest

from runner import nvml
from runner.condition import (
    CardReading,
    CardSampler,
    HostCounters,
    cpu_contended,
    host_contended,
    other_processes,
    summarize,
)


def pressure(root: Path, total_us: int) -> None:
    """Write the system's pressure file with this `some` total."""
    (root / "proc/pressure").mkdir(parents=True, exist_ok=True)
    (root / "proc/pressure/cpu").write_text(f"some avg10=0.00 avg60=0.00 avg300=0.00 total={total_us}\nfull total=0\n")


def test_pressure_is_the_share_of_the_time_between_start_and_finish(tmp_path: Path) -> None:
    """50 ms of waiting in 2 s are 2.5 %; the switches cannot be read here and stay unknown."""
    times = iter([10.0, 12.0])
    pressure(tmp_path, 1_000)
    counters = HostCounters(tmp_path, clock=lambda: next(times))
    counters.start()
    pressure(tmp_path, 51_000)
    assert counters.finish() == {"involuntary_switches": None, "cpu_pressure_frac": 0.025}


def test_pressure_that_vanishes_is_unknown(tmp_path: Path) -> None:
    """A file that was readable only at the start tells nothing about the stretch."""
    pressure(tmp_path, 1_000)
    counters = HostCounters(tmp_path)
    counters.start()
    (tmp_path / "proc/pressure/cpu").unlink()
    assert counters.finish()["cpu_pressure_frac"] is None


def test_finish_without_start_is_refused() -> None:
    """A count without a beginning would be one since the machine's start."""
    counters = HostCounters()
    with pytest.raises(RuntimeError, match="start"):
        counters.finish()
    counters.start()
    counters.finish()
    with pytest.raises(RuntimeError, match="start"):
        counters.finish()


@pytest.mark.skipif(
    not Path("/proc/self/status").exists() or "nonvoluntary" not in Path("/proc/self/status").read_text(),
    reason="this kernel does not count switches",
)
def test_switches_are_counted_for_this_process() -> None:
    """Counted from the start, so a fresh stretch holds few, and never a negative number."""
    counters = HostCounters()
    counters.start()
    os.sched_yield()
    switches = counters.finish()["involuntary_switches"]
    assert switches is not None and 0 <= switches < 10_000


@pytest.mark.parametrize(
    ("spread", "switches", "pressure_frac", "expected"),
    [
        (3.0, 5, 0.0, True),
        (3.0, 0, 0.2, True),
        (3.0, 1, None, True),
        (3.0, None, 0.2, True),
        (3.0, 0, 0.0, False),
        (3.0, 0, 0.05, False),
        (1.5, 9, 0.9, False),
        (1.1, None, None, False),
        (None, 0, 0.0, False),
        (3.0, None, None, None),
        (3.0, 0, None, None),
        (3.0, None, 0.0, None),
        (None, 5, 0.5, None),
        (None, None, None, None),
    ],
)
def test_contended_needs_a_symptom_and_a_cause(
    spread: float | None, switches: int | None, pressure_frac: float | None, expected: bool | None
) -> None:
    """Unknown facts neither accuse nor acquit: the answer is None as soon as it depends on one."""
    assert host_contended(spread, switches, pressure_frac) is expected


def test_readings_become_spreads_reasons_and_the_most_strangers() -> None:
    """Each reason is named once, in order of appearance; values are minimum, median, maximum."""
    readings = [
        CardReading(1980.0, 300.0, 40.0, (), 0),
        CardReading(1500.0, 700.0, 60.0, ("sw_power_cap",), 2),
        CardReading(1700.0, None, 50.0, ("sw_power_cap", "sw_thermal_slowdown"), 1),
    ]
    assert summarize(readings) == {
        "sm_clock_mhz": [1500.0, 1700.0, 1980.0],
        "power_w": [300.0, 500.0, 700.0],
        "temperature_c": [40.0, 50.0, 60.0],
        "throttle_reasons": ["sw_power_cap", "sw_thermal_slowdown"],
        "other_processes": 2,
    }


def test_a_card_that_was_never_held_back_says_so_and_an_unread_one_says_nothing() -> None:
    """An empty list is a measurement, a missing field is none."""
    assert summarize([CardReading(throttle_reasons=())]) == {"throttle_reasons": []}
    assert summarize([CardReading()]) == {}
    assert summarize([]) == {}


@pytest.mark.parametrize(
    ("seen", "expected"),
    [({7}, 0), ({7, 8, 9}, 2), ({8, 9}, None), (set(), None), (None, None)],
)
def test_strangers_are_counted_only_where_our_own_process_is_seen(seen: set[int] | None, expected: int | None) -> None:
    """A list without the worker is numbered by another namespace or hidden: it tells nothing."""
    assert other_processes(seen, {7}) == expected


def test_throttle_words_leave_out_an_idle_card() -> None:
    """Bits of nvml.h: 0x1 idle, 0x4 power cap, 0x40 and 0x80 hardware."""
    assert nvml.throttle_words(0x0) == nvml.throttle_words(0x1) == ()
    assert nvml.throttle_words(0x1 | 0x4 | 0x40 | 0x80) == ("sw_power_cap", "hw_thermal_slowdown", "hw_power_brake")


@pytest.mark.parametrize("uuid", [None, "", "00000000-0000-0000-0000-000000000000", "GPU-none"])
def test_without_its_card_a_sampler_leaves_every_field_missing(uuid: str | None) -> None:
    """No NVML, no driver or no such card: sampling costs nothing and tells nothing."""
    sampler = CardSampler(uuid, own_pids=[os.getpid()])
    sampler.sample()
    assert sampler.finish() == {}


def card_with(**answers: object) -> nvml.Card:
    """A card whose NVML knows these functions and constants alone."""
    given = SimpleNamespace(NVMLError=OSError, NVML_CLOCK_SM=1, NVML_TEMPERATURE_GPU=0, **answers)
    return nvml.Card(nvml=cast(ModuleType, given), handle="card", instance="slice")


def test_answers_of_a_card_have_the_units_of_their_names() -> None:
    """NVML gives milliwatts and an eight-digit PCI domain; processes are asked of the slice, all else of the card."""
    card = card_with(
        nvmlDeviceGetPowerUsage=lambda handle: {"card": 412_500}[handle],
        nvmlDeviceGetPciInfo=lambda handle: SimpleNamespace(busId=b"00000000:1B:00.0"),
        nvmlDeviceGetComputeRunningProcesses=lambda handle: {"slice": [SimpleNamespace(pid=7)]}[handle],
        nvmlDeviceGetCurrentClocksThrottleReasons=lambda handle: 0x5,
    )
    assert card.power_w() == 412.5
    assert card.pci_bus_id() == "0000:1b:00.0"
    assert card.process_ids() == {7}
    assert card.throttle_reasons() == ("sw_power_cap",)
    assert (card.sm_clock_mhz(), card.temperature_c(), card.name(), card.mig()) == (None, None, None, None)


@pytest.mark.parametrize(("chosen", "limit"), [(1095, 1410.0), (800, 800.0)])
def test_only_a_lowered_applications_clock_limits_the_card(chosen: int, limit: float) -> None:
    """Cards boost beyond their default applications clock, so the default is no limit."""
    card = card_with(
        nvmlDeviceGetMaxClockInfo=lambda handle, clock: 1410,
        nvmlDeviceGetApplicationsClock=lambda handle, clock: chosen,
        nvmlDeviceGetDefaultApplicationsClock=lambda handle, clock: 1095,
    )
    assert card.sm_clock_limit_mhz() == limit


@pytest.mark.gpu
def test_a_card_is_sampled_by_its_uuid_and_finish_starts_anew() -> None:
    """Clock, power and temperature of the card torch computes on; afterwards nothing is left."""
    import torch

    torch.ones(8, device="cuda").sum().item()
    sampler = CardSampler(str(torch.cuda.get_device_properties(0).uuid), own_pids=[os.getpid()])
    for _ in range(3):
        sampler.sample()
    seen = sampler.finish()
    assert {"sm_clock_mhz", "power_w", "temperature_c", "throttle_reasons"} <= set(seen)
    low, middle, high = cast(list[float], seen["sm_clock_mhz"])
    assert 0 < low <= middle <= high
    assert sampler.finish() == {}


@pytest.mark.parametrize(
    ("spread", "pressure_frac", "expected"),
    [(1.0, 0.8, True), (None, 0.8, True), (1.0, 0.01, False), (2.0, 0.1, True), (1.0, None, False)],
)
def test_a_steady_neighbour_on_the_cpu_shows_as_pressure(
    spread: float | None, pressure_frac: float | None, expected: bool
) -> None:
    """It takes its share of every sample alike, so that no spread tells it."""
    assert cpu_contended(spread, 1, pressure_frac) is expected
