"""What a trace holds and what became of it: counted while it is read, and said in one sentence."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import polars as pl

from runner.words import counted

SHOWN_DEVICES = 8
_STREAM = ("device", "stream")


@dataclass(slots=True)
class DeviceAudit:
    """Figures of the device's work, added up over windows in the order of time; durations are nanoseconds.

    overlapping: begins before an earlier one on its stream has ended. suspiciously_long: the next one on its stream
    began and ended within it, as only an event whose end was lost does. before_launch: begins before its call did.
    """

    events: int = 0
    kernels: int = 0
    busy_ns: Counter[str] = field(default_factory=Counter)
    dur_ns: int = 0
    unlinked: int = 0
    unlinked_dur_ns: int = 0
    overlapping: int = 0
    outside_steps: int = 0
    before_launch: int = 0
    suspiciously_long: int = 0
    _covered: pl.DataFrame | None = None
    _last: pl.DataFrame | None = None

    def add(self, work: pl.DataFrame) -> None:
        """Count rows of device work: category, ts_ns, dur_ns, device, stream, step, launch_id, launch_ns."""
        if not work.height:
            return
        unlinked = work.filter(pl.col("launch_id").is_null())
        self.events += work.height
        self.kernels += work.filter(pl.col("category") == "kernel").height
        self.dur_ns += int(work.get_column("dur_ns").cast(pl.Int128).sum())
        self.unlinked += unlinked.height
        self.unlinked_dur_ns += int(unlinked.get_column("dur_ns").cast(pl.Int128).sum())
        self.outside_steps += work.get_column("step").null_count()
        self.before_launch += work.filter(pl.col("ts_ns") < pl.col("launch_ns")).height
        self._add_busy(work)
        self._add_neighbours(work)

    def facts(self) -> dict[str, Any]:
        """The figures as the run's row holds them."""
        return {
            "device_events": self.events, "kernels": self.kernels,
            "busy_ns": dict(sorted(self.busy_ns.items())), "device_dur_ns": self.dur_ns,
            "unlinked": self.unlinked, "unlinked_dur_ns": self.unlinked_dur_ns, "overlapping": self.overlapping,
            "outside_steps": self.outside_steps, "before_launch": self.before_launch,
            "suspiciously_long": self.suspiciously_long,
        }  # fmt: skip

    def _add_busy(self, work: pl.DataFrame) -> None:
        """The union of the intervals of each device: what earlier windows have covered is covered already."""
        own = work.select("device", start="ts_ns", end=pl.col("ts_ns") + pl.col("dur_ns"), new=pl.lit(True))
        rows = own.sort("start") if self._covered is None else pl.concat([self._covered, own.sort("start")])
        rows = rows.with_columns(covered=pl.col("end").cum_max().shift(1).over("device"))
        fresh = (pl.col("end") - pl.max_horizontal("start", "covered")).clip(lower_bound=0)
        for device, busy_ns in rows.filter("new").group_by("device").agg(fresh.sum()).iter_rows():
            self.busy_ns[str(device)] += busy_ns
        self._covered = rows.group_by("device").agg(pl.col("start").min(), pl.col("end").max(), new=pl.lit(False))

    def _add_neighbours(self, work: pl.DataFrame) -> None:
        """Compare each event with those before it on its stream; the last of each waits for the next window."""
        own = work.select(*_STREAM, start="ts_ns", end=pl.col("ts_ns") + pl.col("dur_ns"), new=pl.lit(True))
        own = own.with_columns(reach="end")
        rows = own if self._last is None else pl.concat([self._last, own])
        rows = rows.sort(*_STREAM, "start", "end").with_columns(
            reached=pl.col("reach").cum_max().shift(1).over(_STREAM),
            reach=pl.col("reach").cum_max().over(_STREAM),
            next_start=pl.col("start").shift(-1).over(_STREAM),
            next_end=pl.col("end").shift(-1).over(_STREAM),
        )
        self.overlapping += rows.filter("new", pl.col("start") < pl.col("reached")).height
        long = (pl.col("next_start") < pl.col("end")) & (pl.col("next_end") <= pl.col("end"))
        self.suspiciously_long += rows.filter(long).height
        last = rows.group_by(_STREAM, maintain_order=True).last().with_columns(new=pl.lit(False))
        self._last = last.select(own.columns)


def line(told: dict[str, Any]) -> str:
    """The audit in one sentence: what was read, what was kept, what was not and why, and what is odd on the device."""
    parts = [f"{counted_in(told['events'], 'event')}: {told['kept']:,} kept"]
    if told["set_aside"]:
        parts.append("set aside " + _listed(told["set_aside"]))
    if told["repaired"]:
        parts.append("repaired " + _listed(told["repaired"]))
    if told["lost_events"]:
        places = ", ".join(f"byte {each['offset']:,} ({each['why']})" for each in told["lost"][:3])
        more = f" and {told['lost_events'] - 3:,} more" if told["lost_events"] > 3 else ""
        parts.append(
            f"lost {counted_in(told['lost_events'], 'piece')} of {told['lost_bytes']:,} bytes at {places}{more}"
        )
    if told["damage"]:
        parts.append(told["damage"])
    parts.append(_device_line(told))
    return "; ".join(parts)


def counted_in(number: int, noun: str) -> str:
    """`1 event`, `2,000 events`."""
    return counted(number, noun).replace(str(number), f"{number:,}", 1)


def _device_line(told: dict[str, Any]) -> str:
    if not told["device_events"]:
        return "no device events"
    busy = ", ".join(f"{_time(ns)} on device {device}" for device, ns in list(told["busy_ns"].items())[:SHOWN_DEVICES])
    if len(told["busy_ns"]) > SHOWN_DEVICES:
        busy += f" and more on {len(told['busy_ns']) - SHOWN_DEVICES:,} others"
    took = f" ({_time(told['unlinked_dur_ns'])})" if told["unlinked_dur_ns"] else ""
    odd = {
        f"without a launch{took}": told["unlinked"],
        "outside any step": told["outside_steps"],
        "overlapping on a stream": told["overlapping"],
        "beginning before their launch": told["before_launch"],
        "longer than their successors allow": told["suspiciously_long"],
    }
    notes = [f"{number:,} {what}" for what, number in odd.items() if number]
    return ", ".join([f"{counted_in(told['device_events'], 'device event')} busy {busy}", *notes])


def _time(ns: int) -> str:
    """Nanoseconds in the unit that suits them; every digit is kept."""
    for unit, size in (("ms", 10**6), ("us", 10**3)):
        if ns >= size:
            return f"{Decimal(ns) / size:,} {unit}"
    return f"{ns} ns"


def _listed(counts: dict[str, int]) -> str:
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return ", ".join(f"{number:,} {what}" for what, number in ordered)
