"""Programs under torch.profiler, their tables by torch and by analysis.table, and the figures in which they differ."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile

from analysis.store import open_store
from analysis.table import prepare
from runner.import_workers import import_all
from runner.imports import Imported

Key = tuple[str, bool, bool, str]
"""Name, whether it lies on the device, whether it is an annotation, shapes ('' where they tell no rows apart)."""
Difference = tuple[str, str, float, float]
"""Name, figure, torch's value, ours."""

FIGURES = {
    "count": "calls",
    "self_cpu_time_total": "self_host_us",
    "cpu_time_total": "torch_host_us",
    "self_device_time_total": "self_device_us",
    "device_time_total": "device_us",
    "cpu_memory_usage": "host_bytes",
    "self_cpu_memory_usage": "self_host_bytes",
    "device_memory_usage": "device_bytes",
    "self_device_memory_usage": "self_device_bytes",
}
"""Attributes of torch's rows, and our columns that should equal them."""


def profiled(program: Callable[[], Any], activities: list[ProfilerActivity], **options: Any) -> profile:
    """The profile of one call of a program."""
    with profile(activities=activities, **options) as prof:
        program()
    return prof


def ours(prof: profile, folder: Path, shapes: bool = False) -> dict[Key, dict[str, Any]]:
    """Our table of a profile, by way of its Chrome trace and an import."""
    path, store = folder / "program.json", folder / "store"
    prof.export_chrome_trace(str(path))
    (read,) = import_all([path], store, None)
    assert isinstance(read, Imported), read
    with open_store(store) as connection:
        prepare(connection, "workload=program", shapes)
        result = connection.execute("SELECT *, host_us + recounted_us AS torch_host_us FROM operator_table")
        names = [column[0] for column in result.description or ()]
        rows = [dict(zip(names, row, strict=True)) for row in result.fetchall()]
    return {
        (
            row["name"],
            row["kind"] in ("work", "shadow"),
            row["kind"] in ("annotation", "shadow"),
            (row["shapes"] or "").replace(" ", ""),
        ): row
        for row in rows
    }


def torchs(prof: profile, shapes: bool = False) -> dict[Key, Any]:
    """torch's rows of the same."""
    return {
        (
            each.key,
            each.device_type != torch.autograd.DeviceType.CPU,
            bool(each.is_user_annotation),
            str(each.input_shapes).replace(" ", "") if shapes else "",
        ): each
        for each in prof.key_averages(group_by_input_shape=shapes)
    }


def differences(rows: dict[Key, dict[str, Any]], torch_rows: dict[Key, Any]) -> list[Difference]:
    """What is not alike to 0.01 us a call or to the byte, after printing it; rows that one side lacks included."""
    found: list[Difference] = [(f"{key}", "row", 0, 1) for key in rows.keys() - torch_rows.keys()]
    found += [(f"{key}", "row", 1, 0) for key in torch_rows.keys() - rows.keys()]
    for key in rows.keys() & torch_rows.keys():
        for attribute, column in FIGURES.items():
            theirs, own = float(getattr(torch_rows[key], attribute)), float(rows[key][column] or 0)
            if abs(theirs - own) > 0.01 * max(1, torch_rows[key].count):
                found.append((key[0], attribute, theirs, own))
    for difference in sorted(found):
        print(*difference)
    return found
