"""Rows of one run -> the parts of its page, fit for JSON.

Long lists are columns, and a name stands once, in `names`. What does not fit is put together or left away by a stated
rule: `notes` says so in words, by section, with the numbers.
"""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from analysis.report.point_flame import Node, folded, operators, tree, walk
from analysis.report.point_phases import phases_part
from analysis.report.point_sql import shown_sql
from analysis.theme import compile_word, json_params, listed, number, plural, time_us

Row = dict[str, Any]
Rows = Mapping[str, Sequence[Row]]
Page = dict[str, Any]

LONGEST_NAME = 300
"""Characters of a name that are kept: templates of C++ have thousands."""
MOST_GAPS, MOST_STEPS, MOST_KERNELS, MOST_OPERATORS, MOST_SAMPLES = 250, 120, 40, 150, 1200

TIMES = {
    "wall_us": ("wall", "steady time a step, steps issued back to back"),
    "issue_us": ("issue", "host time to issue a step"),
    "device_us": ("device", "time a step when the host is never late"),
    "floor_us": ("floor", "the same operations at the smallest size, on one thread"),
    "replay_us": ("replay", "the step as a CUDA graph, without launches by the host"),
    "single_us": ("single", "one step between two synchronizes"),
    "busy_us": ("busy", "device intervals of a profiled step, overlaps counted once"),
    "blocked_us": ("blocked", "host time a step in calls that wait for the device"),
}
"""Column of bounds -> its name on the page, and what it is."""

FACETS = (
    ("host_late", "gaps_inside_step", "gaps_between_steps", "launch_queue", "host_far_above_device"),
    ("addmm_bias_copy", "fused_at_dispatcher_only"),
    ("compiled_call_cost", "compiled_host_above_eager", "compile_payback", "mode_helps", "skippable_guards"),
    ("wide_first_step", "profiler_buffer_request", "dead_stretch"),
    ("cudagraph_copies_inputs", "hidden_copy"),
    ("throttled", "wide_interval"),
    ("copies_dominate", "pageable_copy", "contiguous_copy"),
)
"""Rules that see one thing from several sides: the first that fired speaks for the others."""


