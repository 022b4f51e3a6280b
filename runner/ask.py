"""`python -m runner ask`: one step, measured in seconds and told in five lines. Nothing is stored. Imports no torch."""

from __future__ import annotations

import asyncio
import json
import math
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from runner import custom, tables
from runner.composition import compose
from runner.config import Job
from runner.errors import in_one_sentence, wrong_input
from runner.law import BALANCED, DEVICE, OVERHEAD, SERIAL, Verdict, ratio
from runner.machine import Machine
from runner.plan import Plan
from runner.point import PointError
from runner.process import WorkerDied, WorkerHangs
from runner.progress import duration
from runner.station import OPEN_S, Shop, Station
from runner.statistics import Estimate
from runner.store import Store, new_id
from runner.task import Found, Measurement, Task
from runner.trace import join, read_trace
from runner.window import Window, summarize

NOTHING_DONE, FAILED = 1, 2
ANSWERS = 0.5
"""A slope above this answers: the step becomes longer by more than half of what was added (analysis/sql/law.sql)."""
BAND = 1.1
"""A margin within this ratio of 1 is near the crossing: what is added to a step there may carry it across."""
NEITHER = "neither"
"""What slopes say that are both below ANSWERS."""
WORTH = 1.02
"""A gain below this is none."""
LEAST_KERNEL_US = 0.5
"""No kernel is shorter; a step of less device time launches none."""

USAGE = """python -m runner ask TARGET [key=value ...]

Measures one step on this machine in about ten seconds and tells in five lines: its times, what binds it, how it answers
to more host and more device work, what a CUDA graph would gain, and where that was. Nothing is stored.

  TARGET     path/to/file.py:build or package.module:build, your own function; or the name of a workload (matmul_add)
  key=value  as in a sweep: size, batch, dtype, compile, device, measure=thorough, ... (`python -m runner --help`)

build(point) returns the step: a function (or torch.nn.Module) and a tuple of its arguments, or a function that needs
none. point has size, batch, seed, and torch's own dtype and device:

  def build(point):
      x = torch.randn(point.size, point.size, dtype=point.dtype, device=point.device)
      return torch.nn.functional.gelu, (x,)

examples:
  python -m runner ask bench.py:build size=512
  python -m runner ask bench.py:build size=512 dtype=fp32 compile=true
  python -m runner ask matmul_add size=1024

exit code: 0 well; 1 nothing could be done, wrong usage and errors in your file included; 2 the step failed
"""


@dataclass(frozen=True, slots=True)
class Answer:
    """What was measured. row: as a sweep would store it; seconds: of the whole command."""

    job: Job
    row: dict[str, Any]
    found: Found
    seconds: float


def main(arguments: Sequence[str]) -> int:
    """Answer on stdout; what goes wrong is one sentence on stderr. The exit code."""
    if not arguments or {"-h", "--help"} & set(arguments):
        print(USAGE, end="", file=sys.stdout if arguments else sys.stderr)
        return 0 if arguments else NOTHING_DONE
    started = time.monotonic()
    with in_one_sentence(wrong_input):
        plan = planned(arguments)
    with in_one_sentence():
        job, row, found = asyncio.run(_measured(plan))
    if row["status"] != "ok":
        print(f"error: {row['reason']}", file=sys.stderr)
        return _code(row)
    print("\n".join(lines(Answer(job, row, found, time.monotonic() - started))))
    return 0


def _code(row: dict[str, Any]) -> int:
    """Of a step that was not measured: an exception of the user's own code is no result, whatever else happens is."""
    return NOTHING_DONE if row["workload"] == "custom" and row["status"] == "failed" else FAILED


# -- the command line --------------------------------------------------------------------------------------------------


def planned(arguments: Sequence[str]) -> Plan:
    """The plan of the one point that is asked about. Raises PointError, and what Hydra raises."""
    if options := [each for each in arguments if each.startswith("-")]:
        raise PointError(f"{options[0]}: ask takes no option but --help; allowed is TARGET [key=value ...].")
    target, *settings = arguments
    if "=" in target:
        raise PointError(f"{target}: the first word is what to measure; for example ask bench.py:build {target}.")
    plan = Plan(_composed([*_named(target), "measure.slopes_every=1", *settings]))
    point = plan[0].point
    if point.spec.idle or point.cold:
        why = f"{point.workload} does nothing" if point.spec.idle else "warmup=false: a cold point has no steady state"
        raise PointError(f"{why}, so that nothing binds it; ask about another step.")
    return plan


def _named(target: str) -> list[str]:
    if not custom.is_target(target):
        return [f"workload={target}"]
    quoted = target.replace('"', '\\"')
    return ["workload=custom", f'workload.target="{quoted}"']


