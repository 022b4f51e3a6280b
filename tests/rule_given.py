"""A small trace in microseconds, and what the rules say of it: given, expected."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from given import write_store

from analysis.rules import all_rules, judge
from analysis.store import open_store

DEVICE_WORK = ("kernel", "gpu_memcpy", "gpu_memset")
H200 = {
    "device_name": "NVIDIA H200", "compute_capability": "9.0", "multiprocessors": 132,
    "threads_per_multiprocessor": 2048, "registers_per_multiprocessor": 65536,
    "shared_memory_per_multiprocessor_bytes": 233472,
}  # fmt: skip


class Trace:
    """Events of one run, added in any order; parents and depths follow from nesting on one thread.

    Steps are annotations of the workload's name inside `ProfilerStep#N`, as a sweep records them.
    """

    def __init__(self, workload: str = "matmul_add") -> None:
        self.workload = workload
        self._events: list[dict[str, Any]] = []

    def step(self, step: int, start_us: float, dur_us: float) -> None:
        """The annotations of a step: the workload's, and the profiler's, 1 us longer on both sides."""
        self.host(f"ProfilerStep#{step}", start_us - 1, dur_us + 2, step, "user_annotation")
        self.host(self.workload, start_us, dur_us, step, "user_annotation")

    def host(
        self, name: str, start_us: float, dur_us: float, step: int | None, category: str = "cpu_op", **more: Any
    ) -> int:
        """An event of the host; its event_id."""
        return self._add(name, category, start_us, dur_us, step, **{"tid": "1", "is_device": False, **more})

    def call(self, name: str, start_us: float, dur_us: float, step: int | None, **more: Any) -> int:
        """A call of the CUDA runtime (driver: names that begin with `cu`, but not `cuda`)."""
        category = "cuda_runtime" if name.startswith("cuda") else "cuda_driver"
        return self.host(name, start_us, dur_us, step, category, **more)

    def work(
        self, name: str, start_us: float, dur_us: float, step: int | None, launch_id: int | None = None,
        category: str = "kernel", **more: Any,
    ) -> int:  # fmt: skip
        """An event of the device, on stream 7; its event_id."""
        given = {"is_device": True, "device": 0, "stream": 7, "tid": "7", "launch_id": launch_id, **more}
        return self._add(name, category, start_us, dur_us, step, **given)

    def launched(
        self, name: str, call_us: float, start_us: float, dur_us: float, step: int | None,
        call: str = "cudaLaunchKernel", category: str = "kernel", **more: Any,
    ) -> int:  # fmt: skip
        """A call of 2 us, and the device event that it launched; the event_id of the latter."""
        return self.work(name, start_us, dur_us, step, self.call(call, call_us, 2, step), category, **more)

    def events(self, run_id: str = "r000") -> list[dict[str, Any]]:
        """The rows of `events`."""
        return [{**event, **self._nesting(event), "run_id": run_id} for event in self._events]

    def _add(self, name: str, category: str, start_us: float, dur_us: float, step: int | None, **more: Any) -> int:
        event_id = len(self._events)
        times = {"ts_ns": round(start_us * 1000), "dur_ns": round(dur_us * 1000)}
        named = {"event_id": event_id, "name": name, "category": category, "pid": "1", "step": step}
        self._events.append(named | times | more)
        return event_id

    def _nesting(self, event: Mapping[str, Any]) -> dict[str, Any]:
        if event["is_device"]:
            return {"parent_id": None, "depth": 0}
        around = [other for other in self._events if not other["is_device"] and _holds(other, event)]
        nearest = min(around, key=lambda other: (other["dur_ns"], -other["event_id"]), default=None)
        return {"parent_id": nearest["event_id"] if nearest else None, "depth": len(around)}


def _holds(outer: Mapping[str, Any], inner: Mapping[str, Any]) -> bool:
    """Equal ones: the earlier added is the outer one."""
    if outer is inner or (outer["pid"], outer["tid"]) != (inner["pid"], inner["tid"]):
        return False
    spans = [(each["ts_ns"], each["ts_ns"] + each["dur_ns"]) for each in (outer, inner)]
    if spans[0] == spans[1]:
        return bool(outer["event_id"] < inner["event_id"])
    return spans[0][0] <= spans[1][0] and spans[1][1] <= spans[0][1]


def outcome(
    folder: Path, rule: str, trace: Trace | list[Trace], run: Mapping[str, Any] | list[Mapping[str, Any]] | None = None,
    environment: Mapping[str, Any] | None = None,
) -> dict[str, Any]:  # fmt: skip
    """What a rule says of the first run: outcome and reason; where it fired, the columns of `findings` as well.

    trace, run: of one run, or of several in their order; environment: columns of the only one, an H200's by default.
    """
    traces = trace if isinstance(trace, list) else [trace]
    runs = run if isinstance(run, list) else [run or {}]
    events = [event for number, each in enumerate(traces) for event in each.events(f"r{number:03d}")]
    store = write_store(folder, runs=runs, events=events, environments=[{**H200, **(environment or {})}])
    with open_store(store) as connection:
        judge(connection, rules=[each for each in all_rules() if each.rule == rule])
        rows = connection.execute(
            "SELECT outcome, o.reason, f.* EXCLUDE (reason) FROM rule_outcomes AS o "
            'LEFT JOIN findings AS f USING (run_id, "rule") '
            "WHERE run_id = 'r000' AND o.\"rule\" = ?",
            [rule],
        )
        names = [column[0] for column in rows.description or ()]
        (found,) = rows.fetchall()
    return dict(zip(names, found, strict=True))