class Names:
    """Texts by number, each once; a very long one is cut, and says so."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self._places: dict[str, int] = {}

    def __call__(self, text: str | None) -> int:
        """The number of a text."""
        whole = text or ""
        if whole not in self._places:
            self._places[whole] = len(self.texts)
            self.texts.append(_cut(whole))
        return self._places[whole]


def _cut(text: str) -> str:
    if len(text) <= LONGEST_NAME:
        return text
    return f"{text[:LONGEST_NAME]}… ({len(text):,} characters)"


def page(rows: Rows) -> Page:
    """The page of a run. rows: by what they are (READ in point.py), those of one run alone; `runs` has one."""
    [run] = rows["runs"]
    window = next(iter(rows["windows"]), None)
    names = Names()
    notes: dict[str, list[str]] = defaultdict(list)
    roots = tree(rows["paths"])
    parts = {
        "run": _run(run),
        "verdict": {name: _plain(run[name]) for name in VERDICT},
        "times": _times(run),
        "environment": _environment(run),
        "quality": _quality(run, rows["samples"]),
        "samples": _samples(rows["samples"], notes["samples"]),
        "condition": _condition(run),
        "steps": _steps(rows["steps"], window, notes["steps"]),
        "phases": phases_part(rows["phases"], rows["holders"], rows["memory_sums"], notes["phases"]),
        "kernels": _kernels(rows["kernels"], names, notes["kernels"]),
        "findings": _findings(rows["findings"]),
        "cures": [_without(cure, "run_id") for cure in rows["cures"]],
        "operators": _operators(roots, names, notes["operators"]),
        "timeline": _timeline(rows, window, names, notes["timeline"]),
        "flame": _flame(roots, window, names, notes["flame"]),
        "memory": _memory(rows["memory"], notes["memory"]),
    }
    shown = {
        "run": run["run_id"],
        "point": run["point_id"],
        "environment": run["environment_id"],
        "step": window and window["step"],
        "start": window and window["start_ns"],
        "end": window and window["end_ns"],
    }
    return {**parts, "names": names.texts, "notes": dict(notes), "sql": shown_sql(shown)}


# --- times and verdict ------------------------------------------------------------------------------------------------

VERDICT = (
    "bound",
    "sentence",
    "bound_reason",
    "margin",
    "margin_low",
    "margin_high",
    "confidence",
    "gain",
    "ok_runs",
    "issue_points",
    "device_method",
)


def _run(run: Row) -> Page:
    """What was measured: the axes as a title and as pairs of name and value."""
    axes = {
        name: run[name] for name in ("workload", "size", "dtype", "batch", "compile", "dynamic", "warmup", "device")
    }
    axes |= json_params(run)
    axes |= {"file": _object(run["audit"]).get("line")}
    words = [
        run["workload"],
        _counted("size", run["size"]),
        run["dtype"],
        _counted("batch", run["batch"]),
        compile_word(run["compile"]),
        "cold" if run["warmup"] == "false" else None,
    ]
    return {
        "run_id": run["run_id"],
        "point_id": run["point_id"],
        "title": " · ".join(str(word) for word in words if word),
        "axes": [[name, str(_plain(value))] for name, value in axes.items() if value is not None],
        "source": run["source"],
        "is_import": run["source"] == "import",
        "status": run["run_status"],
        "reason": run["reason"],
        "started_at": None if run["started_at"] is None else run["started_at"].isoformat(" ", "seconds"),
        "sweep_id": run["sweep_id"],
    }


def _counted(name: str, value: int | None) -> str | None:
    return None if value is None else f"{name} {value:,}"


def _times(run: Row) -> list[Page]:
    """Each time with its interval, or the reason why there is none; one that does not apply is left away."""
    reasons = _object(run["reasons"])
    found = []
    for column, (name, meaning) in TIMES.items():
        value, low, high = (_plain(run[f"{column}{end}"]) for end in ("", "_low", "_high"))
        if value is not None or column in reasons:
            found.append(
                {
                    "name": name,
                    "meaning": meaning,
                    "value": value,
                    "low": low,
                    "high": high,
                    "reason": reasons.get(column),
                }
            )
    return found


def _environment(run: Row) -> list[list[str]]:
    """Pairs of name and value: where it was measured, as far as it is known."""
    told = {
        "device": run["device_name"] or run["device"],
        "multiprocessors": run["multiprocessors"],
        "device memory": _bytes(run["memory_bytes"]),
        "highest clock": _with_unit(run["sm_clock_max_mhz"], "MHz"),
        "power limit": _with_unit(run["power_limit_w"], "W"),
        "driver": run["driver"],
        "CUDA": run["cuda_runtime"],
        "torch": run["torch"],
        "Python": run["python"],
        "host CPU": run["host_cpu"],
        "cores, threads": None if run["cores"] is None else f"{run['cores']}, {run['threads']}",
        "affinity": run["affinity"],
        "host": run["host"],
        "card": run["device_index"],
        "environment": run["environment_id"],
    }
    return [[name, str(value)] for name, value in told.items() if value is not None]


def _condition(run: Row) -> list[list[str]]:
    """Pairs of name and value: the device while the point was measured, and right at its profile."""
    told = [
        ["clock, median of the point", _with_unit(run["sm_clock_mhz"], "MHz")],
        ["power, median of the point", _with_unit(run["power_w"], "W")],
        ["temperature, median of the point", _with_unit(run["temperature_c"], "°C")],
    ]
    for name, key in (("before", "window_before"), ("behind", "window_behind")):
        seen = _object(run[key])
        words = [
            _with_unit(seen.get(what), unit)
            for what, unit in (("sm_clock_mhz", "MHz"), ("power_w", "W"), ("temperature_c", "°C"))
        ]
        told.append([f"right {name} the profile", ", ".join(word for word in words if word) or None])
    return [[name, value] for name, value in told if name and value is not None]


FULL_CLOCK = 0.95
"""Share of its highest clock from which on a device is not slowed, as in the rule `throttled`."""


def _clock(run: Row, causes: str) -> str | None:
    """What the reasons to lower the clock did, where both clocks are known."""
    clock, highest = run["sm_clock_mhz"], run["sm_clock_max_mhz"]
    if clock is None or not highest:
        return f"The device told reasons to lower its clock: {causes}."
    if clock >= FULL_CLOCK * highest:
        return None
    return f"The device ran at {number(clock, 4)} of {number(highest, 4)} MHz: {causes}."


def _quality(run: Row, samples: Sequence[Row]) -> list[str]:
    """What to mind about the run's figures, a sentence each."""
    disturbed = sum(row["quantity"].endswith("_disturbed") for row in samples)
    causes = _list(run["throttle_reasons"])
    audit = _object(run["audit"])
    told = [
        run["run_status"] != "ok" and f"The run is {run['run_status']}: {run['reason'] or 'no reason was given'}.",
        run["contended"] and "Something else used the host while the point was measured.",
        run["host_noise"]
        and "The issue time is far from that of all points that launch the same: the host was disturbed.",
        run["other_processes"] and f"{plural(run['other_processes'], 'other process')} used the device meanwhile.",
        causes and _clock(run, listed(sorted(map(str, causes)))),
        disturbed
        and f"{disturbed:,} of {len(samples):,} samples were disturbed and taken again; they are drawn as crosses.",
        run["trace_incomplete"] and "The trace is incomplete: its launches and its device work do not match.",
        (run["unattributed_frac"] or 0) > 0
        and f"{number(100 * run['unattributed_frac'])} % of the device time has no launch in the trace.",
        run["profile_reason"] and f"There is no trace: {run['profile_reason']}.",
        (run["perturbation"] or 0) > 1
        and f"The profiler slows the host {number(run['perturbation'])} times: host times below are with its cost.",
        audit.get("lost_events") and f"{audit['lost_events']:,} events of the file could not be read.",
        audit.get("truncated") and "The file ends early: it was cut off.",
        audit.get("damage") and f"The file is damaged: {audit['damage']}.",
    ]
    return [str(sentence) for sentence in told if sentence]


