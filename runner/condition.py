"""What host and device did while a point was measured.

`HostCounters` runs in the worker around the measuring; `CardSampler` runs in the parent, which owns no CUDA context, so
that sampling never takes time from the process being measured. Neither needs torch. A field that cannot be read is
missing, never zero.
"""

import statistics
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from runner import host, nvml


@dataclass(frozen=True)
class _HostReading:
    at_s: float
    switches: int | None
    pressure_us: int | None


class HostCounters:
    """Counts of the operating system over a stretch of this process's time.

    `root` and `clock` (seconds, monotonic) are the system's own unless a test gives others.
    """

    def __init__(self, root: Path = host.ROOT, clock: Callable[[], float] = time.monotonic) -> None:
        self._root = root
        self._clock = clock
        self._before: _HostReading | None = None

    def _read(self) -> _HostReading:
        return _HostReading(self._clock(), host.involuntary_switches(self._root), host.cpu_pressure_us(self._root))

    def start(self) -> None:
        """Begin counting, from nothing."""
        self._before = self._read()

    def finish(self) -> dict[str, int | float | None]:
        """`involuntary_switches` of this process and `cpu_pressure_frac`, the share of time some task waited for a CPU.

        None = cannot be read here. RuntimeError when `start` was not called.
        """
        if self._before is None:
            raise RuntimeError("HostCounters.finish() came without start(): call start() before the measuring")
        before, after = self._before, self._read()
        self._before = None
        elapsed_us = (after.at_s - before.at_s) * 1e6
        waited_us = _difference(before.pressure_us, after.pressure_us)
        return {
            "involuntary_switches": _difference(before.switches, after.switches),
            "cpu_pressure_frac": None if waited_us is None or elapsed_us <= 0 else min(1.0, waited_us / elapsed_us),
        }


def _difference(before: int | None, after: int | None) -> int | None:
    return None if before is None or after is None else after - before


@dataclass(frozen=True)
class CardReading:
    """One look at a card; None = the card does not say. `others` counts processes that are not ours."""

    sm_clock_mhz: float | None = None
    power_w: float | None = None
    temperature_c: float | None = None
    throttle_reasons: tuple[str, ...] | None = None
    others: int | None = None


def other_processes(seen: Collection[int] | None, own: Collection[int]) -> int | None:
    """Number of foreign processes among those `seen` on a card.

    None unless one of `own` is seen too: the worker holds a context on its card, so a list without it is numbered by
    another process namespace, or empty because the machine hides it, and tells nothing.
    """
    if seen is None or not set(seen) & set(own):
        return None
    return len(set(seen) - set(own))


class CardSampler:
    """Samples one NVIDIA card for the facts.condition of a run.

    `device_uuid` is torch's or NVML's; with None, or a card NVML does not know, there are no readings. `own_pids` are
    the processes that belong to this sweep on this card (its worker).
    """

    def __init__(self, device_uuid: str | None, own_pids: Collection[int] = ()) -> None:
        self._card = nvml.find(device_uuid)
        self._own_pids = frozenset(own_pids)
        self._readings: list[CardReading] = []

    def sample(self) -> None:
        """Look at the card once; some tens of microseconds of the calling process."""
        if self._card is not None:
            self._readings.append(_look(self._card, self._own_pids))

    def finish(self) -> dict[str, object]:
        """The readings since the last `finish`, as `summarize` gives them."""
        readings, self._readings = self._readings, []
        return summarize(readings)


def _look(card: nvml.Card, own_pids: Collection[int]) -> CardReading:
    return CardReading(
        sm_clock_mhz=card.sm_clock_mhz(),
        power_w=card.power_w(),
        temperature_c=card.temperature_c(),
        throttle_reasons=card.throttle_reasons(),
        others=other_processes(card.process_ids(), own_pids),
    )


def summarize(readings: Sequence[CardReading]) -> dict[str, object]:
    """Readings in the form of facts.condition: [min, median, max] of clock (MHz), power (W) and temperature (Celsius).

    Throttle reasons are those seen at least once, in order of appearance; other_processes is the most seen at once. A
    field that no reading holds is missing.
    """
    spreads = {name: _spread([getattr(reading, name) for reading in readings]) for name in _SPREAD_FIELDS}
    condition: dict[str, object] = {name: spread for name, spread in spreads.items() if spread is not None}
    told = [reading.throttle_reasons for reading in readings if reading.throttle_reasons is not None]
    if told:
        condition["throttle_reasons"] = list(dict.fromkeys(word for words in told for word in words))
    counts = [reading.others for reading in readings if reading.others is not None]
    if counts:
        condition["other_processes"] = max(counts)
    return condition


_SPREAD_FIELDS = ("sm_clock_mhz", "power_w", "temperature_c")


def _spread(values: Sequence[float | None]) -> list[float] | None:
    """[min, median, max] of what is known."""
    known = [value for value in values if value is not None]
    return [min(known), statistics.median(known), max(known)] if known else None


# One sample in ten half as long again as the median: back-to-back averages of many steps do not spread like this by
# themselves, while a thread that loses its CPU loses milliseconds.
SPREAD_LIMIT = 1.5
# The parent wakes up twenty times a second for well under a millisecond: below 2 % even if it always met the worker.
PRESSURE_LIMIT_FRAC = 0.05


# On the CPU as the device, a steady neighbour takes its share of every sample alike: no spread shows it.
BUSY_FRAC = 0.25


def cpu_contended(
    p90_over_median: float | None, involuntary_switches: int | None, cpu_pressure_frac: float | None
) -> bool | None:
    """`host_contended` of a point on the CPU: that tasks waited for a CPU a quarter of the time is enough."""
    if cpu_pressure_frac is not None and cpu_pressure_frac > BUSY_FRAC:
        return True
    return host_contended(p90_over_median, involuntary_switches, cpu_pressure_frac)


def host_contended(
    p90_over_median: float | None, involuntary_switches: int | None, cpu_pressure_frac: float | None
) -> bool | None:
    """Whether other work on the host's CPUs spoiled the samples of a point.

    True needs both a symptom (the samples' 90th percentile beyond 1.5 medians) and a cause (a thread lost its CPU, or
    tasks waited for CPUs in more than 5 % of the time). False when the symptom, or every cause, is known to be absent.
    A single switch is cause enough because the symptom already shows that something cost time. What is None is neither
    present nor absent; None is returned when the answer depends on it.
    """
    spread = _above(p90_over_median, SPREAD_LIMIT)
    causes = (_above(involuntary_switches, 0), _above(cpu_pressure_frac, PRESSURE_LIMIT_FRAC))
    cause = True if True in causes else None if None in causes else False
    if spread is False or cause is False:
        return False
    return True if spread and cause else None


def _above(value: float | None, limit: float) -> bool | None:
    return None if value is None else value > limit