def _composed(overrides: Sequence[str]) -> Sequence[dict[str, Any]]:
    """The configuration of these overrides; Hydra reads them from the command line."""
    given, sys.argv[1:] = sys.argv[1:], list(overrides)
    try:
        return compose().points
    finally:
        sys.argv[1:] = given


# -- the measuring -----------------------------------------------------------------------------------------------------


async def _measured(plan: Plan) -> tuple[Job, dict[str, Any], Found]:
    """The point's row, measured on the first device that may be used. Raises what keeps it from being tried."""
    shop = Shop(Store(plan.settings.store), plan.settings, lambda text: print(text, file=sys.stderr))
    machine = Machine(plan, shop)
    try:
        await machine.look()
        (kind,) = machine.kinds()
        job = machine.resolved(plan[0])
        async with machine.stations(kind) as stations:
            await stations[0].take_lock()
            return job, await _row(stations[0], job), machine.found(job)
    finally:
        await machine.close()


async def _row(station: Station, job: Job) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="crossover-") as folder:
        done = await _answer(station, job, folder)
        found = station.found(job.interpreter)
        window, streams = _window(job, done, found)
        identity = tables.Identity(new_id(), new_id(), found.environment_id, datetime.now(UTC), 0, "given")
        return tables.run_row(job.point, identity, done, window, streams, found.attributes)


async def _answer(station: Station, job: Job, folder: str) -> Measurement:
    """The worker's answer, without the rehearsal of a sweep: its profiler sessions would take longer than the step."""
    worker = (await station.seat(job.interpreter)).worker
    try:
        async with asyncio.timeout(OPEN_S):
            await worker.ask("hold", None, [station.lock.handle] if station.lock else [])
            await worker.ask("open", (station.kind, station.index))
    except TimeoutError:
        raise WorkerHangs(f"{station.name} does not open within {OPEN_S:g} s{worker.last_words()}") from None
    task = Task(job.point, job.target, job.max_step_s, job.slopes, job.recorder, False, {}, folder)
    try:
        return await station.measure(worker, ("times", task), job.timeout_s)
    except WorkerDied as death:
        return Measurement(death.status, str(death))


def _window(job: Job, done: Measurement, found: Found) -> tuple[Window | None, int]:
    """Figures of the profile and how many streams it saw, where only a profile could tell the device's time."""
    events = join([read_trace(Path(each).read_bytes()) for each in done.traces])
    if not events:
        return None, 0
    streams = {event.stream for event in events if event.is_device and event.step is not None}
    return summarize(events, job.point.workload, found.columns["multiprocessors"]), len(streams)


# -- the five lines ----------------------------------------------------------------------------------------------------


def lines(answer: Answer) -> list[str]:
    """Times, bound, slopes, graph, where."""
    row, verdict = answer.row, tables.verdict(answer.row)
    told = {
        "times": _times(row), "bound": _bound(row, verdict), "slopes": _slopes(row, verdict), "graph": _graph(row),
        "where": _where(answer),
    }  # fmt: skip
    return [f"{name:7} {text}" for name, text in told.items()]


def _times(row: dict[str, Any]) -> str:
    names = ("wall", "issue", "blocked", "device", "replay", "single", "floor")
    taken = [f"{name} {_with_interval(each)}" for name in names if (each := _estimate(row, f"{name}_us"))]
    busy = "; something else used the host meanwhile" if _facts(row).get("host_contended") else ""
    return ", ".join(taken) + busy


def _bound(row: dict[str, Any], verdict: Verdict) -> str:
    wall, issue, device, floor = (_estimate(row, f"{name}_us") for name in ("wall", "issue", "device", "floor"))
    margin = f" ({_margin(row, verdict.margin)})" if verdict.margin else ""
    if row["device"] == "cpu" and floor is None:
        return (
            "unknown: your own step has no floor to compare with on the CPU; ask again with twice the work: where that "
            "takes less than 1.5 times as long, overhead binds"
        )
    if verdict.bound == SERIAL:
        calls = ", ".join(_facts(row).get("blocking_calls", {}))
        return f"serialized: the host waits for the device in every step ({calls}), so that their times add up"
    if issue and device and device.value < LEAST_KERNEL_US:
        return f"{verdict.bound}: the device has nothing to do; make the inputs with device=point.device"
    if issue and device and verdict.bound in _TERMS:
        return f"{verdict.bound}: {_TERMS[verdict.bound].format(duration(issue.value), duration(device.value))}{margin}"
    if wall and floor and verdict.reason is None:
        return f"{verdict.bound}: of {duration(wall.value)} a step {duration(floor.value)} are overhead{margin}"
    return f"{verdict.bound}: {verdict.reason}{margin}"


_TERMS = {
    OVERHEAD: "the host needs {0} to issue what the device does in {1}",
    DEVICE: "the device needs {1} for what the host issues in {0}",
    BALANCED: "the host issues a step in {0} and the device needs {1}, too alike to tell which binds",
}