# --- samples and steps ------------------------------------------------------------------------------------------------


def _samples(rows: Sequence[Row], notes: list[str]) -> list[Page]:
    """Strips, one a quantity: values (microseconds), their place among all, their round, and which were disturbed."""
    kept = _thinned(rows, MOST_SAMPLES)
    if len(kept) < len(rows):
        notes.append(f"{len(kept):,} of {len(rows):,} samples are drawn, every {len(rows) / len(kept):.1f}th.")
    strips: dict[str, list[Row]] = defaultdict(list)
    for row in kept:
        strips[row["quantity"].removesuffix("_disturbed")].append(row)
    return [
        {
            "name": name,
            "value": [_plain(row["value"], 3) for row in strip],
            "round": [row["round"] for row in strip],
            "position": [row["position"] for row in strip],
            "disturbed": [place for place, row in enumerate(strip) if row["quantity"].endswith("_disturbed")],
        }
        for name, strip in strips.items()
    ]


def _thinned(rows: Sequence[Row], most: int) -> Sequence[Row]:
    """At most so many of the rows, evenly over all."""
    return rows if len(rows) <= most else [rows[place * len(rows) // most] for place in range(most)]


def _steps(rows: Sequence[Row], window: Row | None, notes: list[str]) -> Page | None:
    """Columns: host, busy and wall time (microseconds), launches, kernels; typical: the place of the typical step."""
    if not rows:
        return None
    kept = list(rows)
    if len(rows) > MOST_STEPS:
        middle = next((place for place, row in enumerate(rows) if row["is_typical"]), 0)
        first = min(max(0, middle - MOST_STEPS // 2), len(rows) - MOST_STEPS)
        kept = list(rows[first : first + MOST_STEPS])
        notes.append(f"{len(kept):,} of {len(rows):,} steps are shown, those around the typical one.")
    columns = _columns(kept, ("step", "kind", "host_us", "busy_us", "wall_us", "launches", "kernels"))
    typical = [place for place, row in enumerate(kept) if row["is_typical"]]
    return {**columns, "typical": typical[0] if typical else None, "all": len(rows)}


# --- kernels ----------------------------------------------------------------------------------------------------------

DECODED = {
    "library": "",
    "family": "",
    "operation": "",
    "functor": "",
    "tile": "tile ",
    "stages": "stages ",
    "epilogue": "epilogue ",
    "architecture": "built for ",
}


def _kernels(rows: Sequence[Row], names: Names, notes: list[str]) -> list[Page]:
    """Kernels by their total time, with what their names say."""
    kept = rows[:MOST_KERNELS]
    if len(kept) < len(rows):
        rest = sum(row["total_us"] for row in rows[MOST_KERNELS:])
        share = rest / (sum(row["total_us"] for row in rows) or 1)
        notes.append(
            f"The {MOST_KERNELS} kernels of the largest totals of {len(rows):,}; the others take together "
            f"{time_us(rest)}, {number(100 * share)} % of the time of all kernels."
        )
    return [_kernel(row, names) for row in kept]


def _kernel(row: Row, names: Names) -> Page:
    figures = (
        "calls", "median_us", "min_us", "max_us", "total_us", "share", "grid", "block", "registers_per_thread",
        "shared_memory_bytes", "occupancy", "waves", "blocks", "threads_per_block",
    )  # fmt: skip
    return {
        "name": names(row["name"]),
        "decoded": _decoded(row),
        **{name: _plain(row[name], 4) for name in figures},
    }


def _decoded(row: Row) -> list[str]:
    """What the name of a kernel says, in a few words each."""
    words = [f"{before}{row[column]}" for column, before in DECODED.items() if row[column] is not None]
    types = [row[column] for column in ("input_type", "accumulation_type", "output_type")]
    if any(types):
        words.insert(2, " → ".join(str(kind or "?") for kind in types))
    elif row["element_type"]:
        words.insert(2, row["element_type"])
    if row["tensor_core"]:
        words.append("tensor cores")
    if row["split_k"]:
        words.append("split K")
    if row["fused_ops"]:
        words.append(f"fuses {listed([str(name) for name in row['fused_ops']])}")
    return [_cut(str(word)) for word in words]


# --- findings ---------------------------------------------------------------------------------------------------------


def _findings(rows: Sequence[Row]) -> list[Page]:
    """Findings, the most severe first; those that see one thing from several sides are one with others in `also`."""
    by_rule = {row["rule"]: row for row in rows}
    follows: dict[str, str] = {}
    for facets in FACETS:
        fired = [rule for rule in facets if rule in by_rule]
        follows |= dict.fromkeys(fired[1:], fired[0]) if fired else {}
    heads = {rule: _finding(row) for rule, row in by_rule.items() if rule not in follows}
    for rule, head in follows.items():
        heads[head]["also"].append(_finding(by_rule[rule]))
    return list(heads.values())


def _finding(row: Row) -> Page:
    shown = {
        name: _plain(row[name])
        for name in ("rule", "topic", "severity", "sentence", "cure", "gain", "reason", "source")
    }
    return {**shown, "events": row["events"] or [], "also": []}


# --- the trace --------------------------------------------------------------------------------------------------------


def _operators(roots: Sequence[Node], names: Names, notes: list[str]) -> Page | None:
    """Columns: calls, self and total time of host and device (microseconds) of each operator of the typical step."""
    rows = operators(roots)
    if not rows:
        return None
    kept = rows[:MOST_OPERATORS]
    if len(kept) < len(rows):
        rest = sum(row["self_host_us"] for row in rows[MOST_OPERATORS:])
        notes.append(
            f"The {len(kept)} of the largest self times of {len(rows):,}; the others take {time_us(rest)} of the host."
        )
    columns = _columns(kept, ("calls", "self_host_us", "host_us", "self_device_us", "device_us"))
    return {"name": [names(row["name"]) for row in kept], "category": [row["category"] for row in kept], **columns}


def _flame(roots: Sequence[Node], window: Row | None, names: Names, notes: list[str]) -> Page | None:
    """Columns of nodes, each behind the one that it lies in (`above`, -1 for none): own times (microseconds), calls."""
    if not roots:
        return None
    nodes = list(walk(roots))
    kept = list(walk(folded(roots)))
    if len(kept) < len(nodes):
        put = sum(node.folded for node in kept)
        notes.append(f"{put:,} of {len(nodes):,} call paths are small and drawn together, with all of their time.")
    places = {id(node): place for place, node in enumerate(kept)}
    above = {id(child): places[id(node)] for node in kept for child in node.children}
    categories = Names()
    return {
        "step": window and window["step"],
        "name": [names(node.name) for node in kept],
        "above": [above.get(id(node), -1) for node in kept],
        "host_us": [_plain(node.host_us, 3) for node in kept],
        "device_us": [_plain(node.device_us, 3) for node in kept],
        "calls": [node.calls for node in kept],
        "category": [categories(node.category) for node in kept],
        "categories": categories.texts,
        "event": [node.event_id for node in kept],
    }


def _timeline(rows: Rows, window: Row | None, names: Names, notes: list[str]) -> Page | None:
    """Lanes, and columns of the blocks in them: from and dur in nanoseconds from the start of the window."""
    blocks = rows["timeline"]
    if window is None or not blocks:
        return None
    notes.extend(_scope(window, blocks))
    lanes, lane_of = _lanes(blocks)
    places = {row["block_id"]: place for place, row in enumerate(blocks)}
    categories, details = Names(), Names()
    details("")
    return {
        "step": window["step"],
        "view": _view(window),
        "length_ns": window["end_ns"] - window["start_ns"],
        "lanes": lanes,
        "from": [row["from_ns"] for row in blocks],
        "dur": [row["dur_ns"] for row in blocks],
        "name": [names(row["name"]) for row in blocks],
        "lane": [lane_of[_lane_key(row)] for row in blocks],
        "depth": [row["depth"] for row in blocks],
        "category": [categories(row["category"]) for row in blocks],
        "id": [row["block_id"] for row in blocks],
        "in_step": [row["step"] for row in blocks],
        "launch": [places.get(row["launch_block"], -1) for row in blocks],
        "detail": [details(_detail(row)) for row in blocks],
        "together": [
            [place, row["events"], row["names"], row["busy_ns"]]
            for place, row in enumerate(blocks)
            if row["events"] > 1
        ],
        "categories": categories.texts,
        "details": details.texts,
        "gaps": _gaps(rows["gaps"], notes),
        "bands": _columns(rows["bands"], ("step", "is_typical", "from_ns", "to_ns", "device_from_ns", "device_to_ns")),
    }


def _view(window: Row) -> list[int]:
    """The part that is seen first: the typical step with its neighbours, else all."""
    if window["view_start_ns"] is None:
        return [0, window["end_ns"] - window["start_ns"]]
    return [window["view_start_ns"] - window["start_ns"], window["view_end_ns"] - window["start_ns"]]


def _scope(window: Row, blocks: Sequence[Row]) -> list[str]:
    """In words: which part of the trace is drawn, what was put together, what is drawn nowhere."""
    events = sum(row["events"] for row in blocks)
    together = [row for row in blocks if row["events"] > 1]
    steps = _steps_words(window)
    if window["scope"] == "trace":
        told = [f"All {events:,} events of the profiled window are drawn; the view opens on {steps}."]
    else:
        told = [f"Drawn is {steps}: {events:,} of {window['traced']:,} events of the trace, those of its time."]
    if together:
        merged = sum(row["events"] for row in together)
        longest = max(row["longest_ns"] for row in together)
        told.append(
            f"{merged:,} events of at most {time_us(longest / 1e3)}, of {events:,}, are drawn as "
            f"{plural(len(together), 'block')}, which are striped and say what they hold."
        )
    if window["shadows"]:
        told.append(f"Left out: {plural(window['shadows'], 'record')} of spans that are no work of their own.")
    return told


def _steps_words(window: Row) -> str:
    if window["step"] is None:
        return "the whole trace, in which no step was found"
    typical = f"step {window['step']}, {'the typical one' if window['steps'] > 1 else 'the only one'}"
    beside = window["last_step"] - window["first_step"]
    return typical if beside == 0 else f"steps {window['first_step']} to {window['last_step']} ({typical})"


def _lane_key(row: Row) -> tuple[Any, ...]:
    return (row["is_device"], row["is_profiler"], row["device"], row["stream"], row["pid"], row["tid"])


def _lanes(blocks: Sequence[Row]) -> tuple[list[Page], dict[tuple[Any, ...], int]]:
    """Lanes in the order of the blocks: the profiler's own work, threads of the host, streams of devices."""
    rows: dict[tuple[Any, ...], int] = defaultdict(int)
    for row in blocks:
        rows[_lane_key(row)] = max(rows[_lane_key(row)], row["depth"] + 1)
    lanes = [_lane(key, deep) for key, deep in rows.items()]
    return lanes, {key: place for place, key in enumerate(rows)}


def _lane(key: tuple[Any, ...], rows: int) -> Page:
    is_device, is_profiler, device, stream, pid, tid = key
    if is_device:
        name = f"device {device} · stream {stream}"
    else:
        name = "the profiler's own work" if is_profiler else f"host {pid} · thread {tid}"
    side = "device" if is_device else "profiler" if is_profiler else "host"
    return {"name": name, "side": side, "device": device, "rows": rows}


def _detail(row: Row) -> str:
    """The launch parameters, bytes or input shapes of an event, in one line; of blocks nothing."""
    if row["events"] > 1:
        return ""
    words = [
        row["grid"] and f"grid {_times_sign(row['grid'])}",
        row["block"] and f"block {_times_sign(row['block'])}",
        row["registers_per_thread"] is not None and f"{row['registers_per_thread']} registers a thread",
        row["shared_memory_bytes"] and f"{_bytes(row['shared_memory_bytes'])} of shared memory a block",
        row["bytes"] is not None and str(_bytes(row["bytes"])),
        row["shapes"] and f"shapes {_cut(row['shapes'])}",
    ]
    return " · ".join(str(word) for word in words if word)


def _times_sign(values: Iterable[int]) -> str:
    return " × ".join(f"{value:,}" for value in values)


def _gaps(rows: Sequence[Row], notes: list[str]) -> Page:
    """Columns of the longest gaps; detail: what was seen."""
    kept = [row for row in rows if row["place"] <= MOST_GAPS]
    left = [row for row in rows if row["place"] > MOST_GAPS]
    if left:
        total_us = sum(row["dur_ns"] for row in left) / 1e3
        notes.append(
            f"The {len(kept)} longest of {len(rows):,} gaps of the device are hatched; the others are at most "
            f"{time_us(left[0]['dur_ns'] / 1e3)} long and take {time_us(total_us)} together."
        )
    causes, details = Names(), Names()
    return {
        **_columns(kept, ("device", "start_ns", "dur_ns")),
        "cause": [causes(row["cause"]) for row in kept],
        "detail": [details(row["detail"]) for row in kept],
        "causes": causes.texts,
        "details": details.texts,
    }


def _memory(rows: Sequence[Row], notes: list[str]) -> list[Page]:
    """Of each device the allocator's step lines: at (nanoseconds from the start of the timeline), bytes."""
    devices: dict[int | None, list[Row]] = defaultdict(list)
    for row in rows:
        devices[row["device"]].append(row)
    changes = sum(row["changes"] for row in rows)
    if changes > len(rows):
        notes.append(
            f"{changes:,} changes are drawn as {len(rows):,} points: of each short while the moment of most memory."
        )
    return [
        {"device": device, **_columns(found, ("at_ns", "allocated_bytes", "reserved_bytes"))}
        for device, found in devices.items()
    ]


# --- pieces -----------------------------------------------------------------------------------------------------------


def _columns(rows: Sequence[Row], names: Sequence[str]) -> Page:
    return {name: [_plain(row[name], 3) for row in rows] for name in names}


def _plain(value: Any, digits: int | None = None) -> Any:
    """A value as JSON has it: no infinities, no more digits after the point than asked for."""
    if isinstance(value, float):
        if not math.isfinite(value):
            return None
        value = round(value, digits) if digits is not None else value
        return int(value) if value == int(value) else value
    return value


def _without(row: Row, *names: str) -> Page:
    return {name: _plain(value) for name, value in row.items() if name not in names}


def _json(text: str | None) -> Any:
    try:
        return json.loads(text or "null")
    except ValueError:
        return None


def _object(text: str | None) -> dict[str, Any]:
    value = _json(text)
    return value if isinstance(value, dict) else {}


def _list(text: str | None) -> list[Any]:
    value = _json(text)
    return value if isinstance(value, list) else []


def _with_unit(value: float | None, unit: str) -> str | None:
    return None if value is None else f"{number(value)} {unit}"


def _bytes(count: float | None) -> str | None:
    """Bytes with their unit, a power of 1,024, as on the rest of the page."""
    if count is None:
        return None
    for size, unit in ((2.0**30, "GiB"), (2.0**20, "MiB"), (2.0**10, "KiB")):
        if count >= size:
            return f"{number(count / size)} {unit}"
    return f"{count:,} B"