def _margin(row: dict[str, Any], margin: Estimate) -> str:
    terms = "floor / work" if row["device"] == "cpu" else "issue / device"
    return f"{terms} = {_between(margin)}"


def _slopes(row: dict[str, Any], verdict: Verdict) -> str:
    """How the step answers to more work; on the CPU, where host and device are one, to twice the work."""
    if row["device"] == "cpu":
        return _doubled(row, verdict)
    host, device = _estimate(row, "host_slope"), _estimate(row, "device_slope")
    if host is None or device is None:
        return f"none: {_reason(row, 'host_slope')}"
    added = f"adds {host.value:.2f} us ({host.low:.2f} to {host.high:.2f}) to a step"
    slept = f"{device.value:.2f} us ({device.low:.2f} to {device.high:.2f})"
    told = f"1 us more of host work {added}, of device work {slept}"
    blocks = bool(_facts(row).get("blocking_calls"))
    return f"{told}: {_agreement(slopes_verdict(host, device, verdict.margin, blocks), verdict.bound)}"


def _doubled(row: dict[str, Any], verdict: Verdict) -> str:
    share = _facts(row).get("work_share")
    if share is None:
        return f"none on the CPU, and {_reason(row, 'doubled_us')}"
    longer = Estimate(*share)
    told = f"a step {longer.value:.0%} longer ({longer.low:.0%} to {longer.high:.0%})"
    return f"none on the CPU; twice the work makes {told}: {_agreement(doubling_verdict(longer), verdict.bound)}"


def slopes_verdict(host: Estimate, device: Estimate, margin: Estimate | None, blocks: bool) -> str | None:
    """The bound that the slopes alone say, by analysis/sql/law.sql; None where their intervals leave it open.

    margin tells only whether the step is near the crossing, blocks whether it waits for the device.
    """
    near = margin is not None and margin.value > 0 and abs(math.log(margin.value)) <= math.log(BAND)
    if (blocks or not near) and min(host.low, device.low) > ANSWERS:
        return SERIAL
    if not near and max(host.high, device.high) < ANSWERS:
        return NEITHER
    if host.low > device.high:
        return OVERHEAD
    return DEVICE if device.low > host.high else None


def doubling_verdict(share: Estimate) -> str | None:
    """The bound that twice the work says, by analysis/sql/truth.sql; None where its interval leaves it open."""
    if share.low > ANSWERS:
        return DEVICE
    return OVERHEAD if share.high < ANSWERS else None


def _agreement(told: str | None, bound: str) -> str:
    if told is None:
        return "too wide an interval to tell which binds"
    if told == NEITHER:
        return "it answers to neither"
    if bound == told:
        return "both say the same"
    return told if bound not in (OVERHEAD, DEVICE, SERIAL) else f"they say {told}, so do not trust the bound"


def _graph(row: dict[str, Any]) -> str:
    wall, replay = _estimate(row, "wall_us"), _estimate(row, "replay_us")
    if row["device"] == "cpu":
        return "none: a CUDA graph needs a CUDA device"
    if wall is None or replay is None:
        return f"none: {_reason(row, 'replay_us')}"
    if replay.value < LEAST_KERNEL_US:
        return "none: the step launches nothing that it could hold"
    gain = ratio(wall, replay)
    if gain.value < WORTH:
        return f"replayed from a CUDA graph a step takes {duration(replay.value)}: nothing to gain"
    return f"replayed from a CUDA graph a step takes {duration(replay.value)}, {_between(gain)} times less"


def _where(answer: Answer) -> str:
    facts, columns = _facts(answer.row), answer.found.columns
    return (
        f"{answer.job.label} on {columns['device_name']}, torch {columns['torch']}; "
        f"{facts['rounds']} rounds in {facts['measured_s']:.2g} s, {answer.seconds:.1f} s in all"
    )


def _facts(row: dict[str, Any]) -> dict[str, Any]:
    facts = json.loads(row["facts"])
    assert isinstance(facts, dict)
    return facts


def _reason(row: dict[str, Any], name: str) -> str:
    return str(_facts(row)["reasons"].get(name, "it was not measured"))


def _estimate(row: dict[str, Any], name: str) -> Estimate | None:
    return None if row[name] is None else Estimate(*row[name])


def _with_interval(time: Estimate) -> str:
    """A time and half the width of its interval."""
    if time.value <= 0:
        return duration(time.value)
    return f"{duration(time.value)} ±{(time.high - time.low) / 2 / time.value:.1%}"


def _between(value: Estimate) -> str:
    return f"{_short(value.value)} ({_short(value.low)} to {_short(value.high)})"


def _short(value: float) -> str:
    """Three significant digits."""
    return f"{value:.3g}" if abs(value) < 1000 else f"{value:.0f}"
